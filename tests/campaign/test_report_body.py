"""Bodies of reports: one length for every worker, and every code checked against its channel."""

import pytest

from crowdveil.campaign.document import Groups
from crowdveil.campaign.report_body import decode
from crowdveil.channels.alphabet import Categories
from crowdveil.errors import CampaignError
from tests.campaign.builders import build_campaign, response

PROTECTED = build_campaign(assignment=[[0, 1, 2, 3], [1, 3]]).campaign


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
