"""A channel's certificate as a file: JSON with a SHA-256 seal, read back with every limit checked.

The seal is the SHA-256 of the canonical JSON (sorted keys, no spaces, ASCII) of all fields but itself. It says that
nothing changed on the way; that the table keeps its claim is checked again from the integers by whoever reads it.
"""

import hashlib
import json
from typing import Any

from crowdveil.errors import CertificateError

FORMAT = "crowdveil-channel/1"
MAX_BYTES = 32_000_000
MAX_SYMBOLS = 1025
FIELDS = {"format", "mechanism", "alphabet", "participation", "outputs", "denominator", "rows", "ratio", "sha256"}


def canonical(data: dict[str, object]) -> bytes:
    """Return the bytes that are hashed: sorted keys, no spaces, ASCII."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def digest(data: dict[str, object]) -> str:
    """Return the SHA-256 of all fields but the seal, in hexadecimal."""
    return hashlib.sha256(canonical({k: v for k, v in data.items() if k != "sha256"})).hexdigest()


def seal_certificate(fields: dict[str, object]) -> dict[str, object]:
    """Return `fields` with format and seal added."""
    data: dict[str, object] = {"format": FORMAT, **fields}
    return {**data, "sha256": digest(data)}


def parse_sealed(text: str | bytes, form: str, fields: set[str]) -> dict[str, Any]:
    """Parse a JSON object of one format and exactly these fields; the seal is checked by `check_seal`.

    Raises:
        CertificateError: oversize, not json, format.
    """
    if len(text) > MAX_BYTES:
        raise CertificateError("oversize", f"{len(text)} bytes, at most {MAX_BYTES} are read.")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CertificateError("not json", str(error)[:200]) from error
    if not isinstance(data, dict) or data.get("format") != form or set(data) != fields:
        raise CertificateError("format", f"expected an object of format {form!r} with fields {sorted(fields)}.")
    return data


def check_seal(data: dict[str, Any]) -> None:
    """Refuse an object whose seal is not that of its other fields.

    Raises:
        CertificateError: hash.
    """
    if data["sha256"] != digest(data):
        raise CertificateError("hash", "the SHA-256 does not match: the certificate was changed or cut.")


def read_certificate(text: str | bytes) -> dict[str, Any]:
    """Check the outer form of a certificate; the table itself is checked by `Channel`.

    Raises:
        CertificateError: oversize, not json, format, alphabet, shape, ratio, non-integer, hash.
    """
    data = parse_sealed(text, FORMAT, FIELDS)
    _check_types(data)
    check_seal(data)
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


def _is_flat(value: object) -> bool:
    return isinstance(value, str | int | float) or (isinstance(value, list) and all(isinstance(x, str) for x in value))
