"""Compiled loops for numbers: weighted mean of each task and squared residuals of each worker; largest change."""

from typing import Any

import numpy as np

from crowdveil.em.kernels.numba_loops.layout import BATCH, INDEX, PREFETCH_DISTANCE, prefetch
from crowdveil.jit import kernel

CHANGE_LANES = 64
"""Differences that are compared in SIMD lanes."""


@kernel()
def mean_step(layout: Any, worker: Any, value: Any, interleaved: Any, gold: Any, rounding: Any, truth: Any) -> float:
    """Fill the tasks' weighted means and the workers' sums of squared residuals; return the largest change.

    Args:
        layout: task at each position, position of each task, reports at each position; shapes (tasks,).
        worker, value: of each report, in the order of positions.
        interleaved: weight of each worker, and sum of squares, which is added to; flat [worker, 2].
        gold: known truth of each task, nan where unknown; empty if none is known.
        rounding: relative residuals up to this count as 0.
        truth: shape (tasks,), replaced; nan for tasks without weight.
    """
    order, _, lengths = layout
    max_change, offset, last = 0.0, INDEX(0), INDEX(len(worker) - 1)
    for position in range(len(order)):
        task, end = position - position % BATCH + order[position], offset + INDEX(lengths[position])
        total, weighted = 0.0, 0.0
        for report in range(offset, end):
            prefetch(interleaved, INDEX(worker[min(report + INDEX(PREFETCH_DISTANCE), last)]) * INDEX(2))
            weight = interleaved[INDEX(worker[report]) * INDEX(2)]
            total += weight
            weighted += weight * value[report]
        task_mean = weighted / total if total > 0 else np.nan
        if len(gold) and not np.isnan(gold[task]):
            task_mean = gold[task]
        change = abs(task_mean - truth[task])
        max_change = change if change > max_change else max_change
        truth[task] = task_mean
        for report in range(offset, end):
            difference = value[report] - task_mean
            square = difference * difference if abs(difference) > rounding * abs(value[report]) else 0.0
            interleaved[INDEX(worker[report]) * INDEX(2) + INDEX(1)] += square
        offset = end
    return max_change


@kernel(fastmath={"nsz"})
def largest_change(new: Any, old: Any) -> float:
    """Return the largest absolute difference of two flat arrays, nan ignored."""
    largest = np.zeros(CHANGE_LANES)
    whole = len(new) - len(new) % CHANGE_LANES
    for first in range(0, whole, CHANGE_LANES):
        for lane in range(CHANGE_LANES):
            change = abs(new[first + lane] - old[first + lane])
            largest[lane] = change if change > largest[lane] else largest[lane]
    for offset in range(whole, len(new)):
        change = abs(new[offset] - old[offset])
        largest[0] = change if change > largest[0] else largest[0]
    return float(largest.max())
