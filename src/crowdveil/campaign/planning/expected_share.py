"""Expected interval of a share, for a campaign that is a survey.

A survey has `expected.share`, or at most `MOST_TASKS` questions with labels, each to `LEAST_PEOPLE` or more.
"""

from dataclasses import dataclass
from typing import Any

from crowdveil.campaign.planning.expected_error import crowd_expectation
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.settings.settings_file import CampaignSettings
from crowdveil.channels.alphabet import Categories
from crowdveil.mechanisms import ChannelMechanism, RandomizedResponse, SubsetSelection
from crowdveil.planning.share_plan import ExpectedShare, expected_share
from crowdveil.quality.shares.share_function import LEVEL

MOST_TASKS, LEAST_PEOPLE = 3, 30
"""Tasks of a survey at most, and people asked about each at least."""
SHARES = (0.1, 0.5)
"""Shares in place of a guess: a small one, and the one with the widest interval."""
WIDE = 0.2
"""Half-width from which a survey says little."""


@dataclass(frozen=True, kw_only=True)
class ExpectedSurvey:
    """Expected intervals of shares.

    Attributes:
        people: number of people asked about each task.
        response: share of them who answer.
        shares: guessed share, or `SHARES`.
        protected, unprotected: expected interval for each of them.
    """

    people: int
    response: float
    shares: tuple[float, ...]
    protected: tuple[ExpectedShare, ...]
    unprotected: tuple[ExpectedShare, ...]

    @property
    def text(self) -> str:
        """Half-widths with and without protection, as text."""
        own = ", ".join(
            f"± {100 * one.half_width:.1f} points for a share of {100 * share:g} %"
            for share, one in zip(self.shares, self.protected, strict=True)
        )
        plain = " and ".join(f"± {100 * one.half_width:.1f}" for one in self.unprotected)
        return f"{own}; without protection {plain}"

    @property
    def assumptions_text(self) -> str:
        """Assumptions, as text."""
        answered = f"{100 * self.response:.0f} % of them answer"
        return f"{self.people:,} people asked about each task, {answered}; intervals of {100 * LEVEL:.0f} %"

    @property
    def warning(self) -> str:
        """Warning of a wide interval; empty without one."""
        if self.protected[-1].half_width <= WIDE:
            return ""
        wide = f"± {100 * self.protected[-1].half_width:.0f} percentage points"
        share = f"{100 * self.shares[-1]:g} %"
        return f"The interval of a share of {share} is expected to be {wide}. Raise epsilon, or ask more people."

    def to_json(self) -> dict[str, Any]:
        """Return the survey as JSON values."""
        rows = zip(self.shares, self.protected, self.unprotected, strict=True)
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


def people_of_survey(source: CampaignSettings) -> int | None:
    """Return the number of people asked about each task of a survey; None if a campaign is none."""
    people = crowd_expectation(source)[0] or source.slots
    if source.expected.share is not None:
        return people
    survey = isinstance(source.alphabet, Categories) and len(source.rows) <= MOST_TASKS and people >= LEAST_PEOPLE
    return people if survey and not source.pairs else None


def is_survey_campaign(campaign: Campaign) -> bool:
    """Return whether a campaign is a survey: one question with labels, few tasks, and many people for each."""
    few = not campaign.questions and len(campaign.tasks) <= MOST_TASKS
    people = campaign.slots * campaign.cells / max(len(campaign.tasks), 1)
    return few and people >= LEAST_PEOPLE and isinstance(campaign.channels[0].alphabet, Categories)


def expected_survey(source: CampaignSettings, mechanism: ChannelMechanism) -> ExpectedSurvey | None:
    """Return the expected intervals of a survey by a mechanism for shares; None for other campaigns."""
    people, guessed = people_of_survey(source), source.expected.share
    shares = SHARES if guessed is None else (guessed,)
    if people is None or not isinstance(mechanism, RandomizedResponse | SubsetSelection):
        return None
    rows = [
        expected_share(mechanism, share=share, response=source.expected.answered, people=people) for share in shares
    ]
    protected, unprotected = (tuple(own) for own in zip(*rows, strict=True))
    return ExpectedSurvey(
        people=people, response=source.expected.answered, shares=shares, protected=protected, unprotected=unprotected
    )
