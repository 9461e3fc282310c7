"""Compiled sums of logarithms of the gamma function over the cells of confusion matrices.

ln Gamma(x) = (x - 1/2) ln x - x + ln(2 pi) / 2 + 1 / (12 x) - 1 / (360 x^3) + 1 / (1260 x^5) - ..., after x is
raised to at least `LARGE` by Gamma(x) = Gamma(x + 1) / x.
"""

import math
from typing import Any

from numba import njit

from crowdveil.em.kernels.numba_loops.special_functions import FAST
from crowdveil.jit import compile_with_numba

LARGE = 7.0
"""Argument from which the series has an error below 1e-12."""
HALF_LOG_TWO_PI = 0.9189385332046727


@njit(nogil=True, fastmath=FAST, forceinline=True)
def log_gamma(x: Any) -> float:
    """Return ln Gamma(x) of a positive number."""
    product = 1.0
    while x < LARGE:
        product *= x
        x += 1.0
    inverse = 1 / x
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188))))
    value = (x - 0.5) * math.log(x) - x + HALF_LOG_TWO_PI + series
    return value if product == 1.0 else value - math.log(product)


@compile_with_numba(fastmath=FAST)
def add_log_evidence_of_rows(answers: Any, pseudo_counts: Any, totals: Any, found: Any) -> None:
    """Add sum ln Gamma(answers + pseudo_counts) - ln Gamma(their sum over labels) of each worker to `found`.

    Args:
        answers: [worker, label, truth].
        pseudo_counts: [label, truth].
        totals: sums of pseudo-counts over labels, shape (truths,).
        found: shape (workers,).
    """
    for worker in range(answers.shape[0]):
        value = 0.0
        for truth in range(answers.shape[2]):
            total = totals[truth]
            for label in range(answers.shape[1]):
                counted = answers[worker, label, truth]
                total += counted
                value += log_gamma(counted + pseudo_counts[label, truth])
            value -= log_gamma(total)
        found[worker] += value
