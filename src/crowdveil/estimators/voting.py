"""Sums over the reports of one block for models with one number per worker, whatever the number of labels.

Everything here costs O(reports) time and O(tasks * labels + workers) memory: no table per worker and pair of labels.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.reports import Block


def totals(code: NDArray[Any], weight: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Add up the weights of the reports that share a code 0 .. size - 1; shape (size,)."""
    return np.bincount(code, weights=weight, minlength=size).astype(float)


def vote_sums(block: Block, weight: NDArray[np.float64], labels: int) -> NDArray[np.float64]:
    """Add up the weights of the workers who reported each label.

    Args:
        block: categorical reports.
        weight: one weight per worker, shape (workers,).
        labels: number of labels.

    Returns:
        Indexed [task, label].
    """
    cell = block.task * labels + block.value
    return totals(cell, weight[block.worker], block.tasks * labels).reshape(-1, labels)


def agreement(block: Block, posterior: NDArray[np.float64], workers: int) -> NDArray[np.float64]:
    """Add up, for each worker, the posterior probabilities of what was reported: the expected number of right reports.

    Args:
        block: categorical reports.
        posterior: indexed [task, label], rows sum to 1.
        workers: number of workers.

    Returns:
        Shape (workers,), in reports.
    """
    return totals(block.worker, posterior[block.task, block.value], workers)


def right_share(sums: NDArray[np.float64], reports: NDArray[np.int64], labels: int) -> NDArray[np.float64]:
    """Return the share of right reports of each worker, in [0, 1]; chance (1 / labels) where there is no report.

    Args:
        sums: from `agreement`, shape (workers,).
        reports: reports of each worker, shape (workers,).
        labels: number of labels.
    """
    share = np.full(len(sums), 1.0 / labels)
    # Rounding may carry a sum of posteriors a hair above the number of reports.
    return np.minimum(np.divide(sums, reports, out=share, where=reports > 0), 1.0)


def log_odds_weight(share: NDArray[np.float64], labels: int) -> NDArray[np.float64]:
    """Return log(share (labels - 1) / (1 - share)): how much a report of such a worker speaks for its label.

    0 at chance, negative below it; log(share / (1 - share)) for two labels. Wrong reports are spread evenly over the
    other labels.
    """
    return np.log(share) + np.log(labels - 1.0) - np.log1p(-share)
