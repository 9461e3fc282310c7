"""Noisy counts: exact sensitivity, and an attack that detects wrong noise."""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.stats import beta

from crowdveil.randomness import seeded
from crowdveil.synthesis.claims import Claims, ScaledClaims, scale_claims
from crowdveil.synthesis.discrete_noise import epsilon_rounded_down
from crowdveil.synthesis.private.exponential_mechanism import DyadicRanges
from crowdveil.synthesis.private.noisy_counts import NoisyCounter, NoisyCounts, bin_counts

PLACES = (0.0, 0.2, 0.3, 0.5, 0.8, 1.0)


def crowd(places: tuple[float, ...], tasks: int = 1) -> ScaledClaims:
    """The same few claims on every one of some tasks."""
    return ScaledClaims(tasks, np.repeat(np.arange(tasks), len(places)), np.tile(places, tasks))


@pytest.mark.slow
@pytest.mark.parametrize("selected", range(7))
def test_counts_change_by_no_more_than_the_sensitivity(selected: int) -> None:
    """Over all crowds of three claims, replacing one changes counts by at most 2, removing one by 1."""
    ranges, chosen = DyadicRanges(levels=1), np.array([min(selected, 3)])
    replaced = removed = 0
    for places in itertools.product(PLACES, repeat=3):
        before = bin_counts(crowd(places), chosen, 4, ranges)
        for claim, other in itertools.product(range(3), PLACES):
            after = bin_counts(crowd((*places[:claim], other, *places[claim + 1 :])), chosen, 4, ranges)
            replaced = max(replaced, int(np.abs(after - before).sum()))
        for claim in range(3):
            left = crowd((*places[:claim], *places[claim + 1 :]))
            removed = max(removed, int(np.abs(bin_counts(left, chosen, 4, ranges) - before).sum()))

    assert (replaced, removed) == (2, 1)


def test_bin_counts_equal_a_loop() -> None:
    """Every claim is counted once: in the bin of its position, or outside the range."""
    ranges = DyadicRanges(levels=2)
    generator = np.random.default_rng(2)
    claims = ScaledClaims(2, generator.integers(0, 2, 60), generator.random(60))
    chosen = np.array([2, 8])
    expected = np.zeros((2, 5), dtype=int)
    for c in range(60):
        t = claims.task[c]
        low, high = ranges.first[chosen[t]] / ranges.steps, ranges.last[chosen[t]] / ranges.steps
        share = (claims.position[c] - low) / (high - low)
        expected[t, int(share * 4) if 0 <= share < 1 else 4] += 1

    np.testing.assert_array_equal(expected, bin_counts(claims, chosen, 4, ranges))
    assert ranges.step_of(claims.position).max() < ranges.steps


def test_noise_scale_is_sensitivity_over_budget() -> None:
    """The scale is the sensitivity over the budget of the counts, less than all with range selection."""
    plain = NoisyCounter(epsilon=Fraction(1, 2), bins=8, select_range=False)
    ranged = NoisyCounter(epsilon=epsilon_rounded_down(0.7), bins=8, select_range=True)

    assert plain.scale == 4
    assert ranged.scale == 2 / ranged.count_epsilon
    assert 0 < ranged.count_epsilon < ranged.epsilon


def noisy_loss(noisy: tuple[NoisyCounts, NoisyCounts]) -> float:
    """Lower bound on epsilon at 99.9 % confidence from two crowds' runs, for the best of 30 preset events.

    Half of the runs choose the event, the other half test it. An event: the first bin holds at least so much, and the
    last at most one less that.
    """
    statistic = [np.minimum(runs.counts[:, 0], 1 - runs.counts[:, -1]) for runs in noisy]
    half = len(statistic[0]) // 2
    gains = {}
    for level in range(-10, 20):
        share = [float((column[:half] >= level).mean()) for column in statistic]
        if min(share) * half > 50:
            gains[level] = math.log(share[0] / share[1])
    level = max(gains, key=lambda level: gains[level])
    hits = [int((column[half:] >= level).sum()) for column in statistic]
    least = beta.ppf(5e-4, hits[0], half - hits[0] + 1)
    most = beta.ppf(1 - 5e-4, hits[1] + 1, half - hits[1])
    return float(math.log(least / most))


@cache
def noisy_pair(epsilon: int, select_range: bool, runs: int) -> tuple[NoisyCounts, NoisyCounts]:
    """Noisy counts of two neighbours, whose one claim lies at either end."""
    counter = NoisyCounter(epsilon=Fraction(epsilon), bins=8, select_range=select_range)
    first, second = (
        counter.count(crowd((0.3, 0.6, end), runs), np.full(runs, 3.0), seeded(seed))
        for seed, end in ((1, 0.01), (2, 0.99))
    )
    return first, second


@pytest.mark.parametrize(("select_range", "runs"), [(False, 40_000), (True, 2_000)])
def test_the_attack_does_not_exceed_epsilon(select_range: bool, runs: int) -> None:
    """40,000 runs (2,000 with range selection) at epsilon 1: the bound stays below 1; false-alarm rate 1e-3."""
    assert noisy_loss(noisy_pair(1, select_range, runs)) <= 1.0


def test_the_attack_detects_noise_that_is_too_small() -> None:
    """With half the noise the same attack proves a loss above 1.5, where epsilon 1 would have been claimed."""
    assert noisy_loss(noisy_pair(2, False, 40_000)) > 1.5


def test_the_attack_is_not_far_from_epsilon() -> None:
    """With the right noise the attack proves a loss above 0.8: the claim of 1 is not loose."""
    assert noisy_loss(noisy_pair(1, False, 40_000)) > 0.8


def test_claims_are_scaled_by_task() -> None:
    """Used claims lie in the unit interval of their task's own bounds; others are left out."""
    claims = Claims.from_arrays(
        ["a", "b", "b", "c"], [1, 1, 2, 1], [5.0, 2.0, 4.0, 30.0], bounds=(np.array([0, 0, 20]), np.array([10, 4, 40]))
    )
    found = scale_claims(claims, np.array([1, 2]), np.array([True, False, True, True]))

    assert found.tasks == 2
    assert found.task.tolist() == [0, 1]
    assert found.position.tolist() == [1.0, 0.5]
