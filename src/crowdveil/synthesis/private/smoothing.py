"""From a noisy histogram to a density: cosine series, shrunk by an unbiased estimate of its own risk.

Everything here is post-processing: it sees noisy counts, never claims, and costs no privacy. The noise of a count is
known, so is the risk of every linear smoother, up to a constant (Stein); smoothers of Pinsker's form
w_j = max(0, 1 - (j / J)**2) are averaged with weights exp(-risk / (2 v)) over their cutoffs J (Leung and Barron 2006).
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CELLS = 96
"""Cells of a density; every number of bins divides it."""
BIN_CHOICES = (8, 12, 16, 24, 32, 48)
LARGEST_SQUARE = 2.0
"""Of a cosine coefficient of any density."""


def smooth(counts: Floats, variance: Floats, total: Floats, sample: Floats) -> Floats:
    """Return the density behind noisy counts as masses of equal cells.

    Args:
        counts: noisy counts of equal bins, shape (tasks, bins).
        variance: noise variance of one count, shape (tasks,).
        total: what the counts would add up to without noise, positive, shape (tasks,).
        sample: claims that count, for the sampling error; positive, shape (tasks,).

    Returns:
        Masses, non-negative, every row sums to one; shape (tasks, CELLS).
    """
    bins = counts.shape[1]
    order = np.arange(bins)
    coefficients = (counts / total[:, None]) @ _cosines(order, bins)
    # Bins are equal, so noise of variance s2 in each gives every coefficient the variance bins * s2.
    error = bins * variance / total**2 + 1.0 / sample
    # No coefficient of a density exceeds sqrt(2): of noise whose variance exceeds that square little may be kept.
    bounded = np.minimum(LARGEST_SQUARE / error, 1.0)[:, None]
    kept = coefficients[:, 1:] * _shrinkage(coefficients[:, 1:], error) * bounded
    # A bin holds the mean of each cosine over its width, a cell over its own.
    blur = np.sinc(order / (2 * CELLS)) / np.sinc(order / (2 * bins))
    series = 1.0 + (kept * blur[1:]) @ _cosines(order, CELLS)[:, 1:].T
    return nearest_masses(series / CELLS)


def nearest_masses(rows: Floats) -> Floats:
    """Return, for every row, the nearest point (least squares) that is non-negative and sums to one."""
    descending = -np.sort(-rows, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1.0) / np.arange(1, rows.shape[1] + 1)
    last = (descending > excess).sum(axis=1) - 1
    return np.maximum(rows - excess[np.arange(len(rows)), last][:, None], 0.0)


def _shrinkage(coefficients: Floats, error: Floats) -> Floats:
    """Return the factor of every coefficient but the constant one, shape as `coefficients`.

    The risk of w is sum_j (1 - w_j)**2 theta_j**2 + (2 w_j - 1) v, unbiased up to a constant.
    """
    cutoffs = np.concatenate((np.arange(1.0, 12.0, 0.5), np.arange(12.0, 2.0 * coefficients.shape[1] + 2.0, 4.0)))
    family = np.maximum(1.0 - (np.arange(1, coefficients.shape[1] + 1) / cutoffs[:, None]) ** 2, 0.0)
    risk = coefficients**2 @ ((1.0 - family) ** 2).T + error[:, None] * (2.0 * family - 1.0).sum(axis=1)
    weight = np.exp(-(risk - risk.min(axis=1, keepdims=True)) / (2.0 * error[:, None]))
    return weight @ family / weight.sum(axis=1, keepdims=True)


def _cosines(order: NDArray[np.int64], points: int) -> Floats:
    """Return the orthonormal cosines at the centres of equal cells of (0, 1), shape (points, orders)."""
    centres = (np.arange(points) + 0.5) / points
    return np.cos(np.pi * centres[:, None] * order) * np.where(order == 0, 1.0, np.sqrt(2.0))
