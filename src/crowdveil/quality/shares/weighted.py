"""Shares from weighted sums of reports: survey weights, several channels, pooled tasks, clusters, known totals.

With H = diag(1/p) Q' J^-1 of the channel of each report (see `score`), the unclipped shares of the cells asked are
f^ = sum_i w_i H(y_i) / sum_i w_i, whatever the choice of channels depends on: each channel is inverted alone, and
people are averaged. Known totals of strata give f^ = sum_k W_k f^_k (post-stratification, Holt and Smith 1979).

The variance of a share is the larger of that of the units and that of independent reports (`linear_sums`): with few
effective people or a rare label the first is often far too small. Quantiles are those of t distributions whose degrees
of freedom are Kish's effective number of units (1965) less 1, joined over strata by Satterthwaite's formula (1946).
Reports of one channel have the clipped score interval of `score` for the number of independent reports that have this
variance (Franco, Little, Louis and Slud 2019 compare such intervals), reports of several channels Fieller's interval.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from crowdveil.quality.shares.counts import ReportSums
from crowdveil.quality.shares.mixture import determined_inputs, fit, share_of
from crowdveil.quality.shares.score import (
    MIN_ANSWERS,
    TINY,
    ScoreTest,
    ShareEstimates,
    interval_ends,
    right_inverse,
)

LARGEST_QUANTILE = 1e6
"""Quantile in place of larger ones, of hardly any degrees of freedom."""
ROUNDING = 1e-12
"""Relative variance of one report that counts as 0."""
FEWEST_UNITS = 1 + 1e-9
"""Kish's number of units from which their variance is known."""


class LinearSums(NamedTuple):
    """Unclipped shares of the cells asked, and their variance; nan where there are fewer than two units.

    Attributes:
        shares: of the inputs, indexed [row, input].
        reports: distribution of the weighted reports, indexed [row, report].
        covariance: of the shares, from the units; indexed [row, input, input].
        independent: the same if reports were independent of each other and of their weights.
        cells: Kish's effective number of cells, shape (rows,).
        freedom: degrees of freedom of the variance, shape (rows,).
        known: whether the reports determine each share, indexed [row, input].
    """

    shares: NDArray[np.float64]
    reports: NDArray[np.float64]
    covariance: NDArray[np.float64]
    independent: NDArray[np.float64]
    cells: NDArray[np.float64]
    freedom: NDArray[np.float64]
    known: NDArray[np.bool_]


def linear_sums(sums: ReportSums, table: NDArray[np.float64], channel: NDArray[np.int64], labels: int) -> LinearSums:
    """Return the unclipped shares of each row, and their variance.

    Let d_u = sum w (H - f^) over the cells of a unit (a cell, a worker, a cluster) with weight c_u, and W the sum of
    weights. The sum of d d' over units, over W^2, has the mean of the variance times
        1 - 2 sum c^3 / (W sum c^2) + sum c^2 / W^2
    if units are equally variable, and is divided by it (Bell and McCaffrey 2002). If reports are independent of each
    other and of their weights, the variance is that of one report over Kish's number W^2 / sum w^2 of cells.

    Args:
        sums: of the reports; the first index is the row.
        table: P(report | input) of all channels, indexed [input, report].
        channel: channel of each report.
        labels: number of labels, the first inputs.
    """
    inverse, known = _inverses(sums.total, table, channel, labels)
    total = np.maximum(sums.total.sum(axis=1), TINY)
    reports = sums.total / total[:, None]
    shares = np.einsum("ry,ryx->rx", reports, inverse)
    second, third = sums.unit_powers.T
    cells, units = (total**2 / np.maximum(one, TINY) for one in (sums.cell_squares.sum(axis=1), second))
    units = np.where(units >= FEWEST_UNITS, units, np.nan)
    kept = 1 - 2 * third / np.maximum(total * second, TINY) + 1 / units
    centred = inverse - shares[:, None]
    covariance = _moments(sums.squares, centred) * ((1 - 1 / cells) / kept / total**2)[:, None, None]
    independent = _independent_moments(sums, channel, centred) / (total**2)[:, None, None]
    return LinearSums(
        shares, reports, covariance, independent, cells, units - 1, known & (sums.total.sum(axis=1) > 0)[:, None]
    )


def _moments(squares: NDArray[np.float64], inverse: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return H' (sum x x') H, indexed [row, input, input]."""
    if squares.ndim == 2:
        return np.asarray(np.einsum("ry,ryx,ryz->rxz", squares, inverse, inverse))
    return np.asarray(inverse.swapaxes(1, 2) @ squares @ inverse)


def _independent_moments(
    sums: ReportSums, channel: NDArray[np.int64], centred: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the second moments of independent cells whose weights do not depend on their reports."""
    expected = np.zeros(sums.total.shape)
    for one in np.unique(channel):
        own = channel == one
        reports = sums.total[:, own] / np.maximum(sums.total[:, own].sum(axis=1, keepdims=True), TINY)
        expected[:, own] = reports * sums.cell_squares[:, own].sum(axis=1, keepdims=True)
    return _moments(expected, centred)


def _inverses(
    total: NDArray[np.float64], table: NDArray[np.float64], channel: NDArray[np.int64], labels: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return H of each report in its channel, [row, report, input], and whether a row determines each share."""
    inverse = np.zeros((*total.shape, len(table)))
    known = np.ones((len(total), len(table)), dtype=bool)
    for one in np.unique(channel):
        own = channel == one
        part, counts = table[:, own], total[:, own]
        used = counts.sum(axis=1) > 0
        square = part.shape[0] == part.shape[1]
        reports = np.ones((len(counts), own.sum())) if square else fit(counts, part).reports
        inverse[:, own] = right_inverse(part, reports)
        known &= ~used[:, None] | determined_inputs(part, labels)
    return inverse, known


def combined_strata(parts: LinearSums, share: NDArray[np.float64]) -> LinearSums:
    """Return the shares of a population whose strata have known shares; rows are the strata, the result is one row."""
    sizes = share**2 / parts.cells
    return LinearSums(
        (share @ parts.shares)[None],
        (share @ parts.reports)[None],
        np.einsum("r,rxz->xz", share**2, parts.covariance)[None],
        np.einsum("r,rxz->xz", share**2, parts.independent)[None],
        1 / sizes.sum(keepdims=True),
        sizes.sum(keepdims=True) ** 2 / (sizes**2 / parts.freedom).sum(keepdims=True),
        np.all(parts.known, axis=0, keepdims=True),
    )


def t_quantile(level: float, freedom: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return half the width of an interval of a t distribution with this level, in standard deviations."""
    found = stdtrit(freedom, (1 + level) / 2)
    return np.asarray(np.where(found < LARGEST_QUANTILE, found, LARGEST_QUANTILE))


def effective_estimates(
    found: LinearSums, table: NDArray[np.float64], labels: int, levels: NDArray[np.float64]
) -> ShareEstimates:
    """Return the shares of each row, whose reports have one channel, with score intervals of their effective number.

    Args:
        found: unclipped shares.
        table: P(report | input) of the channel, indexed [input, report].
        labels: number of labels, the first inputs; NULL may be one more.
        levels: level of the interval of each input, shape (inputs,).
    """
    inputs = len(table)
    best = fit(found.reports * found.cells[:, None], table)
    answered = found.cells * best.shares[:, :labels].sum(axis=1) >= MIN_ANSWERS
    share, unclipped, low, high, error = np.full((5, *found.shares.shape), np.nan)
    for target in range(inputs):
        test = effective_test(found, best.reports, table, labels, target)
        shown = share_of(best.shares, target, labels)
        share[:, target] = np.where(answered | (target >= labels), shown, np.nan)
        unclipped[:, target], error[:, target] = test.unclipped(best.reports)
        holds = test.holding(t_quantile(float(levels[target]), found.freedom))
        low[:, target], high[:, target] = interval_ends(test.start(best.reports), holds)
    return _where_known(found, (share, unclipped, low, high, error))


def effective_test(
    found: LinearSums, reports: NDArray[np.float64], table: NDArray[np.float64], labels: int, target: int
) -> ScoreTest:
    """Return the score test of a share, of the effective number of reports; `reports` is their fitted distribution."""
    size = effective_number(found, right_inverse(table, reports), labels, target)
    return ScoreTest(found.reports * size[:, None], table, labels, target)


def effective_number(found: LinearSums, inverse: NDArray[np.float64], labels: int, target: int) -> NDArray[np.float64]:
    """Return the number of independent reports with which a share would have its variance, shape (rows,).

    Args:
        found: unclipped shares.
        inverse: right inverse of the channel, indexed [row, report, input].
        labels: number of labels, the first inputs.
        target: input of the share.
    """
    contrast = _contrasts(found, labels, target)
    scores = np.einsum("ryx,rx->ry", inverse, contrast)
    spread = (found.reports * scores**2).sum(axis=1) - (found.reports * scores).sum(axis=1) ** 2
    variance = _variance(found, contrast)
    return np.asarray(np.where(spread > ROUNDING * variance, spread / np.maximum(variance, TINY), found.cells))


def _contrasts(found: LinearSums, labels: int, target: int) -> NDArray[np.float64]:
    """Return 1[x = l] - g on the inputs among which the share is counted, 0 on others; g is held in [0, 1]."""
    among = _among(found.shares.shape[1], labels, target)
    share = np.clip(np.nan_to_num(_ratio(found.shares[:, target], found.shares @ among), nan=0.5), 0.0, 1.0)
    return (np.arange(len(among)) == target) - share[:, None] * among


def _among(inputs: int, labels: int, target: int) -> NDArray[np.float64]:
    """Return 1 for the inputs among which the share of the target is counted, else 0."""
    return (np.arange(inputs) < (labels if target < labels else inputs)).astype(float)


def _variance(found: LinearSums, contrast: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the variance of a sum of shares: the larger of that of the units and that of independent reports."""
    both = [np.einsum("rx,rxz,rz->r", contrast, one, contrast) for one in (found.covariance, found.independent)]
    return np.maximum(*both)


def _where_known(found: LinearSums, estimates: Sequence[NDArray[np.float64]]) -> ShareEstimates:
    """Return the estimates with nothing known where reports do not determine a share, or no unit tells of others.

    `estimates` are share, unclipped share, ends of the interval and standard error.
    """
    unknown, alone = ~found.known, ~found.known | np.isnan(found.freedom)[:, None]
    share, unclipped, low, high, error = estimates
    return ShareEstimates(
        share=np.where(unknown, np.nan, share),
        unclipped=np.where(unknown, np.nan, unclipped),
        low=np.where(alone, 0.0, low),
        high=np.where(alone, 1.0, high),
        standard_error=np.where(alone, np.nan, error),
        of_asked=np.where(unknown, np.nan, found.shares),
        freedom=np.broadcast_to(found.freedom[:, None], unknown.shape),
    )


def fieller_estimates(found: LinearSums, labels: int, levels: NDArray[np.float64]) -> ShareEstimates:
    """Return the shares of each row with Fieller's intervals; negative sums count as 0 in the clipped shares.

    With A = f^(l) held in [0, B] and B the sum of f^ over labels it holds the shares g for which (A - g B)^2 is at most
    the squared quantile times the variance of A - g B (Fieller 1954). That of the larger of two variances is the wider
    at each end of the two intervals.

    Args:
        found: unclipped shares.
        labels: number of labels, the first inputs; NULL may be one more.
        levels: level of the interval of each input, shape (inputs,).
    """
    inputs = found.shares.shape[1]
    low, high, unclipped, error, share = np.full((5, *found.shares.shape), np.nan)
    for target in range(inputs):
        among = _among(inputs, labels, target)
        own, total = found.shares[:, target], found.shares @ among
        share[:, target] = _ratio(np.maximum(own, 0.0), np.maximum(found.shares, 0.0) @ among)
        unclipped[:, target] = _ratio(own, total)
        contrast = (np.arange(inputs) == target) - unclipped[:, target][:, None] * among
        error[:, target] = _ratio(np.sqrt(_variance(found, contrast)), total)
        held = np.clip(own, 0.0, np.maximum(total, 0.0))
        quantile = t_quantile(float(levels[target]), found.freedom)
        ends = [
            _fieller_ends(held, total, (one[:, target, target], one[:, target] @ among, one @ among @ among), quantile)
            for one in (found.covariance, found.independent)
        ]
        low[:, target] = np.minimum(ends[0][0], ends[1][0])
        high[:, target] = np.maximum(ends[0][1], ends[1][1])
    return _where_known(found, (share, unclipped, low, high, error))


def _ratio(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the quotient, nan where the denominator is not positive."""
    positive = denominator > 0
    return np.where(positive, numerator / np.where(positive, denominator, 1.0), np.nan)


def _fieller_ends(
    a: NDArray[np.float64], b: NDArray[np.float64], covariance: Sequence[NDArray[np.float64]],
    quantile: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
    """Return the smallest and largest g in [0, 1] with (a - g b)^2 <= z^2 (aa - 2 g ab + g^2 bb), by row.

    Where b is not greater than its error, or the error is unknown, the set is unbounded; the interval is then [0, 1].
    """
    aa, ab, bb = covariance
    lead, middle, last = b**2 - quantile**2 * bb, a * b - quantile**2 * ab, a**2 - quantile**2 * aa
    bounded = (b > 0) & (lead > 0)
    lead = np.where(bounded, lead, 1.0)
    root = np.sqrt(np.maximum(middle**2 - lead * last, 0.0))
    return (
        np.where(bounded, np.clip((middle - root) / lead, 0.0, 1.0), 0.0),
        np.where(bounded, np.clip((middle + root) / lead, 0.0, 1.0), 1.0),
    )
