"""Reports in canonical order (by task, worker, value), and blocks of contiguous tasks: the input of the EM loop.

Layout: compressed sparse rows. The reports on task t are rows `pointers[t]` to `pointers[t + 1]`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

DENSE_REPORTS_PER_TASK = 4
"""Mean reports per task from which a search for task changes is faster than counting task codes."""


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
            column.flags.writeable = False

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
