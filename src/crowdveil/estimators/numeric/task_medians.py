"""Medians and deviations of each task's numbers, weighted by worker; ties at one half of the weight are averaged."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.data.reports import Block
from crowdveil.em.kernels.dispatch import use_compiled

HALF = 1e-9
"""Share of the weight within which a sum counts as one half."""


def weighted_medians(block: Block, numbers: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted median of each task, shape (tasks,); the plain median where all weights are 0, else nan.

    Args:
        block: the reports.
        numbers: value of each report, shape (reports,).
        weight: not negative, shape (workers,).
    """
    medians = np.full(block.tasks, np.nan)
    if use_compiled(len(numbers)):
        _compiled()(block.pointers, block.worker, numbers, weight, medians)
        return medians
    task, shares = block.task, weight[block.worker]
    total = np.bincount(task, shares, block.tasks)
    shares = np.where(total[task] > 0, shares, 1.0)
    order = np.lexsort((numbers, task))
    task, value, shares = task[order], numbers[order], shares[order]
    total = np.bincount(task, shares, block.tasks)
    sums = np.cumsum(shares) - (np.cumsum(total) - total)[task]
    half = total[task] / 2
    lower = np.searchsorted(task + (sums >= half - HALF * total[task]) / 2, np.arange(block.tasks) + 0.5)
    upper = np.searchsorted(task + (sums > half + HALF * total[task]) / 2, np.arange(block.tasks) + 0.5)
    known = total > 0
    medians[known] = (value[lower[known]] + value[upper[known]]) / 2
    return medians


def deviations(block: Block, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviation of each task's numbers, shape (tasks,); 0 for one number or none."""
    count = np.maximum(np.diff(block.pointers), 1)
    task = block.task
    mean = np.bincount(task, numbers, block.tasks) / count
    return np.sqrt(np.bincount(task, (numbers - mean[task]) ** 2, block.tasks) / count)


def with_gold(truth: NDArray[np.float64], gold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the truths, those of gold tasks replaced; shape (tasks,)."""
    return np.where(np.isnan(gold), truth, gold)


@cache
def _compiled() -> Any:
    """Return the compiled loop over tasks of `weighted_medians`."""
    from crowdveil.jit import kernel

    @kernel()
    def fill(pointers: Any, worker: Any, numbers: Any, weight: Any, medians: Any) -> None:
        for task in range(len(medians)):
            first, stop = pointers[task], pointers[task + 1]
            if first == stop:
                continue
            order = np.argsort(numbers[first:stop])
            shares = weight[worker[first:stop]][order]
            if not shares.sum() > 0:
                shares[:] = 1.0
            total = shares.sum()
            low = high = -1
            so_far = 0.0
            for place in range(stop - first):
                so_far += shares[place]
                if low < 0 and so_far >= total / 2 - HALF * total:
                    low = place
                if so_far > total / 2 + HALF * total:
                    high = place
                    break
            medians[task] = (numbers[first + order[low]] + numbers[first + order[high]]) / 2

    return fill
