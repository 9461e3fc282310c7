"""Local weights: how far a claim lies from the other claims on its task, by the Hampel loss (Huai et al., equation 3).

Iteratively re-weighted least squares: l_s is proportional to psi(y_s) / y_s, with y_s the distance of the claim from
the density of weights l and psi the derivative of the loss. The formula as it can be read in the paper puts the loss
itself there, which gives the farthest claims the largest weights; `loss_as_weight` reproduces that.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.errors import SettingsError
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.global_weights import normalised
from crowdveil.synthesis.hilbert import Stack, stacks
from crowdveil.synthesis.kernels import Kernel

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
