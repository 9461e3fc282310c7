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
    # Half the index width, where it is enough, saves memory and up to a quarter of the time of the two products.
    narrow = max(workers * symbols, len(block.worker)) < 2**31
    width = np.int32 if narrow else np.int64
    columns = block.worker.astype(width) * symbols + block.value
    parts = (np.ones(len(columns)), columns, block.pointers.astype(width))
    return csr_array(parts, shape=(block.tasks, workers * symbols))


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
