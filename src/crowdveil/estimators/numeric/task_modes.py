"""Search for a better mode of a task's likelihood where errors are Student's, so that it may have several."""

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.reports import Block

CANDIDATES = 25
"""Answers of a task that are tried: all of them, or as many of their order statistics."""
LEAST_GAIN = 4.0
"""Gain of log-likelihood from which a truth moves to a candidate."""
SEARCH_STEPS = (3, 6, 10, 20, 40)
"""Steps after which modes are searched."""
FEWEST_ANSWERS = 3
"""Answers from which one mode can be better than another."""
CHUNK = 1 << 18
"""Costs of answers that are computed at once."""


def truths_at_better_modes(
    block: Block, numbers: NDArray[np.float64], precision: NDArray[np.float64], nu: float, truth: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the truths, moved to an answer of the task where that gains `LEAST_GAIN`.

    The cost of a truth m is sum_i (nu + 1) / 2 log(1 + w_i (y_i - m)^2 / nu).

    Args:
        block: the reports.
        numbers, precision: y_i and w_i of each report, shape (reports,).
        nu: degrees of freedom.
        truth: shape (tasks,).
    """
    found, lengths = truth.copy(), np.diff(block.pointers)
    for length in np.unique(lengths[lengths >= FEWEST_ANSWERS]).tolist():
        tried = np.unique(np.linspace(0, length - 1, min(length, CANDIDATES)).round().astype(int))
        tasks = np.flatnonzero(lengths == length)
        for part in np.array_split(tasks, max(len(tasks) * length * len(tried) // CHUNK, 1)):
            rows = block.pointers[part, None] + np.arange(length)
            value, weight = numbers[rows], precision[rows]
            places = np.column_stack((truth[part], np.sort(value, axis=1)[:, tried]))
            away = weight[:, None] * (value[:, None] - places[:, :, None]) ** 2
            cost = (nu + 1) / 2 * np.log1p(away / nu).sum(axis=2)
            best, own = cost.argmin(axis=1), np.arange(len(part))
            moves = cost[:, 0] - cost[own, best] > LEAST_GAIN
            found[part[moves]] = places[own, best][moves]
    return found
