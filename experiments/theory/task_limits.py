"""Limits of task privacy (Sun et al., section VIII) and of abilities that differ by task (Wang and Xu, section 6).

The proofs are in `docs/explanation/limits-by-task.md`.
"""

import math
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray


def error_floor(epsilon: float) -> float:
    """Return the smallest error of a binary truth, if all that is seen of its task loses `epsilon` (derived here).

    P(seen | truth 0) <= e^epsilon P(seen | truth 1) bounds the total variation by tanh(epsilon / 2).
    """
    return 1 / (1 + math.exp(epsilon))


def garbling_of_randomized_response(channel: ArrayLike, epsilon: float) -> NDArray[np.float64]:
    """Return G with randomized response @ G = channel (derived here).

    G is a stochastic matrix if and only if the channel loses at most `epsilon`: with k = e^epsilon / (1 + e^epsilon)
    its first row is (k a - (1 - k) b) / (2 k - 1), which is not negative if and only if b <= e^epsilon a.

    Args:
        channel: P(output | input), shape (2, outputs), rows a and b.
        epsilon: above 0.
    """
    keep = 1 - error_floor(epsilon)
    return np.linalg.solve(np.array([[keep, 1 - keep], [1 - keep, keep]]), np.asarray(channel, dtype=float))


def smallest_error(channels: ArrayLike) -> float:
    """Return the error of the best guess of a uniform binary truth from one output of each channel, by enumeration.

    Args:
        channels: P(output | truth), shape (workers, 2, outputs).
    """
    tables = np.asarray(channels, dtype=float)
    both = [np.prod([table[:, y] for table, y in zip(tables, seen, strict=True)], axis=0)
            for seen in product(range(tables.shape[2]), repeat=len(tables))]  # fmt: skip
    return float(np.min(both, axis=1).sum() / 2)


def reports_of_task_loss(channel: ArrayLike, workers: int) -> float:
    """Return the exact loss if all answers to one task change, by enumeration of the reports of its workers.

    Args:
        channel: P(report | answer), shape (answers, reports).
        workers: workers who answered the task.
    """
    table = np.log(np.asarray(channel, dtype=float))
    answers = list(product(range(len(table)), repeat=workers))
    seen = product(range(table.shape[1]), repeat=workers)
    totals = np.array([[sum(table[x, y] for x, y in zip(a, s, strict=True)) for a in answers] for s in seen])
    return float((totals.max(axis=1) - totals.min(axis=1)).max())


def known_accuracy_error_bound(accuracies: ArrayLike) -> float:
    """Return a bound on the share of wrong truths if the accuracy of every report is known (derived here).

    Half the mean over tasks of exp(-sum_i (2 p_ij - 1)^2 / 2): the error of a task is at most half the product of
    2 sqrt(p_ij (1 - p_ij)), and 4 p (1 - p) = 1 - (2 p - 1)^2 <= exp(-(2 p - 1)^2).

    Args:
        accuracies: P(report right), shape (workers, tasks).
    """
    return float(np.exp(-((2 * np.asarray(accuracies, dtype=float) - 1) ** 2).sum(axis=0) / 2).mean() / 2)


def exchangeable_posterior(accuracies: ArrayLike) -> dict[tuple[int, ...], float]:
    """Return P(truth is 1 | reports) of every pattern of reports, if workers have the accuracies in random order.

    Args:
        accuracies: P(report right), shape (workers,); each task assigns them to the workers anew.
    """
    p = np.asarray(accuracies, dtype=float)
    right = [1.0]
    for accuracy in p:
        right = np.convolve(right, [1 - accuracy, accuracy]).tolist()
    posterior = {}
    for reports in product((0, 1), repeat=len(p)):
        ones = sum(reports)
        posterior[reports] = right[ones] / (right[ones] + right[len(p) - ones])
    return posterior
