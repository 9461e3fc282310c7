"""Weighted kernel densities (Huai et al., equation 5): a sum of bumps around the claims, by their weights.

The two kernels of Huai et al. (Assumption 1): densities of mean 0 and variance 1, so that bandwidths mean the same.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from crowdveil.errors import SettingsError

ROOT_5 = math.sqrt(5)
HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


class Kernel(Protocol):
    """A symmetric density with its Hilbert space."""

    name: ClassVar[str]
    reach: ClassVar[float]
    """The density is 0 beyond it, or (Gaussian) below 1e-300 of its top."""

    def log_density(self, z: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithm of the density, -infinity where it is 0; shape as z."""
        ...

    def similarity(self, z: ArrayLike) -> NDArray[np.float64]:
        """Return the inner product of two kernels z apart over the squared norm of one: 1 at z = 0; shape as z."""
        ...

    def quantile(self, share: ArrayLike) -> NDArray[np.float64]:
        """Return the point below which `share`, in (0, 1), of the mass lies; shape as `share`."""
        ...


@final
class GaussianKernel:
    """The normal density. It reproduces itself: the inner product of K(., x) and K(., x') is K(x, x')."""

    name: ClassVar[str] = "gaussian"
    reach: ClassVar[float] = 38.0

    def log_density(self, z: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithm of the density; shape as z."""
        return -0.5 * np.square(z) - HALF_LOG_2_PI

    def similarity(self, z: ArrayLike) -> NDArray[np.float64]:
        """Return exp(-z^2 / 2); shape as z."""
        return np.exp(-0.5 * np.square(z))

    def quantile(self, share: ArrayLike) -> NDArray[np.float64]:
        """Return the normal quantile; shape as `share`."""
        return ndtri(np.asarray(share, dtype=float))


@final
class EpanechnikovKernel:
    """The parabola 3 / (4 sqrt 5) (1 - z^2 / 5) on |z| <= sqrt 5.

    Its Fourier transform changes sign, so it reproduces no Hilbert space; distances are those of square-integrable
    functions, and the inner product is its convolution with itself.
    """

    name: ClassVar[str] = "epanechnikov"
    reach: ClassVar[float] = ROOT_5

    def log_density(self, z: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithm of the density, -infinity beyond sqrt 5; shape as z."""
        inside = 1 - np.square(z) / 5
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(inside, 0)) + math.log(0.75 / ROOT_5)

    def similarity(self, z: ArrayLike) -> NDArray[np.float64]:
        """Return (2 - u)^3 (u^2 + 6 u + 4) / 32 for u = |z| / sqrt 5 up to 2, else 0; shape as z."""
        u = np.minimum(np.abs(z) / ROOT_5, 2.0)
        return (2 - u) ** 3 * (u * u + 6 * u + 4) / 32

    def quantile(self, share: ArrayLike) -> NDArray[np.float64]:
        """Return 2 sqrt 5 sin(arcsin(2 share - 1) / 3); shape as `share`."""
        return 2 * ROOT_5 * np.sin(np.arcsin(2 * np.asarray(share, dtype=float) - 1) / 3)


KERNELS: dict[str, Kernel] = {kernel.name: kernel for kernel in (GaussianKernel(), EpanechnikovKernel())}


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
