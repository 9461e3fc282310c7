"""Means over all tasks with 90 % intervals, from a random sample of known truths and predictions for all tasks.

For values y known on a simple random sample of n among N items, and predictions f of all of them (Angelopoulos et al.
2023, prediction-powered inference; in survey sampling the difference estimator),
    mean = l mean_all(f) + mean_sample(y - l f),
which is unbiased for every l that does not depend on the sample; l is the regression coefficient of y on f in [0, 1]
(PPI++), so that useless predictions do no harm. Predictions come from answers without gold. With the residuals
d = y - l f and their sum of squares S, the interval of a share p is that of Wilson (1927) for a sample of effectively
    n_e = n s_y^2 / s_d^2 / (1 - n / N),   s_y^2 = p (1 - p) + SQUARE / n,   s_d^2 = (S + SQUARE) / (n - 2).
An end is 0 or 1 if the sample does not contradict it. Coverage: experiments/conclusions.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

LEVEL = 0.9
SQUARE = 0.25
"""Sum of squares that is added to that of the residuals: one observation of a fair coin."""
POOLED = 8.0
"""Observations by which the residual variance of all workers counts for one worker."""


class IntervalEstimate(NamedTuple):
    """Estimate and the ends of its 90 % interval."""

    estimate: float
    low: float
    high: float


class SampledValues(NamedTuple):
    """Known values of a sample with predictions.

    Attributes:
        values: y, shape (n,).
        predicted: f of the sample, shape (n,).
        mean_predicted: mean of f over all items.
        items: number N of all items.
    """

    values: NDArray[np.float64]
    predicted: NDArray[np.float64]
    mean_predicted: float
    items: int


def regression_coefficient(values: NDArray[np.float64], predicted: NDArray[np.float64]) -> float:
    """Return the regression coefficient l of values on predictions, within [0, 1]; 0 for constant predictions."""
    centred = predicted - predicted.mean()
    square = float(centred @ centred)
    return min(max(float(centred @ values) / square, 0.0), 1.0) if square > 1e-12 else 0.0


def share_interval(sampled: SampledValues, given: float | None = None, pooled: float | None = None) -> IntervalEstimate:
    """Return the mean of values that are 0 or 1.

    Args:
        sampled: known values and predictions.
        given: coefficient l from elsewhere; None for that of this sample.
        pooled: variance of residuals in a larger sample, which counts as `POOLED` observations; None for none.
    """
    values, predicted, mean, items = sampled
    n, lost = len(values), 2 if given is None else 1
    weight = regression_coefficient(values, predicted) if given is None else given
    residuals = values - weight * predicted
    share = min(max(weight * mean + float(residuals.mean()), 0.0), 1.0)
    more, variance = (0.0, 0.0) if pooled is None else (POOLED, pooled)
    square = float(((residuals - residuals.mean()) ** 2).sum()) + SQUARE
    plain = share * (1 - share) + SQUARE / n
    spread = min((square + more * variance) / (n - lost + more), plain * n / (n - lost))
    return _finite_wilson_interval(share, max(n * plain / spread, 1.0), values, items, n - lost + more)


def binary_wilson_interval(values: NDArray[np.float64], items: int) -> IntervalEstimate:
    """Return the mean of values that are 0 or 1 from the sample alone, by Wilson's interval."""
    return _finite_wilson_interval(float(values.mean()), float(len(values)), values, items, len(values) - 1)


def interval_of_mean_difference(sampled: SampledValues, given: float) -> IntervalEstimate:
    """Return the mean of values from -1 to 1, of which `given` is the coefficient l."""
    values, predicted, mean, items = sampled
    n = len(values)
    residuals = values - given * predicted
    estimate = given * mean + float(residuals.mean())
    square = float(((residuals - residuals.mean()) ** 2).sum()) + SQUARE
    half = float(stdtrit(n - 1, (1 + LEVEL) / 2)) * (square / (n - 1) / n * (1 - n / items)) ** 0.5
    return IntervalEstimate(min(max(estimate, -1.0), 1.0), max(estimate - half, -1.0), min(estimate + half, 1.0))


def _finite_wilson_interval(
    share: float, effective: float, values: NDArray[np.float64], items: int, freedom: float
) -> IntervalEstimate:
    """Return Wilson's interval of a share of an effective sample, corrected for a finite number of items."""
    left = 1 - len(values) / items
    if left <= 0:
        return IntervalEstimate(share, share, share)
    effective /= left
    square = float(stdtrit(freedom, (1 + LEVEL) / 2)) ** 2
    middle = (share + square / (2 * effective)) / (1 + square / effective)
    half = (square * (share * (1 - share) / effective + square / (4 * effective**2))) ** 0.5 / (1 + square / effective)
    low = 0.0 if not values.any() else max(middle - half, 0.0)
    return IntervalEstimate(share, low, 1.0 if values.all() else min(middle + half, 1.0))


def rogan_gladen(
    truths: NDArray[np.int64], decided: NDArray[np.int64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the prevalences that explain the shares of decisions by their errors in the sample (Rogan, Gladen 1978).

    Args:
        truths, decided: labels of the sample, shape (n,).
        shares: of each decision among all items, shape (labels,).

    Returns:
        Shape (labels,), within [0, 1]; nan if the sample does not determine them.
    """
    labels = len(shares)
    table = np.zeros((labels, labels))
    np.add.at(table, (truths, decided), 1.0)
    rows = table.sum(axis=1, keepdims=True)
    if not rows.all() or np.linalg.matrix_rank(table) < labels:
        return np.full(labels, np.nan)
    return np.clip(np.linalg.solve((table / rows).T, shares), 0.0, 1.0)
