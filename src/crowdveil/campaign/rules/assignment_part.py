"""Assignment parts: the tasks of 100 slots each, so that a device loads its own part only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from crowdveil.campaign.rules.canonical_json import canonical_bytes
from crowdveil.campaign.rules.document import Campaign
from crowdveil.channels.certificate import refusals_as
from crowdveil.errors import CampaignError
from crowdveil.standalone.checks import PART_FORMAT, SLOTS_PER_PART, check_part


@dataclass(frozen=True, slots=True)
class AssignmentPart:
    """Tasks of consecutive slots.

    Attributes:
        first: number of the first slot.
        lists: ascending task indices of each slot.
    """

    first: int
    lists: tuple[tuple[int, ...], ...]

    @classmethod
    def from_bytes(cls, data: bytes, campaign: Campaign, number: int) -> Self:
        """Return part `number` of a campaign after checking its hash and content.

        Raises:
            CampaignError: hash, oversize, not json, not canonical, number, part.
        """
        with refusals_as(CampaignError):
            lists = check_part(data, campaign.fields, number)
        return cls(number * SLOTS_PER_PART, tuple(map(tuple, lists)))

    def to_bytes(self) -> bytes:
        """Return the canonical bytes of the part."""
        return canonical_bytes({"format": PART_FORMAT, "first": self.first, "tasks": list(map(list, self.lists))})

    def tasks(self, slot: int) -> tuple[int, ...]:
        """Return the task indices of a slot, ascending.

        Raises:
            CampaignError: slot.
        """
        if not self.first <= slot < self.first + len(self.lists):
            raise CampaignError("slot", f"slot {slot} is not in this part of the assignment.")
        return self.lists[slot - self.first]


def split_assignment(lists: Sequence[Sequence[int]]) -> tuple[AssignmentPart, ...]:
    """Return the parts of an assignment, given as the task indices of each slot in any order."""
    ordered = [tuple(sorted(tasks)) for tasks in lists]
    return tuple(
        AssignmentPart(first, tuple(ordered[first : first + SLOTS_PER_PART]))
        for first in range(0, len(ordered), SLOTS_PER_PART)
    )
