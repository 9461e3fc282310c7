"""Reports in canonical order (by task, worker, value), and blocks of contiguous tasks: the input of the EM loop.

Layout: compressed sparse rows. The reports on task t are rows `pointers[t]` to `pointers[t + 1]`.

Sorting: rows are counted into their places by worker and then by task, which takes a quarter of the time of sorting
them as packed 64-bit numbers.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

DENSE_REPORTS_PER_TASK = 4
"""Mean reports per task from which a search for task changes is faster than counting task codes."""
COUNTERS_PER_ROW, FEW_COUNTERS = 8, 1 << 20
"""Numbers of tasks and workers for each row, beyond a number of any rows, up to which rows are sorted by counting."""


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


def sort_by_counting(
    task: NDArray[np.int32], worker: NDArray[np.int32], value: NDArray[Any], sizes: tuple[int, int, int]
) -> SortedColumns | None:
    """Return the columns sorted by counting; None if a pair of (task, worker) is repeated with numbers as values, or
    if there are so few rows that counters of all tasks and workers would take most of the memory.

    Args:
        task, worker: codes, shape (rows,).
        value: int16 codes or float64 numbers, shape (rows,).
        sizes: numbers of tasks, workers and labels; codes are below them.
    """
    if sizes[0] + sizes[1] > COUNTERS_PER_ROW * len(task) + FEW_COUNTERS:
        return None
    ordered = _counted_by_task(task, worker, value, sizes[:2])
    if not ordered.repeats or value.dtype.kind == "f":
        return None if ordered.repeats else ordered
    # Only pairs that are repeated are not in order of their values.
    column = worker.astype(np.int64) * sizes[2] + value
    cells = _counted_by_task(task, column, value, (sizes[0], sizes[1] * sizes[2]))
    return SortedColumns(cells.task, (cells.worker // sizes[2]).astype(np.int32), cells.value, True)


def _counted_by_task(
    task: NDArray[np.int32], column: NDArray[np.integer], value: NDArray[Any], sizes: tuple[int, int]
) -> SortedColumns:
    """Return rows by task and column, by two changes of a sparse matrix's format, each of which counts and is stable.

    `worker` of the result is the column.
    """
    from scipy.sparse import coo_array  # the import is slow

    matrix = coo_array((value, (column, task)), shape=(sizes[1], sizes[0]))
    matrix.has_canonical_format = True  # or values of equal cells would be added up
    ordered = matrix.tocsr().tocsc()
    tasks = np.repeat(np.arange(sizes[0], dtype=np.int32), np.diff(ordered.indptr))
    repeats = (ordered.indices[1:] == ordered.indices[:-1]) & (tasks[1:] == tasks[:-1])
    return SortedColumns(tasks, ordered.indices, ordered.data, bool(repeats.any()))
