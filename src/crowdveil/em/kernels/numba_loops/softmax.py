"""Soft-max of a batch of tasks, one task per lane of the processor's registers, and the likelihood it gives.

Lanes are flat: the number of label k and the batch's task b is at k * LANES + b.
"""

import math
from typing import Any

from numba import njit

from crowdveil.em.kernels.numba_loops.exponential import negative_exp
from crowdveil.em.kernels.numba_loops.layout import BATCH, INDEX

LANES = BATCH + 8
"""Numbers from one label to the next: not a power of two, whose multiples get into each other's way in the cache."""
PRODUCT = 32
"""Normalisers multiplied before a logarithm is taken: none exceeds the number of labels, so the product is safe."""
FAST = {"contract", "nsz", "nnan", "ninf"}


@njit(nogil=True, fastmath=FAST, forceinline=True)
def softmax_batch(lanes: Any, labels: Any, top: Any, total: Any, inverse: Any) -> None:
    """Replace scores by shares; fill each task's largest score, the sum of exponentials relative to it, its inverse.

    The last three have shape (BATCH,).
    """
    for b in range(BATCH):
        top[b] = lanes[b]
        total[b] = 0.0
    for k in range(1, labels):
        for b in range(BATCH):
            top[b] = max(top[b], lanes[k * LANES + b])
    for k in range(labels):
        for b in range(BATCH):
            share = negative_exp(lanes[k * LANES + b] - top[b])
            lanes[k * LANES + b] = share
            total[b] += share
    for b in range(BATCH):
        inverse[b] = 1 / total[b]
    for k in range(labels):
        for b in range(BATCH):
            lanes[k * LANES + b] *= inverse[b]


@njit(nogil=True, fastmath=FAST, forceinline=True)
def known_scores(begin: Any, held: Any, places: Any, gold: Any, lanes: Any) -> float:
    """Return the sum of the scores that the batch's gold tasks give to their labels; before `softmax_batch`."""
    total = 0.0
    for task in range(begin, begin + held):
        if gold[task] >= 0:
            total += lanes[gold[task] * LANES + places[task]]
    return total


@njit(nogil=True, fastmath=FAST, forceinline=True)
def know(begin: Any, held: Any, places: Any, gold: Any, lanes: Any, labels: Any) -> None:
    """Make the shares of gold tasks certain."""
    for task in range(begin, begin + held):
        if gold[task] >= 0:
            for k in range(labels):
                lanes[k * LANES + places[task]] = 0.0
            lanes[gold[task] * LANES + places[task]] = 1.0


@njit(nogil=True, fastmath=FAST, forceinline=True)
def log_of_totals(begin: Any, held: Any, order: Any, gold: Any, top: Any, total: Any) -> float:
    """Return the sum of the logarithms of the normalisers of all tasks of the batch but gold ones.

    Args:
        begin, held: the batch's first task, and the number of its tasks.
        order: task at each place, counted from the batch's first.
        gold: known label of each task or -1; empty if none is known.
        top, total: from `softmax_batch`.
    """
    logarithm, product = 0.0, 1.0
    for b in range(held):
        if not len(gold) or gold[begin + order[begin + b]] < 0:
            logarithm += top[b]
            product *= total[b]
        if b % PRODUCT == PRODUCT - 1:
            logarithm += math.log(product)
            product = 1.0
    return logarithm + math.log(product)


@njit(nogil=True, fastmath={"nsz"}, forceinline=True)
def write_shares(begin: Any, held: Any, places: Any, lanes: Any, posterior: Any, labels: Any) -> float:
    """Write the shares of a batch over their tasks' posteriors, flat [task, label]; return the largest change.

    A change that is nan counts for nothing.
    """
    largest = 0.0
    for task in range(INDEX(begin), INDEX(begin + held)):
        row, b = task * INDEX(labels), INDEX(places[task])
        # Of each task by itself: the processor need not wait for the task before.
        moved = 0.0
        for k in range(INDEX(labels)):
            share = lanes[k * INDEX(LANES) + b]
            change = abs(share - posterior[row + k])
            moved = change if change > moved else moved
            posterior[row + k] = share
        largest = moved if moved > largest else largest
    return largest
