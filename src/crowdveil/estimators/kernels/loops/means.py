"""Weighted means, compiled: the truth of each task, and every worker's squared distance from it, in one pass."""

from typing import Any

import numpy as np
from numba import njit

INDEX = np.uintp


@njit(cache=True, nogil=True)
def mean_step(layout: Any, worker: Any, value: Any, pairs: Any, gold: Any, rounding: Any, truth: Any) -> None:
    """Fill truth, shape (tasks,), nan without weight, and the workers' sums of squares.

    Args:
        layout: local task at each place, its first report and its number of reports; shapes (tasks,).
        worker, value: of each report.
        pairs: weight of each worker, and his sum of squares, which is filled; (workers, 2).
        gold: known truth of each task, nan where unknown; empty if none is known.
        rounding: a difference below this share of the value is none.
        truth: to be filled.
    """
    order, starts, lengths = layout
    for at in range(len(order)):
        task, start = order[at], INDEX(starts[at])
        total, weighted = 0.0, 0.0
        for report in range(INDEX(lengths[at])):
            row = start + INDEX(report)
            share = pairs[INDEX(worker[row]), 0]
            total += share
            weighted += share * value[row]
        found = weighted / total if total > 0 else np.nan
        if len(gold) and not np.isnan(gold[task]):
            found = gold[task]
        truth[task] = found
        for report in range(INDEX(lengths[at])):
            row = start + INDEX(report)
            difference = value[row] - found
            if abs(difference) > rounding * abs(value[row]):
                pairs[INDEX(worker[row]), 1] += difference * difference


@njit(cache=True, nogil=True)
def largest_change(new: Any, old: Any) -> float:
    """Return the largest difference of two flat arrays; a difference that is nan counts for nothing."""
    largest = 0.0
    for at in range(len(new)):
        change = abs(new[at] - old[at])
        largest = change if change > largest else largest
    return largest
