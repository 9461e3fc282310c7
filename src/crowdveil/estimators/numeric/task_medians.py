"""Medians and deviations of each task's numbers, weighted by worker; ties at one half of the weight are averaged."""

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.reports import Block

HALF = 1e-9
"""Share of the weight within which a sum counts as one half."""


def weighted_medians(block: Block, numbers: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted median of each task, shape (tasks,); the plain median where all weights are 0, else nan.

    Args:
        block: the reports.
        numbers: value of each report, shape (reports,).
        weight: not negative, shape (workers,).
    """
    lengths, medians = np.diff(block.pointers), np.full(block.tasks, np.nan)
    for length in np.unique(lengths[lengths > 0]).tolist():
        tasks = np.flatnonzero(lengths == length)
        reports = block.pointers[tasks, None] + np.arange(length)
        reports = np.take_along_axis(reports, numbers[reports].argsort(axis=1), axis=1)
        shares = weight[block.worker[reports]]
        shares[shares.sum(axis=1) <= 0] = 1.0
        sums = shares.cumsum(axis=1)
        total = sums[:, -1:]
        lower = (sums >= total / 2 - HALF * total).argmax(axis=1)
        upper = (sums > total / 2 + HALF * total).argmax(axis=1)
        medians[tasks] = numbers[reports[np.arange(len(tasks)), [lower, upper]]].mean(axis=0)
    return medians


def standard_deviation_per_task(block: Block, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviation of each task's numbers, shape (tasks,); 0 for one number or none."""
    count = np.maximum(np.diff(block.pointers), 1)
    task = block.task
    mean = np.bincount(task, numbers, block.tasks) / count
    return np.sqrt(np.bincount(task, (numbers - mean[task]) ** 2, block.tasks) / count)


def with_gold_truths_replaced(truth: NDArray[np.float64], gold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the truths, those of gold tasks replaced; shape (tasks,)."""
    return np.where(np.isnan(gold), truth, gold)
