"""Tables of workers between two steps, compiled: shares of counts, and their logarithms."""

from functools import cache
from typing import Any, Literal

import numpy as np
from numba import njit

from crowdveil.estimators.kernels.loops.exponential import LOG_2_HIGH, LOG_2_LOW
from crowdveil.estimators.kernels.loops.layout import INDEX
from crowdveil.estimators.kernels.loops.softmax import FAST

SQRT_HALF = np.uint64(0x3FE6A09E667F3BCD)
"""The bits of the square root of one half, where the mantissas that a logarithm is taken of begin."""
UP = np.uint64(0x3FF0000000000000) - SQRT_HALF
MANTISSA, WIDTH = np.uint64(0x000FFFFFFFFFFFFF), np.uint64(52)
WHOLE = np.uint64(0x4330000000000000)
"""The bits of 2^52: with a whole number in the last ones, that number more."""
WHOLE_AND_BIAS = 2.0**52 + 1023.0
NUMPY: Literal["numpy"] = "numpy"
"""How a division by zero is treated: a check would keep the compiler from working on many numbers at once."""


@cache
def share_rows(fixed: int) -> Any:
    """Return the compiled shares for that number of labels and of truths, 0 for any."""

    @njit(cache=True, nogil=True, error_model=NUMPY)
    def share(counts: Any, pseudo: Any, size: Any, shares: Any) -> None:
        """Fill shares with counts and pseudo-counts over their sum by label; flat [worker, label, truth]."""
        labels, truths = INDEX(fixed if fixed > 0 else size[0]), INDEX(fixed if fixed > 0 else size[1])
        inverse = np.empty(truths)
        for row in range(INDEX(0), INDEX(len(counts)), labels * truths):
            for truth in range(truths):
                inverse[truth] = 0.0
            for label in range(labels):
                for truth in range(truths):
                    cell = label * truths + truth
                    count = counts[row + cell] + pseudo[cell]
                    shares[row + cell] = count
                    inverse[truth] += count
            for truth in range(truths):
                inverse[truth] = 1 / inverse[truth]
            for label in range(labels):
                for truth in range(truths):
                    shares[row + label * truths + truth] *= inverse[truth]

    return share


@njit(cache=True, nogil=True, fastmath=FAST, error_model=NUMPY)
def logarithms(numbers: Any, least: Any, logs: Any) -> None:
    """Fill logs with the logarithms of numbers, or of the least, a normal number, where they are smaller; flat."""
    for at in range(len(numbers)):
        number = numbers[at]
        logs[at] = _log(number if number > least else least)


@njit(nogil=True, fastmath=FAST, error_model=NUMPY, forceinline=True)
def _log(x: Any) -> Any:
    """Return log x of a positive normal number, to the last digit but one; no call, no branch, no table.

    x = 2^n m with m between the square roots of a half and of two; log m = 2 artanh((m - 1) / (m + 1)), by its series.
    """
    bits = np.float64(x).view(np.uint64) + UP
    n = np.uint64((bits >> WIDTH) | WHOLE).view(np.float64) - WHOLE_AND_BIAS
    m = np.uint64((bits & MANTISSA) + SQRT_HALF).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    series = 1 / 21
    series = series * square + 1 / 19
    series = series * square + 1 / 17
    series = series * square + 1 / 15
    series = series * square + 1 / 13
    series = series * square + 1 / 11
    series = series * square + 1 / 9
    series = series * square + 1 / 7
    series = series * square + 1 / 5
    series = series * square + 1 / 3
    return n * LOG_2_HIGH + (2.0 * s + (2.0 * s * square * series + n * LOG_2_LOW))
