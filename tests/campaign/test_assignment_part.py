"""Assignment parts: 100 slots each, bound to the campaign by their hash."""

import pytest

from crowdveil.campaign.assignment_part import AssignmentPart, split_assignment
from crowdveil.errors import CampaignError
from tests.campaign.builders import build_campaign


def test_parts_cover_all_slots():
    """250 slots make three parts; each slot's tasks are ascending and found by its number."""
    lists = [[slot % 4, (slot + 1) % 4] for slot in range(250)]

    built = build_campaign(assignment=lists)

    assert [100, 100, 50] == [len(part.lists) for part in built.parts]
    assert list(built.parts) == [
        AssignmentPart.from_bytes(part.to_bytes(), built.campaign, number) for number, part in enumerate(built.parts)
    ]
    assert [tuple(sorted(tasks)) for tasks in lists] == [built.tasks(slot) for slot in range(250)]


def test_a_part_knows_its_own_slots_only():
    """A slot of another part is refused."""
    (part,) = split_assignment([[0], [1]])
    for slot in (-1, 2):
        with pytest.raises(CampaignError, match="slot"):
            part.tasks(slot)


def test_another_part_is_refused():
    """A part of another campaign, another number, or a number that does not exist, is refused."""
    built = build_campaign(assignment=[[slot % 4] for slot in range(101)])
    data = built.parts[0].to_bytes()
    for number, changed, defect in ((0, data + b" ", "hash"), (1, data, "hash"), (2, data, "part"), (-1, data, "part")):
        with pytest.raises(CampaignError) as caught:
            AssignmentPart.from_bytes(changed, built.campaign, number)

        assert defect == caught.value.defect
