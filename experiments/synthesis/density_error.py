"""Integrated squared errors of released densities, differences of inferred truths, and the baseline Basic.

ISE sums, over tasks, the integral of the squared difference of two densities; SISE sums the squares of these integrals
(Huai et al., section 5). Both are in inverse units of the claims, so tasks of different scales should be brought to one
scale before they are summed. They compare with the claims themselves: for the curator, not private.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from experiments.papers.huai2019.algorithm1.kernel_density import WeightedKernelDensity
from numpy.typing import NDArray

from crowdveil.answers.reports import Reports
from crowdveil.estimators import WeightedMean
from crowdveil.randomness import Seeded
from crowdveil.synthesis.original_claims import Claims
from crowdveil.synthesis.private.histogram_density import HistogramDensities

Floats = NDArray[np.float64]

NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(6)
REACH = (1.0, 2.0, math.sqrt(5.0), 4.0, 8.0)
"""Ends of quadrature panels, in bandwidths from a claim; an Epanechnikov kernel ends at the square root of 5."""
MAX_BREAKS = 600
"""Number of breaks above which they are thinned to half a bandwidth."""
BASIC_EPSILONS = {"strong": 0.1, "normal": 1.0, "weak": 10.0}
"""Epsilon per claim of the baseline Basic, by its noise level in the paper."""


class DensityCurve(NamedTuple):
    """Density as a function, with the points between which it is smooth.

    Attributes:
        at: returns the density at points, shape (points,).
        breaks: ascending; the density is smooth between neighbours and negligible outside, shape (breaks,).
    """

    at: Callable[[Floats], Floats]
    breaks: Floats


def kernel_curve(density: WeightedKernelDensity) -> DensityCurve:
    """Return the density of claims, original or synthetic."""
    reach = density.bandwidth * np.array([-r for r in REACH] + [0.0, *REACH])
    breaks = np.unique(density.value[:, None] + reach)
    if len(breaks) > MAX_BREAKS:
        # With many kernels the density is smooth on scales below half a bandwidth.
        _, first = np.unique(np.floor(breaks / (0.5 * density.bandwidth)), return_index=True)
        breaks = breaks[np.append(first, len(breaks) - 1)]
    return DensityCurve(density.pdf, breaks)


def histogram_curve(densities: HistogramDensities, row: int) -> DensityCurve:
    """Return one of the piecewise constant densities."""
    edges = densities.cell_edges(slice(row, row + 1))[0]
    return DensityCurve(partial(_step_function, edges, densities.mass[row]), np.unique(edges))


def _step_function(edges: Floats, mass: Floats, points: Floats) -> Floats:
    """Return the density of cells at points, 0 outside the edges; shape as `points`."""
    width = np.diff(edges)
    height = np.divide(mass, width, out=np.zeros(len(width)), where=width > 0)
    cell = np.clip(np.searchsorted(edges, points, side="right") - 1, 0, len(width) - 1)
    return np.where((points >= edges[0]) & (points <= edges[-1]), height[cell], 0.0)


def integrated_squared_error(first: DensityCurve, second: DensityCurve) -> float:
    """Return the integral of the squared difference, by Gauss-Legendre quadrature between all breaks of both."""
    ends = np.union1d(first.breaks, second.breaks)
    half = np.diff(ends) / 2.0
    points = ((ends[:-1] + ends[1:]) / 2.0)[:, None] + half[:, None] * NODES
    difference = first.at(points.ravel()) - second.at(points.ravel())
    return float((difference.reshape(points.shape) ** 2 @ NODE_WEIGHTS) @ half)


class Errors(NamedTuple):
    """ISE and SISE as reported by Huai et al., and the mean, which does not grow with the number of tasks."""

    ise: float
    sise: float
    mean: float
    tasks: int


def summarize(errors: Sequence[float]) -> Errors:
    """Return ISE (their sum), SISE (the sum of their squares) and mean of the errors of all tasks."""
    found = np.asarray(errors, dtype=float)
    return Errors(float(found.sum()), float((found**2).sum()), float(found.mean()), len(found))


def basic_release(claims: Claims, epsilon: float, source: Seeded) -> Reports:
    """Return the baseline Basic: every claim with Laplace noise of scale (high - low) / epsilon, under its own worker.

    SIMULATION ONLY, in floating point. With an exact sampler it would be epsilon per claim for public bounds; `epsilon`
    per claim times the claims of a worker per worker. Numbers may leave the bounds.
    """
    scale = (claims.high - claims.low)[claims.task_of_each_claim] / epsilon
    noisy = claims.value + scale * source.generator.laplace(size=len(claims))
    return Reports(claims.task_of_each_claim.astype(np.int32), claims.worker, noisy, claims.tasks, claims.workers)


class TruthGap(NamedTuple):
    """Truths inferred from synthetic claims against those from the originals, over tasks that have both.

    Attributes:
        tasks: number of these tasks.
        mean_absolute: mean absolute difference.
        constant: the same for the best single number for all tasks (the median of the originals' truths).
        correlation: Pearson's, nan if either side is constant.
    """

    tasks: int
    mean_absolute: float
    constant: float
    correlation: float


def truth_gap(original: Reports, synthetic: Reports) -> TruthGap:
    """Return the difference of the truths inferred from both sides by weighted means; both list the same tasks."""
    ours, theirs = (np.asarray(WeightedMean().fit(side).truth, dtype=float) for side in (original, synthetic))
    both = np.isfinite(ours) & np.isfinite(theirs)
    ours, theirs = ours[both], theirs[both]
    moving = ours.std() > 0 and theirs.std() > 0
    return TruthGap(
        tasks=int(both.sum()),
        mean_absolute=float(np.abs(ours - theirs).mean()),
        constant=float(np.abs(ours - np.median(ours)).mean()),
        correlation=float(np.corrcoef(ours, theirs)[0, 1]) if moving else math.nan,
    )
