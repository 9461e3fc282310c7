"""The heavy sums against loops over single reports."""

import numpy as np
import pytest

from crowdveil.estimators.kernels import incidence, softmax, task_scores, worker_sums
from tests.estimators.dense import LABELS, random_reports

REPORTS = random_reports(np.random.default_rng(0), LABELS, tasks=9, workers=6, share=0.5)
(BLOCK,) = REPORTS.blocks()
MATRIX = incidence(BLOCK, 6, 3)


def test_incidence_has_a_one_per_report() -> None:
    """The matrix has one row per task, one column per worker and symbol, and counts reports."""
    expected = np.zeros((9, 18))
    for task, worker, value in zip(REPORTS.task, REPORTS.worker, REPORTS.value, strict=True):
        expected[task, worker * 3 + value] += 1

    np.testing.assert_array_equal(MATRIX.toarray(), expected)


def test_task_scores_add_up_each_tasks_reports() -> None:
    """Scores are the table's rows summed over the reports of each task."""
    table = np.random.default_rng(1).normal(size=(18, 3))
    expected = np.zeros((9, 3))
    for task, worker, value in zip(REPORTS.task, REPORTS.worker, REPORTS.value, strict=True):
        expected[task] += table[worker * 3 + value]

    np.testing.assert_allclose(task_scores(MATRIX, table), expected, atol=1e-12)


def test_worker_sums_add_up_posteriors() -> None:
    """Sums are the posteriors of the tasks on which a worker reported a symbol."""
    posterior = np.random.default_rng(2).dirichlet(np.ones(3), size=9)
    expected = np.zeros((18, 3))
    for task, worker, value in zip(REPORTS.task, REPORTS.worker, REPORTS.value, strict=True):
        expected[worker * 3 + value] += posterior[task]

    np.testing.assert_allclose(worker_sums(MATRIX, posterior), expected, atol=1e-12)


def test_softmax_survives_extreme_scores() -> None:
    """Scores of thousands neither overflow nor vanish; the normaliser is the logarithm of the sum of exponentials."""
    scores = np.array([[0.0, np.log(3.0)], [-5000.0, -5000.0 + np.log(3.0)], [9000.0, -9000.0]])

    shares, normaliser = softmax(scores)

    np.testing.assert_allclose(shares, [[0.25, 0.75], [0.25, 0.75], [1.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(normaliser, [np.log(4.0), -5000 + np.log(4.0), 9000.0], rtol=1e-12)
    assert pytest.approx(3.0) == shares.sum()
