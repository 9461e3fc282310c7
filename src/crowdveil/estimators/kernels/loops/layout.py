"""The encoded form of a block: tasks of equal length side by side, one unsigned number per report, in that order.

Loops over a task's reports end where the one before ended, so that the processor guesses right, and reports are read
from first to last, so that it fetches them ahead. Tasks change places only within a window: data that have locality
keep it.
"""

from typing import Any

import numpy as np
from numba import njit

INDEX = np.uintp
WINDOW = 4096
"""Tasks that change places among themselves."""
LENGTHS = 256
"""Tasks with this many reports or more stand last in their window, whatever their length: one wrong guess is nothing
beside so many reports."""


@njit(cache=True, nogil=True)
def order_by_length(pointers: Any, order: Any, lengths: Any) -> None:
    """Fill the local task at each place and its number of reports; shapes (tasks,)."""
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
            lengths[first + place[length]] = pointers[task + 1] - pointers[task]
            place[length] += 1


@njit(cache=True, nogil=True)
def table_codes(order: Any, pointers: Any, worker: Any, symbol: Any, symbols: Any, codes: Any) -> None:
    """Fill `codes`, shape (reports,), with worker * symbols + symbol, task by task in that order: rows of tables."""
    wide, at = INDEX(symbols), INDEX(0)
    for task in order:
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            codes[at] = INDEX(worker[report]) * wide + INDEX(symbol[report])
            at += INDEX(1)


@njit(cache=True, nogil=True)
def vote_codes(order: Any, pointers: Any, worker: Any, symbol: Any, bits: Any, codes: Any) -> None:
    """Fill `codes` with worker << bits | symbol, in that order: both are had again without a division."""
    shift, at = INDEX(bits), INDEX(0)
    for task in order:
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            codes[at] = (INDEX(worker[report]) << shift) | INDEX(symbol[report])
            at += INDEX(1)


@njit(cache=True, nogil=True)
def rows_in_order(order: Any, pointers: Any, rows: Any, ordered: Any) -> None:
    """Fill `ordered` with the reports' numbers, task by task in that order; shapes (reports,)."""
    at = INDEX(0)
    for task in order:
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            ordered[at] = rows[report]
            at += INDEX(1)


@njit(cache=True, nogil=True)
def count_codes(codes: Any, counts: Any) -> None:
    """Count the reports of each table row into `counts`, shape (workers * symbols,)."""
    for report in range(len(codes)):
        counts[INDEX(codes[report])] += 1
