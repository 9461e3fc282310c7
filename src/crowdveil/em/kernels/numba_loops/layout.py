"""The encoded form of a block: tasks of equal length side by side, one unsigned number per report, in that order.

Loops over a task's reports end where the one before ended, so that the processor guesses right, and reports are read
from first to last, so that it fetches them ahead. Tasks change places only within a batch of those that are worked on
together: posteriors are written from first to last as well, and data that have locality keep it.

Rows of workers are read at random, and what misses a core's own caches takes a hundred times as long as what does
not: lines that will be read soon are asked for, so that they are under way while other lines are worked on.
"""

from typing import Any

import numpy as np

from crowdveil.jit.intrinsics import ask_for as ask_for
from crowdveil.jit.kernel import kernel

INDEX = np.uintp
BATCH = 128
"""Tasks that are done together: their scores stay in the first cache, and their places in one byte each."""
LENGTHS = 256
"""Tasks with this many reports or more stand last in their batch, whatever their length: one wrong guess is nothing
beside so many reports."""


@kernel()
def order_by_length(pointers: Any, order: Any, places: Any, lengths: Any) -> None:
    """Fill the task at each place, the place of each task, and the number of reports at each place; shapes (tasks,).

    Tasks and places are counted from the begin of their batch.
    """
    tasks = len(order)
    place = np.empty(LENGTHS, np.int64)
    for first in range(0, tasks, BATCH):
        stop = min(first + BATCH, tasks)
        place[:] = 0
        for task in range(first, stop):
            length = min(pointers[task + 1] - pointers[task], LENGTHS - 1)
            if length + 1 < LENGTHS:
                place[length + 1] += 1
        for length in range(1, LENGTHS):
            place[length] += place[length - 1]
        for task in range(first, stop):
            length = min(pointers[task + 1] - pointers[task], LENGTHS - 1)
            order[first + place[length]] = task - first
            places[task] = place[length]
            lengths[first + place[length]] = pointers[task + 1] - pointers[task]
            place[length] += 1


@kernel()
def table_codes(order: Any, pointers: Any, worker: Any, symbol: Any, symbols: Any, codes: Any) -> None:
    """Fill `codes`, shape (reports,), with worker * symbols + symbol, task by task in that order: rows of tables."""
    wide, at = INDEX(symbols), INDEX(0)
    for place in range(len(order)):
        task = place - place % BATCH + order[place]
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            codes[at] = INDEX(worker[report]) * wide + INDEX(symbol[report])
            at += INDEX(1)


@kernel()
def vote_codes(order: Any, pointers: Any, worker: Any, symbol: Any, bits: Any, codes: Any) -> None:
    """Fill `codes` with worker << bits | symbol, in that order: both are had again without a division."""
    shift, at = INDEX(bits), INDEX(0)
    for place in range(len(order)):
        task = place - place % BATCH + order[place]
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            codes[at] = (INDEX(worker[report]) << shift) | INDEX(symbol[report])
            at += INDEX(1)


@kernel()
def rows_in_order(order: Any, pointers: Any, rows: Any, ordered: Any) -> None:
    """Fill `ordered` with the reports' numbers, task by task in that order; shapes (reports,)."""
    at = INDEX(0)
    for place in range(len(order)):
        task = place - place % BATCH + order[place]
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            ordered[at] = rows[report]
            at += INDEX(1)


@kernel()
def count_codes(codes: Any, counts: Any) -> None:
    """Count the reports of each table row into `counts`, shape (workers * symbols,)."""
    for report in range(len(codes)):
        counts[INDEX(codes[report])] += 1


AHEAD = 128
"""Reports from the one whose row is asked for to the one that is added up."""
