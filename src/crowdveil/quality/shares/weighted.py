"""Shares from weighted sums of reports: survey weights, several channels, pooled tasks, clusters, known totals.

With H = diag(1/p) Q' J^-1 of the channel of each report (see `score`), the unclipped shares are f^ = sum_i w_i H(y_i)
over all reports, up to a factor, whatever the choice of channels depends on: each channel is inverted alone, and
people are averaged. Let U(g) = sum_i w_i h(y_i; g) with h = H c. For a label U = A - g B with A = f^(l) and B the sum
of f^ over labels. Its variance is estimated over units (Cochran 1977, chapter 6),
    V(g) = sum_units (sum w h)^2 - U^2 / units.
The interval holds the shares g with |U(g)| <= z sqrt(V(g)), a quadratic (Fieller 1954), with A held in [0, B].

With known totals W of strata (post-stratification, Holt and Smith 1979) A and B are sums of W f^ over the strata, and
so are the variances, each with h centred in its stratum: the share among those who would answer.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.quality.shares.counts import ReportSums
from crowdveil.quality.shares.mixture import determined_inputs, fit
from crowdveil.quality.shares.score import TINY, ShareEstimates, normal_quantile, right_inverse


class LinearSums(NamedTuple):
    """Sums of unclipped shares over units, and their variance.

    Attributes:
        sums: weighted numbers of cells by input, unclipped; indexed [row, input].
        covariance: of these sums, indexed [row, input, input]; nan with fewer than two units.
        cells: sum of weights, shape (rows,).
        known: whether the reports determine each share, indexed [row, input].
    """

    sums: NDArray[np.float64]
    covariance: NDArray[np.float64]
    cells: NDArray[np.float64]
    known: NDArray[np.bool_]


def linear_sums(
    sums: ReportSums, table: NDArray[np.float64], channel: NDArray[np.int64], labels: int, *, centred: bool = False
) -> LinearSums:
    """Return the unclipped sums of each row, and their variance.

    Args:
        sums: of the reports; the first index is the row.
        table: P(report | input) of all channels, indexed [input, report].
        channel: channel of each report.
        labels: number of labels, the first inputs.
        centred: whether the variance is that of means in a stratum whose total is known, times its cells.
    """
    inverse, known = _inverses(sums.total, table, channel, labels)
    cells = sums.total.sum(axis=1)
    found = np.einsum("ry,ryx->rx", sums.total, inverse)
    units = np.maximum(sums.units, 1)
    if centred:
        inverse = inverse - (found / np.maximum(cells, TINY)[:, None])[:, None]
    second = _moments(sums.squares, inverse)
    if not centred:
        second = second - found[:, :, None] * found[:, None] / units[:, None, None]
    second = np.where(units[:, None, None] < 2, np.nan, second)  # one unit tells nothing of the others
    return LinearSums(found, second, cells, known)


def _moments(squares: NDArray[np.float64], inverse: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return H' (sum x x') H, indexed [row, input, input]."""
    if squares.ndim == 2:
        return np.asarray(np.einsum("ry,ryx,ryz->rxz", squares, inverse, inverse))
    return np.asarray(inverse.swapaxes(1, 2) @ squares @ inverse)


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
    """Return the sums of a population whose strata have known shares; rows are the strata, the result is one row."""
    scale = share / np.maximum(parts.cells, TINY)
    return LinearSums(
        (scale @ parts.sums)[None],
        np.einsum("r,rxz->xz", scale**2, parts.covariance)[None],
        np.ones(1),
        np.all(parts.known, axis=0, keepdims=True),
    )


def fieller_estimates(found: LinearSums, labels: int, levels: NDArray[np.float64]) -> ShareEstimates:
    """Return the shares of each row with Fieller's intervals; negative sums count as 0 in the clipped shares.

    Args:
        found: unclipped sums.
        labels: number of labels, the first inputs; NULL may be one more.
        levels: level of the interval of each input, shape (inputs,).
    """
    inputs = found.sums.shape[1]
    low, high, unclipped, error, share = np.full((5, *found.sums.shape), np.nan)
    for target in range(inputs):
        among = (np.arange(inputs) < (labels if target < labels else inputs)).astype(float)
        total = found.sums @ among
        share[:, target] = _ratio(np.maximum(found.sums[:, target], 0.0), np.maximum(found.sums, 0.0) @ among)
        unclipped[:, target] = _ratio(found.sums[:, target], total)
        aa, ab, bb = (
            found.covariance[:, target, target],
            found.covariance[:, target] @ among,
            np.einsum("rxz,x,z->r", found.covariance, among, among),
        )
        variance = aa - 2 * unclipped[:, target] * ab + unclipped[:, target] ** 2 * bb
        error[:, target] = _ratio(np.sqrt(np.maximum(variance, 0.0)), total)
        held = np.clip(found.sums[:, target], 0.0, np.maximum(total, 0.0))
        quantile = normal_quantile(float(levels[target]))
        low[:, target], high[:, target] = _fieller_ends(held, total, (aa, ab, bb), quantile)
    unknown = ~found.known | (found.cells[:, None] <= 0)
    return ShareEstimates(
        *(np.where(unknown, nothing, value) for value, nothing in (
            (share, np.nan), (unclipped, np.nan), (low, 0.0), (high, 1.0), (error, np.nan),
            (found.sums / np.maximum(found.cells, TINY)[:, None], np.nan),
        ))
    )  # fmt: skip


def _ratio(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the quotient, nan where the denominator is not positive."""
    positive = denominator > 0
    return np.where(positive, numerator / np.where(positive, denominator, 1.0), np.nan)


def _fieller_ends(
    a: NDArray[np.float64], b: NDArray[np.float64], covariance: Sequence[NDArray[np.float64]], quantile: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
