"""Global weights: how far a worker's claims lie from what the crowd says, over all tasks (Huai et al., equations 1-2).

Minimises sum_s g_s sum_i d_i(claim of s on i, density of i) subject to sum_s exp(-g_s) = 1, by turns: the density of a
task is the mean of its claims' bumps by g, and g_s = -log of the worker's share in all distances.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.hilbert import stacks
from crowdveil.synthesis.kernels import Kernel

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
