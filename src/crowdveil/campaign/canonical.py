"""Canonical JSON: the one byte sequence of a document, whose SHA-256 is its name.

A document is accepted only if writing its value again gives the same bytes: keys sorted, no spaces, ASCII with escapes,
no repeated keys. Keys are [a-z0-9_]+, strings are in normal form C without lone surrogates, integers are below 2^53 in
size. A number that is not an integer is at least 1e-4 in size; Python and JavaScript write such numbers alike.
"""

import re
from typing import Any
from unicodedata import is_normalized

from crowdveil.channels.alphabet import is_utf8_encodable
from crowdveil.channels.certificate import canonical
from crowdveil.channels.text_validation import parse_json
from crowdveil.errors import CampaignError

INTEGER_BOUND = 1 << 53
"""Integers below it in size are exact in JavaScript."""
MIN_FRACTION = 1e-4
"""Smallest size of a number that is not an integer; JavaScript writes smaller ones in another form."""
_KEY = re.compile("[a-z0-9_]+")


def canonical_bytes(value: object) -> bytes:
    """Return the canonical JSON text of a value.

    Raises:
        CampaignError: key, text, number.
    """
    _check_value(value)
    return canonical(value)


def parse_canonical(data: bytes, max_bytes: int) -> Any:
    """Return the value of a canonical JSON text.

    Raises:
        CampaignError: oversize, not json, not canonical, key, text, number.
    """
    if len(data) > max_bytes:
        raise CampaignError("oversize", f"{len(data)} bytes, at most {max_bytes} are read.")
    try:
        value = parse_json(data)
        _check_value(value)
        same = canonical(value) == data
    except (ValueError, RecursionError) as error:
        if isinstance(error, CampaignError):
            raise
        raise CampaignError("not json", str(error)[:200]) from error
    if not same:
        raise CampaignError("not canonical", "the bytes differ from the canonical form of their value.")
    return value


def _check_value(value: object) -> None:
    """Check keys, strings and numbers at every depth."""
    match value:
        case dict():
            for key, inner in value.items():
                if not (isinstance(key, str) and _KEY.fullmatch(key)):
                    raise CampaignError("key", f"{str(key)[:50]!r} is not made of a-z, 0-9 and _.")
                _check_value(inner)
        case list() | tuple():
            for inner in value:
                _check_value(inner)
        case str():
            if not (is_utf8_encodable(value) and is_normalized("NFC", value)):
                raise CampaignError("text", f"{value[:50]!r} is not in normal form C, or has a lone surrogate.")
        case None | bool():
            pass
        case int() if abs(value) < INTEGER_BOUND:
            pass
        case float() if not value.is_integer() and MIN_FRACTION <= abs(value) < INTEGER_BOUND:
            pass
        case _:
            raise CampaignError("number", f"{str(value)[:50]} is not an integer below 2^53, nor a usual fraction.")
