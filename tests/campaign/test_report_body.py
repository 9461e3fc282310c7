"""Bodies of reports: one length for every worker, and every code checked against its channel."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.campaign.document import Groups
from crowdveil.campaign.report_body import NOT_ANSWERED, decode, encode
from crowdveil.channels.alphabet import Categories
from crowdveil.errors import CampaignError
from tests.campaign.builders import build_campaign, response

PROTECTED = build_campaign(assignment=[[0, 1, 2, 3], [1, 3]]).campaign
PUBLIC = build_campaign(participation="public").campaign
WIDE = build_campaign(
    channels=[response(Categories(tuple(f"label {k}" for k in range(300))), participation="public")]
).campaign


@given(st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_protected_codes_are_read_back(codes):
    """Four cells of three labels and NULL are four bytes."""
    body = encode(codes, PROTECTED)

    assert bytes(codes) == body
    assert tuple(codes) == decode(body, PROTECTED, 0, range(4))


@given(st.lists(st.integers(-1, 2), min_size=4, max_size=4))
def test_public_codes_are_read_back(codes):
    """With public participation, 255 marks a cell that was not answered."""
    body = encode(codes, PUBLIC)

    assert bytes(255 if code == NOT_ANSWERED else code for code in codes) == body
    assert tuple(codes) == decode(body, PUBLIC, 0, range(4))


@given(st.lists(st.integers(-1, 299), min_size=4, max_size=4))
def test_wide_codes_are_read_back(codes):
    """300 symbols need two bytes, big endian; 65535 marks a cell that was not answered."""
    body = encode(codes, WIDE)

    assert b"".join((65535 if code == -1 else code).to_bytes(2, "big") for code in codes) == body
    assert tuple(codes) == decode(body, WIDE, 0, range(4))


def test_a_smaller_load_is_padded_with_zeros():
    """A worker with fewer tasks sends a body of the same length."""
    body = encode([3, 1], PROTECTED)

    assert b"\3\1\0\0" == body
    assert (3, 1) == decode(body, PROTECTED, 1, (1, 3))


@pytest.mark.parametrize(
    ("codes", "defect"),
    [([], "length"), ([0] * 5, "length"), ([0, 4], "symbol"), ([NOT_ANSWERED], "symbol"), ([-2], "symbol")],
)
def test_codes_that_no_channel_has_are_not_written(codes, defect):
    """Too many cells, an unknown symbol, and "not answered" where participation is protected, are refused."""
    with pytest.raises(CampaignError) as caught:
        encode(codes, PROTECTED)

    assert defect == caught.value.defect


@pytest.mark.parametrize(
    ("body", "tasks", "defect"),
    [
        (b"\0\0\0", range(4), "length"),
        (b"\0\0\0\0\0", range(4), "length"),
        (b"\0\0\0\4", range(4), "symbol"),
        (b"\0\0\0\xff", range(4), "symbol"),
        (b"\0\0\0\1", (1, 3), "symbol"),
    ],
)
def test_a_wrong_body_is_refused(body, tasks, defect):
    """Another length, a code that is no symbol, and cells beyond the slot's tasks, are refused."""
    with pytest.raises(CampaignError) as caught:
        decode(body, PROTECTED, 0, tasks)

    assert defect == caught.value.defect


def test_each_cell_is_checked_against_its_own_channel():
    """A code that another channel of the campaign has is refused where the cell's channel has not."""
    alphabet = Categories(("a", "b", "c"))
    many, few = response(alphabet), response(alphabet)
    table = ((1 << 47, 1 << 47),) * 4
    few = type(few)(alphabet, "protected", ("x", "y"), table)
    groups = Groups(choice=((0,), (1,)), task_group=(0,), slot_group=(0, 1))
    campaign = build_campaign(channels=[many, few], groups=groups, tasks=1, slots=2).campaign

    assert (2,) == decode(b"\2", campaign, 0, (0,))
    with pytest.raises(CampaignError, match="symbol"):
        decode(b"\2", campaign, 1, (0,))
