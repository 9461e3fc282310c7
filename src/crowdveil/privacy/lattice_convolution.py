"""Sums of independent lattice variables by tilted FFT convolution, with a bound on every numerical error.

A measure p on the lattice is tilted to q(x) = p(x) e^(t x) / M. For a sum S of independent variables and a function
g >= 0, E[g(S)] = M_1 M_2 ... E_q[e^(-t S) g(S)]. The tilt moves the mass to where g matters, so the errors of the
transform and the mass outside its window are multiplied by a Chernoff bound. Proof: docs/explanation/composition.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TAIL = 40.0
"""The mass above the window is at most exp(-TAIL); mass below it is found at its top, and nowhere else."""
TRANSFORM_ERROR = 2e-15
"""Relative error of one Fourier transform in the 2-norm, per doubling of its length (Higham 2002, theorem 24.2)."""
UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, slots=True, eq=False)
class LatticeMeasure:
    """Positive measure on the points first, first + 1, ..., in units of a lattice's step.

    Attributes:
        first: position of the first mass.
        masses: shape (points,), non-negative.
    """

    first: int
    masses: NDArray[np.float64]

    @property
    def positions(self) -> NDArray[np.float64]:
        """Positions of the masses, shape (points,)."""
        return self.first + np.arange(len(self.masses), dtype=np.float64)

    def tilted_masses(self, tilt: float) -> tuple[float, NDArray[np.float64]]:
        """Return ln M and the tilted masses, which sum to 1; `tilt` is per lattice point."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.masses) + tilt * self.positions
        top = float(logs.max())
        weights = np.exp(logs - top)
        total = float(weights.sum())
        return top + math.log(total), weights / total


Terms = Sequence[tuple[LatticeMeasure, int]]
"""Measures of independent variables, with the number of variables that have each."""


@dataclass(frozen=True, slots=True, eq=False)
class TiltedSum:
    """Measure of a sum under exponential tilting, on a window of the lattice.

    Attributes:
        tilt: exponent t, per lattice point.
        log_scale: ln of the product of all M.
        first: position of the first mass of the window.
        masses: tilted masses, shape (points,), at least 0.
        error: bound on the sum of the errors of the masses, mass above the window included.
        relative_error: bound on the relative error of `masses` and of the scale by rounding.
    """

    tilt: float
    log_scale: float
    first: int
    masses: NDArray[np.float64]
    error: float
    relative_error: float

    def upper_bound_of_mean(
        self, positions: NDArray[np.float64], values: NDArray[np.float64], log_peak: float
    ) -> float:
        """Return an upper bound on E[g(S)] for a function g >= 0.

        Args:
            positions: all points up to the end of the window where g > 0, shape (points,); none is below the window.
            values: g there, shape (points,).
            log_peak: ln of the largest e^(-t s) g(s) over all s, in or outside the window.
        """
        # Beyond exp(700) the term of the error alone is above 1, as a delta is never.
        weights = np.exp(np.minimum(self.log_scale - self.tilt * positions, 700.0))
        inside = float((self.masses[len(self.masses) - len(positions) :] * weights * values).sum())
        return (inside + math.exp(min(self.log_scale + log_peak, 700.0)) * self.error) * (1 + self.relative_error)


def tilted_moments(terms: Terms, tilt: float) -> tuple[float, float, float, float]:
    """Return ln of the scale, mean and variance of the tilted sum, and the largest excess of a term over its mean."""
    log_scale = mean = variance = excess = 0.0
    for measure, count in terms:
        log_total, masses = measure.tilted_masses(tilt)
        centre = float(masses @ measure.positions)
        log_scale += count * log_total
        mean += count * centre
        variance += count * float(masses @ (measure.positions - centre) ** 2)
        excess = max(excess, float(measure.positions[masses > 0].max()) - centre)
    return log_scale, mean, variance, excess


def bernstein_tail_distance(variance: float, excess: float) -> float:
    """Return the distance above the mean beyond which Bernstein's inequality leaves exp(-TAIL)."""
    linear = excess * TAIL / 3
    return linear + math.sqrt(linear**2 + 2 * TAIL * variance)


def tilted_sum(terms: Terms, tilt: float, least_points: int = 16) -> TiltedSum:
    """Return the measure of the sum, with the lattice's cyclic window around its tilted mean.

    The window has at least `least_points` points, a power of 2.
    """
    log_scale, mean, variance, excess = tilted_moments(terms, tilt)
    points = max(least_points, 1 << math.ceil(math.log2(2 * bernstein_tail_distance(variance, excess) + 4)))
    count = sum(times for _, times in terms)
    product = np.ones(points // 2 + 1, dtype=np.complex128)
    reach = 0.0
    for measure, times in terms:
        cyclic = np.zeros(points)
        np.add.at(
            cyclic,
            np.arange(measure.first, measure.first + len(measure.masses)) % points,
            measure.tilted_masses(tilt)[1],
        )
        product *= _power(np.fft.rfft(cyclic), times)
        reach = max(reach, abs(tilt) * float(np.abs(measure.positions).max()))
    first = round(mean) - points // 2
    masses = np.roll(np.fft.irfft(product, points), -(first % points))
    return TiltedSum(
        tilt=tilt,
        log_scale=log_scale,
        first=first,
        masses=np.maximum(masses, 0.0),
        error=math.sqrt(points) * (count + 3) * TRANSFORM_ERROR * math.log2(points) + math.exp(-TAIL),
        relative_error=(count * (8 * reach + 32) + 8 * (abs(tilt) * (abs(first) + points) + abs(log_scale)))
        * UNIT_ROUNDOFF,
    )


def _power(values: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Return the power by repeated squaring, which is several times as fast as that of numpy."""
    found, square = np.ones_like(values), values
    while exponent:
        if exponent & 1:
            found = found * square
        exponent >>= 1
        if exponent:
            square = square * square
    return found
