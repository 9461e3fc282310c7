"""Weighted means, compiled: the truth of each task, and every worker's squared distance from it, in one pass."""

from typing import Any

import numpy as np

from crowdveil.em.kernels.numba_loops.layout import AHEAD, BATCH, INDEX, ask_for
from crowdveil.jit.kernel import kernel

AT_ONCE = 64
"""Differences that are compared side by side."""


@kernel()
def mean_step(layout: Any, worker: Any, value: Any, pairs: Any, gold: Any, rounding: Any, truth: Any) -> float:
    """Fill truth, shape (tasks,), nan without weight, and the workers' sums of squares; return the largest change.

    Args:
        layout: task at each place, place of each task, reports at each place; shapes (tasks,).
        worker, value: of each report, in the order of places.
        pairs: weight of each worker, and his sum of squares, which is filled; flat [worker, 2].
        gold: known truth of each task, nan where unknown; empty if none is known.
        rounding: a difference below this share of the value is none.
        truth: to be written over.
    """
    order, _, lengths = layout
    moved, at, last = 0.0, INDEX(0), INDEX(len(worker) - 1)
    for place in range(len(order)):
        task, end = place - place % BATCH + order[place], at + INDEX(lengths[place])
        total, weighted = 0.0, 0.0
        for report in range(at, end):
            ask_for(pairs, INDEX(worker[min(report + INDEX(AHEAD), last)]) * INDEX(2))
            share = pairs[INDEX(worker[report]) * INDEX(2)]
            total += share
            weighted += share * value[report]
        found = weighted / total if total > 0 else np.nan
        if len(gold) and not np.isnan(gold[task]):
            found = gold[task]
        change = abs(found - truth[task])
        moved = change if change > moved else moved
        truth[task] = found
        for report in range(at, end):
            difference = value[report] - found
            square = difference * difference if abs(difference) > rounding * abs(value[report]) else 0.0
            pairs[INDEX(worker[report]) * INDEX(2) + INDEX(1)] += square
        at = end
    return moved


@kernel(fastmath={"nsz"})
def largest_change(new: Any, old: Any) -> float:
    """Return the largest difference of two flat arrays; a difference that is nan counts for nothing."""
    largest = np.zeros(AT_ONCE)
    whole = len(new) - len(new) % AT_ONCE
    for first in range(0, whole, AT_ONCE):
        for lane in range(AT_ONCE):
            change = abs(new[first + lane] - old[first + lane])
            largest[lane] = change if change > largest[lane] else largest[lane]
    for at in range(whole, len(new)):
        change = abs(new[at] - old[at])
        largest[0] = change if change > largest[0] else largest[0]
    return float(largest.max())
