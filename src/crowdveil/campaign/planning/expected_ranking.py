"""Expected share of wrongly ordered pairs of a campaign that asks for comparisons."""

from dataclasses import dataclass
from typing import Any

from crowdveil.campaign.planning.chosen_mechanism import expected_comparisons
from crowdveil.campaign.settings.compared_items import pairs_of_tasks
from crowdveil.campaign.settings.settings_file import CampaignSettings
from crowdveil.design.comparison_channel import ExpectedComparisons
from crowdveil.errors import SettingsError
from crowdveil.hints import advice
from crowdveil.mechanisms import ChannelMechanism
from crowdveil.planning.plan import WORTH_ASKING
from crowdveil.planning.ranking_plan import CONSTANT, GUESSING, expected_wrong_pairs

ITEMS_OF_PAIR = 2


@dataclass(frozen=True, kw_only=True)
class ExpectedOrder:
    """Expected share of wrongly ordered pairs.

    Attributes:
        items: number of items.
        comparisons: mean number of comparisons asked of each item.
        expected: ties, spread and participation.
        protected, unprotected: share of wrong pairs if workers who guess are found out, and if none is.
    """

    items: int
    comparisons: int
    expected: ExpectedComparisons
    protected: tuple[float, float]
    unprotected: tuple[float, float]

    @property
    def text(self) -> str:
        """Shares with and without protection, as text."""
        return f"{_ends_text(self.protected)} of the pairs wrongly ordered; unprotected {_ends_text(self.unprotected)}"

    @property
    def assumptions_text(self) -> str:
        """Assumptions, as text."""
        return (
            f"{self.items:,} items, {self.comparisons:,} comparisons of each; {self.expected.answered:.0%} are "
            f"answered, {100 * self.expected.ties:g}% of these with a tie; {GUESSING:.0%} of the workers guess"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the shares as JSON values."""
        ends = {"protected": self.protected, "unprotected": self.unprotected}
        return {
            "items": self.items,
            "comparisons": self.comparisons,
            "assumptions": self.assumptions_text,
            "constant": CONSTANT,
            **{name: dict(zip(("low", "high"), shares, strict=True)) for name, shares in ends.items()},
        }


def _ends_text(shares: tuple[float, float]) -> str:
    return f"{100 * shares[0]:.0f} to {100 * shares[1]:.0f} %"


def expected_order(source: CampaignSettings, mechanism: ChannelMechanism) -> ExpectedOrder | None:
    """Return the expected share of wrong pairs of a campaign of comparisons; None for other campaigns.

    Raises:
        SettingsError: an expectation is out of range.
    """
    if not source.pairs:
        return None
    items = len({(pair.list, item) for pair in source.pairs for item in (pair.left, pair.right)})
    cells = sum(source.per_worker or len(source.pairs) - len(excluded) for excluded in pairs_of_tasks(source.excluded))
    number, expected = max(round(ITEMS_OF_PAIR * cells / items), 1), expected_comparisons(source)
    return ExpectedOrder(
        items=items,
        comparisons=number,
        expected=expected,
        protected=expected_wrong_pairs(expected, mechanism.channel(), number),
        unprotected=expected_wrong_pairs(expected, None, number),
    )


def require_order_worth_asking(order: ExpectedOrder) -> None:
    """Refuse a campaign after which hardly fewer pairs are wrongly ordered than by a drawn order.

    Raises:
        SettingsError: the expected share of wrong pairs is above `WORTH_ASKING` of one half.
    """
    if order.protected[1] > WORTH_ASKING * CONSTANT:
        more = advice(" {anyway} creates it.", anyway=True)
        raise SettingsError(
            f"the expected share of wrongly ordered pairs must be at most {WORTH_ASKING * CONSTANT:g}; a drawn order "
            f"has {CONSTANT:g}",
            value=float(f"{order.protected[1]:.3g}"),
            hint=f"Raise epsilon, ask more workers or more pairs of each, or compare fewer items.{more}",
        )
