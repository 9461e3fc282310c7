"""Dirichlet-multinomial distribution: log-probability of labels whose probabilities have a Dirichlet prior.

D(n; a) = log of Gamma(sum a) / Gamma(sum (a + n)) prod Gamma(a + n) / Gamma(a)
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln


def log_dirichlet_multinomial(counts: NDArray[np.float64], pseudo_counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return D of counts over the last axis, whose shape pseudo-counts are broadcast to.

    >>> log_dirichlet_multinomial(np.array([3.0, 1.0]), np.ones(2)).round(6).tolist()
    -2.995732
    """
    cells = (gammaln(counts + pseudo_counts) - gammaln(pseudo_counts)).sum(axis=-1)
    total = pseudo_counts.sum(axis=-1)
    return np.asarray(cells + gammaln(total) - gammaln(counts.sum(axis=-1) + total))


def log_evidence_of_rows(
    answers: NDArray[np.float64], pseudo_counts: NDArray[np.float64], *, compiled: bool = False
) -> NDArray[np.float64]:
    """Return the sum of D over the rows of each worker, shape (workers,).

    Args:
        answers: expected answers, [worker, truth, label].
        pseudo_counts: [truth, label].
        compiled: from `use_compiled`.
    """
    if not compiled:
        return np.asarray(log_dirichlet_multinomial(answers, pseudo_counts).sum(axis=1))
    from crowdveil.em.kernels.numba_loops.dirichlet_multinomial import add_log_evidence_of_rows

    by_label = np.ascontiguousarray(answers.transpose(0, 2, 1))
    found = np.zeros(len(answers))
    totals = pseudo_counts.sum(axis=1)
    add_log_evidence_of_rows(by_label, np.ascontiguousarray(pseudo_counts.T), totals, found)
    return found + float(gammaln(totals).sum() - gammaln(pseudo_counts).sum())
