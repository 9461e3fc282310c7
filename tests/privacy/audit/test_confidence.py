"""Clopper-Pearson limits: against scipy, their coverage, and the bounds on epsilon and delta."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binom

from crowdveil.privacy.audit.confidence import Counts, approximate_limits, lower_limit, upper_limit


@pytest.mark.parametrize(("successes", "draws"), [(0, 10), (1, 10), (5, 1000), (10, 10), (999_000, 1_000_000)])
@pytest.mark.parametrize("alpha", [0.05, 1e-7])
def test_limits_are_quantiles_of_the_beta_distribution(successes, draws, alpha):
    """The two limits agree with the formula of Clopper and Pearson."""
    low = beta.ppf(alpha, successes, draws - successes + 1) if successes else 0.0
    high = beta.isf(alpha, successes + 1, draws - successes) if successes < draws else 1.0

    assert low == pytest.approx(lower_limit(successes, draws, alpha), rel=1e-9)
    assert high == pytest.approx(upper_limit(successes, draws, alpha), rel=1e-9)


@pytest.mark.parametrize("probability", [0.01, 0.3, 0.9])
def test_limits_err_with_probability_at_most_alpha(probability):
    """Exactly, over all counts of 200 draws: the limit is on the wrong side with probability at most alpha."""
    counts = np.arange(201)
    weights = binom.pmf(counts, 200, probability)
    above = np.array([lower_limit(int(count), 200, 0.05) > probability for count in counts])
    below = np.array([upper_limit(int(count), 200, 0.05) < probability for count in counts])

    assert weights[above].sum() <= 0.05
    assert weights[below].sum() <= 0.05


def test_bounds_follow_from_the_limits():
    """Epsilon is the logarithm of a ratio and delta a difference; neither is negative."""
    counts = Counts(first=700, second=10, first_draws=1000, second_draws=1000)
    low, high = lower_limit(700, 1000, 0.005), upper_limit(10, 1000, 0.005)

    assert math.log(low / high) == counts.epsilon(0.0, 0.01)
    assert math.log((low - 0.1) / high) == counts.epsilon(0.1, 0.01)
    assert low - math.e * high == counts.delta(1.0, 0.01)
    assert 0.0 == counts.delta(math.inf, 0.01) == counts.epsilon(0.9, 0.01)
    assert 0.0 == Counts(first=1, second=900, first_draws=1000, second_draws=1000).epsilon(0.0, 0.01)


def test_a_bound_says_the_same_about_epsilon_and_delta():
    """Delta at the claimed epsilon exceeds the claimed delta exactly when epsilon at that delta exceeds the claim."""
    for second in range(0, 400, 7):
        counts = Counts(first=500, second=second, first_draws=1000, second_draws=1000)

        assert (counts.delta(1.0, 0.01) > 0.05) == (counts.epsilon(0.05, 0.01) > 1.0)


def test_limits_that_rank_events_are_near_the_exact_ones():
    """Wilson's limits, which select events only, are within a few per cent of the exact ones."""
    low, high = approximate_limits(np.array([500]), np.array([30]), (1000, 1000), 0.01)

    assert low[0] == pytest.approx(lower_limit(500, 1000, 0.005), rel=0.05)
    assert high[0] == pytest.approx(upper_limit(30, 1000, 0.005), rel=0.1)
