"""Exact privacy loss of cells that share one secret flip probability p ~ U(low, high) (Li et al. 2018, Algorithm 2).

A report that differs from the answers in h of k cells has probability g(h) = E[(p / (s-1))^h (1-p)^(k-h)]. The
logarithm of g is convex in h, so the worst ratio of neighbours is at the first or the last step, and the worst ratio of
any two is between an end and the minimum. Proofs: docs/explanation/mechanisms/two-layer.md.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NODES, WEIGHTS = np.polynomial.legendre.leggauss(32)
FINEST = 2.0**-60
"""No panel of the quadrature is narrower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFlipDistribution:
    """The law of one worker's reports.

    Attributes:
        low, high: ends of the uniform law of p, 0 <= low < high <= 1.
        symbols: s, what a cell can hold.
        cells: k, cells that share one p.
    """

    low: float
    high: float
    symbols: int
    cells: int

    def cell_loss(self) -> float:
        """Return max over reports and pairs of answers that differ in one cell of |ln ratio|, in nats."""
        first = self.log_probability(0) - self.log_probability(1)
        last = self.log_probability(self.cells - 1) - self.log_probability(self.cells)
        return max(abs(first), abs(last))

    def worker_loss(self) -> float:
        """Return the same maximum over any two vectors of answers, in nats."""
        rises_at = bisect_left(
            range(self.cells), 0.0, key=lambda h: self.log_probability(h + 1) - self.log_probability(h)
        )
        top = max(self.log_probability(0), self.log_probability(self.cells))
        return top - self.log_probability(rises_at)

    def log_probability(self, differing: int) -> float:
        """Return ln g(h): log-probability of one report vector that differs from the answers in `differing` cells."""
        return self._log_moment(differing) - differing * math.log(self.symbols - 1)

    def _log_moment(self, flips: int) -> float:
        """Return ln E[p^flips (1-p)^(cells - flips)] by Gauss-Legendre panels that widen away from the peak."""
        kept = self.cells - flips
        peak = min(max(flips / self.cells, self.low), self.high)
        edges = self._edges(peak, flips, kept)
        half = np.diff(edges)[:, None] / 2
        points = edges[:-1, None] + half * (1 + NODES)
        height = float(_log_integrand(np.array([peak]), flips, kept)[0])
        area = float((half * WEIGHTS * np.exp(_log_integrand(points, flips, kept) - height)).sum())
        return height + math.log(area / (self.high - self.low))

    def _edges(self, peak: float, flips: int, kept: int) -> NDArray[np.float64]:
        """Return panel ends: the first panel is as wide as the integrand takes to fall by a factor of about e."""
        left, right = (flips / peak if flips else 0.0), (kept / (1 - peak) if kept else 0.0)
        curvature = left * left / max(flips, 1) + right * right / max(kept, 1)
        width = max(min(1.0, 1 / max(abs(left - right), math.sqrt(curvature))), FINEST)
        steps = width * (2.0 ** np.arange(1, 2 + math.ceil(-math.log2(width))) - 1)
        return np.unique(np.clip(np.concatenate((peak - steps, [peak], peak + steps)), self.low, self.high))


def _log_integrand(p: NDArray[np.float64], flips: int, kept: int) -> NDArray[np.float64]:
    """Return flips ln p + kept ln(1 - p), with 0 ln 0 = 0."""
    terms = np.zeros_like(p)
    if flips:
        terms += flips * np.log(p)
    if kept:
        terms += kept * np.log1p(-p)
    return terms
