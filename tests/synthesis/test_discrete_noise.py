"""Integer noise for arrays: exact distributions, exact bounds."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.errors import SettingsError
from crowdveil.mechanisms import discrete_laplace as device
from crowdveil.randomness import secure, seeded
from crowdveil.synthesis.discrete_noise import (
    discrete_laplace_variance,
    epsilon_rounded_down,
    sample_discrete_laplace_array,
    uniform_below,
    uniform_floats,
)
from tests.chi_square import chi_square_p_value


def cells(scale: Fraction, reach: int) -> np.ndarray:
    """Probabilities of ..., -reach, ..., reach, ... with both tails gathered."""
    q = math.exp(-1 / float(scale))
    inner = [(1 - q) / (1 + q) * q ** abs(z) for z in range(-reach, reach + 1)]
    tail = q ** (reach + 1) / (1 + q)
    return np.array([tail, *inner, tail])


@pytest.mark.parametrize(
    "scale", [Fraction(2), Fraction(7, 5), Fraction(2) / epsilon_rounded_down(0.7), Fraction(1, 2)], ids=str
)
def test_noise_has_the_discrete_laplace_distribution(scale: Fraction) -> None:
    """100,000 draws pass a chi-square test at 1e-4: false-alarm rate 1e-4 a case, fixed seed."""
    reach = max(1, int(3 * scale))
    drawn = sample_discrete_laplace_array(scale, 100_000, seeded(11))
    counts = np.bincount(np.clip(drawn, -reach - 1, reach + 1) + reach + 1, minlength=2 * reach + 3)

    assert chi_square_p_value(counts, cells(scale, reach)) > 1e-4


def test_the_test_above_can_fail() -> None:
    """Noise of a scale 5 % too small does not pass the same test."""
    reach = 6
    drawn = sample_discrete_laplace_array(Fraction(19, 10), 100_000, seeded(11))
    counts = np.bincount(np.clip(drawn, -reach - 1, reach + 1) + reach + 1, minlength=2 * reach + 3)

    assert chi_square_p_value(counts, cells(Fraction(2), reach)) < 1e-4


@given(st.fractions(min_value=Fraction(1, 50), max_value=100, max_denominator=1000))
def test_variance_is_that_of_the_devices_noise(scale: Fraction) -> None:
    """The variance agrees with that of the draw-by-draw sampler that devices use."""
    assert math.isclose(discrete_laplace_variance(scale), device.discrete_laplace_variance(scale), rel_tol=1e-12)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 1 << 62), min_size=1, max_size=50))
def test_uniform_integers_stay_below_their_bounds(bounds: list[int]) -> None:
    """Every integer is in 0 .. bound - 1, up to a bound of 2**62."""
    drawn = uniform_below(np.array(bounds), seeded(3))

    assert ((drawn >= 0) & (drawn < np.array(bounds))).all()


@pytest.mark.parametrize("unit", [1, 1 << 58])
def test_uniform_integers_are_uniform(unit: int) -> None:
    """60,000 draws below 6 units pass a chi-square test at 1e-4, with one word and with two; fixed seed."""
    counts = np.bincount(uniform_below(np.full(60_000, 6 * unit), seeded(4)) // unit, minlength=6)

    assert chi_square_p_value(counts, np.full(6, 1 / 6)) > 1e-4


def test_secure_randomness_serves_too() -> None:
    """The operating system's words give integers and fractions in their ranges."""
    assert sample_discrete_laplace_array(Fraction(2), 100, secure()).dtype == np.int64
    fractions = uniform_floats(100, secure())
    assert ((fractions > 0) & (fractions < 1)).all()


@given(st.floats(1e-5, 20))
def test_a_budget_never_exceeds_what_was_asked(epsilon: float) -> None:
    """A budget is rounded down, by less than 2**-20."""
    assert 0 <= epsilon - float(epsilon_rounded_down(epsilon)) < 2**-20


def test_impossible_settings_are_refused() -> None:
    """No budget without a positive finite epsilon, no noise without a positive scale of moderate size."""
    for epsilon in (0.0, 1e-9, math.inf, math.nan):
        with pytest.raises(SettingsError, match="epsilon must be finite and at least 1e-6"):
            epsilon_rounded_down(epsilon)
    for scale in (Fraction(0), Fraction(-1), Fraction(1 << 40)):
        with pytest.raises(SettingsError, match="noise scale"):
            sample_discrete_laplace_array(scale, 1, seeded(1))
