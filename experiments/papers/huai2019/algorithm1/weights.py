"""Weights of claims in their task's density (Huai et al., sections 4-5): combined, global, local or uniform.

Global weights measure a worker's distance from the weighted densities over all tasks (equations 1-2), local weights a
claim's distance from its own task's density by the Hampel loss (equation 3). Both are computed from the claims; a
finite epsilon needs weights that are independent of them.

The squared distance of a claim's kernel from the weighted density of its task is, with the similarities k,
1 - 2 sum_t w_t k(s, t) + sum_tu w_t w_u k(t, u), in units of the squared norm of one kernel. The paper calls the loss
normalized without a formula; without this unit, tasks with narrow kernels would dominate.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from experiments.papers.huai2019.algorithm1.kernel_density import Kernel
from numpy.typing import ArrayLike

from crowdveil.errors import SettingsError
from crowdveil.synthesis.claims import Claims, Floats
from crowdveil.synthesis.discrete_noise import Integers

ENTRIES = 1 << 21
"""Similarities held in memory at once (16 MiB); a larger task is computed in blocks of rows."""
ROUNDING = 1e-12
"""Squared distances up to this are set to 0, so that equal claims get equal weights despite rounding."""
FAR = 1e100
"""Largest distance of a claim from its task's median, in bandwidths, so that its square is finite."""


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

    def means(self, weight: Floats) -> Floats:
        """Return sum_t weight_t k(s, t) for every claim s; shapes (batch, degree)."""
        degree = self.z.shape[1]
        if self.z.size * degree <= ENTRIES:
            return np.matmul(self._similarities, weight[:, :, None])[:, :, 0]
        found = np.empty_like(self.z)
        width = max(1, ENTRIES // degree)
        for first in range(0, degree, width):
            part = slice(first, first + width)
            similar = self.kernel.similarity(self.z[:, part, None] - self.z[:, None, :])
            found[:, part] = np.matmul(similar, weight[:, :, None])[:, :, 0]
        return found

    def squared_distances(self, weight: Floats) -> Floats:
        """Return the squared distance of every claim's kernel from the weighted density, shape (batch, degree).

        Args:
            weight: sums to 1 over the last axis, shape (batch, degree).
        """
        means = self.means(weight)
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


SMALLEST_SHARE = 1e-12
"""Least share of a worker in all distances; it limits global weights to 27.6."""


class GlobalWeights(NamedTuple):
    """Global weights of the workers.

    Attributes:
        weight: non-negative, shape (workers,).
        steps: number of steps taken.
        converged: whether no weight changed by more than the tolerance in the last step.
    """

    weight: Floats
    steps: int
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalRule:
    """Settings of the iteration for global weights.

    The only claim of a task has distance 0 from its own density, so tasks with one claim are left out; a worker without
    other tasks gets the mean distance of the others.

    Attributes:
        per_claim: divide a worker's summed distance by the number of claims; the paper does not, which favours workers
            with few claims.
        max_steps: largest number of steps.
        tolerance: largest change of a weight at convergence.
    """

    per_claim: bool = False
    max_steps: int = 50
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        _check_iteration(self.max_steps, self.tolerance)

    def fit(self, claims: Claims, bandwidth: Floats, kernel: Kernel) -> GlobalWeights:
        """Return the global weights; `bandwidth` has shape (tasks,)."""
        weight = np.ones(len(claims.workers))
        for step in range(1, self.max_steps + 1):
            updated = self._update(worker_losses(claims, bandwidth, kernel, weight))
            change = float(np.abs(updated - weight).max(initial=0.0))
            weight = updated
            if change <= self.tolerance:
                return GlobalWeights(weight, step, True)
        return GlobalWeights(weight, self.max_steps, False)

    def _update(self, losses: tuple[Floats, Integers]) -> Floats:
        """Return -log of each worker's share in all distances (equation 2)."""
        loss, count = losses
        if self.per_claim:
            loss = loss / np.maximum(count, 1)
        known = count > 0
        if not known.any() or loss.sum() == 0:
            return np.ones(len(loss))
        loss = np.where(known, loss, loss[known].mean())
        return -np.log(np.maximum(loss / loss.sum(), SMALLEST_SHARE))


def _check_iteration(max_steps: int, tolerance: float) -> None:
    if max_steps < 1 or not tolerance > 0:
        raise SettingsError("max_steps must be at least 1 and tolerance positive", value=(max_steps, tolerance))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRule:
    """Settings of the iterative re-weighted least squares for local weights.

    Attributes:
        thresholds: q1 < q2 < q3 in units of the task's median distance under equal weights, so that they are comparable
            between kernels, bandwidths and numbers of claims. The paper gives no values.
        loss_as_weight: use the loss itself as weight, one reading of the paper's formula; it favours outliers.
        max_steps: largest number of steps.
        tolerance: largest change of a weight at convergence.
    """

    thresholds: Thresholds = (1.0, 1.25, 1.75)
    loss_as_weight: bool = False
    max_steps: int = 50
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        q1, q2, q3 = self.thresholds
        if not (0 < q1 < q2 < q3 and math.isfinite(q3)):
            raise SettingsError("thresholds must be 0 < q1 < q2 < q3", value=self.thresholds)
        _check_iteration(self.max_steps, self.tolerance)

    def fit(self, claims: Claims, bandwidth: Floats, kernel: Kernel) -> Floats:
        """Return the local weight of every claim, shape (claims,), summing to 1 over each task.

        Args:
            claims: of all tasks.
            bandwidth: shape (tasks,).
            kernel: defines the Hilbert space.
        """
        weight = np.ones(len(claims))
        for batch in task_batches(claims, bandwidth, kernel):
            weight[batch.rows] = self.irwls(batch)
        return weight

    def irwls(self, batch: TaskBatch) -> Floats:
        """Return the local weights of one batch, shape (batch, degree)."""
        weight = np.full(batch.z.shape, 1 / batch.z.shape[1])
        start = np.sqrt(batch.squared_distances(weight))
        median = np.median(start, axis=1, keepdims=True)
        # Equal claims have distance 0; any positive thresholds then give equal weights.
        q1, q2, q3 = (q * np.where(median > 0, median, 1) for q in self.thresholds)
        score = hampel_loss if self.loss_as_weight else hampel_weight
        moving = np.ones((len(weight), 1), dtype=bool)
        for _ in range(self.max_steps):
            scored = score(np.sqrt(batch.squared_distances(weight)), (q1, q2, q3))
            usable = moving & (scored.sum(axis=1, keepdims=True) > 0)
            updated = np.where(usable, normalized(scored), weight)
            # A converged task keeps its weights, so that they do not depend on the other tasks of its batch.
            moving = np.abs(updated - weight).max(axis=1, keepdims=True) > self.tolerance
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
        global_rule, local_rule: settings of the learned weights.
        minimiser: combine by the square root of local times global, the minimiser of the paper's equation (4), instead
            of the printed product.
    """

    kind: Kind = "combined"
    global_rule: GlobalRule = field(default_factory=GlobalRule)
    local_rule: LocalRule = field(default_factory=LocalRule)
    minimiser: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SettingsError(f"weights must be one of {', '.join(KINDS)}", value=self.kind)

    def claim_weights(self, claims: Claims, bandwidth: Floats, kernel: Kernel) -> Floats:
        """Return the weight of every claim, shape (claims,), non-negative and summing to 1 over each task.

        Args:
            claims: of all tasks.
            bandwidth: shape (tasks,).
            kernel: defines the Hilbert space of the learned weights.
        """
        weight = np.ones(len(claims))
        if self.kind in ("combined", "local"):
            weight = self.local_rule.fit(claims, bandwidth, kernel)
        if self.kind in ("combined", "global"):
            shared = self.global_rule.fit(claims, bandwidth, kernel).weight
            weight = combined(weight, shared[claims.worker], minimiser=self.minimiser and self.kind == "combined")
        return task_shares(weight, claims)


def combined(local: Floats, shared: Floats, *, minimiser: bool = False) -> Floats:
    """Return local times global weights, not normalized (equation 5), or their square root (the minimiser of 4)."""
    product = local * shared
    return np.sqrt(product) if minimiser else product


def task_shares(weight: Floats, claims: Claims) -> Floats:
    """Return weights that sum to 1 over each task, shape (claims,); equal ones where all of a task's are 0."""
    total = np.bincount(claims.task, weights=weight, minlength=len(claims.tasks))[claims.task]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, weight / total, 1 / claims.per_task[claims.task])
