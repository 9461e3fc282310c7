"""Votes weighted by skills: Wawa, Zero-Based Skill and Gold Majority Vote as loops, and tasks without weight."""

import numpy as np
import pytest
from numpy.typing import NDArray

from crowdveil.data.reports import Reports
from crowdveil.estimators import GoldMajorityVote, Wawa, ZeroBasedSkill
from tests.estimators.dense import LABELS, random_reports

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


def test_without_gold_all_votes_are_equal(reports: Reports) -> None:
    """Gold majority vote without gold is the majority vote."""
    np.testing.assert_allclose(
        GoldMajorityVote().fit(reports).posterior, shares(votes(rows_of(reports), np.ones(6))), atol=1e-12
    )
