"""Channel certificates: JSON with a SHA-256 checksum, and validation of their format.

A certificate contains the exact integer channel: `rows[input][output]` are non-negative integers, every row sums to
`denominator` = 2^48, and P(output | input) = rows[input][output] / 2^48. `ratio` is the claimed bound on the largest
ratio of two entries of one column, as numerator and denominator; epsilon is its logarithm. Readers recompute the ratio
from the integers (`Channel.from_certificate`).

`sha256` is the SHA-256 of the canonical JSON (sorted keys, no spaces, ASCII) of all other fields. It detects accidental
changes, not forgery. `mechanism` is one of a fixed list of names. It is not checked against the table and is no
guarantee; neither is the mark of a simulation.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from crowdveil.errors import CampaignError, CertificateError, DeviceError, SettingsError
from crowdveil.standalone.checks import (
    CHANNEL_FORMAT,
    MAX_CERTIFICATE_BYTES,
    MECHANISM,
    NO_PRIVACY,
    ClaimLog,
    Refused,
    check_certificate,
    digest,
    fits,
    symbols_defect,
)
from crowdveil.standalone.verification import KINDS, parse_json

DESIGNED = "designed"
"""Mechanism of a channel given by its table."""
LISTS_MARK = f", LISTS FROM ANSWERS{NO_PRIVACY}"
"""Mark after the mechanism if lists of tasks, workers or labels were taken from the answers."""


@contextmanager
def refusals_as(kind: type[CertificateError | CampaignError | DeviceError]) -> Iterator[None]:
    """Context in which a refusal, such as that of a false claim, is an error of this kind."""
    try:
        yield
    except Refused as refusal:
        raise kind(refusal.name, refusal.sentence) from refusal


def simulation_mark(seed: int) -> str:
    """Return the mark after the mechanism in the certificate of a simulation."""
    return f", SIMULATION from seed {seed}{NO_PRIVACY}"


def with_format_and_checksum(fields: dict[str, Any]) -> dict[str, object]:
    """Return `fields` with `format` and `sha256` added.

    Raises:
        CertificateError: text, mechanism.
    """
    for names in (fields["alphabet"].get("names", []), fields["outputs"]):
        check_symbol_names(names)
    if not fits(fields["mechanism"], MECHANISM):
        unknown, hint = repr(fields["mechanism"])[:100], f"Use {DESIGNED!r} for a table from another source."
        raise CertificateError("mechanism", f"{unknown} is not a mechanism that a certificate can name.", hint=hint)
    data: dict[str, object] = {"format": CHANNEL_FORMAT, **fields}
    return {**data, "sha256": digest(data)}


def check_symbol_names(names: Sequence[str]) -> None:
    """Check that names of labels or report symbols are readable, and that no two look alike.

    Raises:
        CertificateError: text, duplicate symbols.
    """
    defect, found = symbols_defect(names)
    if defect:
        raise CertificateError(defect, f"{found}.", hint="Rename it.")


def has_format(text: str | bytes, *forms: str) -> bool:
    """Return whether a text is a JSON object of one of these formats; its other content is not checked."""
    try:
        data = parse_json(text)
    except ValueError:
        return False
    return isinstance(data, dict) and data.get("format") in forms


def require_certificate_or_campaign(data: bytes, source: str) -> None:
    """Refuse a file that claims nothing: it is no JSON object of a known format, such as a table of answers.

    Raises:
        SettingsError: naming the file.
    """
    if not has_format(data, *KINDS):
        raise SettingsError(
            "the file must be a certificate or a campaign",
            value=source,
            hint="Give certificate.json, written by perturb and collect, or campaign.json.",
        )


def parse_certificate_json(text: str | bytes) -> Any:
    """Return the JSON value of a certificate's text, unchecked.

    Raises:
        CertificateError: oversize, not json (repeated keys included).
    """
    if len(text) > MAX_CERTIFICATE_BYTES:
        raise CertificateError("oversize", f"{len(text)} bytes, at most {MAX_CERTIFICATE_BYTES} are read.")
    try:
        return parse_json(text)
    except ValueError as error:
        raise CertificateError("not json", str(error)[:200]) from error


def parse_certificate(text: str | bytes) -> dict[str, Any]:
    """Return the fields of a certificate, after checking all of them and every entry of the table.

    Raises:
        CertificateError: oversize, not json, or a defect of `checks.check_certificate`.
    """
    data = parse_certificate_json(text)
    with refusals_as(CertificateError):
        check_certificate(data, ClaimLog())
    return dict(data)
