"""Piecewise constant densities on bounded intervals, one per task: estimation from noisy counts, stratified sampling.

Post-processing of noisy counts, without privacy loss. Estimation is by cosine series with shrinkage by Stein's unbiased
risk estimate: the noise variance v is known, hence also the risk of every linear smoother up to a constant. Pinsker
smoothers w_j = max(0, 1 - (j / J)**2) are averaged over their cutoffs J with weights exp(-risk / (2 v)) (Leung and
Barron 2006).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis.discrete_noise import uniform_floats

Floats = NDArray[np.float64]

CELLS = 96
"""Number of cells of a density, a multiple of every number of bins."""
BIN_CHOICES = (8, 12, 16, 24, 32, 48)
"""Possible numbers of histogram bins."""
LARGEST_SQUARE = 2.0
"""Largest square of a cosine coefficient of any density."""
SAMPLED_AT_ONCE = 1 << 22
"""Table entries per block of tasks while sampling, to bound memory."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HistogramDensities:
    """One density per task: equal cells inside a range, and one cell on either side of the range.

    Attributes:
        task: codes of the tasks that have a density, ascending, shape (tasks,).
        low, high: bounds, shape (tasks,).
        range_low, range_high: ends of the range with the equal cells, within the bounds, shape (tasks,).
        mass: probability of every cell, shape (tasks, cells + 2): below the range, the cells, above; rows sum to one.
    """

    task: NDArray[np.int64]
    low: Floats
    high: Floats
    range_low: Floats
    range_high: Floats
    mass: Floats

    @property
    def cell_count(self) -> int:
        """Number of equal cells inside a range."""
        return self.mass.shape[1] - 2

    def cell_edges(self, rows: slice = slice(None)) -> Floats:
        """Return the edges of all cells, ascending, shape (tasks, cells + 3); outer cells may have width 0."""
        low, high = self.range_low[rows, None], self.range_high[rows, None]
        inner = low + (high - low) * (np.arange(self.cell_count + 1) / self.cell_count)
        inner[:, -1:] = high
        return np.concatenate((self.low[rows, None], inner, self.high[rows, None]), axis=1)

    def stratified_samples(self, records: int, source: Source) -> Floats:
        """Return a stratified sample of each density in random order, shape (tasks, records).

        One number is drawn in each of `records` parts of equal probability. Every number has the density as its
        distribution; together they are nearer to it than independent draws. This is post-processing.

        Raises:
            SettingsError: `records` is below 1.
        """
        if records < 1:
            raise SettingsError("records must be at least 1", value=records)
        drawn = np.empty((len(self.task), records))
        block = max(1, SAMPLED_AT_ONCE // (records + self.mass.shape[1]))
        for first in range(0, len(drawn), block):
            rows = slice(first, first + block)
            drawn[rows] = self._sample_records_per_task(rows, records, source)
        return drawn

    def _sample_records_per_task(self, rows: slice, records: int, source: Source) -> Floats:
        mass, edges = self.mass[rows], self.cell_edges(rows)
        tasks = len(mass)
        cumulative = np.concatenate((np.zeros((tasks, 1)), np.cumsum(mass, axis=1)), axis=1)
        cumulative /= cumulative[:, -1:]
        u = (np.arange(records) + uniform_floats(tasks * records, source).reshape(tasks, records)) / records
        # Rows are shifted by their number, so that one search serves all of them.
        shift = np.arange(tasks)[:, None] * 2.0
        cell = np.searchsorted((cumulative[:, 1:] + shift).ravel(), (u + shift).ravel(), side="right").reshape(u.shape)
        cell = np.minimum(cell - np.arange(tasks)[:, None] * mass.shape[1], mass.shape[1] - 1)
        start, width, below, share = (
            np.take_along_axis(table, cell, axis=1)
            for table in (
                edges[:, :-1],
                np.diff(edges, axis=1),
                cumulative[:, :-1],
                mass / mass.sum(axis=1, keepdims=True),
            )
        )
        within = np.divide(u - below, share, out=np.zeros_like(u), where=share > 0)
        drawn = np.clip(start + width * np.clip(within, 0.0, 1.0), edges[:, :1], edges[:, -1:])
        order = np.argsort(source.words(u.size).reshape(u.shape), axis=1)
        return np.take_along_axis(drawn, order, axis=1)


def cosine_density(counts: Floats, variance: float | Floats, total: Floats) -> Floats:
    """Return a density estimated from noisy counts, as masses of equal cells, shape (tasks, CELLS); rows sum to one.

    Args:
        counts: noisy counts of equal bins, shape (tasks, bins).
        variance: noise variance of one count, of all tasks or of each, shape (tasks,).
        total: sum of the counts without noise, positive, shape (tasks,).
    """
    bins = counts.shape[1]
    order = np.arange(bins)
    coefficients = (counts / total[:, None]) @ _orthonormal_cosines(order, bins)
    # Bins are equal, so noise of variance s2 in each gives every coefficient the variance bins * s2.
    error = bins * variance / total**2 + 1.0 / total
    # No coefficient of a density exceeds sqrt(2), so noise of larger variance is shrunk further.
    bounded = np.minimum(LARGEST_SQUARE / error, 1.0)[:, None]
    kept = coefficients[:, 1:] * _shrinkage_factors(coefficients[:, 1:], error) * bounded
    # Bins and cells hold means of each cosine over their widths.
    blur = np.sinc(order / (2 * CELLS)) / np.sinc(order / (2 * bins))
    series = 1.0 + (kept * blur[1:]) @ _orthonormal_cosines(order, CELLS)[:, 1:].T
    return project_onto_simplex(series / CELLS)


def project_onto_simplex(rows: Floats) -> Floats:
    """Return the Euclidean projection of every row onto the probability simplex, shape as `rows`."""
    descending = -np.sort(-rows, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1.0) / np.arange(1, rows.shape[1] + 1)
    last = (descending > excess).sum(axis=1) - 1
    return np.maximum(rows - excess[np.arange(len(rows)), last][:, None], 0.0)


def _shrinkage_factors(coefficients: Floats, error: Floats) -> Floats:
    """Return the shrinkage factor of every coefficient but the constant one, shape as `coefficients`.

    The estimated risk of w is sum_j (1 - w_j)**2 theta_j**2 + (2 w_j - 1) v, unbiased up to a constant.
    """
    cutoffs = np.concatenate((np.arange(1.0, 12.0, 0.5), np.arange(12.0, 2.0 * coefficients.shape[1] + 2.0, 4.0)))
    family = np.maximum(1.0 - (np.arange(1, coefficients.shape[1] + 1) / cutoffs[:, None]) ** 2, 0.0)
    risk = coefficients**2 @ ((1.0 - family) ** 2).T + error[:, None] * (2.0 * family - 1.0).sum(axis=1)
    weight = np.exp(-(risk - risk.min(axis=1, keepdims=True)) / (2.0 * error[:, None]))
    return weight @ family / weight.sum(axis=1, keepdims=True)


def _orthonormal_cosines(order: NDArray[np.int64], points: int) -> Floats:
    """Return the orthonormal cosines at the centres of equal cells of (0, 1), shape (points, orders)."""
    centres = (np.arange(points) + 0.5) / points
    return np.cos(np.pi * centres[:, None] * order) * np.where(order == 0, 1.0, np.sqrt(2.0))
