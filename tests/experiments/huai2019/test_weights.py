"""Global, local and combined weights: against the paper's equations as loops, and what the paper's formula would do."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from experiments.papers.huai2019.algorithm1.kernel_density import KERNELS, Bandwidth, Kernel
from experiments.papers.huai2019.algorithm1.weights import (
    KINDS,
    THRESHOLDS,
    Weighting,
    global_weights,
    hampel_loss,
    hampel_weight,
    local_weights,
    task_batches,
    worker_losses,
)
from hypothesis import given, settings

from crowdveil.synthesis.original_claims import Claims
from tests.experiments.huai2019.small_claims import one_task, small_claims

GIVEN = Bandwidth(rule="given", width=1.3)
CLUSTER = [1.0, 1.2, 0.8, 1.1, 0.9, 1.3, 1.05, 30.0]
BOTH = pytest.mark.parametrize("kernel", KERNELS.values(), ids=list(KERNELS))


def slow_distance(kernel: Kernel, values: np.ndarray, weights: np.ndarray, width: float, claim: int) -> float:
    """Squared distance of one bump from the weighted density: three sums over the claims, as the norm expands."""

    def k(a: float, b: float) -> float:
        return float(kernel.similarity((a - b) / width))

    n = range(len(values))
    cross = sum(weights[t] * k(values[claim], values[t]) for t in n)
    norm = sum(weights[t] * weights[u] * k(values[t], values[u]) for t in n for u in n)
    squared = k(0, 0) - 2 * cross + norm
    return squared if squared > 1e-12 else 0.0


def slow_losses(claims: Claims, weight: np.ndarray, kernel: Kernel, width: float) -> np.ndarray:
    """The numerator of equation 2 for every worker, tasks with one claim left out."""
    loss = np.zeros(len(claims.workers))
    for task in range(len(claims.tasks)):
        workers = claims.worker[claims.pointers[task] : claims.pointers[task + 1]]
        if len(workers) < 2:
            continue
        share = np.array([weight[worker] for worker in workers])
        share = share / share.sum() if share.sum() > 0 else np.full(len(workers), 1 / len(workers))
        for place, worker in enumerate(workers):
            loss[worker] += slow_distance(kernel, claims.claims_of_task(task), share, width, place)
    return loss


@BOTH
@given(claims=small_claims())
@settings(max_examples=25)
def test_losses_equal_the_equations(kernel: Kernel, claims: Claims) -> None:
    """Stacked distances equal the norm written as sums, for every degree at once."""
    weight = np.linspace(0, 2, len(claims.workers))

    loss, _ = worker_losses(claims, GIVEN.for_tasks(claims), kernel, weight)

    np.testing.assert_allclose(loss, slow_losses(claims, weight, kernel, 1.3), atol=1e-12)


@given(claims=small_claims())
@settings(max_examples=25)
def test_one_global_step_equals_equation_2(claims: Claims) -> None:
    """The first step is -log of the worker's share in all distances; a worker without any is neutral."""
    kernel = KERNELS["gaussian"]
    loss = slow_losses(claims, np.ones(len(claims.workers)), kernel, 1.3)
    in_company = {
        int(w)
        for t in range(len(claims.tasks))
        for w in claims.worker[claims.task_of_each_claim == t]
        if claims.per_task[t] > 1
    }
    known = [worker in in_company for worker in range(len(loss))]
    if loss.sum() > 0:
        loss = np.where(known, loss, loss[known].mean())
        expected = [-math.log(max(one / loss.sum(), 1e-12)) for one in loss]
    else:
        expected = [1.0] * len(loss)

    found = global_weights(claims, GIVEN.for_tasks(claims), kernel, max_steps=1)

    np.testing.assert_allclose(found, expected, rtol=1e-8)


def crowd(seed: int = 3) -> Claims:
    """30 tasks, 10 workers of growing spread, each answering about two thirds."""
    random = np.random.default_rng(seed)
    task, worker = np.nonzero(random.random((30, 10)) < 0.7)
    return Claims.from_arrays(
        task, worker, 5 * task + random.normal(size=len(task)) * (0.3 + 0.4 * worker), bounds=(-999, 999)
    )


def test_every_global_step_lowers_equation_1() -> None:
    """Both halves of a step minimise the objective, so it never rises; workers who stray more weigh less."""
    claims, kernel = crowd(), KERNELS["gaussian"]
    h = Bandwidth().for_tasks(claims)
    seen = []
    for steps in range(1, 8):
        weight = global_weights(claims, h, kernel, max_steps=steps)
        loss, _ = worker_losses(claims, h, kernel, weight)
        seen.append(float(weight @ loss))
        assert math.isclose(float(np.exp(-weight).sum()), 1.0)

    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(seen))
    assert np.corrcoef(global_weights(claims, h, kernel, per_claim=True), np.arange(10))[0, 1] < -0.8


def test_hampel_loss_and_weight_are_the_paper_s_pieces() -> None:
    """The loss equals the four printed pieces, and the weight is its derivative over y, at points of each piece."""
    q1, q2, q3 = 1.0, 2.0, 4.0
    y = np.array([0.0, 0.5, 1.5, 3.0, 5.0])
    printed = [
        0,
        0.5**2 / 2,
        1.5 * q1 - q1**2 / 2,
        q1 * (3 - q3) ** 2 / (2 * (q2 - q3)) + q1 * (q2 + q3 - q1) / 2,
        q1 * (q2 + q3 - q1) / 2,
    ]
    slope = (hampel_loss(y + 1e-6, (q1, q2, q3)) - hampel_loss(y - 1e-6, (q1, q2, q3))) / 2e-6

    np.testing.assert_allclose(hampel_loss(y, (q1, q2, q3)), printed)
    np.testing.assert_allclose(hampel_weight(y[1:], (q1, q2, q3)), slope[1:] / y[1:], atol=1e-8)
    assert hampel_weight(0.0, (q1, q2, q3)) == 1


def slow_irwls(values: np.ndarray, kernel: Kernel, width: float) -> np.ndarray:
    """Five steps to the local weights of one task as loops: psi(y) / y, normalised."""
    n = len(values)
    weight = np.full(n, 1 / n)
    start = [math.sqrt(slow_distance(kernel, values, weight, width, s)) for s in range(n)]
    q = [threshold * (float(np.median(start)) or 1.0) for threshold in THRESHOLDS]
    for _ in range(5):
        y = [math.sqrt(slow_distance(kernel, values, weight, width, s)) for s in range(n)]
        score = np.array([float(hampel_weight(one, (q[0], q[1], q[2]))) for one in y])
        weight = score / score.sum() if score.sum() > 0 else weight
    return weight


@BOTH
@given(claims=small_claims(max_tasks=3))
@settings(max_examples=20)
def test_local_weights_equal_the_loops(kernel: Kernel, claims: Claims) -> None:
    """Stacked IRWLS equals IRWLS task by task, tasks of one and two claims included."""
    for batch in task_batches(claims, GIVEN.for_tasks(claims), kernel):
        found = local_weights(batch, max_steps=5, tolerance=1e-300)
        for mine, rows in zip(found, batch.rows, strict=True):
            np.testing.assert_allclose(mine, slow_irwls(claims.value[rows], kernel, 1.3), atol=1e-7)


def test_irwls_lowers_equation_3() -> None:
    """The sum of Hampel losses does not rise from step to step."""
    claims, kernel = one_task(CLUSTER), KERNELS["gaussian"]
    batch = next(task_batches(claims, Bandwidth().for_tasks(claims), kernel))
    start = np.median(np.sqrt(batch.squared_distances(np.full((1, 8), 1 / 8))))
    small, middle, large = (float(q * start) for q in THRESHOLDS)
    seen = []
    for steps in range(1, 10):
        weight = local_weights(batch, max_steps=steps)
        seen.append(float(hampel_loss(np.sqrt(batch.squared_distances(weight)), (small, middle, large)).sum()))

    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(seen))


def test_the_loss_as_weight_rewards_outliers_and_the_score_does_not() -> None:
    """Correlation of weight and deviation over 200 tasks with outliers: positive with the loss, negative with psi(y)/y.

    Seed 5, 30 claims a task, one in ten an outlier.
    """
    random = np.random.default_rng(5)
    task, worker = np.divmod(np.arange(200 * 30), 30)
    deviation = random.normal(size=6000) + (random.random(6000) < 0.1) * random.normal(0, 8, 6000)
    claims = Claims.from_arrays(task, worker, deviation, bounds=(-99, 99))
    h, kernel = Bandwidth().for_tasks(claims), KERNELS["gaussian"]
    size = np.minimum(np.abs(claims.value), 4)  # beyond the cluster all outliers are equally far

    def correlation(**reading: Any) -> float:
        return float(np.corrcoef(Weighting(kind="local", **reading).claim_weights(claims, h, kernel), size)[0, 1])

    assert correlation(loss_as_weight=True) > 0.7
    assert correlation() < -0.7


@pytest.mark.parametrize("minimiser", [False, True])
def test_combined_weights_equal_the_equation(minimiser: bool) -> None:
    """Each claim's weight is local times global over the task's sum (equation 5), or the square roots."""
    claims, kernel = crowd(), KERNELS["gaussian"]
    h = Bandwidth().for_tasks(claims)
    shared = global_weights(claims, h, kernel)
    local = Weighting(kind="local").claim_weights(claims, h, kernel)

    found = Weighting(minimiser=minimiser).claim_weights(claims, h, kernel)

    for task in range(30):
        rows = range(claims.pointers[task], claims.pointers[task + 1])
        product = [(local[r] * shared[claims.worker[r]]) ** (0.5 if minimiser else 1) for r in rows]
        np.testing.assert_allclose(found[list(rows)], np.array(product) / sum(product), rtol=1e-12)


@given(claims=small_claims())
@settings(max_examples=25)
def test_weights_of_every_kind_sum_to_1_over_each_task(claims: Claims) -> None:
    """Whatever is claimed, weights are shares; a single claim has weight 1."""
    for kind in KINDS:
        weight = Weighting(kind=kind).claim_weights(claims, GIVEN.for_tasks(claims), KERNELS["epanechnikov"])
        sums = np.bincount(claims.task_of_each_claim, weights=weight, minlength=len(claims.tasks))
        np.testing.assert_allclose(sums, claims.per_task > 0, atol=1e-9)
        assert np.all(weight >= 0)


def test_an_absurd_claim_leaves_the_others_their_digits() -> None:
    """With one claim of 6.6e18 the others' local weights are what they are with one of 1e6."""
    absurd, far = (
        Weighting(kind="local").claim_weights(one_task([one, *CLUSTER[:7]]), np.array([0.2]), KERNELS["gaussian"])
        for one in (6.6e18, 1e6)
    )

    np.testing.assert_allclose(absurd, far, rtol=1e-12)
