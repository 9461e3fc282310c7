"""Weights of claims in their task's density (Huai et al., sections 4-5): combined, global, local or uniform.

Global weights measure a worker's distance from the weighted densities over all tasks (equations 1-2), local weights a
claim's distance from its own task's density by the Hampel loss (equation 3). Both are computed from the claims; a
finite epsilon needs weights that are independent of them.

The squared distance of a claim's kernel from the weighted density of its task is, with the similarities k,
1 - 2 sum_t w_t k(s, t) + sum_tu w_t w_u k(t, u), in units of the squared norm of one kernel. The paper calls the loss
normalized without a formula; without this unit, tasks with narrow kernels would dominate.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from experiments.papers.huai2019.algorithm1.kernel_density import Kernel
from numpy.typing import ArrayLike, NDArray

from crowdveil.synthesis.discrete_noise import Integers
from crowdveil.synthesis.original_claims import Claims, Floats

ENTRIES = 1 << 21
"""Similarities held in memory at once (16 MiB), except those of one task."""
ROUNDING = 1e-12
"""Squared distances up to this are set to 0, so that equal claims get equal weights despite rounding."""
FAR = 1e100
"""Largest distance of a claim from its task's median, in bandwidths, so that its square is finite."""
SMALLEST_SHARE = 1e-12
"""Least share of a worker in all distances; it limits global weights to 27.6."""
MAX_STEPS, TOLERANCE = 50, 1e-6
"""Largest number of steps of both iterations, and largest change of a weight at convergence."""


@dataclass(frozen=True, eq=False)
class TaskBatch:
    """Tasks with the same number of claims, as one array.

    Attributes:
        rows: positions of the claims, shape (batch, degree).
        z: distances of the claims from the task's median in bandwidths, shape (batch, degree); the median as origin
            keeps the digits of the others where one claim is extreme.
        kernel: defines the Hilbert space.
    """

    rows: Integers
    z: Floats
    kernel: Kernel

    @cached_property
    def _similarities(self) -> Floats:
        return self.kernel.similarity(self.z[:, :, None] - self.z[:, None, :])

    def squared_distances(self, weight: Floats) -> Floats:
        """Return the squared distance of every claim's kernel from the weighted density, shape (batch, degree).

        Args:
            weight: sums to 1 over the last axis, shape (batch, degree).
        """
        means = np.matmul(self._similarities, weight[:, :, None])[:, :, 0]
        norm = (weight * means).sum(axis=1, keepdims=True)
        squared = 1 - 2 * means + norm
        return np.where(squared > ROUNDING, squared, 0)


def task_batches(claims: Claims, bandwidth: Floats, kernel: Kernel, *, least_degree: int = 1) -> Iterator[TaskBatch]:
    """Yield every task with at least `least_degree` claims once, in batches of equal degree and bounded size.

    Time is quadratic in the claims of a task, and linear in the number of tasks.
    """
    degree = claims.per_task
    order = np.argsort(degree, kind="stable")
    order = order[np.searchsorted(degree[order], max(least_degree, 1)) :]
    first = 0
    while first < len(order):
        n = int(degree[order[first]])
        last = int(np.searchsorted(degree[order], n, side="right"))
        stop = min(last, first + max(1, ENTRIES // (n * n)))
        tasks = order[first:stop]
        rows = claims.pointers[tasks][:, None] + np.arange(n)
        value = claims.value[rows]
        z = (value - np.median(value, axis=1, keepdims=True)) / bandwidth[tasks][:, None]
        yield TaskBatch(rows, np.clip(z, -FAR, FAR), kernel)
        first = stop


def global_weights(
    claims: Claims, bandwidth: Floats, kernel: Kernel, *, per_claim: bool = False, max_steps: int = MAX_STEPS
) -> Floats:
    """Return the global weights, shape (workers,), non-negative.

    The only claim of a task has distance 0 from its own density, so tasks with one claim are left out; a worker without
    other tasks gets the mean distance of the others.

    Args:
        claims: of all tasks.
        bandwidth: shape (tasks,).
        kernel: defines the Hilbert space.
        per_claim: divide a worker's summed distance by the number of claims; the paper does not, which favours workers
            with few claims.
        max_steps: largest number of steps.
    """
    weight = np.ones(len(claims.workers))
    for _ in range(max_steps):
        loss, count = worker_losses(claims, bandwidth, kernel, weight)
        before, weight = weight, _minus_log_shares(loss / np.maximum(count, 1) if per_claim else loss, count > 0)
        if np.abs(weight - before).max(initial=0.0) <= TOLERANCE:
            break
    return weight


def _minus_log_shares(loss: Floats, known: NDArray[np.bool_]) -> Floats:
    """Return -log of each worker's share in all distances (equation 2)."""
    if not known.any() or loss.sum() == 0:
        return np.ones(len(loss))
    loss = np.where(known, loss, loss[known].mean())
    return -np.log(np.maximum(loss / loss.sum(), SMALLEST_SHARE))


def worker_losses(claims: Claims, bandwidth: Floats, kernel: Kernel, weight: Floats) -> tuple[Floats, Integers]:
    """Return the sum and the number of each worker's squared distances from the weighted densities, shape (workers,).

    Args:
        claims: of all tasks; tasks with one claim are left out.
        bandwidth: shape (tasks,).
        kernel: defines the Hilbert space.
        weight: of the workers, non-negative, shape (workers,); equal weights where all of a task's are 0.
    """
    loss, count = np.zeros(len(claims.workers)), np.zeros(len(claims.workers), dtype=np.int64)
    for batch in task_batches(claims, bandwidth, kernel, least_degree=2):
        workers = claims.worker[batch.rows]
        share = normalized(weight[workers])
        distance = batch.squared_distances(share)
        loss += np.bincount(workers.ravel(), weights=distance.ravel(), minlength=len(loss))
        count += np.bincount(workers.ravel(), minlength=len(loss))
    return loss, count


def normalized(weight: Floats) -> Floats:
    """Return weights that sum to 1 over the last axis, equal ones where all are 0; shape as `weight`."""
    total = weight.sum(axis=-1, keepdims=True)
    equal = np.full_like(weight, 1 / weight.shape[-1])
    return np.where(total > 0, weight / np.where(total > 0, total, 1), equal)


Thresholds = tuple[float, float, float]
THRESHOLDS: Thresholds = (1.0, 1.25, 1.75)
"""q1 < q2 < q3 in units of the task's median distance under equal weights, so that they are comparable between kernels,
bandwidths and numbers of claims. The paper gives no values."""


def hampel_loss(distance: ArrayLike, thresholds: tuple[ArrayLike, ArrayLike, ArrayLike]) -> Floats:
    """Return the Hampel loss: quadratic to q1, linear to q2, flattening to q3, then constant; arguments broadcast."""
    y, (q1, q2, q3) = np.asarray(distance, dtype=float), (np.asarray(q, dtype=float) for q in thresholds)
    falling = q1 * (y - q3) ** 2 / (2 * (q2 - q3)) + q1 * (q2 + q3 - q1) / 2
    last = q1 * (q2 + q3 - q1) / 2
    return np.select([y < q1, y < q2, y < q3], [y * y / 2, q1 * y - q1 * q1 / 2, falling], last)


def hampel_weight(distance: ArrayLike, thresholds: tuple[ArrayLike, ArrayLike, ArrayLike]) -> Floats:
    """Return the Hampel weight psi(y) / y: 1 to q1, q1 / y to q2, then falling to 0 at q3; arguments broadcast."""
    y, (q1, q2, q3) = np.asarray(distance, dtype=float), (np.asarray(q, dtype=float) for q in thresholds)
    safe = np.where(y > 0, y, 1)
    falling = q1 * (q3 - y) / ((q3 - q2) * safe)
    return np.select([(y < q1) | (y == 0), y < q2, y < q3], [np.ones_like(y), q1 / safe, falling], 0.0)


def local_weights(
    batch: TaskBatch,
    thresholds: Thresholds = THRESHOLDS,
    *,
    loss_as_weight: bool = False,
    max_steps: int = MAX_STEPS,
    tolerance: float = TOLERANCE,
) -> Floats:
    """Return the local weights of one batch by iterative re-weighted least squares, shape (batch, degree).

    Args:
        batch: the tasks.
        thresholds: see `THRESHOLDS`.
        loss_as_weight: use the loss itself as weight, one reading of the paper's formula; it favours outliers.
        max_steps: largest number of steps.
        tolerance: largest change of a weight at convergence.
    """
    weight = np.full(batch.z.shape, 1 / batch.z.shape[1])
    start = np.sqrt(batch.squared_distances(weight))
    median = np.median(start, axis=1, keepdims=True)
    # Equal claims have distance 0; any positive thresholds then give equal weights.
    q1, q2, q3 = (q * np.where(median > 0, median, 1) for q in thresholds)
    score = hampel_loss if loss_as_weight else hampel_weight
    moving = np.ones((len(weight), 1), dtype=bool)
    for _ in range(max_steps):
        scored = score(np.sqrt(batch.squared_distances(weight)), (q1, q2, q3))
        usable = moving & (scored.sum(axis=1, keepdims=True) > 0)
        updated = np.where(usable, normalized(scored), weight)
        # A converged task keeps its weights, so that they do not depend on the other tasks of its batch.
        moving = np.abs(updated - weight).max(axis=1, keepdims=True) > tolerance
        weight = updated
        if not moving.any():
            break
    return weight


Kind = Literal["combined", "global", "local", "uniform"]
KINDS: tuple[Kind, ...] = ("combined", "global", "local", "uniform")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighting:
    """Rule for the weights of claims.

    Attributes:
        kind: "combined": local times global, as printed; "global" or "local" alone; "uniform".
        thresholds, loss_as_weight: of local weights.
        per_claim: of global weights.
        minimiser: combine by the square root of local times global, the minimiser of the paper's equation (4), instead
            of the printed product.
    """

    kind: Kind = "combined"
    thresholds: Thresholds = THRESHOLDS
    loss_as_weight: bool = False
    per_claim: bool = False
    minimiser: bool = False

    def claim_weights(self, claims: Claims, bandwidth: Floats, kernel: Kernel) -> Floats:
        """Return the weight of every claim, shape (claims,), non-negative and summing to 1 over each task.

        Weights are equal where all of a task's are 0.

        Args:
            claims: of all tasks.
            bandwidth: shape (tasks,).
            kernel: defines the Hilbert space of the learned weights.
        """
        weight = np.ones(len(claims))
        if self.kind in ("combined", "local"):
            for batch in task_batches(claims, bandwidth, kernel):
                weight[batch.rows] = local_weights(batch, self.thresholds, loss_as_weight=self.loss_as_weight)
        if self.kind in ("combined", "global"):
            weight *= global_weights(claims, bandwidth, kernel, per_claim=self.per_claim)[claims.worker]
        if self.minimiser:
            weight = np.sqrt(weight)
        total = np.bincount(claims.task_of_each_claim, weights=weight, minlength=len(claims.tasks))[
            claims.task_of_each_claim
        ]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(total > 0, weight / total, 1 / claims.per_task[claims.task_of_each_claim])
