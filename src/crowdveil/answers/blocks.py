"""Reports in canonical order (by task, worker, value), and blocks of contiguous tasks: the input of the EM loop.

Layout: compressed sparse rows. The reports on task t are rows `pointers[t]` to `pointers[t + 1]`.

Sorting: if task, worker and value fit into 64 bits, they are packed into one integer per row and sorted in place, which
is several times faster than an index sort and needs no gather afterwards.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

DENSE_REPORTS_PER_TASK = 4
"""Mean reports per task from which a search for task changes is faster than counting task codes."""
KEY_BITS = 64
ROWS_AT_ONCE = 1 << 16
"""Rows packed or unpacked per pass; they stay in a core's cache."""


def read_only(column: Any) -> NDArray[Any]:
    """Return a column as a read-only array; an array is marked itself."""
    array = np.asarray(column)
    array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A contiguous range of tasks with all their reports.

    Attributes:
        first, stop: the range of task codes.
        pointers: row offsets of local tasks, shape (tasks + 1,), from 0.
        worker: worker codes, shape (reports,).
        value: label codes (categorical) or numbers (numeric), shape (reports,).
    """

    first: int
    stop: int
    pointers: NDArray[np.int64]
    worker: NDArray[np.int32]
    value: NDArray[Any]

    @property
    def tasks(self) -> int:
        """Number of tasks in the block."""
        return self.stop - self.first

    @property
    def task(self) -> NDArray[np.int64]:
        """Local task code of each report, shape (reports,)."""
        return np.repeat(np.arange(self.tasks), np.diff(self.pointers))

    def slice_tasks(self, tasks: slice) -> "Block":
        """Return a contiguous range of local tasks as a block, with pointers from 0."""
        first, stop, _ = tasks.indices(self.tasks)
        rows = slice(int(self.pointers[first]), int(self.pointers[stop]))
        pointers = self.pointers[first : stop + 1] - self.pointers[first]
        return Block(self.first + first, self.first + stop, pointers, self.worker[rows], self.value[rows])


@dataclass(frozen=True, eq=False)
class InMemoryRows:
    """Rows in memory, of `tasks` tasks, in canonical order; all arrays are read-only."""

    task: NDArray[np.int32]
    worker: NDArray[np.int32]
    value: NDArray[Any]
    tasks: int

    def __post_init__(self) -> None:
        for column in (self.task, self.worker, self.value):
            read_only(column)

    @cached_property
    def pointers(self) -> NDArray[np.int64]:
        """Row offset of each task, then the number of rows."""
        if len(self.task) >= DENSE_REPORTS_PER_TASK * self.tasks > 0:
            changes = np.flatnonzero(self.task[1:] != self.task[:-1]) + 1
            if len(changes) == self.tasks - 1:
                return np.concatenate(([0], changes, [len(self.task)]))
        return np.concatenate(([0], np.cumsum(np.bincount(self.task, minlength=self.tasks))))

    def block(self, first: int, stop: int) -> Block:
        """Return the tasks first .. stop-1 with their reports."""
        ends = self.pointers[first : stop + 1]
        rows = slice(int(ends[0]), int(ends[-1]))
        return Block(first, stop, ends - ends[0], self.worker[rows], self.value[rows])

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.task)


class SortedColumns(NamedTuple):
    """Columns in canonical order; `repeats`: whether a (task, worker) pair is repeated."""

    task: NDArray[np.int32]
    worker: NDArray[np.int32]
    value: NDArray[Any]
    repeats: bool


def sort_canonically(
    task: NDArray[np.integer], worker: NDArray[np.integer], value: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the columns in canonical order; sorted input without repeated pairs is returned as it is."""
    same = task[1:] == task[:-1]
    order: NDArray[np.int64] | slice = slice(None)
    if not ((task[1:] > task[:-1]) | (same & (worker[1:] > worker[:-1]))).all():
        order = np.lexsort((value, worker, task))
    return task[order], worker[order], value[order]


def sort_packed(
    task: NDArray[np.int32], worker: NDArray[np.int32], value: NDArray[Any], sizes: tuple[int, int, int]
) -> SortedColumns | None:
    """Return the columns sorted as packed integers; None if they need more than 64 bits.

    Float values are not packed: their row numbers are. None is then also returned if a pair is repeated, because equal
    pairs are left unsorted by value.

    Args:
        task, worker: codes, shape (rows,).
        value: int16 codes or float64 numbers, shape (rows,).
        sizes: numbers of tasks, workers and labels; codes are below them.
    """
    rows = len(task)
    carried = value.dtype.kind == "f"
    tail = max(rows - 1, 0).bit_length() if carried else (sizes[2] - 1).bit_length()
    widths = (max(sizes[0] - 1, 0).bit_length(), max(sizes[1] - 1, 0).bit_length(), tail)
    if sum(widths) > KEY_BITS:
        return None
    keys = _packed_task_worker_value_or_row(task, worker, None if carried else value, widths)
    # Merges of rows that are grouped by task take a fifth of the time of an unstable sort; of others they take more.
    keys.sort(kind="stable" if (task[1:] >= task[:-1]).all() else None)
    repeats = _has_repeated_pair(keys, tail)
    if repeats and carried:
        return None
    tasks, workers = np.empty(rows, dtype=np.int32), np.empty(rows, dtype=np.int32)
    values = np.empty(rows, dtype=value.dtype)
    for part in _row_slices(rows):
        key = keys[part]
        tasks[part] = key >> (widths[1] + tail)
        workers[part] = (key >> tail) & ((1 << widths[1]) - 1)
        last = key & ((1 << tail) - 1)
        values[part] = value[last] if carried else last
    return SortedColumns(tasks, workers, values, repeats)


def _packed_task_worker_value_or_row(
    task: NDArray[np.int32], worker: NDArray[np.int32], value: NDArray[np.int16] | None, widths: tuple[int, int, int]
) -> NDArray[np.uint64]:
    """Return task, worker, and value or row number, packed into one integer per row."""
    keys = np.empty(len(task), dtype=np.uint64)
    for part in _row_slices(len(task)):
        key = keys[part]
        key[:] = task[part]
        key <<= widths[1]
        key |= worker[part].view(np.uint32)
        key <<= widths[2]
        if value is None:
            key |= np.arange(part.start, part.start + len(key), dtype=np.uint64)
        else:
            key |= value[part].view(np.uint16)
    return keys


def _has_repeated_pair(keys: NDArray[np.uint64], tail: int) -> bool:
    return any(
        bool(((keys[part] ^ keys[part.start + 1 : part.stop + 1]) >> tail == 0).any())
        for part in _row_slices(len(keys) - 1)
    )


def _row_slices(rows: int) -> Iterator[slice]:
    return (slice(first, min(first + ROWS_AT_ONCE, rows)) for first in range(0, rows, ROWS_AT_ONCE))
