"""Compiled loops for workers with one weight each: votes, agreement, means."""

from typing import Any

import numpy as np

from crowdveil.em.kernels.numba_loops.layout import INDEX
from crowdveil.jit import kernel


@kernel()
def vote_totals(pointers: Any, worker: Any, symbol: Any, weight: Any, symbols: Any, totals: Any) -> None:
    """Add the weights of the workers who sent each symbol to `totals`, flat [task, symbol], in the reports' order."""
    for task in range(len(pointers) - 1):
        row = INDEX(task) * INDEX(symbols)
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            totals[row + INDEX(symbol[report])] += weight[INDEX(worker[report])]


@kernel()
def agreement_sums(pointers: Any, worker: Any, symbol: Any, posterior: Any, symbols: Any, agreement: Any) -> None:
    """Add the posterior, flat [task, symbol], of each report's symbol to its worker's agreement, shape (workers,)."""
    for task in range(len(pointers) - 1):
        row = INDEX(task) * INDEX(symbols)
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            agreement[INDEX(worker[report])] += posterior[row + INDEX(symbol[report])]


@kernel()
def mean_step(
    pointers: Any, worker: Any, value: Any, weight: Any, gold: Any, rounding: Any, truth: Any, squares: Any
) -> float:
    """Fill the tasks' weighted means and add up the workers' squared residuals; return the largest change.

    Args:
        pointers: to each task's reports, shape (tasks + 1,).
        worker, value: of each report.
        weight: of each worker, shape (workers,).
        gold: known truth of each task, nan where unknown.
        rounding: relative residuals up to this count as 0.
        truth: shape (tasks,), replaced; nan for tasks without weight.
        squares: sums of squared residuals, added to, shape (workers,).
    """
    max_change = 0.0
    for task in range(len(pointers) - 1):
        reports = range(INDEX(pointers[task]), INDEX(pointers[task + 1]))
        total, weighted = 0.0, 0.0
        for report in reports:
            own = weight[INDEX(worker[report])]
            total += own
            weighted += own * value[report]
        task_mean = weighted / total if total > 0 else np.nan
        task_mean = task_mean if np.isnan(gold[task]) else gold[task]
        change = abs(task_mean - truth[task])
        max_change = change if change > max_change else max_change
        truth[task] = task_mean
        for report in reports:
            difference = value[report] - task_mean
            if abs(difference) > rounding * abs(value[report]):
                squares[INDEX(worker[report])] += difference * difference
    return max_change
