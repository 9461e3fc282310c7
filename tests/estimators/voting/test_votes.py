"""Votes weighted by skill, and messages of KOS."""

import numpy as np
import pytest
from numpy.typing import NDArray

from crowdveil import Categories
from crowdveil.answers.reports import Reports
from crowdveil.estimators import GoldMajorityVote, Kos, Wawa, ZeroBasedSkill
from crowdveil.inference.scores import metrics
from tests.estimators.dense import LABELS, random_reports
from tests.real_data import load_or_skip

Rows = list[tuple[int, int, int]]


@pytest.fixture
def reports() -> Reports:
    """Return reports of five workers on 20 tasks; the last task and the last worker have none."""
    return random_reports(np.random.default_rng(5), LABELS, tasks=20, workers=6, share=0.6)


def rows_of(reports: Reports) -> Rows:
    """Return (task, worker, label) of each report."""
    return list(zip(reports.task.tolist(), reports.worker.tolist(), reports.value.tolist(), strict=True))


def votes(rows: Rows, skill: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of skills by label, [task, label]."""
    sums = np.zeros((20, 3))
    for j, i, y in rows:
        sums[j, y] += skill[i]
    return sums


def agreement(rows: Rows, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each worker's share of answers among the winners, a winner of t tied ones for 1 / t."""
    right, answers = np.zeros(6), np.zeros(6)
    for j, i, y in rows:
        tied = [z for z in range(3) if sums[j, z] >= sums[j].max() - 1e-9]
        right[i] += (y in tied) / len(tied)
        answers[i] += 1
    return np.divide(right, answers, out=np.full(6, 1 / 3), where=answers > 0)


def shares(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows that sum to 1, uniform where there is no vote."""
    filled = np.where(sums.sum(axis=1, keepdims=True) > 0, sums, 1.0)
    return np.asarray(filled / filled.sum(axis=1, keepdims=True))


def test_wawa_equals_loops(reports: Reports) -> None:
    """The vote is weighted by agreement with the majority vote, and the fit ends there."""
    rows = rows_of(reports)
    skill = agreement(rows, votes(rows, np.ones(6)))

    estimate = Wawa().fit(reports)

    np.testing.assert_allclose(estimate.posterior, shares(votes(rows, skill)), atol=1e-12)
    np.testing.assert_allclose(estimate.workers.quality[:5], skill[:5], atol=1e-12)
    assert (2, True) == (estimate.steps, estimate.converged)


def test_zero_based_skill_equals_loops(reports: Reports) -> None:
    """Thirty steps follow the recursion, with half the learning rate from step 20."""
    rows, skill = rows_of(reports), np.full(6, 1 / 3 + 1e-5)
    for step in range(1, 30):
        rate = 1.0 if step < 20 else 0.5
        skill[:5] += rate * (agreement(rows, votes(rows, skill)) - skill)[:5]

    estimate = ZeroBasedSkill(max_steps=30, tolerance=0.0).fit(reports)

    np.testing.assert_allclose(estimate.posterior, shares(votes(rows, skill)), atol=1e-12)
    np.testing.assert_allclose(estimate.workers.quality[:5], skill[:5], atol=1e-12)


def test_gold_majority_vote_equals_loops(reports: Reports) -> None:
    """Weights are accuracies on gold; a worker without a gold task has the accuracy of all gold answers."""
    gold = {0: 1, 1: 2, 2: 0}
    rows = [row for row in rows_of(reports) if row[1] != 4 or row[0] > 2]
    table = np.array(rows)
    names = np.array(LABELS.names)
    few = Reports.from_arrays(
        table[:, 0], table[:, 1], names[table[:, 2]], alphabet=LABELS, tasks=range(20), workers=range(6)
    )
    right, answers = np.zeros(6), np.zeros(6)
    for j, i, y in rows:
        if j in gold:
            right[i] += y == gold[j]
            answers[i] += 1
    skill = np.where(answers > 0, right / np.maximum(answers, 1), right.sum() / answers.sum())
    weighted, plain = votes(rows, skill), votes(rows, np.ones(6))
    expected = shares(np.where(weighted.sum(axis=1, keepdims=True) > 0, weighted, plain))
    expected[[0, 1, 2]] = np.eye(3)[[1, 2, 0]]
    order = [few.tasks.tolist().index(j) for j in range(20)]

    estimate = GoldMajorityVote().fit(few, gold={j: LABELS.names[y] for j, y in gold.items()})

    assert 0 == answers[4]
    np.testing.assert_allclose(estimate.posterior[order], expected, atol=1e-12)
    np.testing.assert_allclose(estimate.workers.quality[:5], skill[:5], atol=1e-12)


def test_a_task_of_workers_without_skill_has_plain_votes() -> None:
    """Where gold contradicts every answer of a worker, that worker's own task still has the label voted for."""
    task, worker, label = ["g", "h", "t"], ["w", "w", "w"], ["a", "a", "b"]
    reports = Reports.from_arrays(task, worker, label, alphabet=LABELS)

    assert "b" == GoldMajorityVote().fit(reports, gold={"g": "c", "h": "c"}).truth[2]


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
