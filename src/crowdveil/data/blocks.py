"""Rows of reports in canonical order, and blocks of them: what inference walks over, wherever the rows are kept.

Canonical order is by task, then worker, then value, so that nothing depends on the order in which reports arrived.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

MANY = 4
"""Rows of a task from which on to look for where tasks change takes less than to count their codes as wide numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A contiguous range of tasks with all their reports.

    Attributes:
        first, stop: the range of task codes.
        pointers: shape (tasks + 1,); reports of local task t are `worker[pointers[t]:pointers[t + 1]]`.
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

    def part(self, tasks: slice) -> "Block":
        """Return some of the block's tasks, a contiguous range of local codes, as a block."""
        first, stop, _ = tasks.indices(self.tasks)
        held = slice(int(self.pointers[first]), int(self.pointers[stop]))
        pointers = self.pointers[first : stop + 1] - self.pointers[first]
        return Block(self.first + first, self.first + stop, pointers, self.worker[held], self.value[held])


class ReportRows(Protocol):
    """Where the columns of reports are kept, in canonical order; all arrays are read-only.

    `task` and `worker` are int32 codes and `value` int16 codes or float64 numbers, shape (reports,). The reports on
    task t are rows `pointers[t]` to `pointers[t + 1]`, shape (tasks + 1,).
    """

    @property
    def task(self) -> NDArray[np.int32]:
        """Task code of each row."""
        ...

    @property
    def worker(self) -> NDArray[np.int32]:
        """Worker code of each row."""
        ...

    @property
    def value(self) -> NDArray[Any]:
        """Label code or number of each row."""
        ...

    @property
    def pointers(self) -> NDArray[np.int64]:
        """Where each task's rows begin, and the number of rows."""
        ...

    def block(self, first: int, stop: int) -> Block:
        """Return the tasks first .. stop-1 with their reports; costs no more than these."""
        ...

    def __len__(self) -> int:
        """Number of rows."""
        ...


@dataclass(frozen=True, eq=False)
class InMemoryRows:
    """Rows in memory, of `tasks` tasks."""

    task: NDArray[np.int32]
    worker: NDArray[np.int32]
    value: NDArray[Any]
    tasks: int

    def __post_init__(self) -> None:
        for column in (self.task, self.worker, self.value):
            column.flags.writeable = False

    @cached_property
    def pointers(self) -> NDArray[np.int64]:
        """Where each task's rows begin, and the number of rows."""
        if len(self.task) >= MANY * self.tasks > 0:
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
