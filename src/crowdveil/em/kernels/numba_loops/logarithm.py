"""A logarithm that the compiler can do for many lanes at once, and what is made of it."""

import math
from typing import Any, Literal

import numpy as np
from numba import njit

from crowdveil.em.kernels.numba_loops.exponential import LOG_2_HIGH, LOG_2_LOW
from crowdveil.em.kernels.numba_loops.softmax import FAST
from crowdveil.jit.kernel import kernel

SQRT_HALF = np.uint64(0x3FE6A09E667F3BCD)
"""The bits of the square root of one half, where the mantissas that a logarithm is taken of begin."""
UP = np.uint64(0x3FF0000000000000) - SQRT_HALF
MANTISSA, WIDTH = np.uint64(0x000FFFFFFFFFFFFF), np.uint64(52)
WHOLE = np.uint64(0x4330000000000000)
"""The bits of 2^52: with a whole number in the last ones, that number more."""
WHOLE_AND_BIAS = 2.0**52 + 1023.0
NUMPY: Literal["numpy"] = "numpy"
"""How a division by zero is treated: a check would keep the compiler from working on many numbers at once."""
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


@njit(nogil=True, fastmath=FAST, error_model=NUMPY, forceinline=True)
def positive_log(x: Any) -> Any:
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


@njit(nogil=True, fastmath=FAST, error_model=NUMPY, forceinline=True)
def log_gamma(x: Any) -> Any:
    """Return the logarithm of the gamma function of a positive number, within 1e-12 and the last digits.

    Stirling's series seven further up, less the logarithm of the seven factors in between.
    """
    factors = x * (x + 1.0) * (x + 2.0) * (x + 3.0) * (x + 4.0) * (x + 5.0) * (x + 6.0)
    y = x + 7.0
    inverse = 1 / y
    square = inverse * inverse
    series = -691 / 360360
    series = series * square + 1 / 1188
    series = series * square - 1 / 1680
    series = series * square + 1 / 1260
    series = series * square - 1 / 360
    series = series * square + 1 / 12
    return (y - 0.5) * positive_log(y) - y + HALF_LOG_TWO_PI + series * inverse - positive_log(factors)


@kernel(fastmath={"reassoc", *FAST}, error_model=NUMPY)
def sums_of_log_gamma(numbers: Any, more: Any, sums: Any) -> None:
    """Fill sums, shape (added,), with those of log-gamma over the numbers, each of `more` added to all of them."""
    for added in range(len(more)):
        total = 0.0
        for at in range(len(numbers)):
            total += log_gamma(numbers[at] + more[added])
        sums[added] = total
