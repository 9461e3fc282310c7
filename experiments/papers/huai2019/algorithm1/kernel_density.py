"""Weighted kernel densities of claims (Huai et al., equation 5), their kernels (Assumption 1) and bandwidth rules.

Kernels have mean 0 and variance 1, so that bandwidths are comparable. Silverman's and Scott's rules read the claims; no
finite epsilon holds for a release that uses one.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from crowdveil.synthesis.original_claims import Claims, Floats

ROOT_5 = math.sqrt(5)
HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


@final
class GaussianKernel:
    """Normal density. It reproduces itself: the inner product of K(., x) and K(., x') is K(x, x')."""

    name: ClassVar[str] = "gaussian"

    def log_density(self, z: ArrayLike) -> Floats:
        """Return the logarithm of the density; shape as z."""
        return -0.5 * np.square(z) - HALF_LOG_2_PI

    def similarity(self, z: ArrayLike) -> Floats:
        """Return the inner product of two kernels at distance z over the squared norm of one, exp(-z^2 / 2)."""
        return np.exp(-0.5 * np.square(z))

    def quantile(self, share: ArrayLike) -> Floats:
        """Return the normal quantile; shape as `share`."""
        return ndtri(np.asarray(share, dtype=float))


@final
class EpanechnikovKernel:
    """Parabola 3 / (4 sqrt 5) (1 - z^2 / 5) on |z| <= sqrt 5.

    Its Fourier transform changes sign, so it reproduces no Hilbert space; distances are those of square-integrable
    functions, and the inner product is its convolution with itself.
    """

    name: ClassVar[str] = "epanechnikov"

    def log_density(self, z: ArrayLike) -> Floats:
        """Return the logarithm of the density, -infinity beyond sqrt 5; shape as z."""
        inside = 1 - np.square(z) / 5
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(inside, 0)) + math.log(0.75 / ROOT_5)

    def similarity(self, z: ArrayLike) -> Floats:
        """Return (2 - u)^3 (u^2 + 6 u + 4) / 32 for u = |z| / sqrt 5 up to 2, else 0; shape as z."""
        u = np.minimum(np.abs(z) / ROOT_5, 2.0)
        return (2 - u) ** 3 * (u * u + 6 * u + 4) / 32

    def quantile(self, share: ArrayLike) -> Floats:
        """Return 2 sqrt 5 sin(arcsin(2 share - 1) / 3); shape as `share`."""
        return 2 * ROOT_5 * np.sin(np.arcsin(2 * np.asarray(share, dtype=float) - 1) / 3)


Kernel = GaussianKernel | EpanechnikovKernel
KERNELS: dict[str, Kernel] = {kernel.name: kernel for kernel in (GaussianKernel(), EpanechnikovKernel())}


ENTRIES = 1 << 22
"""Kernel values held in memory at once."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WeightedKernelDensity:
    """Density of one task: the sum over claims of weight times kernel.

    Attributes:
        value: the claims, shape (claims,).
        weight: non-negative, sums to 1, shape (claims,).
        bandwidth: in units of the claims.
        kernel: one of `KERNELS`.
    """

    value: Floats
    weight: Floats
    bandwidth: float
    kernel: Kernel

    def pdf(self, points: ArrayLike) -> Floats:
        """Return the density at points, shape (points,), per unit of the claims."""
        x = np.asarray(points, dtype=float)
        density = np.zeros(len(x))
        block = max(1, ENTRIES // len(self.value))
        for first in range(0, len(x), block):
            z = (x[first : first + block, None] - self.value) / self.bandwidth
            density[first : first + block] = np.exp(self.kernel.log_density(z)) @ self.weight
        return density / self.bandwidth


Rule = Literal["silverman", "scott", "given", "share"]
NORMAL_INTERQUARTILE_RANGE = 1.34
"""Interquartile range of a standard normal, as Silverman rounds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """Rule for the bandwidth h of every task, from its n claims with standard deviation sd.

    silverman: 0.9 min(sd, interquartile range / 1.34) n^(-1/5); where the range is 0 and sd is not, sd alone
    (Silverman 1986, equation 3.31). scott: sd n^(-1/5) (Scott 1992). given: `width`. share: `width` times the width of
    the task's bounds. A rule gives 0 for a single claim and for equal ones.

    Attributes:
        rule: one of the four.
        width: bandwidth in units of the task ("given"), or its share of the bounds ("share").
        least: smallest bandwidth of the first two rules, as a share of the task's bounds.
    """

    rule: Rule = "silverman"
    width: float = 0.0
    least: float = 1e-9

    @property
    def public(self) -> bool:
        """Whether the bandwidths are independent of the claims."""
        return self.rule in ("given", "share")

    def for_tasks(self, claims: Claims) -> Floats:
        """Return the bandwidth of every task, shape (tasks,); NaN where a rule meets a task without claims."""
        size = claims.high - claims.low
        if self.public:
            return self.width * (size if self.rule == "share" else np.ones(len(size)))
        return np.array(
            [self._of_claims(claims.claims_of_task(task), self.least * size[task]) for task in range(len(size))]
        )

    def _of_claims(self, value: Floats, least: float) -> float:
        if not len(value):
            return math.nan
        spread = value.std(ddof=1) if len(value) > 1 else 0.0
        if self.rule == "silverman":
            lower, upper = np.quantile(value, (0.25, 0.75))
            robust = min(spread, (upper - lower) / NORMAL_INTERQUARTILE_RANGE)
            spread = 0.9 * (robust if upper > lower else spread)
        return float(max(spread * len(value) ** -0.2, least))
