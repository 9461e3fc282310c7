"""Calibration of confidences: expected calibration error, and a temperature fitted to gold (Guo et al., ICML 2017)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.estimate import Estimate
from crowdveil.evaluation.gold import SMALLEST_PROBABILITY, AlignedGold, align_gold, gold_codes, tie_weights

BINS = 10
"""Bins of equal width of the confidence."""
TEMPERATURE_DEVIATION = 0.5
"""Standard deviation of the normal prior of the logarithm of the temperature."""
MIN_GOLD = 50
"""Smallest number of gold tasks that a temperature is fitted to."""


def confidence_bins(aligned: AlignedGold) -> NDArray[np.float64]:
    """Return sums of confidences and of right answers (ties split) by bin of confidence; [bin, (confidence, right)]."""
    posterior, places = aligned.estimate.posterior[aligned.at], np.arange(len(aligned.at))
    confidence, right = posterior.max(axis=1), tie_weights(aligned)[places, gold_codes(aligned)]
    code = np.minimum((confidence * BINS).astype(int), BINS - 1)
    sums = [np.bincount(code, weights=column, minlength=BINS) for column in (confidence, right)]
    return np.stack(sums, axis=1).astype(float)


def calibration_error(bins: NDArray[np.float64], scored: int) -> float:
    """Return the expected calibration error: the mean over tasks of |accuracy - mean confidence| of their bin."""
    return float(np.abs(bins[:, 0] - bins[:, 1]).sum()) / scored


def fit_temperature(estimate: Estimate, gold: Mapping[Any, Any]) -> float | None:
    """Return the factor of log posteriors with the highest likelihood of gold, under a log-normal prior around 1.

    Args:
        estimate: labels with probabilities, not guided by this gold.
        gold: truth by task name; tasks without reports are left out.

    Returns:
        The factor; None with fewer than `MIN_GOLD` tasks.

    Raises:
        ReportsError: no gold task is among the tasks, or a gold label is not in the alphabet.
    """
    aligned = align_gold(estimate, gold)
    reported = estimate.reports_per_task[aligned.at] > 0
    if reported.sum() < MIN_GOLD:
        return None
    logs = np.log(np.maximum(estimate.posterior[aligned.at[reported]], SMALLEST_PROBABILITY))
    codes, places = gold_codes(aligned)[reported], np.arange(int(reported.sum()))

    def loss(log_temperature: float) -> float:
        scores = np.exp(log_temperature) * logs
        likelihood = scores[places, codes] - np.logaddexp.reduce(scores, axis=1)
        return float(0.5 * (log_temperature / TEMPERATURE_DEVIATION) ** 2 - likelihood.sum())

    # Imported here: scipy.optimize loads in half a second, and most commands fit no temperature.
    from scipy.optimize import minimize_scalar

    return float(np.exp(minimize_scalar(loss, bounds=(-4.0, 4.0), method="bounded").x))
