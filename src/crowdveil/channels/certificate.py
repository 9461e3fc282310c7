"""A channel's certificate as a file: JSON with a SHA-256 seal, read back with every limit checked.

The seal is the SHA-256 of the canonical JSON (sorted keys, no spaces, ASCII) of all fields but itself. It finds
accidents, not forgers: whoever writes a certificate can seal it. That the table keeps its claimed ratio is checked
again from the integers by whoever reads it. The mechanism is a word of a fixed list, which promises nothing by itself
and is not checked against the table; so is the mark of a simulation, which whoever has the file can take out.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from crowdveil.channels.text_validation import first_confusable_pair, name_defect, parse_json
from crowdveil.errors import CertificateError

FORMAT = "crowdveil-channel/1"
MAX_BYTES = 32_000_000
MAX_SYMBOLS = 1025
DESIGNED = "designed"
"""Mechanism of a table that is given as it is."""
CERTIFIED = ("randomized-response", "laplace", "one-layer", "quantized-response", DESIGNED)
"""Mechanisms that a certificate can name: those that perturb every cell through one channel."""
REAL_VALUED = "laplace, real-valued, binned (simulation only)"
"""Mechanism of the channel that reads simulated real-valued reports."""
MOST_PARTS = 16
"""Mechanisms, joined by +, that the channel of one certificate can be composed of."""
NO_PRIVACY = ": no privacy"
"""End of every mark."""
LISTS_MARK = f", LISTS FROM ANSWERS{NO_PRIVACY}"
"""What follows the mechanism where lists that had to be public were taken from the answers."""
_ONE = "|".join(CERTIFIED)
_MECHANISM = re.compile(
    rf"({re.escape(REAL_VALUED)}|({_ONE})(\+({_ONE})){{0,{MOST_PARTS - 1}}})"
    rf"(, SIMULATION from seed (0|[1-9][0-9]*): no privacy|{re.escape(LISTS_MARK)})?"
)
FIELDS = {"format", "mechanism", "alphabet", "participation", "outputs", "denominator", "rows", "ratio", "sha256"}


def canonical(data: dict[str, object]) -> bytes:
    """Return the bytes that are hashed: sorted keys, no spaces, ASCII."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def digest(data: dict[str, object]) -> str:
    """Return the SHA-256 of all fields but the seal, in hexadecimal."""
    return hashlib.sha256(canonical({k: v for k, v in data.items() if k != "sha256"})).hexdigest()


def simulation_mark(seed: int) -> str:
    """Return what follows the mechanism in the certificate of a simulation."""
    return f", SIMULATION from seed {seed}{NO_PRIVACY}"


def has_no_privacy_mark(mechanism: str) -> bool:
    """Return whether the mechanism of a certificate says that nothing is promised."""
    return mechanism.endswith(NO_PRIVACY) or mechanism.startswith(REAL_VALUED)


def certificate_mechanisms(certificate: Mapping[str, Any]) -> list[str]:
    """Return the mechanisms that a certificate names, a table's channel by channel; unprotected cells have none."""
    return [str(part["mechanism"]) for part in certificate.get("channels", [certificate]) if "mechanism" in part]


def with_checksum(fields: dict[str, Any]) -> dict[str, object]:
    """Return `fields` with format and seal added.

    Raises:
        CertificateError: text, mechanism: what `parse_certificate` would refuse is not sealed.
    """
    _check_texts(fields)
    data: dict[str, object] = {"format": FORMAT, **fields}
    return {**data, "sha256": digest(data)}


def parse_document(text: str | bytes, form: str, fields: set[str]) -> dict[str, Any]:
    """Parse a JSON object of one format and exactly these fields; the seal is checked by `verify_checksum`.

    Raises:
        CertificateError: oversize, not json (a key that stands twice included), format.
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
    """Refuse an object whose seal is not that of its other fields.

    Raises:
        CertificateError: hash.
    """
    if data["sha256"] != digest(data):
        raise CertificateError("hash", "the SHA-256 does not match: the certificate was changed or cut.")


def parse_certificate(text: str | bytes) -> dict[str, Any]:
    """Check the outer form of a certificate; the table itself is checked by `Channel`.

    Raises:
        CertificateError: oversize, not json, format, alphabet, text, mechanism, shape, ratio, non-integer, hash.
    """
    data = parse_document(text, FORMAT, FIELDS)
    _check_types(data)
    _check_texts(data)
    verify_checksum(data)
    return data


def _check_types(data: dict[str, Any]) -> None:
    """Check every field down to its scalars, so that nothing deep or strange is left to hash, compare or print."""
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
    if not (isinstance(ratio, list) and len(ratio) == 2 and all(type(x) is int and x > 0 for x in ratio)):
        raise CertificateError("ratio", "the claimed ratio must be two positive integers.")
    if type(data["denominator"]) is not int or any(type(entry) is not int for row in rows for entry in row):
        raise CertificateError("non-integer", "table entries and the denominator must be integers.")


def _check_texts(data: dict[str, Any]) -> None:
    """Check all that a certificate lets its writer choose freely: names of labels and symbols, and the mechanism."""
    labels = data["alphabet"].get("names")
    check_symbol_names("label", labels if isinstance(labels, list) else ())
    check_symbol_names("report symbol", data["outputs"])
    if _MECHANISM.fullmatch(data["mechanism"]) is None:
        raise CertificateError(
            "mechanism",
            f"{data['mechanism'][:100]!r} is none of {', '.join(CERTIFIED)}, up to {MOST_PARTS} of them joined by +, "
            f"or one of a marked simulation. A table made by anything else is {DESIGNED!r}.",
        )


def check_symbol_names(what: str, names: Iterable[str]) -> None:
    """Refuse a name that is not printing text in normal form C without white space around it.

    Raises:
        CertificateError: text.
    """
    for name in names:
        fault = name_defect(name)
        if fault:
            raise CertificateError("text", f"{what} {name[:100]!r}: {fault}. Rename it.")
    check_distinguishable(what, names)


def check_distinguishable(what: str, names: Iterable[str]) -> None:
    """Refuse two names that look alike.

    Raises:
        CertificateError: text.
    """
    alike = first_confusable_pair(names)
    if alike is not None:
        raise CertificateError("text", f"{what} {alike[0]!r} and {alike[1]!r} look alike. Rename one of them.")


def _is_flat(value: object) -> bool:
    return isinstance(value, str | int | float) or (isinstance(value, list) and all(isinstance(x, str) for x in value))
