"""The heavy sums, squared slopes, and steps written over the one before, against loops over single reports."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.em.kernels import dispatch, reductions
from crowdveil.em.kernels.dispatch import encoded_block_for_kernels
from crowdveil.em.kernels.numpy_backend import EncodedBlock, ScoreTables, largest_change, softmax
from crowdveil.em.kernels.reductions import (
    Slopes,
    floored_log,
    normalize_confusion,
    squared_derivative_sums,
)
from crowdveil.estimators.confusion.dirichlet_multinomial import log_gamma
from tests.estimators.dense import LABELS, random_reports

REPORTS = random_reports(np.random.default_rng(0), LABELS, tasks=9, workers=6, share=0.5)
(BLOCK,) = REPORTS.blocks()
ROWS = list(zip(REPORTS.task, REPORTS.worker, REPORTS.value, strict=True))
GROUP = np.arange(9) % 2


@pytest.fixture(params=[False, True], ids=["plain", "compiled"])
def coded(request: pytest.FixtureRequest) -> EncodedBlock:
    """The same block in both forms."""
    return encoded_block_for_kernels(BLOCK, 6, 3, compiled=request.param)


@pytest.mark.slow
def test_scores_add_up_each_tasks_reports(coded: EncodedBlock) -> None:
    """A posterior is the soft-max of the table's rows summed over a task's reports; gold tasks are certain."""
    rng = np.random.default_rng(1)
    table, first = rng.normal(size=(18, 3)), rng.normal(size=(2, 3))
    gold = np.array([-1, 2, -1, -1, 0, -1, -1, -1, -1])
    scores = first[GROUP].copy()
    for task, worker, value in ROWS:
        scores[task] += table[worker * 3 + value]
    posterior, normaliser = softmax(scores)
    posterior[1], posterior[4] = [0, 0, 1], [1, 0, 0]
    normaliser[[1, 4]] = scores[1, 2], scores[4, 0]
    sums = np.zeros((18, 3))
    for task, worker, value in ROWS:
        sums[worker * 3 + value] += posterior[task]

    step = coded.confusion_step(ScoreTables(table, first), GROUP, gold)

    np.testing.assert_allclose(step.posterior, posterior, rtol=0, atol=1e-12)
    np.testing.assert_allclose(step.by_row, sums, rtol=0, atol=1e-12)
    np.testing.assert_allclose(coded.table_row_sums(posterior), sums, rtol=0, atol=1e-12)
    np.testing.assert_allclose(step.by_truth, [posterior[GROUP == g].sum(axis=0) for g in (0, 1)], atol=1e-12)
    assert pytest.approx(normaliser.sum(), abs=1e-9) == step.log_likelihood


def test_votes_add_up_weights(coded: EncodedBlock) -> None:
    """Votes are the weights of those who sent a symbol; agreement is what a posterior gives to a worker's symbols."""
    weight, posterior = np.random.default_rng(2).normal(size=6), np.random.default_rng(3).random((9, 3))
    votes, agreed = np.zeros((9, 3)), np.zeros(6)
    for task, worker, value in ROWS:
        votes[task, value] += weight[worker]
        agreed[worker] += posterior[task, value]

    np.testing.assert_allclose(coded.symbol_weights(weight), votes, rtol=0, atol=1e-12)
    np.testing.assert_allclose(coded.agreement_sums(posterior), agreed, rtol=0, atol=1e-12)


def test_squares_add_up_squared_means(coded: EncodedBlock) -> None:
    """A worker's sum has the square of every report's row, averaged over the truths of its task."""
    rng = np.random.default_rng(4)
    table, posterior = rng.normal(size=(18, 3)), rng.dirichlet(np.ones(3), 9)
    expected = np.zeros(6)
    for task, worker, value in ROWS:
        expected[worker] += (table[worker * 3 + value] @ posterior[task]) ** 2

    np.testing.assert_allclose(coded.squared_scores(table, posterior), expected, rtol=1e-12)


@pytest.mark.slow
def test_an_election_shares_ties(coded: EncodedBlock) -> None:
    """The label with most votes wins, ties share, a task without votes is shared by all, gold is certain."""
    gold = np.array([1, *[-1] * 8])
    votes = coded.symbol_weights(np.ones(6))
    expected = (votes == votes.max(axis=1, keepdims=True)).astype(float)
    expected /= expected.sum(axis=1, keepdims=True)
    expected[0] = [0, 1, 0]

    step = coded.weighted_plurality_vote(np.ones(6), 1e-9, gold)

    np.testing.assert_array_equal(step.posterior, expected)
    np.testing.assert_allclose(step.agreement, coded.agreement_sums(expected), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(step.posterior[8], np.full(3, 1 / 3))


def test_softmax_survives_extreme_scores() -> None:
    """Scores of thousands neither overflow nor vanish; the normaliser is the logarithm of the sum of exponentials."""
    scores = np.array([[0.0, np.log(3.0)], [-5000.0, -5000.0 + np.log(3.0)], [9000.0, -9000.0]])

    shares, normaliser = softmax(scores)

    np.testing.assert_allclose(shares, [[0.25, 0.75], [0.25, 0.75], [1.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(normaliser, [np.log(4.0), -5000 + np.log(4.0), 9000.0], rtol=1e-12)
    assert pytest.approx(3.0) == shares.sum()


def test_shares_of_rows_add_pseudo_counts() -> None:
    """Plain or compiled, in either order of memory, each row's counts and pseudo-counts are divided by their sum."""
    rng = np.random.default_rng(6)
    lying, pseudo = rng.random((4, 3, 2)), rng.random((2, 3))
    for counts in (lying.transpose(0, 2, 1), np.ascontiguousarray(lying.transpose(0, 2, 1))):
        expected = np.empty((4, 2, 3))
        for worker, truth in np.ndindex(4, 2):
            row = [counts[worker, truth, label] + pseudo[truth, label] for label in range(3)]
            expected[worker, truth] = [count / sum(row) for count in row]
        for compiled in (False, True):
            np.testing.assert_allclose(normalize_confusion(counts, pseudo, compiled=compiled), expected, rtol=1e-14)


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_logarithms_are_those_of_the_library(compiled: bool) -> None:
    """Logarithms, also below the floor and in another order of memory, and those of the gamma function, are right to
    the last digits from 1e-12 to 1e30."""
    numbers = np.geomspace(1e-12, 1e30, 600).reshape(10, 6, 10).transpose(0, 2, 1)
    gammas = [[math.lgamma(number) for number in row] for row in numbers.reshape(-1, 6)]

    logs = floored_log(numbers, 1e-9, compiled=compiled)

    np.testing.assert_allclose(logs, np.log(np.maximum(numbers, 1e-9)), rtol=1e-15, atol=1e-15)
    assert numbers.strides == logs.strides
    np.testing.assert_allclose(log_gamma(numbers.reshape(-1, 6), compiled=compiled), gammas, rtol=1e-13, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("labels", [2, 3, 11])
def test_every_answer_adds_its_squared_slope(labels: int, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right with the posterior of its own label, wrong with all others'; in parts and threads, too."""
    rng = np.random.default_rng(labels)
    alphabet = Categories(tuple(f"label {k}" for k in range(labels)))
    reports = random_reports(rng, alphabet, tasks=40, workers=6, share=0.5)
    (block,) = reports.blocks()
    posterior = rng.dirichlet(np.ones(labels), 40)
    right, wrong = rng.random((2, 6, labels))
    expected = np.zeros(6)
    for task, worker, label in zip(reports.task, reports.worker, reports.value, strict=True):
        slope = -sum(posterior[task, z] * wrong[worker, z] for z in range(labels) if z != label)
        expected[worker] += (slope + posterior[task, label] * right[worker, label]) ** 2

    whole = squared_derivative_sums(block, posterior, Slopes(right, wrong), compiled=compiled)
    monkeypatch.setattr(reductions, "CHUNK_REPORTS", 16)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv(dispatch.THREADS_VARIABLE, threads)
        found.append(squared_derivative_sums(block, posterior, Slopes(right, wrong), compiled=compiled))

    np.testing.assert_allclose(whole, expected, rtol=1e-12)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)
    np.testing.assert_array_equal(found[0], found[1])


TASKS, WORKERS = 300, 20
Take = Callable[[EncodedBlock, Any, Any], Any]


def coin(coded: EncodedBlock, rng: Any, before: Any) -> Any:
    """Soft-max votes."""
    return coded.one_coin_step(rng.uniform(0, 2, WORKERS), np.log([0.2, 0.3, 0.5]), gold(rng), before)


def table(coded: EncodedBlock, rng: Any, before: Any) -> Any:
    """Soft-max scores of two groups of tasks."""
    tables = ScoreTables(rng.normal(size=(3 * WORKERS, 3)), rng.normal(size=(2, 3)))
    return coded.confusion_step(tables, np.arange(TASKS) % 2, gold(rng), before)


def mean(coded: EncodedBlock, rng: Any, before: Any) -> Any:
    """Average numbers; tasks without reports are nan."""
    return coded.reduce_weighted_means(rng.uniform(0, 2, WORKERS), 1e-12, np.where(gold(rng) >= 0, 2.0, np.nan), before)


def gold(rng: Any) -> Any:
    """Return the truth of a few tasks."""
    return np.where(rng.random(TASKS) < 0.05, rng.integers(0, 3, TASKS), -1)


@pytest.mark.slow
@pytest.mark.parametrize("take", [coin, table, mean])
@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_a_step_may_write_over_the_one_before(take: Take, compiled: bool) -> None:
    """Over the old posterior or in a place of its own, a step gives the same bits; only compiled ones write over it."""
    scale = Scale(1, 3)
    reports = random_reports(np.random.default_rng(0), scale if take is mean else LABELS, TASKS, WORKERS, share=0.15)
    (block,) = reports.blocks()
    points = scale.values if take is mean else None
    coded = encoded_block_for_kernels(block, WORKERS, 3, points, compiled=compiled)
    before = take(coded, np.random.default_rng(1), None)[0]
    kept = before.copy()

    own = take(coded, np.random.default_rng(2), None)
    over = take(coded, np.random.default_rng(2), before)

    for one, other in zip(own[:-1], over[:-1], strict=True):
        np.testing.assert_array_equal(one, other)
    assert own.change is None
    assert (over[0] is before) == compiled
    if compiled:
        assert largest_change(own[0], kept) == over.change > 0.01
    else:
        assert over.change is None
        np.testing.assert_array_equal(before, kept)


@pytest.mark.slow
def test_a_posterior_that_does_not_lie_row_by_row_stays() -> None:
    """Where the old posterior cannot be written over as it lies, the new one gets a place of its own."""
    reports = random_reports(np.random.default_rng(0), LABELS, TASKS, WORKERS, share=0.15)
    coded = encoded_block_for_kernels(next(iter(reports.blocks())), WORKERS, 3, compiled=True)
    before = np.asfortranarray(table(coded, np.random.default_rng(1), None).posterior)
    kept = before.copy()

    step = table(coded, np.random.default_rng(2), before)

    assert step.change is None
    np.testing.assert_array_equal(before, kept)
    np.testing.assert_array_equal(step.posterior, table(coded, np.random.default_rng(2), None).posterior)
