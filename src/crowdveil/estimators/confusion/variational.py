"""Variational Bayes for Dirichlet distributed shares: expected logarithms and divergences (Bishop 2006, appendix B)."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln


def expected_log_dirichlet(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return E log of shares that are Dirichlet distributed with these parameters along the last axis."""
    return np.asarray(digamma(counts) - digamma(counts.sum(axis=-1, keepdims=True)))


def dirichlet_divergence(counts: NDArray[np.float64], prior: NDArray[np.float64]) -> float:
    """Return the sum of KL(Dirichlet(counts) || Dirichlet(prior)) over all but the last axis.

    Args:
        counts: parameters along the last axis.
        prior: parameters, broadcast to `counts`.
    """
    prior = np.broadcast_to(prior, counts.shape)
    totals = gammaln(counts.sum(axis=-1)) - gammaln(prior.sum(axis=-1))
    cells = gammaln(prior) - gammaln(counts) + (counts - prior) * expected_log_dirichlet(counts)
    return float(totals.sum() + cells.sum())
