"""LFC: the M-step of Raykar et al. as loops, and the accuracy that is published."""

import numpy as np
import pytest

from crowdveil.estimators import Lfc
from crowdveil.inference.scores import metrics
from tests.estimators.dense import LABELS, random_reports
from tests.real_data import load_or_skip


def test_two_steps_equal_loops_over_reports() -> None:
    """The second posterior follows from confusion matrices with Dirichlet(2) priors, Dirichlet(3) on the diagonal."""
    reports = random_reports(np.random.default_rng(1), LABELS, tasks=9, workers=5, share=0.6)
    votes = np.zeros((9, 3))
    for j, y in zip(reports.task, reports.value, strict=True):
        votes[j, y] += 1
    posterior = np.where(votes.sum(axis=1, keepdims=True) > 0, votes / np.maximum(votes.sum(axis=1)[:, None], 1), 1 / 3)
    confusion = np.ones((5, 3, 3)) + np.eye(3)
    for j, i, y in zip(reports.task, reports.worker, reports.value, strict=True):
        confusion[i, :, y] += posterior[j]
    confusion /= confusion.sum(axis=2, keepdims=True)
    expected = np.tile(posterior.mean(axis=0), (9, 1))
    for j, i, y in zip(reports.task, reports.worker, reports.value, strict=True):
        expected[j] *= confusion[i, :, y]
    expected /= expected.sum(axis=1, keepdims=True)

    estimate = Lfc(max_steps=2, tolerance=0).fit(reports)

    np.testing.assert_allclose(estimate.posterior, expected, rtol=0, atol=1e-12)
    assert estimate.workers.confusion is not None
    np.testing.assert_allclose(estimate.workers.confusion, confusion, rtol=0, atol=1e-12)


def test_accuracy_is_the_published_one() -> None:
    """On d_product the accuracy is within 0.005 of the .9373 of Zheng et al. (PVLDB 10(5), 2017)."""
    data = load_or_skip("d_product")

    assert pytest.approx(0.9373, abs=0.005) == metrics.accuracy(Lfc().fit(data.answers), data.gold)
