"""KOS: messages on every edge as loops, for two labels in the paper's signs, and the published accuracy."""

import numpy as np
import pytest

from crowdveil import Categories
from crowdveil.data.reports import Reports
from crowdveil.estimators import Kos
from crowdveil.evaluation import metrics
from tests.estimators.dense import LABELS, random_reports
from tests.real_data import load_or_skip


def messages(reports: Reports, answers: np.ndarray, rounds: int) -> np.ndarray:
    """Return X of each task after rounds of messages along edges; `answers` is indexed [report, component]."""
    edges = list(zip(reports.task.tolist(), reports.worker.tolist(), strict=True))
    to_task = np.ones(len(edges))
    for _ in range(rounds - 1):
        to_worker = np.zeros_like(answers)
        for e, (j, i) in enumerate(edges):
            for f, (other, sender) in enumerate(edges):
                if other == j and sender != i:
                    to_worker[e] += answers[f] * to_task[f]
        new = np.zeros(len(edges))
        for e, (j, i) in enumerate(edges):
            for f, (other, sender) in enumerate(edges):
                if sender == i and other != j:
                    new[e] += answers[f] @ to_worker[f]
        to_task = new / np.abs(new).max()
    sums = np.zeros((len(reports.tasks), answers.shape[1]))
    for e, (j, _) in enumerate(edges):
        sums[j] += answers[e] * to_task[e]
    return sums


@pytest.mark.parametrize("rounds", [1, 2, 3, 6])
def test_two_labels_equal_the_paper(rounds: int) -> None:
    """The truth is the sign of the sum of messages, with answers +1 and -1."""
    labels = Categories(("no", "yes"))
    reports = random_reports(np.random.default_rng(6), labels, tasks=24, workers=9, share=0.5)

    estimate = Kos(max_steps=rounds, tolerance=0.0).fit(reports)
    signs = messages(reports, 2.0 * reports.value[:, None] - 1, estimate.steps)[:, 0]
    clear = np.abs(signs) > 1e-9

    assert 10 <= clear.sum()
    np.testing.assert_array_equal(estimate.posterior[clear, 1], signs[clear] > 0)


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_three_labels_equal_messages_of_vectors(rounds: int) -> None:
    """The truth is the largest component of the sum of messages, with answers e_y - 1/3."""
    reports = random_reports(np.random.default_rng(7), LABELS, tasks=12, workers=9, share=0.5)

    estimate = Kos(max_steps=rounds, tolerance=0.0).fit(reports)
    sums = messages(reports, np.eye(3)[reports.value] - 1 / 3, estimate.steps)[:11]
    best = sums >= sums.max(axis=1, keepdims=True) - 1e-9

    np.testing.assert_allclose(estimate.posterior[:11], best / best.sum(axis=1, keepdims=True), atol=1e-12)


@pytest.mark.parametrize(("name", "published"), [("d_product", 0.8955), ("d_possent", 0.933)])
def test_accuracy_is_the_published_one(name: str, published: float) -> None:
    """The accuracy is within 0.005 of that in Zheng et al. (PVLDB 10(5), 2017)."""
    data = load_or_skip(name)

    assert pytest.approx(published, abs=0.005) == metrics.accuracy(Kos().fit(data.answers), data.gold)
