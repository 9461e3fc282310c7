"""Budgets of a worker at a delta."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.privacy.composition import cell_epsilon, cells_within
from crowdveil.privacy.loss_distribution import channel_profile, composed_epsilon

pytestmark = pytest.mark.slow


@given(labels=st.integers(2, 5), budget=st.floats(0.5, 20.0), cells=st.integers(1, 60), delta=st.floats(1e-9, 1e-3))
@settings(max_examples=30, deadline=None)
def test_cells_of_any_table_with_this_epsilon_stay_within_the_budget(labels, budget, cells, delta):
    """The exact loss of randomized response over any number of symbols is within the budget."""
    epsilon = cell_epsilon(budget, cells, delta, 8.0)
    names = Categories(tuple(f"label {k}" for k in range(labels)))
    channel = RandomizedResponse(alphabet=names, epsilon=epsilon).channel()

    assert composed_epsilon([(channel_profile(channel), cells)], delta) <= budget * (1 + 1e-12)
    assert min(8.0, budget / cells) * (1 - 1e-9) <= epsilon <= 8.0


def test_a_budget_buys_more_than_its_equal_share():
    """Two hundred cells at (10, 1e-6): more than twice the epsilon of the sum; ten further cells exceed it."""
    epsilon = cell_epsilon(10.0, 200, 1e-6, 8.0)
    channel = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=epsilon, participation="public").channel()

    assert epsilon > 2 * 10 / 200
    assert composed_epsilon([(channel_profile(channel), 210)], 1e-6) > 10


def test_cells_within_is_the_last_number_that_fits():
    """The number of cells fits, one more does not; a cell above the budget has none."""
    count = cells_within(6.0, 0.1, 1e-6)
    channel = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=0.1, participation="public").channel()

    assert composed_epsilon([(channel_profile(channel), count)], 1e-6) <= 6.0
    assert composed_epsilon([(channel_profile(channel), count + 1)], 1e-6) > 6.0 - 1e-3
    assert count > 1.5 * 6.0 / 0.1
    assert 0 == cells_within(0.5, 3.0, 1e-6)


@pytest.mark.parametrize(("budget", "cells", "delta"), [(0.0, 1, 1e-6), (1.0, 0, 1e-6), (1.0, 1, 0.0), (1.0, 1, 0.9)])
def test_numbers_out_of_range_are_refused(budget, cells, delta):
    """A budget is positive, a worker has cells, and delta is between 1e-15 and 0.5."""
    with pytest.raises(SettingsError):
        cell_epsilon(budget, cells, delta, 8.0)
