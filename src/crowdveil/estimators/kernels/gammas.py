"""Sums of log-gamma functions: the evidence of Beta laws."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln


def log_gamma_sums(
    numbers: NDArray[np.float64], more: NDArray[np.float64], *, compiled: bool = False
) -> NDArray[np.float64]:
    """Return the sum of log-gamma over all numbers, each of `more` added to them; shape (added,).

    Args:
        numbers: not negative.
        more: positive, shape (added,).
        compiled: from `use_compiled`.
    """
    if not compiled:
        return np.asarray(gammaln(numbers[:, None] + more).sum(axis=0))
    from crowdveil.estimators.kernels.loops.logarithm import sums_of_log_gamma

    sums = np.empty(len(more))
    sums_of_log_gamma(np.ascontiguousarray(numbers), np.ascontiguousarray(more), sums)
    return sums
