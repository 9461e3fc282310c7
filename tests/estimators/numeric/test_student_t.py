"""Student errors for numbers against the equations written as loops, and against real numbers with gold."""

import math
from typing import Any

import numpy as np
import pytest

from crowdveil.data.reports import Reports
from crowdveil.estimators.numeric.student_t import LARGEST_NORMAL_KURTOSIS, StudentT
from tests.real_data import load_or_skip


def numbers(rows: list[tuple[int, int, float]]) -> Reports:
    """Make reports of (task, worker, number) rows."""
    task, worker, value = zip(*rows, strict=True)
    return Reports.from_arrays(task, worker, value, numeric=True)


def crowd(seed: int, outliers: float, tasks: int = 60, workers: int = 8) -> tuple[Reports, np.ndarray[Any, Any]]:
    """Make normal reports, worker i with deviation 1 + i / 2, a share of them replaced by gross errors; and truths."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0, 100, tasks)
    task, worker = np.indices((tasks, workers)).reshape(2, -1)
    value = truth[task] + rng.normal(size=len(task)) * (1 + worker / 2)
    value = np.where(rng.random(len(task)) < outliers, value + rng.normal(size=len(task)) * 1000, value)
    return Reports.from_arrays(task, worker, value, numeric=True, tasks=range(tasks), workers=range(workers)), truth


def normal_step(
    rows: list[tuple[int, int, float]], variance: list[float], scale2: float, prior: float
) -> tuple[list[float], list[float], float]:
    """Return truths, next variances and next squared scale of normal errors, by loops over the equations."""
    tasks = max(t for t, _, _ in rows) + 1
    truth, spread = [], []
    for j in range(tasks):
        precision = sum(1 / (scale2 * variance[i]) for t, i, _ in rows if t == j)
        truth.append(sum(y / (scale2 * variance[i]) for t, i, y in rows if t == j) / precision)
        spread.append(1 / precision)
    squares = [sum((y - truth[t]) ** 2 + spread[t] for t, i, y in rows if i == w) for w in range(len(variance))]
    counts = [sum(i == w for _, i, _ in rows) for w in range(len(variance))]
    after = [(q / scale2 + prior) / (n + prior) for q, n in zip(squares, counts, strict=True)]
    return truth, after, sum(q / v for q, v in zip(squares, after, strict=True)) / len(rows)


@pytest.mark.parametrize("steps", [2, 3, 5])
def test_normal_steps_equal_the_equations(steps: int) -> None:
    """Truths after each step equal weighted means, and weights inverse variances, written as loops."""
    rng = np.random.default_rng(3)
    rows = [(t, w, float(rng.normal(10 * t, 1 + w))) for t in range(9) for w in range(4) if (t + w) % 3 or not t]
    means = [np.mean([y for t, _, y in rows if t == j]) for j in range(9)]
    counts = [sum(t == j for t, _, _ in rows) for j in range(9)]
    kept = [(y - means[t]) ** 2 * counts[t] / (counts[t] - 1) for t, _, y in rows if counts[t] > 1]
    variance, scale2, truth = [1.0] * 4, float(np.mean(kept)), list[float]()
    for _ in range(steps - 1):
        before = variance
        truth, variance, scale2 = normal_step(rows, variance, scale2, 100.0)

    estimate = StudentT(max_steps=steps, tolerance=0.0, degrees_of_freedom=math.inf).fit(numbers(rows))

    np.testing.assert_allclose(estimate.posterior, truth, rtol=1e-12)
    weights = 1 / np.array(before)
    np.testing.assert_allclose(estimate.workers.quality, weights / weights.sum(), rtol=1e-12)


@pytest.mark.parametrize("nu", [1.0, 3.0, 10.0])
def test_student_truths_are_fixed_points_of_the_equations(nu: float) -> None:
    """At convergence each truth is the mean weighted by (nu + 1) / (nu + e^2 / (s^2 v)) / v."""
    reports, _ = crowd(1, outliers=0.1)
    estimate = StudentT(degrees_of_freedom=nu, tolerance=1e-10, max_steps=3000).fit(reports)
    assert estimate.state is not None
    variance, scale2 = estimate.state.by_worker["variance"], estimate.state.shared["shared"][0]
    scale = scale2 * variance[reports.worker]
    weight = (nu + 1) / (nu + (reports.numbers - estimate.posterior[reports.task]) ** 2 / scale) / scale

    expected = np.bincount(reports.task, weight * reports.numbers) / np.bincount(reports.task, weight)

    np.testing.assert_allclose(estimate.posterior, expected, atol=1e-6)


@pytest.mark.parametrize("degrees", [None, 3.0])
def test_many_answers_to_a_task_do_not_stop_a_fit_early(degrees: float | None) -> None:
    """With 2,000 answers to a task, the fit ends within 0.2 standard errors of where a longer one ends."""
    rng = np.random.default_rng(3)
    task, worker = np.indices((20, 2000)).reshape(2, -1)
    value = rng.normal(size=20)[task] + rng.normal(size=len(task)) * np.where(worker % 2, 1.0, 5.0)
    reports = Reports.from_arrays(task, worker, value, numeric=True)

    fitted = StudentT(degrees_of_freedom=degrees).fit(reports)
    longer = StudentT(degrees_of_freedom=degrees, tolerance=1e-6, max_steps=1000).fit(reports)

    assert longer.state is not None
    scale = longer.state.shared["shared"][0] * longer.state.by_worker["variance"]
    assert np.abs(fitted.posterior - longer.posterior).max() < 0.2 / math.sqrt((1 / scale).sum())


LEAST_ERROR = {
    "n_emotion": 11.75,
    "snow_valence": 21.70,
    "weather_temperature": 0.7304,
    "peer_grading_mooc": 2.906,
    "population_tf": 2221,
    "population_cut": 2900,
}
"""Mean absolute error of the best of mean, median, CRH, CATD and GTM, first of repeated answers."""


@pytest.mark.parametrize("name", LEAST_ERROR)
def test_real_numbers_are_within_2_percent_of_the_best_known_method(name: str) -> None:
    """The error is at most 1.02 times the best of five methods; 85 to 95.5 % of gold is inside."""
    data = load_or_skip(name)
    estimate = StudentT().fit(data.answers)
    gold = np.array([data.gold.get(task, math.nan) for task in data.answers.tasks.tolist()], dtype=float)
    known = ~np.isnan(gold)
    inside = (np.asarray(estimate.low) <= gold) & (gold <= np.asarray(estimate.high))

    assert estimate.converged
    assert np.abs(estimate.posterior - gold)[known].mean() <= 1.02 * LEAST_ERROR[name]
    assert 0.85 <= inside[known].mean() <= 0.955


def test_the_kurtosis_decides_between_normal_and_student_errors() -> None:
    """The limit lies far from both kinds of real sets: the kind of errors is stored in the state."""
    kinds = {}
    for name in ("n_emotion", "snow_valence", "weather_temperature"):
        state = StudentT().fit(load_or_skip(name).answers).state
        assert state is not None
        kinds[name] = state.shared["shared"][1] == 0

    assert {"n_emotion": True, "snow_valence": True, "weather_temperature": False} == kinds
    assert 7 < LARGEST_NORMAL_KURTOSIS < 100


@pytest.mark.parametrize("rows", [[(0, 0, 5.0)], [(0, 0, 5e-9), (0, 1, 5e-9), (1, 0, 7e-9)]])
def test_equal_answers_have_no_interval(rows: list[tuple[int, int, float]]) -> None:
    """Without any disagreement the errors have no scale: the truths are the answers, the intervals unknown."""
    estimate = StudentT().fit(numbers(rows))

    assert {value for _, _, value in rows} == set(estimate.posterior.tolist())
    assert estimate.low is not None
    assert np.isnan(estimate.low).all()
    assert estimate.high is not None
    assert np.isnan(estimate.high).all()
