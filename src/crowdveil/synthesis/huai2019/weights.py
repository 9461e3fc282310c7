"""The weight of every claim in its task's density: combined, global, local, uniform, or public (Huai et al., 4-5).

Whatever is learned from the claims tells of them: a finite epsilon needs uniform or public weights.

Global weights: how far a worker's claims lie from what the crowd says, over all tasks (Huai et al., equations 1-2).

Local weights: how far a claim lies from the other claims on its task, by the Hampel loss (Huai et al., equation 3).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.errors import SettingsError
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.huai2019.kernel_density import Kernel
from crowdveil.synthesis.huai2019.kernel_mean_distance import Stack, stacks

Progress = Callable[[int, float], None]
"""Called after every step with its number and the largest change of a weight."""

SMALLEST_SHARE = 1e-12
"""A worker without any distance has this share, a weight of 27.6, instead of an infinite weight."""


class GlobalWeights(NamedTuple):
    """Result of the iteration.

    Attributes:
        weight: non-negative, shape (workers,).
        steps: how many were taken.
        converged: whether the last one moved no weight by more than the tolerance.
    """

    weight: NDArray[np.float64]
    steps: int
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalRule:
    """Settings of the iteration.

    A claim that stands alone on its task lies at distance 0 from its own density whoever made it, so tasks with one
    claim do not count; a worker who has no others gets the mean distance of the others, a neutral weight.

    Attributes:
        per_claim: divide a worker's distances by the number of claims; the paper adds them up, which favours workers
            with few claims.
        max_steps: steps at most.
        tolerance: largest change of a weight that still counts as none.
    """

    per_claim: bool = False
    max_steps: int = 50
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if self.max_steps < 1 or not self.tolerance > 0:
            raise SettingsError(
                "max_steps must be at least 1 and tolerance positive", value=(self.max_steps, self.tolerance)
            )

    def fit(
        self, claims: Claims, bandwidth: NDArray[np.float64], kernel: Kernel, *, progress: Progress | None = None
    ) -> GlobalWeights:
        """Return every worker's global weight; `bandwidth` has shape (tasks,)."""
        weight = np.ones(len(claims.workers))
        for step in range(1, self.max_steps + 1):
            updated = self._update(worker_losses(claims, bandwidth, kernel, weight))
            change = float(np.abs(updated - weight).max(initial=0.0))
            weight = updated
            if progress is not None:
                progress(step, change)
            if change <= self.tolerance:
                return GlobalWeights(weight, step, True)
        return GlobalWeights(weight, self.max_steps, False)

    def _update(self, losses: tuple[NDArray[np.float64], NDArray[np.int64]]) -> NDArray[np.float64]:
        """Return -log of each worker's share in all distances (equation 2)."""
        loss, count = losses
        if self.per_claim:
            loss = loss / np.maximum(count, 1)
        known = count > 0
        if not known.any() or loss.sum() == 0:
            return np.ones(len(loss))
        loss = np.where(known, loss, loss[known].mean())
        return -np.log(np.maximum(loss / loss.sum(), SMALLEST_SHARE))


def worker_losses(
    claims: Claims, bandwidth: NDArray[np.float64], kernel: Kernel, weight: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return each worker's squared distances from the weighted densities, summed, and how many there are.

    Args:
        claims: tasks with fewer than two are left out.
        bandwidth: shape (tasks,).
        kernel: whose Hilbert space.
        weight: of the workers, non-negative, shape (workers,); where all of a task's are 0 its claims count equally.

    Returns:
        Two arrays of shape (workers,).
    """
    loss, count = np.zeros(len(claims.workers)), np.zeros(len(claims.workers), dtype=np.int64)
    for stack in stacks(claims, bandwidth, kernel, least_degree=2):
        workers = claims.worker[stack.rows]
        share = normalised(weight[workers])
        distance = stack.squared_distances(share)
        loss += np.bincount(workers.ravel(), weights=distance.ravel(), minlength=len(loss))
        count += np.bincount(workers.ravel(), minlength=len(loss))
    return loss, count


def normalised(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights that sum to 1 over the last axis; equal ones where all are 0."""
    total = weight.sum(axis=-1, keepdims=True)
    equal = np.full_like(weight, 1 / weight.shape[-1])
    return np.where(total > 0, weight / np.where(total > 0, total, 1), equal)


Thresholds = tuple[float, float, float]


def hampel_loss(distance: ArrayLike, thresholds: tuple[ArrayLike, ArrayLike, ArrayLike]) -> NDArray[np.float64]:
    """Return the loss: quadratic to q1, linear to q2, ever flatter to q3, then constant; arguments broadcast."""
    y, (q1, q2, q3) = np.asarray(distance, dtype=float), (np.asarray(q, dtype=float) for q in thresholds)
    falling = q1 * (y - q3) ** 2 / (2 * (q2 - q3)) + q1 * (q2 + q3 - q1) / 2
    last = q1 * (q2 + q3 - q1) / 2
    return np.select([y < q1, y < q2, y < q3], [y * y / 2, q1 * y - q1 * q1 / 2, falling], last)


def hampel_weight(distance: ArrayLike, thresholds: tuple[ArrayLike, ArrayLike, ArrayLike]) -> NDArray[np.float64]:
    """Return psi(y) / y: 1 to q1, q1 / y to q2, then falling to 0 at q3; arguments broadcast."""
    y, (q1, q2, q3) = np.asarray(distance, dtype=float), (np.asarray(q, dtype=float) for q in thresholds)
    safe = np.where(y > 0, y, 1)
    falling = q1 * (q3 - y) / ((q3 - q2) * safe)
    return np.select([(y < q1) | (y == 0), y < q2, y < q3], [np.ones_like(y), q1 / safe, falling], 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRule:
    """Settings of the iteration.

    Attributes:
        thresholds: q1 < q2 < q3 in units of the task's median distance under equal weights, so that they mean the same
            for every kernel, bandwidth and number of claims. The paper gives no values.
        loss_as_weight: use the loss itself as weight, as the paper's formula can be read; rewards outliers.
        max_steps: steps at most.
        tolerance: largest change of a weight that still counts as none.
    """

    thresholds: Thresholds = (1.0, 1.25, 1.75)
    loss_as_weight: bool = False
    max_steps: int = 50
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        q1, q2, q3 = self.thresholds
        if not (0 < q1 < q2 < q3 and math.isfinite(q3)):
            raise SettingsError("thresholds must be 0 < q1 < q2 < q3", value=self.thresholds)
        if self.max_steps < 1 or not self.tolerance > 0:
            raise SettingsError(
                "max_steps must be at least 1 and tolerance positive", value=(self.max_steps, self.tolerance)
            )

    def fit(self, claims: Claims, bandwidth: NDArray[np.float64], kernel: Kernel) -> NDArray[np.float64]:
        """Return every claim's local weight, shape (claims,), summing to 1 over each task; `bandwidth` per task."""
        weight = np.ones(len(claims))
        for stack in stacks(claims, bandwidth, kernel):
            weight[stack.rows] = self.irwls(stack)
        return weight

    def irwls(self, stack: Stack) -> NDArray[np.float64]:
        """Return the weights of one stack, shape (stacked, degree)."""
        weight = np.full(stack.z.shape, 1 / stack.z.shape[1])
        start = np.sqrt(stack.squared_distances(weight))
        median = np.median(start, axis=1, keepdims=True)
        # Claims that are all equal lie at distance 0; any positive thresholds then leave them equal.
        q1, q2, q3 = (q * np.where(median > 0, median, 1) for q in self.thresholds)
        score = hampel_loss if self.loss_as_weight else hampel_weight
        moving = np.ones((len(weight), 1), dtype=bool)
        for _ in range(self.max_steps):
            scored = score(np.sqrt(stack.squared_distances(weight)), (q1, q2, q3))
            usable = moving & (scored.sum(axis=1, keepdims=True) > 0)
            updated = np.where(usable, normalised(scored), weight)
            # A task that has converged stays, so that no task's weights depend on what it was stacked with.
            moving = np.abs(updated - weight).max(axis=1, keepdims=True) > self.tolerance
            weight = updated
            if not moving.any():
                break
        return weight


Kind = Literal["combined", "global", "local", "uniform", "public"]
KINDS = ("combined", "global", "local", "uniform", "public")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighting:
    """How claims are weighted.

    Attributes:
        kind: "combined": local times global, as printed; "global" or "local" alone; "uniform"; "public": `workers`.
        global_rule, local_rule: how the learned weights are learned.
        minimiser: combine by the square root of local times global. That, and not the product, is the minimiser of
            the paper's equation (4).
        floor: this share of every task's weight is spread evenly over its claims, so that none has weight 0.
        workers: weights that were known before any claim, in the order of `claims.workers`; only for "public".
    """

    kind: Kind = "combined"
    global_rule: GlobalRule = field(default_factory=GlobalRule)
    local_rule: LocalRule = field(default_factory=LocalRule)
    minimiser: bool = False
    floor: float = 0.0
    workers: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SettingsError(f"weights must be one of {', '.join(KINDS)}", value=self.kind)
        if not 0 <= self.floor <= 1:
            raise SettingsError("floor must be in [0, 1]", value=self.floor)
        if (self.kind == "public") != bool(self.workers):
            raise SettingsError(
                "a weight for every worker goes with kind 'public'", value=(self.kind, self.workers[:3])
            )
        if not all(math.isfinite(weight) and weight > 0 for weight in self.workers):
            raise SettingsError("public weights must be positive numbers", value=min(self.workers))

    @property
    def public(self) -> bool:
        """Whether the weights are known without looking at the claims."""
        return self.kind in ("uniform", "public")

    def of(
        self, claims: Claims, bandwidth: NDArray[np.float64], kernel: Kernel, *, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """Return every claim's weight, shape (claims,), non-negative and summing to 1 over each task.

        Args:
            claims: of all tasks.
            bandwidth: shape (tasks,).
            kernel: whose Hilbert space the learned weights use.
            progress: called after every step of the global weights.

        Raises:
            SettingsError: public weights that are not one for each worker.
        """
        weight = np.ones(len(claims))
        if self.kind == "public":
            if len(self.workers) != len(claims.workers):
                raise SettingsError(f"{len(claims.workers)} workers need as many weights", value=len(self.workers))
            weight = np.asarray(self.workers)[claims.worker]
        if self.kind in ("combined", "local"):
            weight = self.local_rule.fit(claims, bandwidth, kernel)
        if self.kind in ("combined", "global"):
            shared = self.global_rule.fit(claims, bandwidth, kernel, progress=progress).weight
            weight = combined(weight, shared[claims.worker], minimiser=self.minimiser and self.kind == "combined")
        equal = task_shares(np.ones(len(claims)), claims)
        return (1 - self.floor) * task_shares(weight, claims) + self.floor * equal


def combined(
    local: NDArray[np.float64], shared: NDArray[np.float64], *, minimiser: bool = False
) -> NDArray[np.float64]:
    """Return local times global weights, not normalised (equation 5), or their square root (the minimiser of 4)."""
    product = local * shared
    return np.sqrt(product) if minimiser else product


def task_shares(weight: NDArray[np.float64], claims: Claims) -> NDArray[np.float64]:
    """Return weights that sum to 1 over each task, shape (claims,); equal ones where all of a task's are 0."""
    total = np.bincount(claims.task, weights=weight, minlength=len(claims.tasks))[claims.task]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, weight / total, 1 / claims.per_task[claims.task])
