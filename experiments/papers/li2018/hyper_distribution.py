"""Hyper-distributions of the flip probability, with the exact privacy loss of k binary answers that share one draw.

A report that differs from the answers in h of k cells has probability g(h) = E[p^h (1-p)^(k-h)]. Its logarithm is
convex in h for any distribution of p (docs/explanation/mechanisms/two-layer.md, Theorem 1): the loss of a cell is at
the first or the last step, the loss of a worker between an end and the minimum.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, xlog1py, xlogy
from scipy.stats import beta

Numbers = NDArray[np.float64]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
PANELS, HALVINGS = 128, 60
"""Equal panels of the quadrature, and halvings of the width towards both ends."""


@dataclass(frozen=True, slots=True, eq=False)
class HyperDistribution:
    """Distribution of one worker's flip probability.

    Attributes:
        quantile: flip probability of each uniform number in [0, 1).
        nodes: flip probabilities of the quadrature, shape (nodes,).
        log_weights: logarithms of their probabilities, shape (nodes,).
    """

    quantile: Callable[[Numbers], Numbers]
    nodes: Numbers
    log_weights: Numbers

    @property
    def mean(self) -> float:
        """Mean flip probability."""
        return float(np.exp(self.log_weights) @ self.nodes)

    def log_report_probability(self, differing: int, cells: int) -> float:
        """Return ln g(h), the log-probability of one report that differs in h = `differing` of the cells."""
        kept = cells - differing
        return float(logsumexp(self.log_weights + xlogy(differing, self.nodes) + xlog1py(kept, -self.nodes)))

    def cell_loss(self, cells: int) -> float:
        """Return the exact epsilon of one of `cells` answers, in nats; at least 0."""
        first = self.log_report_probability(0, cells) - self.log_report_probability(1, cells)
        last = self.log_report_probability(cells - 1, cells) - self.log_report_probability(cells, cells)
        return max(abs(first), abs(last))

    def worker_loss(self, cells: int) -> float:
        """Return the exact epsilon of all `cells` answers of a worker, in nats."""

        def rise(differing: int) -> float:
            return self.log_report_probability(differing + 1, cells) - self.log_report_probability(differing, cells)

        lowest = self.log_report_probability(bisect_left(range(cells), 0.0, key=rise), cells)
        return max(self.log_report_probability(0, cells), self.log_report_probability(cells, cells)) - lowest


def uniform(low: float, high: float) -> HyperDistribution:
    """Return U(low, high), the paper's choice; one fixed probability (one-layer) where both are equal."""
    if low == high:
        return two_points(low, high, share=1.0)
    nodes, log_weights = _quadrature(low, high)
    return HyperDistribution(lambda u: low + (high - low) * u, nodes, log_weights - math.log(high - low))


def scaled_beta(first: float, second: float, high: float) -> HyperDistribution:
    """Return `high` times a Beta(first, second) number; both shapes at least 1."""
    nodes, log_weights = _quadrature(0.0, high)
    density = beta.logpdf(nodes / high, first, second) - math.log(high)
    return HyperDistribution(lambda u: high * beta.ppf(u, first, second), nodes, log_weights + density)


def two_points(low: float, high: float, *, share: float) -> HyperDistribution:
    """Return `low` with probability `share`, else `high`."""
    weights = np.array([share, 1 - share])
    kept = weights > 0
    return HyperDistribution(
        lambda u: np.where(u < share, low, high), np.array([low, high])[kept], np.log(weights[kept])
    )


def matching_flip(epsilon: Numbers | float) -> Numbers:
    """Return one-layer's flip probability of each epsilon, two labels (Theorem 6.2)."""
    return np.asarray(1 / (1 + np.exp(epsilon)))


@cache
def published(claimed: float, *, low_share: float = 0.0) -> HyperDistribution:
    """Return U(a, b) whose mean is one-layer's flip probability at the claimed epsilon (Theorem 6.4).

    Args:
        claimed: epsilon of Theorem 6.3, in nats.
        low_share: a as a share of that flip probability; the paper's analysis has a = 0.
    """
    flip = float(matching_flip(claimed))
    return uniform(low_share * flip, min((2 - low_share) * flip, 1.0))


def _quadrature(low: float, high: float) -> tuple[Numbers, Numbers]:
    """Return Gauss-Legendre nodes and log-weights on panels that halve towards both ends."""
    width = high - low
    halved = width * 0.5 ** np.arange(1, HALVINGS)
    edges = np.unique(np.concatenate((np.linspace(low, high, PANELS + 1), low + halved, high - halved)))
    half = np.diff(edges)[:, None] / 2
    nodes, weights = edges[:-1, None] + half * (1 + NODES), half * WEIGHTS
    return nodes.ravel(), np.log(weights.ravel())
