"""Exponential, logarithms and soft-max in forms that compile to SIMD code: no call, branch or table.

Soft-max works on a batch of tasks, one task per SIMD lane: the score of label k for the batch's task b is at
k * LANE_STRIDE + b of a flat array.
"""

from typing import Any, Literal

import numpy as np
from numba import njit

from crowdveil.em.kernels.jit import compile_with_numba
from crowdveil.em.kernels.numba_loops.layout import BATCH, INDEX

FAST = {"contract", "nsz", "nnan", "ninf"}
LOG2_E = 1.4426950408889634
LOG_2_HIGH, LOG_2_LOW = 0.693145751953125, 1.42860682030941723212e-6
"""Their sum is log 2; the first has few enough digits to be multiplied by an exponent without rounding."""
LOG_2, HALF_LOG_TWO_PI = 0.6931471805599453, 0.9189385332046727
ROOT_OF_HALF_BITS = 0x3FE6A09E667F3BCD
"""Bits of the number from which on, up to twice it, the logarithm is a series."""
MIN_EXPONENT = -708.0
"""Smaller arguments of the exponential count as this one, whose exponential is still a normal number."""
UNCHECKED_DIVISION: Literal["numpy"] = "numpy"
"""numba's error model without a check for division by zero, which would prevent SIMD code. Functions that divide name
it: without it they have that of the function that calls them first in a process."""
LANE_STRIDE = BATCH + 8
"""Distance between the scores of two labels: not a power of two, whose multiples conflict in the cache."""
MAX_FACTORS = 32
"""Normalizers multiplied before a logarithm is computed; none exceeds the number of labels, so nothing overflows."""


@njit(nogil=True, fastmath=FAST, forceinline=True)
def exp_of_nonpositive_number(x: Any) -> Any:
    """Return e^x for x <= 0, accurate to the last digit but one.

    x = n log 2 + r with |r| <= log(2) / 2; e^r by its Taylor series, 2^n by setting the exponent bits.
    """
    x = max(x, MIN_EXPONENT)
    n = np.floor(x * LOG2_E + 0.5)
    r = x - n * LOG_2_HIGH - n * LOG_2_LOW
    series = 1 / 6227020800
    series = series * r + 1 / 479001600
    series = series * r + 1 / 39916800
    series = series * r + 1 / 3628800
    series = series * r + 1 / 362880
    series = series * r + 1 / 40320
    series = series * r + 1 / 5040
    series = series * r + 1 / 720
    series = series * r + 1 / 120
    series = series * r + 1 / 24
    series = series * r + 1 / 6
    series = series * r + 1 / 2
    series = series * r + 1.0
    series = series * r + 1.0
    return series * np.int64((np.int64(n) + np.int64(1023)) << np.int64(52)).view(np.float64)


@njit(nogil=True, fastmath=FAST, forceinline=True, error_model=UNCHECKED_DIVISION)
def log_of_positive_number(x: Any) -> Any:
    """Return ln x of a normal number x > 0, accurate to the last digit but one.

    x = 2^n m with m from the root of 1/2 to that of 2; ln m = 2 artanh((m - 1) / (m + 1)) by its Taylor series.
    """
    bits = np.float64(x).view(np.int64)
    n = np.int64(np.int64(bits - np.int64(ROOT_OF_HALF_BITS)) >> np.int64(52))
    m = np.int64(bits - np.int64(n << np.int64(52))).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    series = 1 / 23
    series = series * square + 1 / 21
    series = series * square + 1 / 19
    series = series * square + 1 / 17
    series = series * square + 1 / 15
    series = series * square + 1 / 13
    series = series * square + 1 / 11
    series = series * square + 1 / 9
    series = series * square + 1 / 7
    series = series * square + 1 / 5
    series = series * square + 1 / 3
    return n * LOG_2 + (2 * s + 2 * s * square * series)


@compile_with_numba(fastmath=FAST, error_model=UNCHECKED_DIVISION)
def fill_floored_logs(numbers: Any, least: Any, logs: Any) -> None:
    """Fill `logs` with ln max(number, least), all flat; `least` is a normal number."""
    for place in range(INDEX(len(numbers))):
        logs[place] = log_of_positive_number(max(numbers[place], least))


@compile_with_numba(fastmath=FAST, error_model=UNCHECKED_DIVISION)
def fill_log_gammas(numbers: Any, found: Any) -> None:
    """Fill `found` with ln Gamma of positive numbers up to 1e30, flat; the series of `dirichlet_multinomial`."""
    for place in range(INDEX(len(numbers))):
        x = numbers[place]
        raised = x + 8
        inverse = 1 / raised
        square = inverse * inverse
        series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188))))
        pairs = x * (x + 7)
        skipped = pairs * (pairs + 6) * (pairs + 10) * (pairs + 12)
        leading = (raised - 0.5) * log_of_positive_number(raised) - raised + HALF_LOG_TWO_PI
        found[place] = leading + series - log_of_positive_number(skipped)


@njit(nogil=True, fastmath=FAST, forceinline=True, error_model=UNCHECKED_DIVISION)
def softmax_batch(lanes: Any, labels: Any, maximum: Any, total: Any, inverse: Any) -> None:
    """Replace scores by probabilities; fill the maximum, total and inverse total of each task, shapes (BATCH,)."""
    for b in range(BATCH):
        maximum[b] = lanes[b]
        total[b] = 0.0
    for k in range(1, labels):
        for b in range(BATCH):
            maximum[b] = max(maximum[b], lanes[k * LANE_STRIDE + b])
    for k in range(labels):
        for b in range(BATCH):
            exponential = exp_of_nonpositive_number(lanes[k * LANE_STRIDE + b] - maximum[b])
            lanes[k * LANE_STRIDE + b] = exponential
            total[b] += exponential
    for b in range(BATCH):
        inverse[b] = 1 / total[b]
    for k in range(labels):
        for b in range(BATCH):
            lanes[k * LANE_STRIDE + b] *= inverse[b]


@njit(nogil=True, fastmath=FAST, forceinline=True)
def sum_gold_scores(start: Any, size: Any, positions: Any, gold: Any, lanes: Any) -> float:
    """Return the sum over the batch's gold tasks of their known label's score; call before `softmax_batch`."""
    total = 0.0
    for task in range(start, start + size):
        if gold[task] >= 0:
            total += lanes[gold[task] * LANE_STRIDE + positions[task]]
    return total


@njit(nogil=True, fastmath=FAST, forceinline=True)
def set_gold_probabilities(start: Any, size: Any, positions: Any, gold: Any, lanes: Any, labels: Any) -> None:
    """Set the probabilities of gold tasks to 1 for the known label and 0 for others."""
    for task in range(start, start + size):
        if gold[task] >= 0:
            for k in range(labels):
                lanes[k * LANE_STRIDE + positions[task]] = 0.0
            lanes[gold[task] * LANE_STRIDE + positions[task]] = 1.0


@njit(nogil=True, fastmath=FAST, forceinline=True)
def add_log_normalizers(
    start: Any, size: Any, order: Any, gold: Any, maximum: Any, total: Any, logs: Any, products: Any
) -> None:
    """Add the log-normalizers of a batch's tasks that are not gold to logs + log(products), position by position.

    Args:
        start, size: first task of the batch, and number of its tasks.
        order: task at each position, relative to the batch's first.
        gold: known label of each task or -1; empty if none is known.
        maximum, total: from `softmax_batch`.
        logs, products: sums and products so far, shapes (BATCH,).
    """
    for b in range(size if len(gold) else 0):
        if gold[start + order[start + b]] >= 0:
            maximum[b], total[b] = 0.0, 1.0
    for b in range(INDEX(size)):
        logs[b] += maximum[b]
        products[b] *= total[b]
    if start // BATCH % MAX_FACTORS == MAX_FACTORS - 1:
        for b in range(BATCH):
            logs[b] += log_of_positive_number(products[b])
            products[b] = 1.0


@njit(nogil=True, fastmath=FAST, forceinline=True)
def log_normalizer_sum(logs: Any, products: Any) -> float:
    """Return the sum of log-normalizers from `add_log_normalizers`."""
    total = 0.0
    for b in range(BATCH):
        total += logs[b] + log_of_positive_number(products[b])
    return total


@njit(nogil=True, fastmath={"nsz"}, forceinline=True)
def write_posteriors(start: Any, size: Any, positions: Any, lanes: Any, posterior: Any, labels: Any) -> float:
    """Replace the posteriors of a batch, flat [task, label]; return the largest change, nan ignored."""
    largest = 0.0
    for task in range(INDEX(start), INDEX(start + size)):
        row, b = task * INDEX(labels), INDEX(positions[task])
        # A maximum per task breaks the dependency between tasks.
        task_change = 0.0
        for k in range(INDEX(labels)):
            probability = lanes[k * INDEX(LANE_STRIDE) + b]
            change = abs(probability - posterior[row + k])
            task_change = change if change > task_change else task_change
            posterior[row + k] = probability
        largest = task_change if task_change > largest else largest
    return largest
