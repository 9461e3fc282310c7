"""Calibration of confidences: expected calibration error (Guo et al., ICML 2017)."""

import numpy as np
from numpy.typing import NDArray

from crowdveil.evaluation.gold import AlignedGold, gold_codes, tie_weights

BINS = 10
"""Bins of equal width of the confidence."""


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
