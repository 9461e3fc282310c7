"""Exact discrete Laplace noise."""

import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from crowdveil.errors import SettingsError
from crowdveil.mechanisms import discrete_laplace
from crowdveil.mechanisms.discrete_laplace import (
    MAX_SCALE,
    discrete_laplace_variance,
    sample_discrete_laplace,
    simulate_discrete_laplace_sum,
)
from crowdveil.randomness import Seeded, secure, seeded
from tests.chi_square import chi_square_p_value

SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(18) / Fraction(0.7)]


def probability(z: np.ndarray | int, scale: Fraction) -> np.ndarray:
    """Return the probability of z, by its definition."""
    q = math.exp(-1 / float(scale))
    return (1 - q) / (1 + q) * q ** np.abs(z)


def goodness_of_fit(noise: np.ndarray, scale: Fraction) -> float:
    """Return the chi-square p-value of noise, rare values pooled so that every cell expects at least 5."""
    q = math.exp(-1 / float(scale))
    tail = [2 * q ** (reach + 1) / (1 + q) * len(noise) for reach in range(500)]
    reach = max(r for r in range(500) if min(tail[r], float(probability(r, scale)) * len(noise)) >= 5)
    middle = np.arange(-reach, reach + 1)
    counts = [int((noise == z).sum()) for z in middle] + [int((np.abs(noise) > reach).sum())]
    return chi_square_p_value(counts, np.append(probability(middle, scale), tail[reach] / len(noise)))


class _OutOfScriptError(Exception):
    def __init__(self, bound: int) -> None:
        self.bound = bound


def enumerate_outcomes(draw: Callable, least: Fraction) -> tuple[dict, Fraction]:
    """Follow every sequence of uniform draws whose probability is at least `least`.

    Returns:
        The exact probability with which each outcome was reached, and that of the paths given up.
    """
    reached: dict = defaultdict(Fraction)
    given_up = Fraction(0)
    open_paths: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while open_paths:
        script, mass = open_paths.pop()
        try:
            reached[draw(_scripted(script))] += mass
        except _OutOfScriptError as stop:
            if mass < least:
                given_up += mass
                continue
            open_paths += [((*script, k), mass / stop.bound) for k in range(stop.bound)]
    return reached, given_up


def _scripted(script: tuple[int, ...]) -> Callable[[int], int]:
    remaining = iter(script)

    def uniform(bound: int) -> int:
        for value in remaining:
            return value
        raise _OutOfScriptError(bound)

    return uniform


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 1), (1, 3), (2, 3), (3, 7)])
def test_coin_is_exactly_exponential(numerator, denominator):
    """The coin of bias exp(-gamma) has that bias to within the mass of paths not followed: enumerated, not sampled."""
    reached, given_up = enumerate_outcomes(
        lambda uniform: discrete_laplace._bernoulli_exponential(numerator, denominator, uniform), Fraction(1, 10**6)
    )

    assert float(reached[True]) <= math.exp(-numerator / denominator) <= float(reached[True] + given_up)
    assert given_up < Fraction(1, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(3, 2)])
def test_noise_is_exactly_discrete_laplace(scale):
    """Enumerated probabilities never exceed the definition's, and fall short by the mass of paths not followed only."""
    reached, given_up = enumerate_outcomes(
        lambda uniform: discrete_laplace._discrete_laplace(scale, uniform), Fraction(1, 200_000)
    )

    exact = probability(np.array(list(reached)), scale)
    assert (np.array([float(mass) for mass in reached.values()]) <= exact + 1e-15).all()
    assert 1 == sum(reached.values()) + given_up
    assert given_up < Fraction(1, 4)


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("source", [seeded(4), secure()], ids=["seeded", "secure"])
def test_noise_follows_the_definition(scale, source):
    """Chi-square of 20,000 integers; false alarm 1e-7 each."""
    assert goodness_of_fit(np.array(sample_discrete_laplace(scale, 20_000, source)), scale) > 1e-7


@pytest.mark.slow
def test_a_five_percent_wrong_scale_is_rejected():
    """The same test rejects (p < 1e-7) noise whose scale is 5 % too small; n = 60,000."""
    noise = sample_discrete_laplace(Fraction(3) * Fraction(95, 100), 60_000, seeded(5))

    assert goodness_of_fit(np.array(noise), Fraction(3)) < 1e-7


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 2**48, 2**48 + 1, 3 * 2**60])
def test_uniform_integers_stay_below_their_bound(bound):
    """Any bound is served, whatever the number of words it needs; the mean is the middle (six deviations, n 2,000)."""
    uniform = discrete_laplace._uniform_below(seeded(6))
    drawn = [uniform(bound) for _ in range(2000)]

    assert 0 <= min(drawn) <= max(drawn) < bound
    assert abs(sum(drawn) / 2000 / bound - (bound - 1) / bound / 2) < 6 / math.sqrt(12 * 2000)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_variance_is_that_of_the_definition(scale):
    """The closed form equals the sum of z^2 P(z)."""
    z = np.arange(-5000, 5001)

    assert pytest.approx(float((z**2 * probability(z, scale)).sum()), rel=1e-9) == discrete_laplace_variance(scale)


@pytest.mark.parametrize("terms", [1, 50])
def test_simulated_sums_have_the_variance_of_their_terms(terms):
    """Mean 0 and variance terms * variance of one, n = 40,000 sums, within six deviations (false alarm below 1e-8)."""
    scale, count = Fraction(5, 2), 40_000
    sums = simulate_discrete_laplace_sum(scale, terms, count, seeded(8))
    variance = terms * discrete_laplace_variance(scale)

    assert abs(sums.mean()) < 6 * math.sqrt(variance / count)
    assert abs(sums.var() / variance - 1) < 6 * math.sqrt(5 / count)


def test_a_simulated_sum_of_one_term_follows_the_definition():
    """Chi-square of 40,000 simulated integers; false alarm 1e-7."""
    noise = simulate_discrete_laplace_sum(Fraction(2), 1, 40_000, seeded(9))

    assert goodness_of_fit(noise, Fraction(2)) > 1e-7


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(MAX_SCALE + 1)])
def test_absurd_scales_are_refused(scale):
    """The scale is positive and is small enough for 64 bits."""
    for draw in (sample_discrete_laplace, lambda s, n, source: simulate_discrete_laplace_sum(s, 1, n, source)):
        with pytest.raises(SettingsError, match="noise scale"):
            draw(scale, 1, seeded(0))


def test_a_sum_has_terms():
    """The sum over no workers is 0."""
    with pytest.raises(SettingsError, match="at least one term"):
        simulate_discrete_laplace_sum(Fraction(1), 0, 3, seeded(0))


def test_the_largest_scale_stays_far_from_overflow():
    """At the largest scale a million reports' noise fits in 64 bits."""
    assert isinstance(seeded(0), Seeded)
    assert abs(simulate_discrete_laplace_sum(Fraction(MAX_SCALE), 10**6, 4, seeded(1))).max() < 2**58
    assert max(map(abs, sample_discrete_laplace(Fraction(MAX_SCALE), 4, secure()))) < 2**50
