"""Truths from the sum of matrix-factorization reports."""

import math
from dataclasses import replace

import numpy as np
import pytest

from crowdveil.channels.alphabet import Scale
from crowdveil.channels.profile_totals import ProfileTotals
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators.factorization_mean import FactorizationMean, task_sums
from crowdveil.mechanisms.matrix_factorization import MatrixFactorization
from crowdveil.randomness import seeded

SCALE = Scale(0, 9)


def totals(**changes) -> ProfileTotals:
    """Return sums of two buckets over three tasks: tasks 0 and 2 share bucket 0."""
    plain = ProfileTotals(
        numerators=np.array([30.0, -12.0]),
        counts=np.array([40.0, 8.0]),
        numerator_deviation=6.0,
        count_deviation=2.0,
        buckets=np.array([0, 1, 0]),
        low=0.0,
        high=9.0,
        workers=50,
    )
    return replace(plain, **changes)


def simulated(workers: int, share: float, mechanism: MatrixFactorization, seed: int, tasks: int = 60):
    """Return truths and the totals of a crowd whose answers are the truth plus a unit normal, clipped to 0..9."""
    generator = np.random.default_rng(seed)
    truth = generator.normal(4.5, 2, tasks).clip(0, 9)
    worker, task = np.nonzero(generator.random((workers, tasks)) < share)
    codes = SCALE.encode(truth[task] + generator.normal(0, 1, len(worker)))
    summed = mechanism.simulate_sum_of_reports(task, codes, tasks, workers, seeded(seed))
    return truth, mechanism.totals_in_answer_units(summed, tasks=tasks, workers=workers)


def test_buckets_are_the_pseudo_inverse_of_unit_profiles():
    """Shared sums and their noise are those of the pseudo-inverse of the profiles, indexed [dimension, task]."""
    sums, inverse = task_sums(totals()), np.linalg.pinv(np.array([[1, 0, 1], [0, 1, 0]]))

    np.testing.assert_allclose(sums.numerators, inverse @ [30.0, -12.0], atol=1e-12)
    np.testing.assert_allclose(sums.counts, inverse @ [40.0, 8.0], atol=1e-12)
    np.testing.assert_allclose(sums.numerator_deviation, 6.0 * np.linalg.norm(inverse, axis=1), atol=1e-12)
    np.testing.assert_allclose(sums.count_deviation, 2.0 * np.linalg.norm(inverse, axis=1), atol=1e-12)


def test_truths_are_the_documented_formula():
    """Each truth equals centre + C S / (C^2 + (s / t)^2), written as a loop."""
    rule = FactorizationMean(truth_deviation=2.0)
    sums = task_sums(totals())

    expected = []
    for task in range(3):
        c, s = sums.counts[task], sums.numerators[task]
        moved = c * s / (c**2 + (sums.numerator_deviation[task] / 2.0) ** 2)
        expected.append(4.5 + moved if c > 2.0 * sums.count_deviation[task] else 4.5)
    np.testing.assert_allclose(rule.fit(totals()).truth, expected)


def test_known_counts_give_the_posterior_mean_of_a_normal_truth():
    """By quadrature: truth ~ N(c, t^2), S ~ N(C (truth - c), s^2)."""
    grid = np.linspace(-60, 60, 200_001)
    weight = np.exp(-(grid**2) / (2 * 1.5**2) - (-12.0 - 8.0 * grid) ** 2 / (2 * 6.0**2))

    estimate = FactorizationMean(truth_deviation=1.5, count_threshold=0.0).fit(totals())

    assert pytest.approx(4.5 + (grid * weight).sum() / weight.sum(), abs=1e-6) == estimate.truth[1]


@pytest.mark.parametrize("counts", [[4.0, 4.0], [-40.0, 0.0]])
def test_counts_within_their_noise_leave_the_centre(counts):
    """A count of two deviations or less is uninformative: the truth is the public centre, as the baseline reports."""
    estimate = FactorizationMean().fit(totals(counts=np.array(counts), buckets=np.array([0, 1])))

    assert [4.5, 4.5] == estimate.truth.tolist()
    assert 0 == estimate.baseline.moved


def test_truths_stay_inside_the_domain():
    """A noisy sum cannot push a truth out of the range of answers."""
    estimate = FactorizationMean().fit(totals(numerators=np.array([1e6, -1e6])))

    assert [9.0, 0.0, 9.0] == estimate.truth.tolist()


def test_names_are_kept_in_order():
    """Given names appear in the estimate; without them there are numbers."""
    named = FactorizationMean().fit(totals(workers=2), tasks=["x", "y", "z"], workers=["ann", "bo"])

    assert (["x", "y", "z"], ["ann", "bo"]) == (named.tasks.tolist(), named.worker_names.tolist())
    assert [0, 1, 2] == FactorizationMean().fit(totals()).tasks.tolist()


@pytest.mark.parametrize(
    ("changes", "names", "rule"),
    [
        ({}, {"tasks": ["x"]}, "3 tasks, but 1 names"),
        ({}, {"workers": ["ann"]}, "50 workers, but 1 names"),
        ({"buckets": np.array([0, 2, 0])}, {}, "must belong"),
        ({"counts": np.ones(3)}, {}, "must belong"),
    ],
)
def test_totals_that_do_not_fit_are_refused(changes, names, rule):
    """Names, buckets and sums must belong to the same campaign."""
    with pytest.raises(ReportsError, match=rule):
        FactorizationMean().fit(totals(**changes), **names)


def test_more_workers_teach_more():
    """At epsilon 3, half of the cells answered, correlation grows and the error falls far below the constant's.

    Fixed seeds; 60 tasks with truths N(4.5, 2); 100, 1,000 and 10,000 workers, mean of 5 crowds each.
    """
    mechanism = MatrixFactorization(alphabet=SCALE, epsilon=3.0)
    correlations, errors, constants = [], [], []
    for workers in (100, 1000, 10_000):
        crowds = [simulated(workers, 0.5, mechanism, seed) for seed in range(5)]
        fits = [(truth, FactorizationMean().fit(sums).truth) for truth, sums in crowds]
        correlations.append(np.mean([np.corrcoef(truth, fit)[0, 1] for truth, fit in fits]))
        errors.append(np.mean([np.abs(truth - fit).mean() for truth, fit in fits]))
        constants.append(np.mean([np.abs(truth - 4.5).mean() for truth, _ in fits]))

    assert correlations[0] < correlations[1] < correlations[2]
    assert errors[0] > errors[1] > errors[2]
    assert correlations[1] > 0.98
    assert errors[0] < 0.6 * constants[0]
    assert errors[1] < 0.2 * constants[1]
    assert errors[2] < 0.1 * constants[2]


@pytest.mark.parametrize(
    "settings",
    [{"truth_deviation": 0.0}, {"truth_deviation": math.inf}, {"count_threshold": -1.0}, {"count_threshold": math.nan}],
)
def test_bad_settings_are_refused(settings):
    """Deviations are positive, thresholds are not negative, both are finite."""
    with pytest.raises(SettingsError):
        FactorizationMean(**settings)


def test_default_deviation_is_that_of_a_uniform_truth():
    """Without a stated deviation the range over the square root of 12 is used."""
    stated = FactorizationMean(truth_deviation=9 / math.sqrt(12))

    assert stated.fit(totals()).truth.tolist() == FactorizationMean().fit(totals()).truth.tolist()
