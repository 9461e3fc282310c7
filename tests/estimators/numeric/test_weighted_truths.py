"""Weighted truths of numbers, and the correlation of their errors."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from crowdveil.data.reports import Reports
from crowdveil.estimators import Catd, Crh
from crowdveil.estimators.numeric.student_t import PRIOR_CORRELATION, StudentT, correlation_of
from crowdveil.evaluation import metrics
from tests.real_data import load_or_skip

TASKS, WORKERS = 15, 6


@pytest.fixture
def reports() -> Reports:
    """Return numbers of six workers with different errors on 15 tasks."""
    rng = np.random.default_rng(11)
    task, worker = np.nonzero(rng.random((TASKS, WORKERS)) < 0.7)
    value = rng.normal(0, 10, TASKS)[task] + rng.normal(0, 1, len(task)) * (1 + worker)
    return Reports(task, worker, value, np.arange(TASKS), np.arange(WORKERS), None)


def by_task(reports: Reports, of: object) -> np.ndarray:
    """Return a statistic of each task's numbers, shape (tasks,)."""
    assert callable(of)
    return np.array([of(reports.value[reports.task == j]) for j in range(TASKS)])


def weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the number at one half of the weight."""
    order = np.argsort(values)
    return float(values[order][np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)])


def test_crh_equals_loops(reports: Reports) -> None:
    """Three steps alternate weighted medians and -log of the relative normalized loss."""
    truth, unit = by_task(reports, np.median), by_task(reports, np.std)
    for _ in range(2):
        loss = np.zeros(WORKERS)
        for j, i, y in zip(reports.task, reports.worker, reports.value, strict=True):
            loss[i] += abs(y - truth[j]) / unit[j]
        weight = 1e-7 - np.log(loss / loss.max())
        for j in range(TASKS):
            at = reports.task == j
            truth[j] = weighted_median(reports.value[at], weight[reports.worker[at]])

    np.testing.assert_allclose(Crh(max_steps=3, tolerance=0.0).fit(reports).posterior, truth, atol=1e-12)


def test_catd_equals_loops(reports: Reports) -> None:
    """Three steps alternate weighted means and chi-squared quantiles over sums of squares."""
    truth = by_task(reports, np.median)
    for _ in range(2):
        squares, answers = np.zeros(WORKERS), np.zeros(WORKERS)
        for j, i, y in zip(reports.task, reports.worker, reports.value, strict=True):
            squares[i] += (y - truth[j]) ** 2
            answers[i] += 1
        weight = chi2.ppf(0.025, answers) / squares
        for j in range(TASKS):
            at = reports.task == j
            truth[j] = np.average(reports.value[at], weights=weight[reports.worker[at]])

    np.testing.assert_allclose(Catd(max_steps=3, tolerance=0.0).fit(reports).posterior, truth, atol=1e-9)


def test_errors_of_crh_are_the_published_ones() -> None:
    """On n_emotion the mean absolute error is 13.91 and the root mean square 21.96 (Zheng et al. 2017)."""
    data = load_or_skip("n_emotion")

    estimate = Crh().fit(data.answers)

    assert pytest.approx(13.91, abs=0.005) == metrics.score(estimate, data.gold).error
    assert pytest.approx(21.96, abs=0.005) == metrics.score(estimate, data.gold, error="rmse").error


def panel(seed: int, tasks: int, group: int, shared: float, own: float) -> tuple[Reports, np.ndarray[Any, Any]]:
    """Make numbers of 24 judges in groups whose members share an error of deviation `shared`; and truths."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=tasks)
    copied = np.repeat(rng.normal(0, shared, (tasks, 24 // group)), group, axis=1)
    values = truth[:, None] + copied + rng.normal(0, own, (tasks, 24))
    task, judge = np.indices(values.shape).reshape(2, -1)
    return Reports.from_arrays(task, judge, values.ravel(), numeric=True), truth


def correlation(reports: Reports, **given: Any) -> float:
    """Return the fitted correlation."""
    state = StudentT(**given).fit(reports).state
    return float(state.shared["shared"][3])


def test_the_correlation_equals_loops_over_tasks() -> None:
    """Tasks of 2 to 6 answers; those of 2 do not count."""
    rng = np.random.default_rng(2)
    squares = [rng.chisquare(n - 1) for n in range(2, 7)]
    counted = [(n, s) for n, s in zip(range(2, 7), squares, strict=True) if n >= 3]
    tasks, others = len(counted), sum(n - 1 for n, _ in counted)
    sums = [tasks, others, sum(s for _, s in counted), sum(s * s / (n - 1) for n, s in counted)]
    variance = sums[2] / others
    excess = sum((n - 1) * ((s / (n - 1) / variance) ** 2 - 1 - 2 / (n - 1)) for n, s in counted)
    q = excess / sum(2 * (n - 2) for n, _ in counted)

    expected = (tasks * min(max(1.75 * q, 0), 0.7) + 5 * PRIOR_CORRELATION) / (tasks + 5)

    assert correlation_of(np.array(sums, dtype=float)) == pytest.approx(expected, rel=1e-12)


def test_without_three_answers_to_a_task_the_correlation_is_the_prior_one() -> None:
    """Pairs of answers do not show it."""
    rng = np.random.default_rng(4)
    task, worker = np.indices((50, 2)).reshape(2, -1)
    reports = Reports.from_arrays(task, worker, rng.normal(size=100), numeric=True)

    assert correlation(reports) == PRIOR_CORRELATION
    assert correlation(reports, error_correlation=0.3) == 0.3


@pytest.mark.parametrize(
    ("group", "shared", "own"), [(1, 0.0, 0.7), (6, 0.5, 0.5), (6, 1.0, 0.3), (3, 0.8, 0.5), (2, 0.5, 0.5)]
)
def test_intervals_hold_with_independent_judges_and_with_copies(group: int, shared: float, own: float) -> None:
    """85 to 95 % of 1,200 truths lie in the 90 % intervals of judges in groups that share 0 to 92 % of the variance."""
    inside = []
    for seed in range(3):
        reports, truth = panel(seed, 400, group, shared, own)
        estimate = StudentT().fit(reports)
        inside.append((np.asarray(estimate.low) <= truth) & (truth <= np.asarray(estimate.high)))

    assert 0.85 <= np.mean(inside) <= 0.95


def test_gold_tasks_do_not_count() -> None:
    """Errors about a known truth hold what all judges share; the correlation is that of the other tasks."""
    reports, truth = panel(7, 100, 6, 0.5, 0.5)
    gold = {int(task): float(truth[task]) + 3 for task in range(40)}
    others = reports.task >= 40
    rest = Reports.from_arrays(reports.task[others], reports.worker[others], reports.numbers[others], numeric=True)

    found = StudentT().fit(reports, gold=gold).state.shared["shared"][3]

    assert found == pytest.approx(correlation(rest), abs=0.02)
    assert found < 0.4
