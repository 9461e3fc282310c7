"""Canonical JSON: one text for one value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.campaign.canonical import canonical_bytes, parse_canonical
from crowdveil.errors import CampaignError

KEYS = st.text("abcxyz019_", min_size=1, max_size=5)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8).filter(lambda text: text.isascii())
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(1e-4, 1e9).filter(lambda x: not x.is_integer())
VALUES = st.recursive(
    st.none() | st.booleans() | TEXTS | NUMBERS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@given(VALUES)
def test_what_is_written_is_read_back(value):
    """A value survives writing and reading."""
    assert value == parse_canonical(canonical_bytes(value), 10**6)


@pytest.mark.parametrize(
    ("text", "defect"),
    [
        ("[1e999]", "number"),
        ("[" * 100_000 + "]" * 100_000, "not json"),
        ("[0.50]", "not canonical"),
        ('["\\u00E9"]', "not canonical"),
        ("[-0.0]", "number"),
        ("[0.00001]", "number"),
        ('{"":1}', "key"),
    ],
)
def test_other_texts_of_a_value_are_refused(text, defect):
    """Every text but the canonical one is refused by its defect, as those of the shared vectors."""
    with pytest.raises(CampaignError) as caught:
        parse_canonical(text.encode("utf-8"), 10**6)

    assert defect == caught.value.defect


def test_size_is_checked_before_parsing():
    """A text beyond the limit is not parsed."""
    with pytest.raises(CampaignError, match="oversize"):
        parse_canonical(b"[" * 11, 10)


def test_a_character_beyond_the_basic_plane_is_two_escapes():
    """A character beyond U+FFFF is written as two surrogate escapes, as JavaScript can write it."""
    assert b'["\\ud83d\\ude00"]' == canonical_bytes(["\U0001f600"])
    assert ["\U0001f600"] == parse_canonical(b'["\\ud83d\\ude00"]', 100)


@pytest.mark.parametrize("value", [1.0, float("nan"), float("inf"), 2**53, 1e-9, {"Key": 1}, "\ud800", {1: 2}, b"x"])
def test_values_without_a_canonical_text_are_not_written(value):
    """A value that no reader accepts is refused by the writer."""
    with pytest.raises(CampaignError):
        canonical_bytes({"value": value})
