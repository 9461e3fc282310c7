"""The fit of Davidson's model with workers: loops, derivatives, optimum, symmetries, channels and known orders."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import approx_fprime, minimize

from crowdveil.answers.comparisons.values import Comparisons
from crowdveil.estimators.ranking.fit import (
    FittedRanking,
    Hyperparameters,
    Known,
    Point,
    Problem,
    fit,
    item_step,
    point_at,
    start_of,
    sweep,
    worker_step,
)
from crowdveil.estimators.ranking.likelihood import row_terms
from crowdveil.estimators.ranking.posterior import covariance_of, posterior_of
from tests.estimators.ranking.loops import Floats, full_sweep, log_likelihood, penalized, row

ROWS = "0100 1200 2301 3002 0210 1311 0310 2112 1020 2022 3120 2320"
"""Left, right, worker and answer (0 left, 1 tie, 2 right) of each comparison."""
PRIORS = Hyperparameters(score=1.0, slope_mean=0.9, slope=0.3, side_mean=0.0, side=0.1, tie_mean=-0.5, tie=0.25)
RESPONSE = (np.ones((3, 3)) + (math.e - 1) * np.eye(3)) / (math.e + 2)
"""Randomized response of three answers with epsilon 1."""
NO_NULL = np.array([[0.7, 0.1, 0.2], [0.2, 0.6, 0.2], [0.0, 0.3, 0.7]])
"""A channel that never reports the first symbol of the last answer."""


def small() -> Comparisons:
    """Return twelve comparisons of four items by three workers."""
    left, right, worker, answer = np.array([[int(digit) for digit in one] for one in ROWS.split()], dtype=np.int32).T
    return of_codes(left, right, worker, answer)


def of_codes(
    left: NDArray[np.int32], right: NDArray[np.int32], worker: NDArray[np.int32], answer: NDArray[np.int32]
) -> Comparisons:
    """Return comparisons of one list from codes."""
    items, workers = int(max(left.max(), right.max())) + 1, int(worker.max()) + 1
    return Comparisons(
        left=left, right=right, worker=worker, answer=answer, items=np.arange(items), workers=np.arange(workers),
        list_of_item=np.zeros(items, dtype=np.int32),
    )  # fmt: skip


def drawn(seed: int, items: int = 8, workers: int = 6, rows: int = 200) -> Comparisons:
    """Return comparisons with random answers that favour items of a small code."""
    random = np.random.default_rng(seed)
    left = random.integers(0, items, rows).astype(np.int32)
    right = ((left + random.integers(1, items, rows)) % items).astype(np.int32)
    answer = np.where(random.random(rows) < 0.2, 1, np.where((left > right) ^ (random.random(rows) < 0.2), 2, 0))
    return of_codes(left, right, random.integers(0, workers, rows).astype(np.int32), answer.astype(np.int32))


def fixed(rows: Comparisons, table: Floats | None = None, priors: Hyperparameters = PRIORS) -> Problem:
    """Return the problem with priors that are not learned."""
    return Problem(comparisons=rows, table=table, learned=False, start=priors)


def first_point(problem: Problem, priors: Hyperparameters = PRIORS) -> Point:
    """Return equal scores and workers at their prior means."""
    workers = np.tile(priors.means, (problem.workers, 1))
    return point_at(problem, np.zeros(len(problem.comparisons.items)), workers, priors)


def optimum(problem: Problem) -> FittedRanking:
    """Return the fit to convergence."""
    return fit(problem, 1e-10, 1000)


@pytest.mark.parametrize(
    ("table", "log_q", "scores", "slopes"),
    [
        (None, -12.496241, [0.802485, 0.200621, -0.601864, -0.401243], [1.138134, 1.145338, 0.794097]),
        (RESPONSE, -12.881136, [0.606138, 0.151534, -0.454603, -0.303069], [1.002885, 1.024564, 0.888037]),
    ],
)
def test_first_sweep(table: Floats | None, log_q: float, scores: list[float], slopes: list[float]) -> None:
    """The first sweep of the small example gives these numbers, with and without a channel."""
    problem = fixed(small(), table)
    start = first_point(problem)
    found = sweep(problem, start, PRIORS)

    assert float(start.terms.log_likelihood.sum()) == pytest.approx(log_q, abs=1e-6)
    np.testing.assert_allclose(found.scores, scores, atol=1e-6)
    np.testing.assert_allclose(found.workers[:, 0], slopes, atol=1e-6)


@pytest.mark.parametrize(
    ("table", "objective", "scores", "deviations", "beats"),
    [
        (None, -10.639345, [0.93721, 0.19219, -0.70678, -0.42262], [0.7814, 0.7461, 0.7628, 0.7536], 0.7878),
        (RESPONSE, -12.406488, [0.62889, 0.14969, -0.47048, -0.30810], [0.9438, 0.9363, 0.9399, 0.9380], 0.6439),
    ],
)
def test_optimum(
    table: Floats | None, objective: float, scores: list[float], deviations: list[float], beats: float
) -> None:
    """The optimum of the small example has these scores, standard deviations and P(first beats second)."""
    found = optimum(fixed(small(), table))
    posterior = posterior_of(found)

    assert found.point.objective == pytest.approx(objective, abs=1e-6)
    np.testing.assert_allclose(found.point.scores, scores, atol=1e-5)
    np.testing.assert_allclose(np.sqrt(posterior.variances), deviations, atol=1e-4)
    assert posterior.probability(np.array([0]), np.array([1]))[0] == pytest.approx(beats, abs=1e-4)


@pytest.mark.parametrize("table", [None, RESPONSE, NO_NULL])
def test_general_optimizer_agrees(table: Floats | None) -> None:
    """BFGS on the objective written as loops ends at the same scores and workers."""
    rows, used = small(), np.eye(3) if table is None else table

    def loss(values: Floats) -> float:
        return -penalized(rows, values[:4], values[4:].reshape(3, 3), used, PRIORS)

    best = minimize(loss, np.concatenate([np.zeros(4), np.tile(PRIORS.means, 3)]), options={"gtol": 1e-7})
    found = optimum(fixed(rows, table))

    np.testing.assert_allclose(found.point.scores, best.x[:4], atol=1e-4)
    np.testing.assert_allclose(found.point.workers, best.x[4:].reshape(3, 3), atol=1e-4)


@pytest.mark.parametrize("table", [None, RESPONSE, NO_NULL])
def test_sweep_equals_loops(table: Floats | None) -> None:
    """A sweep from a point off the start equals the loops to nine digits."""
    problem, used = fixed(drawn(1), table), np.eye(3) if table is None else table
    random = np.random.default_rng(2)
    workers = PRIORS.means + 0.3 * random.standard_normal((6, 3))
    point = point_at(problem, 0.5 * random.standard_normal(8), workers, PRIORS)
    scores, moved = full_sweep(problem.comparisons, point, used, PRIORS)
    found = sweep(problem, point, PRIORS)

    np.testing.assert_allclose(found.scores, scores, atol=1e-9)
    np.testing.assert_allclose(found.workers, moved, atol=1e-9)
    assert float(point.terms.log_likelihood.sum()) == pytest.approx(
        log_likelihood(problem.comparisons, point.scores, workers, used), abs=1e-9
    )


@pytest.mark.parametrize("table", [None, RESPONSE, NO_NULL])
def test_gradients(table: Floats | None) -> None:
    """The gradients of scores and workers are those of finite differences of the objective."""
    known = Known(better=np.array([3, 1], dtype=np.int32), worse=np.array([0, 2], dtype=np.int32))
    problem = replace(fixed(drawn(3), table), known=known)
    random = np.random.default_rng(4)
    scores, workers = random.standard_normal(8), PRIORS.means + 0.5 * random.standard_normal((6, 3))
    point = point_at(problem, scores, workers, PRIORS)

    by_scores = approx_fprime(scores, lambda moved: point_at(problem, moved, workers, PRIORS).objective, 1e-6)
    by_workers = approx_fprime(
        workers.ravel(), lambda moved: point_at(problem, scores, moved.reshape(6, 3), PRIORS).objective, 1e-6
    )
    np.testing.assert_allclose(item_step(problem, point, PRIORS)[0], by_scores, atol=1e-4)
    np.testing.assert_allclose(worker_step(problem, point, PRIORS)[0].ravel(), by_workers, atol=1e-4)


def test_identity_channel() -> None:
    """A channel that changes nothing gives the fit without one."""
    plain, through = (optimum(fixed(drawn(5), table)) for table in (None, np.eye(3)))

    np.testing.assert_allclose(through.point.scores, plain.point.scores, atol=1e-8)
    np.testing.assert_allclose(covariance_of(through), covariance_of(plain), atol=1e-8)


def test_mirrored_sides() -> None:
    """With all sides and answers swapped, scores are the same and side biases are negated."""
    rows = drawn(6)
    mirrored = replace(rows, left=rows.right, right=rows.left, answer=2 - rows.answer)
    one, other = optimum(fixed(rows)), optimum(fixed(mirrored))

    np.testing.assert_allclose(one.point.scores, other.point.scores, atol=1e-7)
    np.testing.assert_allclose(one.point.workers[:, 1], -other.point.workers[:, 1], atol=1e-7)


def test_negated_scores_and_slopes() -> None:
    """Negating scores and slopes leaves every answer as likely."""
    problem, random = fixed(drawn(7)), np.random.default_rng(8)
    scores, workers = random.standard_normal(8), random.standard_normal((6, 3))
    one = point_at(problem, scores, workers, PRIORS)
    other = point_at(problem, -scores, workers * np.array([-1, 1, 1]), PRIORS)

    np.testing.assert_allclose(one.terms.log_likelihood, other.terms.log_likelihood, atol=1e-12)


@pytest.mark.parametrize("table", [None, RESPONSE])
def test_objective_never_falls(table: Floats | None) -> None:
    """At fixed priors no sweep lowers the objective."""
    found = optimum(fixed(drawn(9), table))

    assert (np.diff(found.objectives) >= -1e-8).all()


def test_components_sum_to_zero() -> None:
    """Scores of each group of connected items sum to 0, and S 1 = sigma^2 1 there."""
    rows = drawn(10)
    both = of_codes(
        np.concatenate([rows.left, rows.left + 8]),
        np.concatenate([rows.right, rows.right + 8]),
        np.tile(rows.worker, 2),
        np.concatenate([rows.answer, 2 - rows.answer]),
    )
    found = optimum(fixed(both))
    inside = np.arange(16) < 8

    assert abs(found.point.scores[inside].sum()) < 1e-8
    np.testing.assert_allclose(covariance_of(found) @ inside, inside * PRIORS.score, atol=1e-8)


def test_doubled_rows_equal_weight_two() -> None:
    """Rows given twice, and rows of weight 2, give the same fit."""
    rows = drawn(11)
    twice = rows.only_rows(np.tile(np.arange(len(rows)), 2))
    one, other = optimum(fixed(twice)), optimum(fixed(rows.with_weights(np.full(len(rows), 2.0))))

    np.testing.assert_allclose(one.point.scores, other.point.scores, atol=1e-8)


def test_unbeaten_item_is_finite() -> None:
    """An item that wins every comparison has a finite score above all others."""
    left, right = np.array([0, 0, 0, 1, 2], dtype=np.int32), np.array([1, 2, 1, 2, 1], dtype=np.int32)
    rows = of_codes(left, right, np.zeros(5, dtype=np.int32), np.zeros(5, dtype=np.int32))
    scores = fit(Problem(comparisons=rows)).point.scores

    assert np.isfinite(scores).all()
    assert scores[0] > scores[1:].max()


def test_extreme_logits() -> None:
    """Scores far apart neither overflow nor give nan, through a channel with zeros too."""
    eta, tie = np.array([600.0, -600.0, 0.0]), np.array([-30.0, 5.0, 600.0])
    for table in (None, RESPONSE, NO_NULL):
        for part in row_terms(eta, tie, np.array([1, 1, 1], dtype=np.int32), table):
            assert np.isfinite(part).all()


def test_row_terms_equal_loops() -> None:
    """Terms of a row equal the loops."""
    for report in range(3):
        terms = row_terms(np.array([0.7]), np.array([-0.4]), np.array([report], dtype=np.int32), NO_NULL)
        np.testing.assert_allclose([float(part[0]) for part in terms[1:]], row(0.7, -0.4, report, NO_NULL), atol=1e-12)


def test_large_systems_equal_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Conjugate gradients solve the same systems as the Cholesky factor."""
    exact = optimum(fixed(drawn(12)))
    monkeypatch.setattr("crowdveil.estimators.ranking.item_system.DENSE", 0)

    np.testing.assert_allclose(optimum(fixed(drawn(12))).point.scores, exact.point.scores, atol=1e-8)


def test_start_counts_ties() -> None:
    """The tie parameter starts at the odds of ties among the answers; behind a channel at the prior."""
    rows = drawn(13)
    share = ((rows.answer == 1).sum() + 0.5) / (len(rows) + 1)

    assert start_of(Problem(comparisons=rows))[1].tie_mean == pytest.approx(np.log(2 * share / (1 - share)))
    assert start_of(Problem(comparisons=rows, table=RESPONSE))[1].tie_mean == -0.5


def test_known_orders_decide_the_direction() -> None:
    """Of a crowd with mostly negative slopes, known orders turn the ranking round; without them the majority rules."""
    random = np.random.default_rng(14)
    left = random.integers(0, 12, 900).astype(np.int32)
    right = ((left + random.integers(1, 12, 900)) % 12).astype(np.int32)
    worker = (np.arange(900) % 15).astype(np.int32)
    truth = np.linspace(2, -2, 12)
    margin = np.where(worker < 10, -1, 1) * (truth[left] - truth[right])
    rows = of_codes(
        left, right, worker, np.where(random.random(900) < 1 / (1 + np.exp(-margin)), 0, 2).astype(np.int32)
    )
    known = Known(better=np.array([0, 2, 4], dtype=np.int32), worse=np.array([11, 9, 7], dtype=np.int32))

    assert np.corrcoef(fit(Problem(comparisons=rows)).point.scores, truth)[0, 1] < -0.8
    assert np.corrcoef(fit(Problem(comparisons=rows, known=known)).point.scores, truth)[0, 1] > 0.8
