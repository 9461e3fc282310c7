"""Precisions of workers with a learned Gamma prior: lam_i ~ Gamma(shape a, rate a s^2), so that their mean is 1 / s^2.

The sums over the answers of worker i are their number N_i, their degrees of freedom d_i = N_i - sum_j h_ij, where h_ij
is the share of the answer in the truth, and Q_i, the sum of squared errors (MacKay 1992: effective degrees of freedom).
    lam_i = (a + N_i / 2) / (a s^2 + Q_i / 2);
    s^2 solves sum_i (a + N_i / 2) / (a + Q_i / (2 s^2)) = number of workers, so that s^2 mean(lam_i) = 1;
    log a - psi(a) = log mean(lam_i) - mean(E log lam_i), with the posterior shapes a + d_i / 2 (Minka 2002).
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import polygamma, psi

FIRST_SHAPE, SMALLEST_SHAPE = 50.0, 0.1
"""Shape a before the first step, and its lower bound."""
PRIOR_WORKERS, PRIOR_GAP = 5.0, 0.2
"""Workers that the prior of log a - psi(a) counts as, and its value: deviations that differ by about a third."""
SMALLEST_GAP = 1e-6
ROUNDS, SCALE_STEPS, SHAPE_STEPS, LARGEST_STEP = 5, 4, 5, 2.0
"""Rounds of a step, Newton steps for log s^2 and for log a in each, and the largest of those for log s^2."""
ROUND_WORKERS = 100_000
"""Workers from which a step has one round; the next step has the next round."""


@dataclass(frozen=True, eq=False)
class WorkerPrecisions:
    """Precisions of the workers and their prior.

    Attributes:
        precision: lam_i, in inverse squared units of the answers, shape (workers,).
        scale2, shape: s^2 and a.
        pooled2: mean squared error of an answer, N / sum_i N_i lam_i.
        usual2: median variance of the workers with answers.
    """

    precision: NDArray[np.float64]
    scale2: float
    shape: float
    pooled2: float
    usual2: float

    @classmethod
    def equal(cls, workers: int, scale2: float, shape: float = FIRST_SHAPE) -> Self:
        """Return equal precisions 1 / s^2."""
        return cls(np.full(workers, 1 / scale2), scale2, shape, scale2, scale2)

    def learned(
        self,
        counts: NDArray[np.float64],
        squares: NDArray[np.float64],
        freedom: NDArray[np.float64],
        *,
        least2: float,
        largest: float,
    ) -> Self:
        """Return precisions and prior from the sums N_i, Q_i and d_i of each worker, shape (workers,).

        Args:
            counts, squares, freedom: the sums.
            least2: lower bound of s^2.
            largest: upper bound of a precision.
        """
        some = counts > 0
        if not some.any():
            return self
        number, square, left = counts[some] / 2, squares[some] / 2, freedom[some] / 2
        scale2, shape, precision = self.scale2, self.shape, self.precision[some]
        for _ in range(ROUNDS if len(number) < ROUND_WORKERS else 1):
            scale2 = max(_scale2_of_unit_mean(number, square, shape, scale2), least2)
            precision = np.minimum((shape + number) / (shape * scale2 + square), largest)
            shape = _shape_of_precisions(precision, shape + left)
        known = np.full(len(counts), min(1 / scale2, largest))
        known[some] = precision
        pooled2 = float(number.sum() / (number * precision).sum())
        usual2 = float(np.median(1 / precision))
        return replace(self, precision=known, scale2=scale2, shape=shape, pooled2=pooled2, usual2=usual2)


def _scale2_of_unit_mean(
    number: NDArray[np.float64], square: NDArray[np.float64], shape: float, scale2: float
) -> float:
    """Return s^2 with which s^2 lam_i has the mean 1, by Newton steps in its logarithm; N_i / 2 and Q_i / 2."""
    above = shape + number
    for _ in range(SCALE_STEPS):
        part = square / scale2
        below = shape + part
        ratio = above / below
        slope = float((ratio * part / below).sum())
        step = (len(number) - float(ratio.sum())) / slope if slope > 0 else 0.0
        scale2 *= math.exp(min(max(step, -LARGEST_STEP), LARGEST_STEP))
    return scale2


def _shape_of_precisions(precision: NDArray[np.float64], posterior_shape: NDArray[np.float64]) -> float:
    """Return a from the precisions and the shapes of their posteriors."""
    logarithms = np.log(precision) + psi(posterior_shape) - np.log(posterior_shape)
    gap = math.log(float(precision.mean())) - float(logarithms.mean())
    workers = len(precision)
    gap = (workers * gap + PRIOR_WORKERS * PRIOR_GAP) / (workers + PRIOR_WORKERS)
    return max(SMALLEST_SHAPE, shape_of_gap(max(gap, SMALLEST_GAP)))


def shape_of_gap(gap: float) -> float:
    """Return a with log a - psi(a) = gap, which is positive: Newton steps in log a from Minka's approximation."""
    shape = (3 - gap + math.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)
    for _ in range(SHAPE_STEPS):
        excess = math.log(shape) - float(psi(shape)) - gap
        slope = 1 - shape * float(polygamma(1, shape))
        shape *= math.exp(-excess / slope)
    return shape
