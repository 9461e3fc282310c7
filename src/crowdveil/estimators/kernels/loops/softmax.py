"""Soft-max of a batch of tasks, one task per lane of the processor's registers, and the likelihood it gives."""

import math
from typing import Any

import numpy as np
from numba import njit

from crowdveil.estimators.kernels.loops.exponential import negative_exp

BATCH = 256
"""Tasks that are done together: their scores stay in the first cache."""
PRODUCT = 32
"""Normalisers multiplied before a logarithm is taken: none exceeds the number of labels, so the product is safe."""
FAST = {"contract", "nsz", "nnan", "ninf"}


@njit(nogil=True, fastmath=FAST, forceinline=True)
def share_out(lanes: Any, others: Any) -> Any:
    """Replace scores by shares, [label, task of the batch]; the first label's score is 0 and need not be given.

    Returns:
        The largest score of each task, and the sum of exponentials relative to it; shapes (BATCH,).
    """
    top = np.zeros(BATCH)
    total = np.empty(BATCH)
    inverse = np.empty(BATCH)
    for k in range(1, others + 1):
        for b in range(BATCH):
            top[b] = max(top[b], lanes[k, b])
    for b in range(BATCH):
        lanes[0, b] = negative_exp(-top[b])
        total[b] = lanes[0, b]
    for k in range(1, others + 1):
        for b in range(BATCH):
            share = negative_exp(lanes[k, b] - top[b])
            lanes[k, b] = share
            total[b] += share
    for b in range(BATCH):
        inverse[b] = 1 / total[b]
    for k in range(others + 1):
        for b in range(BATCH):
            lanes[k, b] *= inverse[b]
    return top, total


@njit(nogil=True, fastmath=FAST, forceinline=True)
def log_of_totals(totals: Any, held: Any, begin: Any, order: Any, gold: Any, scores: Any) -> float:
    """Return the sum of the logarithms of the tasks' normalisers; a gold task counts with its label's score.

    Args:
        totals: from `share_out`.
        held, begin: number of tasks of the batch, and the place of the first.
        order: local task at each place.
        gold: known label of each task or -1; empty if none is known.
        scores: indexed [task of the batch, label but the first].
    """
    top, total = totals
    logarithm, product = 0.0, 1.0
    for b in range(held):
        known = gold[order[begin + b]] if len(gold) else -1
        if known < 0:
            logarithm += top[b]
            product *= total[b]
        elif known > 0:
            logarithm += scores[b, known - 1]
        if b % PRODUCT == PRODUCT - 1:
            logarithm += math.log(product)
            product = 1.0
    return logarithm + math.log(product)
