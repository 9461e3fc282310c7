"""Epsilon per cell from a budget per worker."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.mechanisms.budget_per_cell import mechanism_within_budget

LABELS = Categories(("no", "yes"))


def response(epsilon: float) -> RandomizedResponse:
    """Return randomized response over two labels, participation protected."""
    return RandomizedResponse(alphabet=LABELS, epsilon=epsilon)


@example(budget=4.6, cells=27)  # the certified loss of the equal share, rounded up, is above the budget
@given(budget=st.floats(0.01, 50), cells=st.integers(1, 500))
def test_the_cells_together_stay_within_the_budget(budget: float, cells: int) -> None:
    """The certified loss of all cells is at most the budget, and leaves less than a millionth of it unspent."""
    mechanism = mechanism_within_budget(response, budget, cells, most=20.0)
    loss = Fraction(mechanism.channel().epsilon) * cells

    assert loss <= Fraction(budget)
    assert min(budget, 20 * cells) * (1 - 1e-6) <= loss


@pytest.mark.parametrize(("budget", "cells"), [(0.0, 3), (-1.0, 3), (float("inf"), 3), (float("nan"), 3), (1.0, 0)])
def test_a_budget_that_is_none_is_refused(budget: float, cells: int) -> None:
    """A budget is positive and finite, and is divided among at least one cell."""
    with pytest.raises(SettingsError):
        mechanism_within_budget(response, budget, cells)
