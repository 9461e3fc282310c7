"""Clipped score intervals of shares behind a channel.

For a label l and a share g let c = 1[x = l] - g on labels, 0 on NULL, and h = diag(1/p) Q' J^-1 c with the information
of one report J = Q diag(1/p) Q', where p is the distribution of reports of the fit with share g; for as many reports
as inputs h = Q^-1 c. Then E sum_y N(y) h(y) = n (f(l) - g s) whatever the other shares, and its variance under p is
n sum_y p(y) h(y)^2. Let f^ = J^-1 Q diag(1/p) N / n be the unclipped shares, s^ their sum over labels, and a = f^(l)
held in [0, s^]. The interval holds g while
    T(g) = n (a - g s^) / sqrt(n sum_y p(y) h(y)^2)
is at most z from 0; it is [0, 1] if s^ <= 0. Without holding a this is the score test (for public yes or no: Wilson's
interval, 1927), whose interval near 0 is empty or one point in some samples. For NULL c = 1[x = NULL] - g on all
inputs.

A label that the reports do not determine has the ends of its profile likelihood (Venzon and Moolgavkar 1988).
Coverage: docs/explanation/shares.md.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from crowdveil.quality.shares.mixture import determined_inputs, fit, fit_with_share, share_of

EDGE, BISECTIONS = 1e-9, 18
"""Distance from 0 and 1 at which the search of an end begins, and its steps: an end is at most 4e-6 too far out."""
MIN_ANSWERS = 0.5
"""Estimated number of answers below which there is no share among them."""
TINY = 1e-300
"""Smallest divisor."""
Holds = Callable[[NDArray[np.float64]], NDArray[np.bool_]]
"""Function that tells whether an interval holds a share, one of each row."""


class ShareEstimates(NamedTuple):
    """Shares with their intervals, indexed [row, input]; nan where unknown.

    Attributes:
        share: maximum of the likelihood, in [0, 1].
        unclipped: solution of the linear equations, which may lie outside [0, 1]. With protected participation
            it is a ratio of two estimates, whose mean is the true share only where the number of answers is well known.
        low, high: ends of the interval.
        standard_error: of the unclipped share.
        of_asked: unclipped shares of all cells asked, which add up to 1.
        freedom: degrees of freedom of the standard error; infinite for counts through one channel.
    """

    share: NDArray[np.float64]
    unclipped: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    of_asked: NDArray[np.float64]
    freedom: NDArray[np.float64]


def normal_quantile(level: float) -> float:
    """Return half the width of an interval of a normal distribution with this level, in standard deviations."""
    return float(ndtri((1 + level) / 2))


def score_estimates(
    counts: NDArray[np.float64], table: NDArray[np.float64], labels: int, levels: NDArray[np.float64]
) -> ShareEstimates:
    """Return the shares behind counts of reports through one channel.

    Args:
        counts: whole numbers of reports, indexed [row, report].
        table: P(report | input), indexed [input, report].
        labels: number of labels, the first inputs; NULL may be one more.
        levels: level of the interval of each input, shape (inputs,).
    """
    inputs = len(table)
    best = fit(counts, table)
    known = determined_inputs(table, labels)
    answered = counts.sum(axis=1) * best.shares[:, :labels].sum(axis=1) >= MIN_ANSWERS
    shown = known & (answered[:, None] | (np.arange(inputs) >= labels))
    share = np.stack([share_of(best.shares, target, labels) for target in range(inputs)], axis=1)
    low, high, unclipped, error = np.full((4, *share.shape), np.nan)
    of_asked = np.full(share.shape, np.nan)
    for target in range(inputs):
        quantile = normal_quantile(float(levels[target]))
        if known[target]:
            test = ScoreTest(counts, table, labels, target)
            of_asked[:, target] = test.shares(best.reports)[:, target]
            unclipped[:, target], error[:, target] = test.unclipped(best.reports)
            inner, holds = test.start(best.reports), test.holding(quantile)
        else:
            inner, holds = share[:, target], profile_holding(counts, table, labels, target, quantile)
        low[:, target], high[:, target] = interval_ends(inner, holds)
    freedom = np.full(share.shape, np.inf)
    return ShareEstimates(np.where(shown, share, np.nan), unclipped, low, high, error, of_asked, freedom)


class ScoreTest(NamedTuple):
    """Score test of the share of one input, for each row of counts."""

    counts: NDArray[np.float64]
    table: NDArray[np.float64]
    labels: int
    target: int

    @property
    def of_total(self) -> NDArray[np.float64]:
        """1 for the inputs among which the share is counted, else 0; shape (inputs,)."""
        inputs = len(self.table)
        return (np.arange(inputs) < (self.labels if self.target < self.labels else inputs)).astype(float)

    def inverse(self, reports: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return diag(1/p) Q' J^-1, indexed [row, report, input], for the distribution of reports of each row."""
        return right_inverse(self.table, reports)

    def shares(self, reports: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the unclipped shares of all cells, indexed [row, input]."""
        n = np.maximum(self.counts.sum(axis=1, keepdims=True), TINY)
        return np.asarray(np.einsum("ry,ryx->rx", self.counts / n, self.inverse(reports)))

    def unclipped(self, reports: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the unclipped share and its standard error, shape (rows,); nan if no answers are estimated."""
        found, n = self.shares(reports), self.counts.sum(axis=1)
        total = found @ self.of_total
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where((total > 0) & (n > 0), found[:, self.target] / total, np.nan)
            h = self._scores(share, reports)
            error = np.sqrt((self.counts * h**2).sum(axis=1)) / (n * total)
        return share, error

    def start(self, reports: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share at which the test is 0, held in [0, 1]; one half where no answers are estimated."""
        found = self.shares(reports)
        total = found @ self.of_total
        share = np.where(total > 0, found[:, self.target] / np.maximum(total, TINY), 0.5)
        return np.clip(share, EDGE, 1 - EDGE)

    def holding(self, quantile: float | NDArray[np.float64]) -> Holds:
        """Return the function that tells whether the interval holds one share of each row; quantiles may be by row."""
        n = self.counts.sum(axis=1)

        def holds(share: NDArray[np.float64]) -> NDArray[np.bool_]:
            reports = fit_with_share(self.counts, self.table, self.labels, self.target, share).reports
            found = self.shares(reports)
            total = found @ self.of_total
            held = np.clip(found[:, self.target], 0.0, np.maximum(total, 0.0))
            variance = (reports * self._scores(share, reports) ** 2).sum(axis=1)
            return np.asarray((total <= 0) | (n * (held - share * total) ** 2 <= quantile**2 * variance))

        return holds

    def _scores(self, share: NDArray[np.float64], reports: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return h, indexed [row, report]."""
        of_target = (np.arange(len(self.table)) == self.target).astype(float)
        contrast = of_target - share[:, None] * self.of_total
        return np.asarray(np.einsum("ryx,rx->ry", self.inverse(reports), contrast))


def profile_holding(
    counts: NDArray[np.float64], table: NDArray[np.float64], labels: int, target: int, quantile: float
) -> Holds:
    """Return the function that tells whether the profile likelihood interval holds one share of each row."""
    best = fit(counts, table).log_likelihood

    def holds(share: NDArray[np.float64]) -> NDArray[np.bool_]:
        fixed = fit_with_share(counts, table, labels, target, share).log_likelihood
        return np.asarray(2 * (best - fixed) <= quantile**2)

    return holds


def right_inverse(table: NDArray[np.float64], reports: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return diag(1/p) Q' J^-1, the right inverse of a table that is best for a distribution of reports p.

    It solves sum_y Q[x, y] H[y, z] = 1[x = z] where the table determines all shares; else it is the nearest.

    Args:
        table: P(report | input), indexed [input, report].
        reports: distributions of reports, indexed [row, report].

    Returns:
        Indexed [row, report, input].
    """
    if table.shape[0] == table.shape[1] and np.linalg.matrix_rank(table, tol=1e-9) == len(table):
        return np.broadcast_to(np.linalg.inv(table), (len(reports), *table.shape[::-1]))
    scaled = table / np.maximum(reports, TINY)[:, None]
    return np.asarray(scaled.swapaxes(-1, -2) @ np.linalg.pinv(scaled @ table.T, rcond=1e-9, hermitian=True))


def interval_ends(inner: NDArray[np.float64], holds: Holds) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both ends of each interval, by bisection from a share inside; shape (rows,)."""
    return _interval_end(inner, holds, EDGE), _interval_end(inner, holds, 1 - EDGE)


def _interval_end(inner: NDArray[np.float64], holds: Holds, outer: float) -> NDArray[np.float64]:
    """Return the end of each interval towards `outer`, by bisection; shape (rows,)."""
    ends = np.full(len(inner), outer)
    for _ in range(BISECTIONS):
        middle = (inner + ends) / 2
        held = holds(middle)
        inner, ends = np.where(held, middle, inner), np.where(held, ends, middle)
    return ends
