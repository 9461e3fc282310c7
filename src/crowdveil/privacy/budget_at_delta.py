"""Budgets of a worker at a delta: the epsilon per cell, or the number of cells, that a budget pays for.

Of the cells only their pure epsilon is used, with the profile of randomized response over two answers, which dominates
every mechanism with that epsilon. So the result holds for any mechanism; the exact loss of a given one is often less.
"""

import math
from functools import lru_cache

from crowdveil.errors import SettingsError
from crowdveil.privacy.composition import pure_profile
from crowdveil.privacy.loss_distribution import composed_epsilon, require_delta

STEPS = 14
"""Bisections of an epsilon per cell, on a logarithmic scale."""
MAX_CELLS = 10**6


@lru_cache(maxsize=4096)
def cell_epsilon(budget: float, cells: int, delta: float, most: float) -> float:
    """Return an epsilon per cell that `cells` cells of any mechanism can have within a budget at `delta`.

    Args:
        budget: epsilon of all cells of a worker, in nats.
        cells: cells of the worker who has the most; public, never taken from answers.
        delta: in [1e-15, 0.5], for all cells together.
        most: largest epsilon per cell.

    Raises:
        SettingsError: a budget that is not positive and finite, no cells, or delta outside its interval.
    """
    _require_valid_budget(budget, delta)
    if not 1 <= cells <= MAX_CELLS:
        raise SettingsError(f"a worker has from 1 to {MAX_CELLS:,} cells", value=cells)
    low, high = budget / cells * (1 - 1e-12), min(budget, most)
    if low >= most or _composed_epsilon_of(most, cells, delta) <= budget:
        return most
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _composed_epsilon_of(middle, cells, delta) <= budget else (low, middle)
    return low


def cells_within(budget: float, epsilon: float, delta: float) -> int:
    """Return the largest number of cells of this epsilon whose loss at `delta` is within a budget; 0 if none is."""
    _require_valid_budget(budget, delta)
    if not 0 < epsilon < math.inf:
        raise SettingsError("the epsilon is positive", value=epsilon, hint="Example: --budget 6 --epsilon 2.")
    low, high = 0, 1
    while high <= MAX_CELLS and _composed_epsilon_of(epsilon, high, delta) <= budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _composed_epsilon_of(epsilon, middle, delta) <= budget else (low, middle)
    return low


def _composed_epsilon_of(epsilon: float, cells: int, delta: float) -> float:
    return composed_epsilon([(pure_profile(epsilon), cells)], delta)


def _require_valid_budget(budget: float, delta: float) -> None:
    require_delta(delta)
    if not 0 < budget < math.inf:
        raise SettingsError("a budget per worker is positive", value=budget, hint="Example: 5.")
