"""Weighted kernel densities (Huai et al., equation 5): a sum of bumps around the claims, by their weights."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.errors import SettingsError
from crowdveil.synthesis.kernels import Kernel

ENTRIES = 1 << 22
"""Densities held in memory at once."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WeightedDensity:
    """The density of one task: sum over claims of weight times kernel.

    Attributes:
        value: the claims, shape (claims,).
        weight: non-negative, sums to 1, shape (claims,).
        bandwidth: in units of the claims.
        kernel: shape of the bumps.
    """

    value: NDArray[np.float64]
    weight: NDArray[np.float64]
    bandwidth: float
    kernel: Kernel

    def __post_init__(self) -> None:
        if not (len(self.value) and self.value.shape == self.weight.shape):
            raise SettingsError(
                "a density needs claims and a weight for each", value=(len(self.value), len(self.weight))
            )
        if not (np.all(self.weight >= 0) and abs(float(self.weight.sum()) - 1) <= 1e-9):
            raise SettingsError("weights must be non-negative and sum to 1", value=float(self.weight.sum()))
        if not self.bandwidth > 0:
            raise SettingsError("a bandwidth must be a positive number", value=self.bandwidth)

    def at(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return the density at points, shape (points,), per unit of the claims."""
        x = np.asarray(points, dtype=float)
        found = np.zeros(len(x))
        width = max(1, ENTRIES // len(self.value))
        for first in range(0, len(x), width):
            z = (x[first : first + width, None] - self.value) / self.bandwidth
            found[first : first + width] = np.exp(self.kernel.log_density(z)) @ self.weight
        return found / self.bandwidth

    @property
    def support(self) -> tuple[float, float]:
        """Ends of an interval outside which the density is 0 (Gaussian: below every number worth adding)."""
        margin = min(self.kernel.reach, 9.0) * self.bandwidth
        return float(self.value.min() - margin), float(self.value.max() + margin)
