"""Sums of lattice variables: against direct convolution and binomial sums, never below them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from crowdveil.privacy.lattice_convolution import LatticeMeasure, half_width, tilted_moments, tilted_sum


def positive_part(terms, tilt):
    """Upper bound of E[max(0, S)] for a positive tilt."""
    total = tilted_sum(terms, tilt)
    positions = total.first + np.arange(len(total.masses), dtype=np.float64)
    above = positions[positions > 0]
    return total.upper_mean(above, above, -1 - math.log(tilt))


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
    width = half_width(250.0, 0.5)

    assert binom.sf(500 + width - 1, 1000, 0.5) <= math.exp(-40)
