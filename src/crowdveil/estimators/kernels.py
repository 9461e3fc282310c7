"""The heavy loops of inference over one block; the only file that may be compiled.

A categorical block is a sparse matrix with one row per task, one column per (worker, symbol) pair and a one per report.
Scores of all tasks and label sums of all workers are then two products with it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from crowdveil.reports import Block


def incidence(block: Block, workers: int, symbols: int) -> Any:
    """Return the block as a sparse matrix, indexed [task, worker * symbols + symbol]."""
    columns = block.worker.astype(np.int64) * symbols + block.value
    shape = (block.tasks, workers * symbols)
    return csr_array((np.ones(len(columns)), columns, block.pointers), shape=shape)


def task_scores(matrix: Any, table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum a per-report table over each task's reports.

    Args:
        matrix: from `incidence`.
        table: indexed [worker * symbols + symbol, truth].

    Returns:
        Indexed [task, truth].
    """
    return matrix @ table


def worker_sums(matrix: Any, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum the posteriors of the tasks on which each worker reported each symbol.

    Args:
        matrix: from `incidence`.
        posterior: indexed [task, truth].

    Returns:
        Indexed [worker * symbols + symbol, truth].
    """
    return matrix.T @ posterior


def softmax(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the normalised exponentials of each row and the logarithm of each row's normaliser."""
    top = scores.max(axis=1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(axis=1, keepdims=True)
    return weights / total, (top + np.log(total))[:, 0]
