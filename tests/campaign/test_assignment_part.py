"""Assignment parts: 100 slots each, bound to the campaign by their hash."""

import json
from hashlib import sha256

import pytest

from crowdveil.campaign.assignment_part import AssignmentPart, split_assignment
from crowdveil.campaign.canonical import canonical_bytes
from crowdveil.campaign.document import Campaign
from crowdveil.errors import CampaignError
from tests.campaign.builders import build_campaign


def with_part(part):
    """Return a campaign of three slots and four tasks whose only part has these bytes."""
    fields = json.loads(build_campaign().campaign.to_bytes())
    return Campaign.from_bytes(canonical_bytes({**fields, "assignment_parts": [sha256(part).hexdigest()]}))


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


@pytest.mark.parametrize(
    "fields",
    [
        {"format": "crowdveil-assignment/2", "first": 0, "tasks": [[0]] * 3},
        {"format": "crowdveil-assignment/1", "first": 1, "tasks": [[0]] * 3},
        {"format": "crowdveil-assignment/1", "first": False, "tasks": [[0]] * 3},
        {"format": "crowdveil-assignment/1", "first": 0, "tasks": [[0]] * 2},
        {"format": "crowdveil-assignment/1", "first": 0, "tasks": [[0], [0], []]},
        {"format": "crowdveil-assignment/1", "first": 0, "tasks": [[0], [0], [1, 0]]},
        {"format": "crowdveil-assignment/1", "first": 0, "tasks": [[0], [0], [1, 1]]},
        {"format": "crowdveil-assignment/1", "first": 0, "tasks": [[0], [0], [4]]},
        {"format": "crowdveil-assignment/1", "first": 0, "tasks": [[0], [0], [-1]]},
        {"format": "crowdveil-assignment/1", "first": 0, "tasks": [[0], [0], [True]]},
        {"format": "crowdveil-assignment/1", "first": 0, "tasks": [[0], [0], 1]},
        {"format": "crowdveil-assignment/1", "first": 0, "tasks": [[0], [0], [0]], "more": 1},
        [],
    ],
)
def test_a_malformed_part_is_refused(fields):
    """A part with the right hash but a wrong content is refused."""
    data = canonical_bytes(fields)
    with pytest.raises(CampaignError) as caught:
        AssignmentPart.from_bytes(data, with_part(data), 0)

    assert "part" == caught.value.defect


def test_a_part_must_be_canonical():
    """A part in another form than the canonical one is refused, whatever its hash."""
    data = json.dumps({"format": "crowdveil-assignment/1", "first": 0, "tasks": [[0]] * 3}).encode()
    with pytest.raises(CampaignError, match="not canonical"):
        AssignmentPart.from_bytes(data, with_part(data), 0)


def test_bytes_that_were_checked_before_need_their_hash_only():
    """The short way gives the part of the full check, and refuses every other bytes."""
    built = build_campaign(slots=130)
    data = built.parts[1].to_bytes()

    assert built.parts[1] == AssignmentPart.from_checked_bytes(data, built.campaign, 1)
    for changed, number in ((data[:-1], 1), (data, 0), (data, 2), (data, -1)):
        with pytest.raises(CampaignError, match=r"hash|parts, from 0"):
            AssignmentPart.from_checked_bytes(changed, built.campaign, number)
