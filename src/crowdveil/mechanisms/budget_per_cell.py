"""Epsilon per cell from a budget per worker."""

from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from crowdveil.channels.rounding import float_rounded_up, lower_exact_value, sum_rounded_up
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.base import ChannelMechanism

SHRINK = 1 - 1e-12
"""Factor on an epsilon whose certified sum exceeds the budget by rounding."""

Built = TypeVar("Built", bound=ChannelMechanism)


def mechanism_within_budget(
    build: Callable[[float], Built], budget: float, cells: int, *, most: float | None = None
) -> Built:
    """Return the mechanism with an equal share of a worker's budget for each cell.

    The certified loss of a cell times `cells`, rounded up, is at most the budget (basic composition).

    Args:
        build: mechanism with a requested epsilon per cell, in nats.
        budget: epsilon of all cells of a worker, in nats.
        cells: cells of the worker who has the most; public, never taken from answers.
        most: largest epsilon per cell to be requested; the rest of the budget is not spent.

    Raises:
        SettingsError: the budget is not positive and finite, there are no cells, or `build` refuses the epsilon.
    """
    if not 0 < budget < float("inf"):
        raise SettingsError("a budget per worker must be positive", value=budget, hint="Example: 5.")
    if cells < 1:
        raise SettingsError("a worker has at least one cell", value=cells)
    epsilon = float_rounded_up(Fraction(budget) / cells)
    epsilon = epsilon if most is None else min(epsilon, most)
    while True:
        mechanism = build(epsilon)
        if Fraction(sum_rounded_up([(mechanism.channel().epsilon, cells)])) <= lower_exact_value(budget):
            return mechanism
        epsilon *= SHRINK
