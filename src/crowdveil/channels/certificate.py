"""Channel certificates: JSON with a SHA-256 checksum, and validation of their format.

A certificate contains the exact integer channel: `rows[input][output]` are non-negative integers, every row sums to
`denominator` = 2^48, and P(output | input) = rows[input][output] / 2^48. `ratio` is the claimed bound on the largest
ratio of two entries of one column, as numerator and denominator; epsilon is its logarithm. Readers recompute the ratio
from the integers (`Channel.from_certificate`).

`sha256` is the SHA-256 of the canonical JSON (sorted keys, no spaces, ASCII) of all other fields. It detects accidental
changes, not forgery. `mechanism` is one of a fixed list of names. It is not checked against the table and is no
guarantee; neither is the mark of a simulation.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from crowdveil.channels.text_validation import first_confusable_pair, name_defect, parse_json
from crowdveil.errors import CertificateError, SettingsError

FORMAT = "crowdveil-channel/1"
MAX_BYTES = 32_000_000
MAX_SYMBOLS = 1025
"""Largest number of input or output symbols: 1,024 labels and NULL."""
DESIGNED = "designed"
"""Mechanism of a channel given by its table."""
CERTIFIED = ("randomized-response", "laplace", "one-layer", "quantized-response", DESIGNED)
"""Mechanisms with the same channel for every cell, which a certificate can contain."""
REAL_VALUED = "laplace, real-valued, binned (simulation only)"
"""Mechanism of the channel of binned simulated real-valued reports."""
MAX_COMPOSED = 16
"""Largest number of mechanisms, joined by +, of a composed channel."""
NO_PRIVACY = ": no privacy"
"""Suffix of the marks of simulations and of lists from answers."""
LISTS_MARK = f", LISTS FROM ANSWERS{NO_PRIVACY}"
"""Mark after the mechanism if lists of tasks, workers or labels were taken from the answers."""
_CERTIFIED_NAME = "|".join(CERTIFIED)
_MECHANISM = re.compile(
    rf"({re.escape(REAL_VALUED)}|({_CERTIFIED_NAME})(\+({_CERTIFIED_NAME})){{0,{MAX_COMPOSED - 1}}})"
    rf"(, SIMULATION from seed (0|[1-9][0-9]*): no privacy|{re.escape(LISTS_MARK)})?"
)
FIELDS = {"format", "mechanism", "alphabet", "participation", "outputs", "denominator", "rows", "ratio", "sha256"}


def canonical(data: object) -> bytes:
    """Return canonical JSON: sorted keys, no spaces, ASCII."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def digest(data: dict[str, object]) -> str:
    """Return the SHA-256 of all fields but `sha256`, in hexadecimal."""
    return hashlib.sha256(canonical({k: v for k, v in data.items() if k != "sha256"})).hexdigest()


def simulation_mark(seed: int) -> str:
    """Return the mark after the mechanism in the certificate of a simulation."""
    return f", SIMULATION from seed {seed}{NO_PRIVACY}"


def has_no_privacy_mark(mechanism: str) -> bool:
    """Return whether the mechanism of a certificate is marked as without privacy."""
    return mechanism.endswith(NO_PRIVACY) or mechanism.startswith(REAL_VALUED)


def certificate_mechanisms(certificate: Mapping[str, Any]) -> list[str]:
    """Return the mechanism names of a certificate, one per protected channel."""
    return [str(part["mechanism"]) for part in certificate.get("channels", [certificate]) if "mechanism" in part]


def with_checksum(fields: dict[str, Any]) -> dict[str, object]:
    """Return `fields` with `format` and `sha256` added.

    Raises:
        CertificateError: text, mechanism.
    """
    _check_texts(fields)
    data: dict[str, object] = {"format": FORMAT, **fields}
    return {**data, "sha256": digest(data)}


def has_format(text: str | bytes, form: str) -> bool:
    """Return whether a text is a JSON object of this format; its other content is not checked."""
    try:
        data = parse_json(text)
    except ValueError:
        return False
    return isinstance(data, dict) and data.get("format") == form


def require_json_file(data: bytes, source: str) -> None:
    """Refuse a file that does not start as a JSON object, such as a table of answers.

    Raises:
        SettingsError: naming the file.
    """
    if not data.lstrip().startswith(b"{"):
        raise SettingsError(
            "the file must be a certificate or a campaign",
            value=source,
            hint="Give certificate.json, written by perturb and collect, or campaign.json.",
        )


def parse_document(text: str | bytes, form: str, fields: set[str]) -> dict[str, Any]:
    """Return the JSON object of a text with this format and exactly these fields; the checksum is not verified.

    Raises:
        CertificateError: oversize, not json (repeated keys included), format.
    """
    if len(text) > MAX_BYTES:
        raise CertificateError("oversize", f"{len(text)} bytes, at most {MAX_BYTES} are read.")
    try:
        data = parse_json(text)
    except ValueError as error:
        raise CertificateError("not json", str(error)[:200]) from error
    if not isinstance(data, dict) or data.get("format") != form or set(data) != fields:
        raise CertificateError("format", f"expected an object of format {form!r} with fields {sorted(fields)}.")
    return data


def verify_checksum(data: dict[str, Any]) -> None:
    """Check `sha256` against the other fields.

    Raises:
        CertificateError: hash.
    """
    if data["sha256"] != digest(data):
        raise CertificateError("hash", "the SHA-256 does not match: the certificate was changed or truncated.")


def parse_certificate(text: str | bytes) -> dict[str, Any]:
    """Return the fields of a certificate with a valid format; `Channel` validates the table.

    Raises:
        CertificateError: oversize, not json, format, alphabet, text, mechanism, shape, ratio, non-integer, hash.
    """
    data = parse_document(text, FORMAT, FIELDS)
    _check_types(data)
    _check_texts(data)
    verify_checksum(data)
    return data


def _check_types(data: dict[str, Any]) -> None:
    """Check the types of all fields and their elements."""
    outputs, rows, ratio = data["outputs"], data["rows"], data["ratio"]
    if not (isinstance(data["alphabet"], dict) and all(map(_is_flat, data["alphabet"].values()))):
        raise CertificateError("alphabet", "it must be an object of numbers, strings and lists of strings.")
    if data["participation"] not in ("protected", "public") or not isinstance(data["mechanism"], str):
        raise CertificateError("format", "participation must be 'protected' or 'public', mechanism a string.")
    if not (isinstance(outputs, list) and all(isinstance(name, str) for name in outputs)):
        raise CertificateError("format", "outputs must be a list of strings.")
    if not (isinstance(rows, list) and rows and all(isinstance(row, list) for row in rows)):
        raise CertificateError("shape", "rows must be a list of lists.")
    if len(outputs) > MAX_SYMBOLS or len(rows) > MAX_SYMBOLS:
        raise CertificateError("oversize", f"at most {MAX_SYMBOLS} symbols.")
    if not _is_ratio(ratio):
        raise CertificateError("ratio", "the claimed ratio must be two positive integers below 2^53.")
    if type(data["denominator"]) is not int or any(type(entry) is not int for row in rows for entry in row):
        raise CertificateError("non-integer", "table entries and the denominator must be integers.")


def _check_texts(data: dict[str, Any]) -> None:
    """Check names of labels and report symbols, and the mechanism."""
    labels = data["alphabet"].get("names")
    check_symbol_names("label", labels if isinstance(labels, list) else ())
    check_symbol_names("report symbol", data["outputs"])
    if _MECHANISM.fullmatch(data["mechanism"]) is None:
        raise CertificateError(
            "mechanism",
            f"{data['mechanism'][:100]!r} must be one of {', '.join(CERTIFIED)}, up to {MAX_COMPOSED} of these "
            f"joined by +, or a marked simulation. Use {DESIGNED!r} for a table from another source.",
        )


def check_symbol_names(role: str, names: Iterable[str]) -> None:
    """Check that names are printable, in normal form C, without surrounding white space, and distinguishable.

    Raises:
        CertificateError: text.
    """
    for name in names:
        defect = name_defect(name)
        if defect:
            raise CertificateError("text", f"{role} {name[:100]!r}: {defect}. Rename it.")
    check_distinguishable(role, names)


def check_distinguishable(role: str, names: Iterable[str]) -> None:
    """Check that no two names have the same visible form.

    Raises:
        CertificateError: text.
    """
    pair = first_confusable_pair(names)
    if pair is not None:
        raise CertificateError("text", f"{role} {pair[0]!r} and {pair[1]!r} are confusable. Rename one of them.")


def _is_ratio(value: object) -> bool:
    """Return whether a JSON value is a numerator and a denominator: two positive integers below 2^53."""
    return isinstance(value, list) and len(value) == 2 and all(type(x) is int and 0 < x < 1 << 53 for x in value)


def _is_flat(value: object) -> bool:
    return isinstance(value, str | int | float) or (isinstance(value, list) and all(isinstance(x, str) for x in value))
