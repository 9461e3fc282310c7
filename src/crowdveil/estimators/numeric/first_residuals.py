"""Residuals about medians before a fit: their scale, the kind of errors, rounding, and answers far away."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.reports import Block
from crowdveil.em.kernels.numpy_backend import weight_totals_by_code

LARGEST_NORMAL_KURTOSIS, LARGEST_NORMAL_TAIL = 15.0, 20.0
"""Kurtosis of the residuals, and ratio of their root mean square to their geometric mean, above which errors are
Student's; real sets have a kurtosis of 3 to 7 or of more than 100."""
FAR, LARGEST_FAR_SHARE, LARGEST_NEAR_KURTOSIS = 30.0, 0.1, 8.0
"""Geometric means from which a residual is far, share of far ones up to which the others decide, and kurtosis of these
up to which errors are normal without the far ones: 3.6 to 7 in crowds with typing errors, 10 and more of Student's."""
GAPS, ROUNDING_QUANTILE = 1 << 16, 0.05
"""Neighbouring answers that are compared at most, and quantile of their positive differences."""

Gaps = tuple[NDArray[np.float64], ...]
"""Positive differences of neighbouring answers, a part for each block."""
MOMENTS = 6


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over the residuals of tasks with two answers or more, read from those of `residual_moments`.

    Attributes:
        count, second, fourth: residuals about means, times sqrt(n / (n - 1)): number, and sums of powers.
        nonzero, logarithms, squares: residuals about medians that are not 0: number, sums of logarithms and squares.
    """

    count: float
    second: float
    fourth: float
    nonzero: float
    logarithms: float
    squares: float

    @property
    def geometric2(self) -> float:
        """Squared geometric mean of the residuals about medians; 0 if all are 0."""
        return math.exp(2 * self.logarithms / self.nonzero) if self.nonzero else 0.0

    @property
    def scale2(self) -> float:
        """Mean square of the residuals about means; that of the geometric mean if it is 0."""
        return self.second / self.count if self.count and self.second > 0 else self.geometric2

    def heavy(self, largest_kurtosis: float = LARGEST_NORMAL_KURTOSIS) -> bool:
        """Return whether the tail is too heavy for normal errors."""
        kurtosis = self.fourth * self.count > largest_kurtosis * self.second * self.second
        return kurtosis or self.squares > LARGEST_NORMAL_TAIL**2 * self.nonzero * self.geometric2


def residual_moments(
    block: Block, numbers: NDArray[np.float64], median: NDArray[np.float64], near: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the sums of `Moments` over the near answers, shape (6,)."""
    task = block.task[near]
    value, count = numbers[near], np.bincount(task, minlength=block.tasks).astype(float)
    mean = weight_totals_by_code(task, value, block.tasks) / np.maximum(count, 1)
    compared = count[task] > 1
    squares = ((value - mean[task]) ** 2 * (count / np.maximum(count - 1, 1))[task])[compared]
    away = np.abs(value - median[task])[compared]
    away = away[away > 0]
    with np.errstate(over="ignore"):  # an infinite fourth power is a heavy tail by its square, too
        powers = [len(squares), squares.sum(), (squares**2).sum()]
    return np.array([*powers, len(away), np.log(away).sum(), (away**2).sum()])


def sampled_gaps(block: Block, numbers: NDArray[np.float64], reports: int) -> Gaps:
    """Return the positive differences of neighbouring sorted answers of every k-th task, so that few are compared."""
    chosen = (np.arange(block.first, block.stop) % math.ceil(max(reports, 1) / GAPS)) == 0
    rows = np.flatnonzero(np.repeat(chosen, np.diff(block.pointers)))
    task = block.task[rows]
    order = np.lexsort((numbers[rows], task))
    gaps = np.diff(numbers[rows][order])[np.diff(task) == 0]
    return (gaps[gaps > 0],)


def rounding_of(gaps: Gaps) -> float:
    """Return the size of the steps in which answers are given: a low quantile of the gaps; 0 without any."""
    found = np.concatenate(gaps)
    return float(np.quantile(found, ROUNDING_QUANTILE)) if len(found) else 0.0
