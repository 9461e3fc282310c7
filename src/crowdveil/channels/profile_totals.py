"""Sums over workers of matrix-factorization reports: where devices and inference meet without a channel per cell."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ProfileTotals:
    """Sum of all workers' reports, in the units of the answers.

    Attributes:
        numerators: sum of a_j - c over all answers to the tasks of a bucket, noisy, shape (dimensions,).
        counts: number of these answers, noisy, shape (dimensions,).
        numerator_deviation, count_deviation: standard deviation of the noise in each number.
        buckets: bucket of each task, shape (tasks,).
        low, high: range of the answers; its midpoint is c.
        workers: number of reports in the sum.
    """

    numerators: NDArray[np.float64]
    counts: NDArray[np.float64]
    numerator_deviation: float
    count_deviation: float
    buckets: NDArray[np.int64]
    low: float
    high: float
    workers: int
