"""Memory layout of an encoded block: tasks sorted by number of reports within batches, one unsigned code per report.

Equal lengths side by side make the ends of inner loops predictable for the processor. Sorting stays within a batch, so
that reports and posteriors are read and written sequentially. Rows of workers are read at random; they are prefetched,
since a cache miss costs about a hundred times a hit.
"""

from typing import Any

import numpy as np

from crowdveil.em.kernels.jit import compile_with_numba, prefetch_intrinsic, row_addition_intrinsics

INDEX = np.uintp
"""Unsigned index type: numba then emits no code for negative indices."""
BATCH = 128
"""Tasks computed together: their scores fit the first-level cache, and a position fits one byte."""
LENGTH_CLASSES = 256
"""Classes of the sort; tasks with LENGTH_CLASSES - 1 reports or more share the last one."""
PREFETCH_DISTANCE = 128
"""Reports between the one whose row is prefetched and the one that is added up."""
prefetch = prefetch_intrinsic()
add_row, add_product = row_addition_intrinsics()


@compile_with_numba()
def fill_batch_order(pointers: Any, order: Any, positions: Any, lengths: Any) -> None:
    """Fill the task at each position, the position of each task, and the reports at each position; shapes (tasks,).

    Tasks and positions are relative to the start of their batch.
    """
    tasks = len(order)
    position = np.empty(LENGTH_CLASSES, np.int64)
    for first in range(0, tasks, BATCH):
        stop = min(first + BATCH, tasks)
        position[:] = 0
        for task in range(first, stop):
            length = min(pointers[task + 1] - pointers[task], LENGTH_CLASSES - 1)
            if length + 1 < LENGTH_CLASSES:
                position[length + 1] += 1
        for length in range(1, LENGTH_CLASSES):
            position[length] += position[length - 1]
        for task in range(first, stop):
            length = min(pointers[task + 1] - pointers[task], LENGTH_CLASSES - 1)
            order[first + position[length]] = task - first
            positions[task] = position[length]
            lengths[first + position[length]] = pointers[task + 1] - pointers[task]
            position[length] += 1


@compile_with_numba()
def table_codes(order: Any, pointers: Any, worker: Any, symbol: Any, symbols: Any, codes: Any) -> None:
    """Fill `codes`, shape (reports,), with worker * symbols + symbol, in the order of positions."""
    width, offset = INDEX(symbols), INDEX(0)
    for position in range(len(order)):
        task = position - position % BATCH + order[position]
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            codes[offset] = INDEX(worker[report]) * width + INDEX(symbol[report])
            offset += INDEX(1)


@compile_with_numba()
def count_symbols(worker: Any, symbol: Any, symbols: Any, counts: Any) -> None:
    """Count the reports of each worker by symbol into `counts`, shape (workers * symbols,)."""
    for report in range(len(worker)):
        counts[INDEX(worker[report]) * INDEX(symbols) + INDEX(symbol[report])] += 1
