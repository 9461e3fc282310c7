"""Expected interval of a share, for a campaign that is a survey: few questions with labels, each to many people."""

from dataclasses import dataclass
from typing import Any

from crowdveil.campaign.planning.expected_error import crowd_expectation
from crowdveil.campaign.settings.settings_file import CampaignSettings
from crowdveil.channels.alphabet import Categories
from crowdveil.mechanisms import ChannelMechanism, RandomizedResponse
from crowdveil.planning.share_plan import ExpectedShare, plan_share
from crowdveil.quality.shares.share_function import LEVEL

MOST_TASKS, LEAST_PEOPLE = 3, 30
"""Tasks of a survey at most, and people asked about each at least."""
SHARES = (0.1, 0.5)
"""Guessed shares: a small one, and the one with the widest interval."""
WIDE = 0.2
"""Half-width from which a survey says little."""


@dataclass(frozen=True, kw_only=True)
class ExpectedSurvey:
    """Expected intervals of shares.

    Attributes:
        people: number of people asked about each task.
        response: share of them who answer.
        protected, unprotected: expected interval for each of `SHARES`.
    """

    people: int
    response: float
    protected: tuple[ExpectedShare, ...]
    unprotected: tuple[ExpectedShare, ...]

    @property
    def text(self) -> str:
        """Half-widths with and without protection, as text."""
        return f"{_widths_text(self.protected)}; unprotected {_widths_text(self.unprotected)}"

    @property
    def assumptions_text(self) -> str:
        """Assumptions, as text."""
        return f"{self.people:,} people asked about each task, {self.response:.0%} of them answer; level {LEVEL:.0%}"

    @property
    def warning(self) -> str:
        """Warning of a wide interval; empty without one."""
        if self.protected[-1].half_width <= WIDE:
            return ""
        wide = f"± {100 * self.protected[-1].half_width:.0f} percentage points"
        return f"The interval of a share of 50 % is expected to be {wide}. Raise epsilon, or ask more people."

    def to_json(self) -> dict[str, Any]:
        """Return the survey as JSON values."""
        rows = zip(SHARES, self.protected, self.unprotected, strict=True)
        return {
            "people": self.people,
            "response": self.response,
            "level": LEVEL,
            "shares": [
                {"share": share, "low": one.low, "high": one.high, "half_width": one.half_width,
                 "unprotected_half_width": plain.half_width}
                for share, one, plain in rows
            ],
        }  # fmt: skip


def _widths_text(rows: tuple[ExpectedShare, ...]) -> str:
    return ", ".join(
        f"± {100 * one.half_width:.1f} points of a share of {share:.0%}"
        for share, one in zip(SHARES, rows, strict=True)
    )


def people_of_survey(source: CampaignSettings) -> int | None:
    """Return the number of people asked about each task of a survey; None if a campaign is none."""
    people = crowd_expectation(source)[0] or source.slots
    survey = isinstance(source.alphabet, Categories) and len(source.rows) <= MOST_TASKS and people >= LEAST_PEOPLE
    return people if survey and not source.pairs else None


def expected_survey(source: CampaignSettings, mechanism: ChannelMechanism) -> ExpectedSurvey | None:
    """Return the expected intervals of a survey by randomized response; None for other campaigns."""
    people = people_of_survey(source)
    if people is None or not isinstance(mechanism, RandomizedResponse):
        return None
    plans = [
        plan_share(
            share, people=[people], epsilons=[mechanism.guarantee.epsilon], response=source.expected.answered,
            labels=source.alphabet.size, participation=source.participation,
        )
        for share in SHARES
    ]  # fmt: skip
    rows = [one.rows for one in plans]
    protected, unprotected = (tuple(own) for own in zip(*rows, strict=True))
    return ExpectedSurvey(
        people=people, response=source.expected.answered, protected=protected, unprotected=unprotected
    )
