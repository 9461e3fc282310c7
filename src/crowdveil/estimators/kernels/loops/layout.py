"""The encoded form of a block: tasks of equal length side by side, one unsigned number per report.

Loops over a task's reports end where the one before ended, so that the processor guesses right; it does so only within
a window of tasks, whose posteriors stay in a core's own cache, and data that have locality keep it.
"""

from typing import Any

import numpy as np
from numba import njit

WINDOW = 4096
"""Tasks that change places among themselves."""
LENGTHS = 256
"""Tasks with this many reports or more stand last in their window, whatever their length: one wrong guess is nothing
beside so many reports."""


@njit(cache=True, nogil=True)
def order_by_length(pointers: Any, order: Any, starts: Any, lengths: Any) -> None:
    """Fill the local task at each place, its first report and its number of reports; shapes (tasks,)."""
    tasks = len(order)
    place = np.empty(LENGTHS, np.int64)
    for first in range(0, tasks, WINDOW):
        stop = min(first + WINDOW, tasks)
        place[:] = 0
        for task in range(first, stop):
            length = min(pointers[task + 1] - pointers[task], LENGTHS - 1)
            if length + 1 < LENGTHS:
                place[length + 1] += 1
        for length in range(1, LENGTHS):
            place[length] += place[length - 1]
        for task in range(first, stop):
            length = min(pointers[task + 1] - pointers[task], LENGTHS - 1)
            order[first + place[length]] = task
            starts[first + place[length]] = pointers[task]
            lengths[first + place[length]] = pointers[task + 1] - pointers[task]
            place[length] += 1


@njit(cache=True, nogil=True)
def table_codes(worker: Any, symbol: Any, symbols: Any, codes: Any) -> None:
    """Fill `codes`, shape (reports,), with worker * symbols + symbol: rows of tables without gaps."""
    wide = np.uint64(symbols)
    for report in range(len(codes)):
        codes[report] = np.uint64(worker[report]) * wide + np.uint64(symbol[report])


@njit(cache=True, nogil=True)
def vote_codes(worker: Any, symbol: Any, bits: Any, codes: Any) -> None:
    """Fill `codes`, shape (reports,), with worker << bits | symbol: both are had again without a division."""
    shift = np.uint64(bits)
    for report in range(len(codes)):
        codes[report] = (np.uint64(worker[report]) << shift) | np.uint64(symbol[report])


@njit(cache=True, nogil=True)
def count_codes(codes: Any, counts: Any) -> None:
    """Count the reports of each table row into `counts`, shape (workers * symbols,)."""
    for report in range(len(codes)):
        counts[np.uintp(codes[report])] += 1
