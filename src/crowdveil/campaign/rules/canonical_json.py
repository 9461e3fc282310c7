"""Canonical JSON: the one byte sequence of a document, whose SHA-256 is its name.

A document is accepted only if writing its value again gives the same bytes: keys sorted, no spaces, ASCII with escapes,
no repeated keys. Integers are below 2^53 in size. A number that is not an integer is at least 1e-4 in size; Python and
JavaScript write such numbers alike.
"""

from typing import Any

from crowdveil.channels.certificate import refusals_as
from crowdveil.errors import CampaignError
from crowdveil.standalone import checks


def canonical_bytes(value: object) -> bytes:
    """Return the canonical JSON text of a value.

    Raises:
        CampaignError: number.
    """
    data = checks.canonical(value)
    parse_canonical(data, len(data))
    return data


def parse_canonical(data: bytes, max_bytes: int) -> Any:
    """Return the value of a canonical JSON text.

    Raises:
        CampaignError: oversize, not json, not canonical, number.
    """
    with refusals_as(CampaignError):
        return checks.parse_canonical(data, max_bytes)
