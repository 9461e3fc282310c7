"""Assignment of tasks to workers: public, so that NULL need only hide which of the assigned tasks were skipped.

Without an assignment every worker reports on every task, and nearly all of those reports are noise. With one, devices
report on assigned cells only: the cost of protected participation then follows the cells that were asked.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.data.ingest.csv_files import csv_row, read_csv, read_header
from crowdveil.data.ingest.readers import match_columns
from crowdveil.data.ingest.validation import encode_array, encode_ids
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.randomness import Source

ROWS_SHOWN = 3


@dataclass(frozen=True, eq=False)
class Assignment:
    """The cells that a campaign asks for, by name, sorted by task and worker.

    It is drawn before anyone answers, from nothing that is private; who was assigned what is not hidden.

    Attributes:
        tasks, workers: names in code order; they include those without an assigned cell.
        task, worker: codes of the assigned cells, shape (cells,), ascending by (task, worker), no pair twice.
    """

    tasks: NDArray[Any]
    workers: NDArray[Any]
    task: NDArray[np.int64]
    worker: NDArray[np.int64]

    def __post_init__(self) -> None:
        cells = np.asarray(self.task, dtype=np.int64) * len(self.workers) + np.asarray(self.worker, dtype=np.int64)
        ordered = np.unique(cells)
        if len(ordered) < len(cells):
            raise ReportsError(
                f"a worker is assigned a task once, {len(cells) - len(ordered)} cells repeat",
                hint="Keep one row for each cell.",
            )
        task, worker = np.divmod(ordered, max(len(self.workers), 1))
        for name, column in (("task", task), ("worker", worker), ("tasks", self.tasks), ("workers", self.workers)):
            column = np.asarray(column)
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    def __len__(self) -> int:
        """Number of assigned cells."""
        return len(self.task)

    @cached_property
    def per_worker(self) -> NDArray[np.int64]:
        """Assigned cells of each worker, shape (workers,): what a worker's privacy loss adds up over."""
        return np.bincount(self.worker, minlength=len(self.workers))

    @classmethod
    def from_arrays(
        cls,
        task: ArrayLike,
        worker: ArrayLike,
        *,
        tasks: Sequence[Any] | NDArray[Any] | None = None,
        workers: Sequence[Any] | NDArray[Any] | None = None,
        source: str = "assignment",
    ) -> Self:
        """Take assigned cells as two columns of names, shape (cells,); `tasks`, `workers` list everyone, in order.

        Raises:
            ReportsError: an empty or unlisted name, or a cell twice.
        """
        task_names, task_codes = encode_ids(encode_array(task, source), tasks, "task", source)
        worker_names, worker_codes = encode_ids(encode_array(worker, source), workers, "worker", source)
        return cls(task_names, worker_names, task_codes.astype(np.int64), worker_codes.astype(np.int64))

    @classmethod
    def from_csv(
        cls,
        path: str | PathLike[str],
        *,
        tasks: Sequence[Any] | NDArray[Any] | None = None,
        workers: Sequence[Any] | NDArray[Any] | None = None,
    ) -> Self:
        """Read a file with the columns `task` and `worker`, one row per assigned cell; errors as `from_arrays`."""
        source = str(path)
        wanted = match_columns(read_header(Path(path)), {"task": ("task",), "worker": ("worker",)}, source)
        columns = read_csv(Path(path), list(wanted.values()))
        task, worker = (np.array(columns[wanted[name]].to_pylist()) for name in ("task", "worker"))
        return cls.from_arrays(task, worker, tasks=tasks, workers=workers, source=source)

    @classmethod
    def balanced(cls, tasks: Collection[Any], workers: Collection[Any], per_task: int, source: Source) -> Self:
        """Draw `per_task` workers for every task, so that the loads of any two workers differ by at most one.

        Workers stand in a circle in random order and are dealt to the tasks, themselves in random order.

        Raises:
            SettingsError: `per_task` is not in 1..workers.
        """
        crowd = len(workers)
        if not 1 <= per_task <= crowd:
            raise SettingsError(f"per_task must be in 1..{crowd}, the number of workers", value=per_task)
        circle = np.argsort(source.words(crowd), kind="stable")
        order = np.argsort(source.words(len(tasks)), kind="stable")
        cells = np.arange(len(tasks) * per_task)
        return cls(np.asarray(tasks), np.asarray(workers), order[cells // per_task], circle[cells % crowd])

    def aligned(self, tasks: Collection[Any], workers: Collection[Any]) -> NDArray[np.int64]:
        """Return the assigned cells as task * len(workers) + worker in other lists' codes, ascending.

        Raises:
            ReportsError: a name with an assigned cell is not in the lists.
        """
        codes = []
        for what, own, cells, names in (
            ("task", self.tasks, self.task, tasks),
            ("worker", self.workers, self.worker, workers),
        ):
            place = {str(name): code for code, name in enumerate(names)}
            of = np.array([place.get(str(name), -1) for name in own], dtype=np.int64)[cells]
            if (of < 0).any():
                missing = [str(name) for name in own[np.unique(cells[of < 0])][:ROWS_SHOWN]]
                raise ReportsError(
                    f"every assigned {what} must be listed", source="assignment", examples=", ".join(missing)
                )
            codes.append(of)
        return np.sort(codes[0] * len(workers) + codes[1])

    def to_csv(self) -> str:
        """Return the assignment as the text of a CSV file that `from_csv` reads."""
        cells = zip(self.tasks[self.task], self.workers[self.worker], strict=True)
        return "".join(csv_row(cell) + "\n" for cell in chain([("task", "worker")], cells))
