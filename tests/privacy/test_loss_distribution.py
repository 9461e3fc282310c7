"""Distributions of the privacy loss, and their convolution on a lattice."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as independent
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from crowdveil.channels.alphabet import Categories
from crowdveil.channels.channel import Channel
from crowdveil.errors import SettingsError
from crowdveil.privacy import loss_distribution
from crowdveil.privacy.lattice_convolution import (
    LatticeMeasure,
    bernstein_tail_distance,
    tilted_moments,
    tilted_sum,
)
from crowdveil.privacy.loss_distribution import (
    advanced_epsilon,
    channel_profile,
    compose_loss_distributions,
    composed_epsilon,
    dominating_distribution,
    name_of_least_bound,
    pure_epsilon,
)
from tests.privacy.channels import randomized_response, table


def coin(epsilon: float) -> Channel:
    """Randomized response over two answers."""
    return randomized_response(2, epsilon)


def enumerated_delta(channels, epsilon: float) -> float:
    """Largest hockey-stick divergence of independent cells over all pairs of answer vectors."""
    worst = 0.0
    for pairs in itertools.product(*(itertools.product(range(len(c.rows)), repeat=2) for c in channels)):
        first, second = np.ones(1), np.ones(1)
        for channel, (a, b) in zip(channels, pairs, strict=True):
            first = np.outer(first, channel.probabilities[a]).ravel()
            second = np.outer(second, channel.probabilities[b]).ravel()
        worst = max(worst, float(np.maximum(first - math.exp(epsilon) * second, 0).sum()))
    return worst


def binomial_delta(channel: Channel, cells: int, epsilon: float) -> float:
    """Exact delta of `cells` cells of randomized response over two answers: a binomial sum."""
    loss = (2 * np.arange(cells + 1) - cells) * channel.epsilon
    masses = binom.pmf(np.arange(cells + 1), cells, channel.probabilities[0, 0])
    return float(masses @ np.maximum(-np.expm1(np.minimum(epsilon - loss, 0)), 0))


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "cells"), [(1.0, 1), (1.0, 5), (0.1, 1000), (3.0, 200), (3.0, 11_040)])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_randomized_response_is_the_binomial_sum(epsilon, cells, delta):
    """The exact delta at the certified epsilon is at most delta, and less than 10 % below it."""
    channel = coin(epsilon)

    exact = binomial_delta(channel, cells, composed_epsilon([(channel_profile(channel), cells)], delta))

    assert exact <= delta
    assert 0.9 * delta < exact


def symbols_delta(channel: Channel, cells: int, epsilon: float) -> float:
    """Exact delta of `cells` cells of randomized response: the loss of a cell is its epsilon, less it, or 0."""
    kept, other = channel.probabilities[0, :2]
    law = np.ones(1)
    for _ in range(cells):
        law = np.convolve(law, [other, max(0.0, 1 - kept - other), kept])
    loss = np.arange(-cells, cells + 1) * channel.epsilon
    return float(law @ np.maximum(-np.expm1(np.minimum(epsilon - loss, 0)), 0))


@pytest.mark.parametrize(
    ("symbols", "epsilon", "cells", "delta", "near"),
    [
        (3, 0.25, 4, 1e-2, 1e-9),
        (2, 0.25, 4, 1e-2, 1e-9),
        (3, 2.0, 3, 0.4, 1e-9),
        (4, 1.0, 12, 1e-4, 1e-9),
        (2, 0.1, 300, 1e-6, 1e-6),
        (3, 0.01, 300, 1e-6, 1e-6),
    ],
)
def test_few_cells_and_small_epsilons_are_not_overstated(symbols, epsilon, cells, delta, near):
    """Where delta is below the probability of the largest loss, or tiny losses add up, epsilon is nearly exact.

    The exact delta at the stated epsilon is at most delta, and above it a little below.
    """
    channel = randomized_response(symbols, epsilon)

    found = composed_epsilon([(channel_profile(channel), cells)], delta)

    assert symbols_delta(channel, cells, found) <= delta * (1 + 1e-12)
    assert symbols_delta(channel, cells, found * (1 - near)) > delta


def test_a_million_cells_of_a_tiny_epsilon_are_not_overstated():
    """At epsilon 1e-6 the figure is within 0.2 % of the binomial sum; it was 18 % above it."""
    channel, cells = coin(1e-6), 10**6

    found = composed_epsilon([(channel_profile(channel), cells)], 1e-6)

    assert binomial_delta(channel, cells, found) <= 1e-6 < binomial_delta(channel, cells, found / 1.002)


@given(st.floats(1e-3, 1e5), st.floats(1e-6, 40.0))
def test_the_largest_tilted_excess_is_nowhere_exceeded(tilt, loss):
    """The factor of the errors is at least e^(-t y) (1 - e^(-y)) at every y, and equal to it at ln(1 + 1/t)."""
    log_values = [-tilt * y + math.log(-math.expm1(-y)) for y in (loss, loss / tilt, math.log1p(1 / tilt))]
    found = loss_distribution._log_largest_tilted_excess(tilt)

    assert max(log_values) <= found + 1e-9
    assert found == pytest.approx(log_values[-1], abs=1e-9)
    assert 0.0 == loss_distribution._log_largest_tilted_excess(0.0)


@pytest.mark.slow
@given(
    st.lists(
        st.lists(st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3), min_size=2, max_size=3), min_size=1, max_size=3
    ),
    st.floats(0.0, 3.0),
)
@settings(max_examples=40, deadline=None)
def test_no_composition_is_below_enumeration(tables, epsilon):
    """Of up to three different tables, delta is never below the largest over all pairs of answer vectors."""
    channels = [table(rows) for rows in tables]

    composed = compose_loss_distributions([(channel_profile(channel), 1) for channel in channels], 1e-3)

    assert enumerated_delta(channels, epsilon) <= composed.delta(epsilon) + 1e-15


RARE_REPORTS = [
    ([[0.93545, 0.00011, 0.06444], [0.87901, 0.00026, 0.12073]], 1, 1e-4),
    ([[0.37629, 0.05432, 0.5672, 0.00219], [0.5056, 0.04266, 0.44855, 0.00319]], 1, 1e-3),
    ([[0.01994, 0.70002, 0.28004], [0.09741, 0.36163, 0.54096]], 2, 1e-2),
    ([[0.00314, 0.29976, 0.11578, 0.58132], [0.00082, 0.1474, 0.06244, 0.78934]], 2, 1e-5),
]
"""Tables whose largest losses are those of rare reports, cells, and delta."""


@pytest.mark.parametrize(("rows", "cells", "delta"), RARE_REPORTS)
def test_rare_reports_hide_no_frequent_ones(rows, cells, delta):
    """Where rare reports have the largest losses, delta by enumeration is at most that stated, and nearly reached."""
    channel = table(rows)

    found = enumerated_delta([channel] * cells, composed_epsilon([(channel_profile(channel), cells)], delta))

    assert found <= delta * (1 + 1e-9)
    assert 0.95 * delta < found


@pytest.mark.parametrize(("rows", "cells", "delta"), RARE_REPORTS)
def test_below_its_window_a_sum_states_no_bound(rows, cells, delta, monkeypatch):
    """With a window that does not reach down to epsilon, delta is never below enumeration."""
    monkeypatch.setattr(loss_distribution, "MIN_WINDOW", 16)
    channel = table(rows)

    found = enumerated_delta([channel] * cells, composed_epsilon([(channel_profile(channel), cells)], delta))

    assert found <= delta * (1 + 1e-9)


def their_loss(channel: Channel, count: int, order: int = 1):
    """dp_accounting's distribution of `count` cells of a table of two rows, in the given order of the pair."""
    rows = [{y: math.log(p) for y, p in enumerate(row)} for row in channel.probabilities[::order]]
    loss = independent.from_two_probability_mass_functions(*rows, value_discretization_interval=1e-4)
    return loss.self_compose(count)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [[[0.6, 0.4], [0.4, 0.6]], [[0.5, 0.3, 0.15, 0.05], [0.05, 0.15, 0.3, 0.5]]])
@pytest.mark.parametrize("delta", [1e-3, 1e-8])
def test_the_same_table_as_another_library(rows, delta):
    """50 cells of a table that is its own mirror image have the epsilon of dp_accounting's distribution within 1e-3."""
    channel = table(rows)

    assert their_loss(channel, 50).get_epsilon_for_delta(delta) == pytest.approx(
        composed_epsilon([(channel_profile(channel), 50)], delta), rel=1e-3
    )


@pytest.mark.slow
def test_a_table_with_two_worst_orders():
    """Each cell may have either order of the pair: no mixture of both in dp_accounting is above, the worst is near."""
    channel = table([[0.6, 0.4], [0.25, 0.75]])
    mixed = [their_loss(channel, 40 - k).compose(their_loss(channel, k, -1)) for k in range(1, 40, 6)]
    mixed += [their_loss(channel, 40), their_loss(channel, 40, -1)]
    theirs = max(loss.get_epsilon_for_delta(1e-6) for loss in mixed)

    ours = composed_epsilon([(channel_profile(channel), 40)], 1e-6)

    assert theirs <= ours * (1 + 1e-4)
    assert ours <= 1.05 * theirs


def test_two_tables_as_in_another_library():
    """20 cells of one table and 30 of another have dp_accounting's epsilon within 1e-3."""
    theirs = their_loss(coin(0.3), 20).compose(their_loss(coin(0.8), 30)).get_epsilon_for_delta(1e-6)

    assert theirs == pytest.approx(
        composed_epsilon([(channel_profile(coin(0.3)), 20), (channel_profile(coin(0.8)), 30)], 1e-6), rel=1e-3
    )


@given(st.lists(st.lists(st.floats(0.02, 1.0), min_size=4, max_size=4), min_size=2, max_size=4), st.floats(0.002, 0.3))
@settings(max_examples=40, deadline=None)
def test_a_distribution_dominates_its_profile(rows, step):
    """The distribution's delta is at least the profile's, between its points and at negative epsilon as well."""
    channel = table(rows)
    found = dominating_distribution(channel_profile(channel), step)
    losses = found.measure.positions * step
    for epsilon in np.linspace(-1.2 * channel.epsilon, 1.2 * channel.epsilon, 25):
        dominating = found.infinite + float(found.measure.masses @ np.maximum(-np.expm1(epsilon - losses), 0))

        assert enumerated_delta([channel], epsilon) <= dominating + 1e-14


def test_advanced_composition_is_sound_and_wider():
    """The binomial sum at advanced composition's epsilon is below delta; the exact epsilon is smaller."""
    channel, cells = coin(0.1), 1000
    terms = [(channel_profile(channel), cells)]
    advanced = advanced_epsilon(terms, 1e-6)

    assert binomial_delta(channel, cells, advanced) < 1e-6
    assert composed_epsilon(terms, 1e-6) < advanced < pure_epsilon(terms)


def test_a_composition_with_cells_dropped_is_caught():
    """With 5 of 100 cells left out, the epsilon found fails the binomial sum of all 100."""
    channel = coin(0.5)
    profile = channel_profile(channel)

    assert binomial_delta(channel, 100, composed_epsilon([(profile, 95)], 1e-6)) > 1e-6
    assert binomial_delta(channel, 100, composed_epsilon([(profile, 100)], 1e-6)) <= 1e-6


def test_the_order_of_cells_does_not_matter():
    """Two kinds of cells in either order, or split into two entries, have one epsilon."""
    one, two = channel_profile(coin(0.4)), channel_profile(coin(0.9))

    expected = composed_epsilon([(one, 6), (two, 4)], 1e-6)

    assert expected == pytest.approx(composed_epsilon([(two, 4), (one, 6)], 1e-6), rel=1e-9)
    assert expected == pytest.approx(composed_epsilon([(one, 2), (two, 4), (one, 4)], 1e-6), rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, -1.0, 0.6, math.nan])
def test_delta_has_bounds(delta):
    """A delta outside [1e-15, 0.5] is refused."""
    with pytest.raises(SettingsError, match="delta"):
        composed_epsilon([(channel_profile(coin(1.0)), 2)], delta)


def test_no_cells_and_no_privacy_are_refused():
    """Composition of nothing and of a channel with infinite epsilon is refused."""
    with pytest.raises(SettingsError, match="at least one cell"):
        composed_epsilon([], 1e-6)
    with pytest.raises(SettingsError, match="finite epsilon"):
        channel_profile(Channel.identity(Categories(("no", "yes")), "public"))


@pytest.mark.parametrize(
    ("bounds", "name"),
    [((5, 9, 4), "exact"), ((5, 9, 5), "pure"), ((5, 4, 4), "advanced"), ((math.inf,) * 3, None)],
)
def test_the_least_bound_is_named(bounds, name):
    """A tie goes to the sum, for it needs no delta, then to advanced composition."""
    pure, advanced, exact = map(float, bounds)

    assert name == name_of_least_bound(pure, advanced, exact)


def positive_part(terms, tilt):
    """Upper bound of E[max(0, S)] for a positive tilt."""
    total = tilted_sum(terms, tilt)
    positions = total.first + np.arange(len(total.masses), dtype=np.float64)
    above = positions[positions > 0]
    return total.upper_bound_of_mean(above, above, -1 - math.log(tilt))


@given(
    st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6),
    st.integers(-4, 1),
    st.integers(1, 6),
    st.floats(0.01, 1.0),
)
@settings(max_examples=60, deadline=None)
def test_the_mean_is_that_of_direct_convolution(masses, first, count, tilt):
    """E[max(0, S)] is never below the sum over the repeated convolution, and above it by rounding only at small tilts.

    At larger ones the tilted mean lies far above 0, where this part of the sum is, and rounding is multiplied.
    """
    law = np.array(masses) / sum(masses)
    direct = np.ones(1)
    for _ in range(count):
        direct = np.convolve(direct, law)
    exact = float(direct @ np.maximum(count * first + np.arange(len(direct)), 0))

    found = positive_part([(LatticeMeasure(first, law), count)], tilt)

    assert exact <= found * (1 + 1e-13) + 1e-300
    assert tilt > 0.3 or exact == pytest.approx(found, rel=1e-6, abs=1e-9)


def test_a_tail_far_below_the_rounding_of_floats_is_relative():
    """A tail of 1e-40 is found to 1e-6 of itself, since the tilt moves the mass there."""
    trials, start = 3000, 1900
    measure = [(LatticeMeasure(0, np.array([0.5, 0.5])), trials), (LatticeMeasure(-start, np.ones(1)), 1)]
    exact = float(sum((k - start) * binom.pmf(k, trials, 0.5) for k in range(start, trials + 1)))

    found = positive_part(measure, math.log(start / (trials - start)))

    assert exact < 1e-40
    assert exact <= found <= exact * (1 + 1e-6)


def test_two_kinds_of_variables_are_summed():
    """A sum of two kinds has the mean, variance and largest deviation of both."""
    coin, die = LatticeMeasure(0, np.full(2, 0.5)), LatticeMeasure(1, np.full(6, 1 / 6))

    assert (0.0, 10 * 0.5 + 4 * 3.5, 10 * 0.25 + 4 * 35 / 12, 2.5) == pytest.approx(
        tilted_moments([(coin, 10), (die, 4)], 0.0)
    )


def test_the_window_leaves_less_than_the_stated_tail():
    """Of 1,000 coins, less than exp(-40) lies beyond the half width."""
    width = bernstein_tail_distance(250.0, 0.5)

    assert binom.sf(500 + width - 1, 1000, 0.5) <= math.exp(-40)
