"""Bounds of the papers against their worked examples, their equations written as loops, and counterexamples."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from experiments.theory.published_bounds import (
    ability_error_bound,
    beta_flip_epsilon,
    factorization_error_bound,
    failure_probability,
    laplace_cell_error,
    mean_error_bound,
    private_effective_ability,
    private_wisdom,
    projection_range,
    published_factorization_delta,
    randomized_response_cell_error,
    randomized_response_mean_limit,
    refuting_workers,
    row_space_error_floor,
    row_space_least_error,
    smaller_change_probability,
    smallest_tasks,
    smallest_workers,
    truth_error_bound,
    two_layer_claimed_epsilon,
    two_layer_exact_epsilon,
    weighted_vote_error_bound,
    weighted_vote_error_printed,
)
from scipy.integrate import quad

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Scale
from crowdveil.errors import SettingsError
from crowdveil.estimators.weighted_mean import WeightedMean
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.randomness import seeded

VALUES = np.arange(10.0)
SPARSE_EXAMPLE: dict[str, Any] = {"values": VALUES, "epsilon": 1.0, "participation": 0.1}


def normal_below(x: float) -> float:
    """Standard normal distribution function."""
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def density(x: np.ndarray) -> np.ndarray:
    """Standard normal density."""
    return np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


def readings() -> dict[str, np.ndarray]:
    """What N(x; 0, 1) can mean for x in 0..9."""
    rounded = np.array([normal_below(x + 0.5) - normal_below(x - 0.5) for x in VALUES])
    return {
        "density as printed": density(VALUES),
        "density, normalised": density(VALUES) / density(VALUES).sum(),
        "rounded and clipped": np.concatenate(([normal_below(0.5)], rounded[1:-1], [1 - normal_below(8.5)])),
        "absolute value, rounded": np.concatenate(([rounded[0]], 2 * rounded[1:-1], [2 * (1 - normal_below(8.5))])),
        "folded density, normalised": (folded := density(VALUES) * np.where(VALUES > 0, 2, 1)) / folded.sum(),
    }


NORMALISED = readings()["density, normalised"]


def laplace_example(truth: float) -> float:
    """Sun's example of Theorem 2 with the given truth for all tasks; NULL is drawn uniformly."""
    return mean_error_bound(laplace_cell_error([1], [0.1], [abs(4.5 - truth)], noise_scale=10), [1])


def lone_worker_laplace_error(*, tasks: int) -> float:
    """Least error of one worker who answers one task, however well: NULL uniform on 0..9, truths 4.5, noise 10 / 20."""
    scale, off = 10 / 20, np.abs(VALUES - 4.5)
    return (tasks - 1) / tasks * float(np.mean(off + scale * np.exp(-off / scale)))


def majority_error(workers: int, correct: float) -> float:
    """Exact error of log-odds voting, an odd number of workers all correct with `correct` < 1/2 (so inverted)."""
    wrong = [math.comb(workers, k) * correct**k * (1 - correct) ** (workers - k) for k in range(workers + 1)]
    return sum(wrong[k] for k in range(workers + 1) if 2 * k > workers)


def half_zero_half_nine() -> tuple[np.ndarray, np.ndarray]:
    """Unit task profiles in 100 dimensions for 1000 tasks, and truths 0 and 9 in equal parts under each profile."""
    profiles = np.tile(np.eye(100), 10)
    return profiles, np.repeat([0.0, 9.0], 500)


def test_laplace_example_is_reproduced() -> None:
    """Theorem 2 of Sun et al. gives 14.13 in the paper's example."""
    assert laplace_example(0) == pytest.approx(14.13, abs=5e-4)


def test_laplace_bound_equals_the_equation_written_as_loops() -> None:
    """The vectorised bound is Theorem 2's double sum."""
    quality, sigma, share, off, scale = [0.2, 0.5, 0.3], [1.0, 2.0, 5.0], [0.1, 0.6, 1.0], [4.5, 0.5], 3.0
    expected = 0.0
    for deviation in off:
        for q, s, p in zip(quality, sigma, share, strict=True):
            expected += q * ((1 - p) * (deviation + scale) + p * (s * math.sqrt(2 / math.pi) + scale)) / len(off)

    assert mean_error_bound(laplace_cell_error(sigma, share, off, noise_scale=scale), quality) == pytest.approx(
        expected
    )


def test_laplace_bound_fails_for_one_worker_with_random_null() -> None:
    """A worker who answers one of 1,000 tasks and draws NULL at random has a larger error than Theorem 2 allows.

    The error of the 999 tasks without an answer alone exceeds the bound; the paper asks for one answer per worker.
    """
    bound = mean_error_bound(laplace_cell_error([1], [1 / 1000], [0], noise_scale=0.5), [1])

    assert lone_worker_laplace_error(tasks=1000) > 5 * bound


def test_randomized_response_error_equals_the_equation_written_as_loops() -> None:
    """The vectorised cell error is Theorem 3's double sum over answers and reports."""
    keep, flip = math.e / (10 + math.e), 1 / (10 + math.e)
    inner = [abs(0 - sum(y * (keep if x == y else flip) for y in VALUES)) for x in VALUES]
    null = abs(0 - sum(y * flip for y in VALUES))
    expected = 0.9 * null + 0.1 * sum(w * e for w, e in zip(NORMALISED, inner, strict=True))

    assert randomized_response_cell_error(0, NORMALISED, **SPARSE_EXAMPLE) == pytest.approx(expected, rel=1e-12)


def test_no_reading_of_theorem_3_gives_the_printed_figure() -> None:
    """The readings of N(x; 0, 1) give 3.437 to 3.549, never 3.551 to the printed digits."""
    found = {name: randomized_response_cell_error(0, w, **SPARSE_EXAMPLE) for name, w in readings().items()}
    expected = {
        "density as printed": 3.4368,
        "density, normalised": 3.5452,
        "rounded and clipped": 3.5434,
        "absolute value, rounded": 3.5485,
        "folded density, normalised": 3.5480,
    }

    assert expected == {name: round(value, 4) for name, value in found.items()}
    assert min(abs(value - 3.551) for value in found.values()) > 2e-3


@pytest.mark.slow
def test_algorithm_1_exceeds_the_bound_of_theorem_3_in_its_own_example() -> None:
    """Simulated reports average to the limit 4.433, which is above the claimed bound 3.551.

    Sample: 1,000 workers x 400 tasks, seed fixed; about 320,000 non-NULL reports of standard deviation 2.9, so a
    standard error of 0.0051. Tolerance 0.02, 3.9 standard errors: false-alarm rate 1e-4 for another seed.
    """
    random = np.random.Generator(np.random.PCG64(20181210))
    cells = (1000, 400)
    answer = random.choice(10, size=cells, p=NORMALISED)
    answer[random.random(cells) >= 0.1] = 10
    channel = RandomizedResponse(alphabet=Scale(0, 9), epsilon=1.0).channel()
    report = channel.sample(answer.ravel(), seeded(20181210)).reshape(cells)
    worker, task = np.nonzero(report < 10)
    reports = Reports.from_arrays(task, worker, report[worker, task], alphabet=Scale(0, 9))
    plain = reports.numbers.mean()
    weighted = np.abs(WeightedMean().fit(reports).posterior).mean()
    limit = randomized_response_mean_limit(NORMALISED, **SPARSE_EXAMPLE)

    assert limit == pytest.approx(4.433, abs=5e-4)
    assert plain == pytest.approx(limit, abs=0.02)
    assert weighted == pytest.approx(limit, abs=0.04)
    assert min(plain, weighted) > 3.551 + 0.5


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_published_factorization_leaks_the_stated_delta(epsilon: float) -> None:
    """Quadrature of the two densities' excess over exp(epsilon) gives exp(-epsilon) / 4."""
    u = np.linspace(0, 60, 600_001)
    one, both = np.exp(-u) / 2, np.exp(-2 * u)
    delta = 2 * np.trapezoid(np.maximum(one - math.exp(epsilon) * both, 0), u)

    assert published_factorization_delta(epsilon) == pytest.approx(delta, abs=1e-7)


def test_factorization_example_is_reproduced_and_refuted() -> None:
    """Theorem 5 gives 1.798 in the paper's example, where no estimate at any epsilon comes below 4.5 (or 4.1)."""
    setting: dict[str, Any] = {
        "largest_quality": 0.1,
        "workers": 10,
        "dimensions": 100,
        "noise_scale": 10,
        "tasks": 1000,
    }
    random = np.random.Generator(np.random.PCG64(0))
    truths, gaussian = random.uniform(0, 9, 1000), random.normal(size=(100, 1000))

    assert factorization_error_bound(**setting) == pytest.approx(1.798, abs=5e-4)
    assert row_space_error_floor(*half_zero_half_nine()) == pytest.approx(4.5)
    assert row_space_error_floor(gaussian, truths) > 1.8
    assert row_space_least_error(gaussian, truths) == pytest.approx(4.13, abs=5e-3)


def test_row_space_floor_is_below_every_estimate_in_the_row_space() -> None:
    """No u V comes closer to the truths than the floor; the least-squares one is tried, and random ones."""
    random = np.random.Generator(np.random.PCG64(3))
    profiles, truths = random.normal(size=(3, 40)), random.uniform(0, 9, 40)
    best = np.linalg.lstsq(profiles.T, truths, rcond=None)[0]
    errors = [np.abs(truths - (best + move) @ profiles).mean() for move in random.normal(0, 0.3, size=(200, 3))]

    assert 0.5 < row_space_error_floor(profiles, truths) <= min(errors)


@pytest.mark.parametrize("seed", range(3))
def test_least_error_of_the_row_space_is_that_of_the_best_point(seed: int) -> None:
    """For one profile the best multiple is at a ratio of truth and profile; the floor is below it."""
    random = np.random.Generator(np.random.PCG64(seed))
    profile, truths = random.normal(size=31), random.uniform(0, 9, 31)
    best = min(np.abs(truths - ratio * profile).mean() for ratio in truths / profile)

    assert row_space_least_error(profile[None], truths) == pytest.approx(best)
    assert row_space_error_floor(profile[None], truths) <= best


def test_least_error_of_several_profiles_is_below_random_estimates() -> None:
    """No u V of many drawn near the least-squares one comes below the least error, and some come near it."""
    random = np.random.Generator(np.random.PCG64(3))
    profiles, truths = random.normal(size=(3, 40)), random.uniform(0, 9, 40)
    centre = np.linalg.lstsq(profiles.T, truths, rcond=None)[0]
    errors = [np.abs(truths - (centre + move) @ profiles).mean() for move in random.normal(0, 0.3, size=(2000, 3))]

    assert 0.98 * min(errors) < row_space_least_error(profiles, truths) <= min(errors)


def test_two_layer_claim_is_right_for_one_answer() -> None:
    """Theorem 6.3 and the exact accountant agree when a worker gives a single answer."""
    for (low, high), labels in product(((0.0, 0.5), (0.1, 0.7)), (2, 5)):
        claimed = two_layer_claimed_epsilon(low, high, labels=labels)

        assert two_layer_exact_epsilon(low, high, labels=labels, answers=1) == pytest.approx(claimed, rel=1e-9)


@pytest.mark.parametrize("shape", [1, 2, 7])
@pytest.mark.parametrize("answers", [1, 2, 5, 30])
def test_beta_flips_lose_the_largest_ratio_of_their_moments(shape: int, answers: int) -> None:
    """The closed form is the largest ratio of neighbouring moments of Beta(shape, shape), written out as fractions."""

    def moment(differing: int) -> Fraction:
        """E[p^h (1 - p)^(k - h)], times a constant."""
        powers = shape + differing - 1, shape + answers - differing - 1
        return Fraction(math.factorial(powers[0]) * math.factorial(powers[1]), math.factorial(sum(powers) + 1))

    worst = max(moment(h) / moment(h + 1) for h in range(answers))

    assert math.log(worst) == pytest.approx(beta_flip_epsilon(shape, answers=answers), abs=1e-12)
    assert max(moment(h + 1) / moment(h) for h in range(answers)) == worst


@pytest.mark.parametrize(("high", "users"), [(1.0, 1), (1.0, 2), (0.6, 3), (0.538, 5)])
def test_product_of_flips_has_the_mean_of_one_layer(high: float, users: int) -> None:
    """The product of n numbers from U(0, b) has mean (b/2)^n, and lies below it with the stated probability."""
    top, below = high**users, (high / 2) ** users

    def density_of_product(change: float) -> float:
        """Density on (0, b^n]: ln(b^n / change)^(n - 1) / ((n - 1)! b^n)."""
        return math.log(top / change) ** (users - 1) / math.factorial(users - 1) / top

    mean = quad(lambda change: change * density_of_product(change), 0, top, epsabs=0)[0]

    assert below == pytest.approx(mean, rel=1e-8)
    assert smaller_change_probability(users) == pytest.approx(quad(density_of_product, 0, below, epsabs=0)[0], rel=1e-6)
    assert smaller_change_probability(users) >= 0.5 - 1e-12


def test_printed_voting_bound_is_below_the_true_error() -> None:
    """Equation 7 of Li et al. is smaller than the exact error from 5 workers on; the sound bound never is."""
    for workers in (5, 11, 51):
        abilities = np.full(workers, 0.4)

        assert weighted_vote_error_printed(abilities) < majority_error(workers, 0.4)
        assert weighted_vote_error_bound(abilities) > majority_error(workers, 0.4)


def test_effective_ability_follows_from_flipping_every_answer() -> None:
    """Equation 12 is the probability of a correct report, of the worker or of his inverse."""
    keep = math.e / (math.e + 1)
    expected = [keep * max(p, 1 - p) + (1 - keep) * (1 - max(p, 1 - p)) for p in (0.1, 0.5, 0.8)]

    np.testing.assert_allclose(private_effective_ability([0.1, 0.5, 0.8], 1.0), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "best", "usual"),
    [(0.5, 8.34e7, 1.05e9), (1, 5.66e6, 7.25e7), (2, 6.78e5, 8.74e6), (3, 3.26e5, 4.20e6), (5, 2.26e5, 2.91e6)],
)
def test_projection_range_is_empty_below_hundreds_of_thousands_of_tasks(
    epsilon: float, best: float, usual: float
) -> None:
    """The smallest task counts for which range (16) holds a number, at wisdom 1 and 0.3 before privacy."""
    wisdom = private_wisdom([1.0], epsilon)
    found = [smallest_tasks(wisdom), smallest_tasks(0.3 * wisdom)]

    assert [f"{number:.2e}" for number in (best, usual)] == [f"{number:.2e}" for number in found]
    assert projection_range(found[0] - 1, wisdom) is None
    assert projection_range(found[0], wisdom) is not None
    assert smallest_workers(11_040, wisdom) is None


@pytest.mark.parametrize(("tasks", "constant"), [(10**8, 10**5), (10**12, 10**8), (10**20, 10**15)])
def test_theorem_2_of_wang_fails_more_often_than_any_constant_allows(tasks: int, constant: int) -> None:
    """All conditions hold for perfect workers at epsilon 1, and (17) fails by exact counts with more than C' / m.

    e / (e + 1) is below 7311 / 10,000, and fewer right reports make more wrong votes.
    """
    wisdom = private_wisdom([1.0], 1.0)
    workers = refuting_workers(tasks, wisdom)
    right = Fraction(7311, 10_000)
    wrong = sum(math.comb(workers, k) * right**k * (1 - right) ** (workers - k) for k in range((workers + 1) // 2))
    exact = tasks * wrong - (tasks * wrong) ** 2 / 2 - Fraction(2 * workers, tasks**2)

    assert workers % 2 == 1
    assert workers <= tasks <= math.exp(workers)
    assert math.log(tasks) <= workers * wisdom
    assert projection_range(tasks, wisdom) is not None
    assert truth_error_bound(workers, wisdom) < 1 / tasks
    assert exact * tasks > constant
    assert failure_probability(workers, tasks, wisdom) == pytest.approx(float(exact), rel=0.05)


def test_failure_of_theorem_2_is_not_claimed_beyond_its_proof() -> None:
    """The bound is 0 where (16) is empty, and where spammers could outweigh a worker."""
    wisdom = private_wisdom([1.0], 1.0)

    assert failure_probability(181, 10**6, wisdom) == 0
    assert failure_probability(181, 10**8, wisdom) > 0
    assert failure_probability(181, 10**8, wisdom, spammers=300) > 0
    assert projection_range(10**8, wisdom * 181 / 581) is not None
    assert failure_probability(181, 10**8, wisdom, spammers=400) == 0


def test_ability_error_bound_covers_the_constant_of_its_proof() -> None:
    """The 6 / epsilon of equation 32 is at least 2 coth(epsilon / 2), which the proof needs, for epsilon up to 1."""
    for epsilon in np.linspace(0.01, 1, 100):
        needed = 2 / math.tanh(epsilon / 2) * math.sqrt(math.log(1000) / 1000)

        assert ability_error_bound(1000, float(epsilon)) >= needed
    with pytest.raises(SettingsError, match="Theorem 3 speaks of"):
        ability_error_bound(1000, 2.0)
