"""One goodness-of-fit test for all samplers, so that a right sampler and a wrong one face the same test."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chisquare


def chi_square_p_value(counts: ArrayLike, probabilities: ArrayLike) -> float:
    """Return the p-value of observed counts under the probabilities; every cell must expect at least five."""
    observed, expected = np.asarray(counts), np.asarray(probabilities) * np.sum(counts)
    assert expected.min() >= 5
    return float(chisquare(observed, expected).pvalue)
