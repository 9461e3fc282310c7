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

from crowdveil.errors import SettingsError
from crowdveil.synthesis.claims import Claims, Floats
from crowdveil.synthesis.discrete_noise import Integers

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

    def __post_init__(self) -> None:
        if not (len(self.value) and self.value.shape == self.weight.shape):
            raise SettingsError(
                "a density needs claims and one weight per claim", value=(len(self.value), len(self.weight))
            )
        if not (np.all(self.weight >= 0) and abs(float(self.weight.sum()) - 1) <= 1e-9):
            raise SettingsError("weights must be non-negative and sum to 1", value=float(self.weight.sum()))
        if not self.bandwidth > 0:
            raise SettingsError("a bandwidth must be a positive number", value=self.bandwidth)

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
    the task's bounds.

    A rule gives 0 for a single claim and for equal ones. Then, as for anything smaller, h is `least` times the task's
    scale: the width of its bounds if those are public, else the median absolute claim (1 if that is 0).

    Attributes:
        rule: one of the four.
        width: bandwidth in units of the task ("given"), or its share of the bounds ("share"); else None.
        least: smallest bandwidth of a rule, as a share of the task's scale.
    """

    rule: Rule = "silverman"
    width: float | None = None
    least: float = 1e-9

    def __post_init__(self) -> None:
        if self.rule not in ("silverman", "scott", "given", "share"):
            raise SettingsError("rule must be 'silverman', 'scott', 'given' or 'share'", value=self.rule)
        if (self.rule in ("given", "share")) != (self.width is not None):
            raise SettingsError(
                "the rules 'given' and 'share', and no others, need a width", value=(self.rule, self.width)
            )
        for number in (self.width, self.least):
            if number is not None and not (math.isfinite(number) and number > 0):
                raise SettingsError("a bandwidth must be a positive number", value=number)

    def public(self, claims: Claims) -> bool:
        """Return whether the bandwidths are independent of the claims."""
        return self.rule == "given" or (self.rule == "share" and claims.public_bounds)

    def for_tasks(self, claims: Claims) -> Floats:
        """Return the bandwidth of every task, shape (tasks,); NaN where a rule meets a task without claims.

        Raises:
            SettingsError: "share" with bounds that were derived from the claims.
        """
        if self.rule == "given" and self.width is not None:
            return np.full(len(claims.tasks), self.width)
        if self.rule == "share" and self.width is not None:
            if not claims.public_bounds:
                raise SettingsError("a share of the bounds needs given bounds", value=self.rule, hint="Give bounds.")
            return self.width * (claims.high - claims.low)
        count = claims.per_task
        spread = standard_deviations(claims)
        if self.rule == "silverman":
            ordered = claims.value[np.lexsort((claims.value, claims.task))]
            upper, lower = (segment_quantile(ordered, claims.pointers, share) for share in (0.75, 0.25))
            quartiles = upper - lower
            robust = np.minimum(spread, quartiles / NORMAL_INTERQUARTILE_RANGE)
            spread = 0.9 * np.where(quartiles > 0, robust, spread)
        width = np.maximum(spread * np.maximum(count, 1) ** -0.2, self.least * self._scale(claims))
        return np.where(count > 0, width, np.nan)

    def _scale(self, claims: Claims) -> Floats:
        """Return the scale of every task, shape (tasks,)."""
        if claims.public_bounds:
            return claims.high - claims.low
        size = np.abs(claims.value)
        size = size[np.lexsort((size, claims.task))]
        median = segment_quantile(size, claims.pointers, 0.5)
        return np.where(median == 0, 1.0, median)


def standard_deviations(claims: Claims) -> Floats:
    """Return the sample standard deviation of every task, shape (tasks,); 0 for fewer than two claims."""
    count = np.maximum(claims.per_task, 1)
    tasks = len(claims.tasks)
    mean = np.bincount(claims.task, weights=claims.value, minlength=tasks) / count
    squares = np.bincount(claims.task, weights=(claims.value - mean[claims.task]) ** 2, minlength=tasks)
    return np.sqrt(squares / np.maximum(count - 1, 1))


def segment_quantile(ordered: Floats, pointers: Integers, share: float) -> Floats:
    """Return a quantile of every segment, with linear interpolation, shape (segments,); NaN for an empty one.

    Args:
        ordered: ascending within every segment, shape (rows,).
        pointers: ends of the segments, shape (segments + 1,).
        share: order of the quantile, in [0, 1].
    """
    count = np.diff(pointers)
    filled = count > 0
    quantile = np.full(len(count), np.nan)
    rank = share * (count[filled] - 1)
    below = np.floor(rank).astype(np.int64)
    first = pointers[:-1][filled]
    left, right = ordered[first + below], ordered[first + np.minimum(below + 1, count[filled] - 1)]
    quantile[filled] = left + (rank - below) * (right - left)
    return quantile
