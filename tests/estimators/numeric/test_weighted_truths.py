"""Weighted truths of numbers, and the correlation of their errors."""

import numpy as np
import pytest
from scipy.stats import chi2

from crowdveil.answers.reports import Reports
from crowdveil.estimators import Catd, Crh
from crowdveil.inference.scores import metrics
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
