"""Weighted vote (Li et al. 2018, equations 2 and 3) against its equations written as loops."""

import math

import numpy as np
import pytest
from hypothesis import given

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories
from crowdveil.em.estimator import coded_and_summarized
from crowdveil.em.gold import NO_GOLD
from crowdveil.em.kernels.dispatch import encoded_block_for_kernels
from crowdveil.em.model import GoldBlock
from crowdveil.estimators.weighted_vote import VoteParameters, WeightedVote
from crowdveil.inference.scores import metrics
from tests import strategies


def random_reports(seed: int, tasks: int, workers: int, labels: int, share: float) -> Reports:
    """Make random reports of a crowd that answers `share` of all cells."""
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((tasks, workers)) < share)
    names = tuple("abcd"[:labels])
    value = np.array(names)[rng.integers(0, labels, len(task))]
    return Reports.from_arrays(
        task, worker, value, alphabet=Categories(names), tasks=np.arange(tasks), workers=np.arange(workers)
    )


def elect(reports: Reports, weight: list[float]) -> list[set[int]]:
    """Equation (2) for every task: the labels with the largest sum of weights."""
    winners = []
    for j in range(len(reports.tasks)):
        votes = [0.0] * reports.labels
        for task, worker, value in zip(reports.task, reports.worker, reports.value, strict=True):
            if task == j:
                votes[value] += weight[worker]
        winners.append({k for k in range(reports.labels) if votes[k] > max(votes) - 1e-9})
    return winners


def weigh(reports: Reports, winners: list[set[int]], clamp: float) -> list[float]:
    """Equation (3) for every worker, with g(p) = log((K - 1) p / (1 - p)) and p clamped; 0 without reports."""
    weights = []
    for u in range(len(reports.workers)):
        mine = [(t, v) for t, w, v in zip(reports.task, reports.worker, reports.value, strict=True) if w == u]
        if not mine:
            weights.append(0.0)
            continue
        p = sum((v in winners[t]) / len(winners[t]) for t, v in mine) / len(mine)
        p = min(max(p, 2 * clamp / reports.labels), 1 - clamp)
        weights.append(math.log((reports.labels - 1) * p / (1 - p)))
    return weights


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize(("labels", "share"), [(2, 1.0), (2, 0.4), (3, 0.5), (4, 1.0)])
def test_steps_equal_the_equations(labels: int, share: float, steps: int) -> None:
    """Each step equals equations (2) and (3) written as loops, on dense and sparse tables."""
    for seed in range(5):
        reports = random_reports(seed, 7, 5, labels, share)
        estimate = WeightedVote(max_steps=steps, clamp=0.05).fit(reports)

        weight = [1.0] * 5
        for _ in range(estimate.steps):
            winners = elect(reports, weight)
            weight = weigh(reports, winners, 0.05)

        expected = [[(k in won) / len(won) for k in range(labels)] for won in winners]
        np.testing.assert_allclose(estimate.posterior, expected, atol=1e-12)
        np.testing.assert_allclose(estimate.workers.quality, weight, atol=1e-9)


@pytest.mark.slow
@given(strategies.small_reports())
def test_the_vote_settles(reports: Reports) -> None:
    """No crowd makes the vote cycle: it ends by itself, and one more election from its weights elects the same."""
    estimate = WeightedVote().fit(reports)

    assert estimate.converged
    winners = elect(reports, list(estimate.workers.quality))
    assert winners == [set(np.flatnonzero(row)) for row in estimate.posterior]


@pytest.mark.parametrize(("second", "expected"), [(1.0 + 1e-12, [0.5, 0.5]), (1.0 + 1e-6, [0.0, 1.0])])
def test_only_rounding_is_a_tie(second: float, expected: list[float]) -> None:
    """Votes that differ by rounding share the task; the smallest real difference decides it."""
    reports, estimator = Reports.from_arrays([1, 1], ["u", "v"], ["a", "b"]), WeightedVote()
    start = estimator.initialize(coded_and_summarized(estimator, reports, None, None, None)[1])
    (block,) = reports.blocks()

    found = estimator.e_step(
        GoldBlock(block, np.array([NO_GOLD]), encoded_block_for_kernels(block, 2, 2, compiled=False)),
        VoteParameters(start.summary, np.array([1.0, second])),
    )

    assert expected == list(found.posterior[0])


def test_elections_have_no_confidence() -> None:
    """An estimate says which labels won, and neither how probable they are nor what error to expect."""
    rows = [(1, "u", "a"), (1, "v", "a"), (1, "w", "b"), (2, "u", "b"), (2, "w", "b")]
    estimate = WeightedVote().fit(Reports.from_arrays(*zip(*rows, strict=True)))
    table = estimate.tasks_frame().to_pydict()

    assert estimate.confidence is None
    assert estimate.baseline.estimate_error is None
    assert ["a", "b"] == table["truth"]
    assert [[None, None]] * 3 == [table[name] for name in ("confidence", "probability_a", "probability_b")]
    assert metrics.score(estimate, {1: "a", 2: "a"}).log_loss is None
