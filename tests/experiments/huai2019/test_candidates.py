"""Candidates and the privacy test: bins and counts as loops, samples against the exact density of the release."""

import math

import numpy as np
import pytest
from experiments.papers.huai2019.algorithm1.candidates import CandidateSampler, PrivacyTest
from experiments.papers.huai2019.algorithm1.kernel_density import KERNELS
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest, laplace

from crowdveil.randomness import seeded
from crowdveil.synthesis.original_claims import Claims
from tests.experiments.huai2019.exact_attempt import attempt, grid
from tests.experiments.huai2019.small_claims import one_task, plain_density, small_claims

VALUES = np.array([0.0, 0.3, 0.5, 1.0, 1.2, 6.0])
WEIGHTS = np.array([0.3, 0.1, 0.2, 0.0, 0.25, 0.15])
ENDS = (-8.0, 14.0)


def sampler(kernel: str, test: PrivacyTest) -> CandidateSampler:
    """Six claims, one of weight 0 and one far away, and another task."""
    claims = Claims.from_arrays([0] * 3 + [1] * 6, [0, 1, 2, *range(6)], [50, 60, 70, *VALUES], bounds=(0, 99))
    weight = np.concatenate(([0.2, 0.3, 0.5], WEIGHTS))
    return CandidateSampler(
        claims=claims, weight=weight, bandwidth=np.array([3.0, 0.8]), kernel=KERNELS[kernel], test=test
    )


@given(st.floats(1e-300, 1e6), st.sampled_from([1.1, 2.0, 4.0]))
def test_a_density_lies_in_its_bin(density: float, gamma: float) -> None:
    """gamma^(-a-1) < p <= gamma^(-a), for densities above 1 too, where a is negative."""
    a = float(PrivacyTest(gamma=gamma).bins(math.log(density)))

    assert a == int(a)
    assert -(a + 1) - 1e-9 < math.log(density) / math.log(gamma) <= -a + 1e-9


def test_chance_to_pass_is_that_of_a_noisy_k() -> None:
    """P(k + Lap(1 / epsilon0) <= count); one claim more changes it and its complement by exp(epsilon0) at most."""
    test = PrivacyTest(k=5, epsilon0=0.7)
    counts = np.arange(12)
    chance = test.pass_probability(counts)

    np.testing.assert_allclose(chance, laplace.cdf(counts - 5, scale=1 / 0.7), rtol=1e-12)
    assert np.all(np.diff(np.log(chance)) <= 0.7 + 1e-12)
    assert np.all(np.diff(np.log(1 - chance)) >= -0.7 - 1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@given(claims=small_claims(), seed=st.integers(0, 99))
@settings(max_examples=20)
def test_counts_equal_the_loops(kernel: str, claims: Claims, seed: int) -> None:
    """The claims in the seed's bin are counted over the candidate's own task only, the seed itself included."""
    held = np.flatnonzero(claims.per_task > 0)
    if not len(held):
        return
    test = PrivacyTest(gamma=2.0)
    weight = 1 / claims.per_task[claims.task_of_each_claim]
    made = CandidateSampler(
        claims=claims, weight=weight, bandwidth=np.full(len(claims.tasks), 1.3), kernel=KERNELS[kernel], test=test
    )
    task = np.repeat(held, 3)
    seeds, candidate = made.draw(task, seeded(seed))
    slow = []
    for t, s, y in zip(task, seeds, candidate, strict=True):
        density = [plain_density(kernel, (y - x) / 1.3) / 1.3 for x in claims.claims_of_task(int(t))]
        own = density[s - claims.pointers[t]]
        a = math.floor(-math.log(own, 2)) if own else None
        slow.append(sum(p > 0 and math.floor(-math.log(p, 2)) == a for p in density))

    found = made.seeds_in_bin(task, seeds, candidate)

    # A density within rounding of a bin's edge may fall on either side; such draws have probability 1e-13.
    assert found.tolist() == slow
    assert np.all(claims.task_of_each_claim[seeds] == task)


@pytest.mark.parametrize("kernel", KERNELS)
def test_candidates_follow_the_weighted_density(kernel: str) -> None:
    """Seeds have their weights, and candidates the density of equation 5.

    20,000 candidates, Kolmogorov-Smirnov at false-alarm rate 1e-3; counts of seeds within 4.5 standard deviations.
    """
    made = sampler(kernel, PrivacyTest())
    seeds, candidate = made.draw(np.full(20_000, 1), seeded(11))
    points, step = grid(*ENDS)
    density = sum(
        w * np.array(np.exp(KERNELS[kernel].log_density((points - v) / 0.8))) / 0.8
        for v, w in zip(VALUES, WEIGHTS, strict=True)
    )
    cdf = np.cumsum(density) * step
    counts = np.bincount(seeds - 3, minlength=6)

    assert kstest(candidate, lambda x: np.interp(x, points + step / 2, cdf)).pvalue > 1e-3
    assert np.all(np.abs(counts - 20_000 * WEIGHTS) <= 4.5 * np.sqrt(20_000 * WEIGHTS * (1 - WEIGHTS)))


@pytest.mark.parametrize("kernel", KERNELS)
def test_records_follow_the_exact_density_of_the_release(kernel: str) -> None:
    """What passes, how often, and what the loop returns agree with quadrature from the definition.

    20,000 attempts and 5,000 loops: Kolmogorov-Smirnov at false-alarm rate 1e-3, the rate within 4 standard deviations.
    """
    test = PrivacyTest(k=3, gamma=2.0, epsilon0=1.0)
    made = sampler(kernel, test)
    exact = attempt(VALUES, WEIGHTS, 0.8, test, ENDS, kernel)
    points, step = grid(*ENDS)
    cdf = np.cumsum(exact.given_pass()) * step

    candidate, passed = made.attempt(np.full(20_000, 1), seeded(5))
    looped = made.until_pass(np.full(5_000, 1), 200, seeded(6)).value

    deviation = math.sqrt(exact.passing * exact.failure / 20_000)
    assert abs(passed.mean() - exact.passing) <= 4 * deviation
    for records in (candidate[passed], looped):
        assert kstest(records, lambda x: np.interp(x, points + step / 2, cdf)).pvalue > 1e-3


def test_the_loop_gives_up_after_its_attempts() -> None:
    """Lone claims never reach a large k: every record is NaN, and every candidate is counted with its comparisons."""
    claims, test = one_task([0.0, 100.0]), PrivacyTest(k=60, gamma=1.5, epsilon0=2.0)
    made = CandidateSampler(
        claims=claims, weight=np.array([0.5, 0.5]), bandwidth=np.ones(1), kernel=KERNELS["gaussian"], test=test
    )

    found = made.until_pass(np.zeros(4, dtype=np.int64), 3, seeded(1))

    assert np.isnan(found.value).all()
    assert (found.candidates, found.comparisons) == (12, 24)
