"""Public assignment of tasks to workers: the (task, worker) cells in which a device reports.

Probability model: for each assigned cell (t, w) the device draws a report from the row of the channel for the worker's
answer, or for NULL if the worker skipped the task; it sends no report for other cells. The assignment is public, so
protected participation hides only which assigned tasks were skipped. Without an assignment every cell is assigned, and
most reports are perturbed NULLs.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.answers.ingest.column_checks import encode_array, encode_ids
from crowdveil.answers.ingest.column_readers import read_csv_by_role
from crowdveil.answers.ingest.csv_files import text_source
from crowdveil.display.counts import number_of
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.csv_rows import csv_row
from crowdveil.randomness import Source

ROWS_SHOWN = 3


@dataclass(frozen=True, eq=False, match_args=False)
class Assignment:
    """Assigned cells, sorted by task and worker; drawn before anyone answers, independently of private data.

    Attributes:
        tasks, workers: identifiers in code order, including those without an assigned cell.
        task, worker: codes of the assigned cells, shape (cells,), ascending by (task, worker), without repeats.

    Raises:
        ReportsError: a cell is repeated.

    >>> from crowdveil import seeded
    >>> Assignment.balanced(["a", "b"], ["u", "v", "w", "x"], 2, seeded(1)).per_worker.tolist()
    [1, 1, 1, 1]
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

    def __repr__(self) -> str:
        """Return the numbers of cells, workers and tasks."""
        return f"<Assignment: {len(self):,} cells of {len(self.workers):,} workers and {len(self.tasks):,} tasks>"

    def __len__(self) -> int:
        """Number of assigned cells."""
        return len(self.task)

    @cached_property
    def per_worker(self) -> NDArray[np.int64]:
        """Assigned cells of each worker, shape (workers,); a worker's privacy loss is composed over them."""
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
        """Return the assignment of two columns of identifiers, shape (cells,).

        Args:
            task, worker: the assigned cells.
            tasks, workers: all identifiers in code order; by default those that occur.
            source: origin of the cells, for error messages.

        Raises:
            ReportsError: an empty or unlisted identifier, or a repeated cell.
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
        """Return the assignment in a CSV file with columns `task` and `worker`, a row per cell; as `from_arrays`."""
        source = text_source(Path(path))
        _, columns = read_csv_by_role(Path(path), {"task": ("task",), "worker": ("worker",)})
        task, worker = (columns[name].cells for name in ("task", "worker"))
        return cls.from_arrays(task, worker, tasks=tasks, workers=workers, source=source)

    @classmethod
    def balanced(cls, tasks: Collection[Any], workers: Collection[Any], per_task: int, source: Source) -> Self:
        """Return a random assignment with `per_task` workers per task and worker loads that differ by at most one.

        Randomly permuted workers are assigned in turn, cyclically, to randomly permuted tasks.

        Raises:
            SettingsError: `per_task` is not in 1..workers.
        """
        if not 1 <= per_task <= len(workers):
            raise SettingsError(
                f"per_task must be in 1..{len(workers)}, the number of workers",
                value=per_task,
                hint="Assign each task to fewer workers, or list more of them.",
            )
        worker_order = np.argsort(source.words(len(workers)), kind="stable")
        task_order = np.argsort(source.words(len(tasks)), kind="stable")
        cell = np.arange(len(tasks) * per_task)
        task, worker = task_order[cell // per_task], worker_order[cell % len(workers)]
        return cls(np.asarray(tasks), np.asarray(workers), task, worker)

    def recoded_cells(self, tasks: Collection[Any], workers: Collection[Any]) -> NDArray[np.int64]:
        """Return the assigned cells as task * len(workers) + worker in the codes of other lists, ascending.

        Raises:
            ReportsError: an identifier with an assigned cell is not in these lists.
        """
        codes = []
        for what, own, cells, names in (
            ("task", self.tasks, self.task, tasks),
            ("worker", self.workers, self.worker, workers),
        ):
            code_of = {str(name): code for code, name in enumerate(names)}
            aligned = np.array([code_of.get(str(name), -1) for name in own], dtype=np.int64)[cells]
            if (aligned < 0).any():
                missing = [str(name) for name in own[np.unique(cells[aligned < 0])][:ROWS_SHOWN]]
                raise ReportsError(
                    f"every assigned {what} must be listed",
                    source="assignment",
                    examples=", ".join(missing),
                    hint="Complete the list, or draw the assignment again.",
                )
            codes.append(aligned)
        return np.sort(codes[0] * len(workers) + codes[1])

    def to_csv(self) -> str:
        """Return the text of a CSV file for `from_csv`."""
        cells = zip(self.tasks[self.task], self.workers[self.worker], strict=True)
        return "".join(csv_row(cell) + "\n" for cell in chain([("task", "worker")], cells))


def assignment_with_gold(
    tasks: Sequence[Any],
    workers: Sequence[Any],
    per_task: int,
    source: Source,
    *,
    gold: Collection[Any],
    per_worker: int,
) -> Assignment:
    """Return a random assignment in which each worker also has `per_worker` of the gold tasks.

    The other tasks have `per_task` workers, as in `Assignment.balanced`. Loads of workers differ by at most one, and so
    do those of gold tasks.

    Args:
        tasks, workers: all identifiers, gold tasks among them.
        per_task: workers of each task that is not gold.
        source: randomness.
        gold: identifiers of the tasks with known truth, without repeats.
        per_worker: gold tasks of each worker.

    Without gold this is `Assignment.balanced`.

    Raises:
        SettingsError: a gold task is not listed, one is repeated, all tasks are gold, or a number is out of range.
    """
    if not gold and per_worker == 0:
        return Assignment.balanced(tasks, workers, per_task, source)
    place = {task: code for code, task in enumerate(tasks)}
    unlisted = [task for task in gold if task not in place]
    if unlisted:
        hint = "Add them to the list of tasks."
        raise SettingsError("gold tasks must be in the list of tasks", value=unlisted[:ROWS_SHOWN], hint=hint)
    if not 1 <= per_worker <= len(gold):
        rule = f"gold tasks per worker must be in 1..{len(gold)}, the number of gold tasks"
        raise SettingsError(rule, value=per_worker)
    known = set(gold)
    if len(known) < len(gold):
        raise SettingsError("each gold task must be named once", value=f"{len(gold)} names, {len(known)} tasks")
    others = [task for task in tasks if task not in known]
    if not others:
        raise SettingsError("some tasks must not be gold", value=f"{len(known)} tasks, all gold")
    main = Assignment.balanced(others, workers, per_task, source)
    # Workers take the part of the tasks here: each has `per_worker` different gold tasks.
    probes = Assignment.balanced(workers, list(gold), per_worker, source)
    main_code, gold_code = (np.array([place[task] for task in names]) for names in (others, gold))
    task = np.concatenate([main_code[main.task], gold_code[probes.worker]])
    return Assignment(np.asarray(tasks), np.asarray(workers), task, np.concatenate([main.worker, probes.task]))


def affordable_workers_per_task(
    budget: float, epsilon: float, *, tasks: int, workers: int, reserved: int = 0, cells: int | None = None
) -> int:
    """Return how many workers each task can have, if no worker spends more than a budget.

    Args:
        budget: privacy loss of a worker, in nats.
        epsilon: privacy loss of a cell, in nats.
        tasks, workers: their numbers.
        reserved: cells of each worker that the budget pays for besides, such as gold tasks.
        cells: cells that the budget pays for, if it holds at a delta; by default their epsilons are added.

    Raises:
        SettingsError: a loss that is not positive and finite, or a budget that does not pay for a worker for each task.
    """
    for name, loss in (("budget", budget), ("epsilon", epsilon)):
        if not 0 < loss < float("inf"):
            raise SettingsError(f"the {name} must be positive", value=loss, hint="Such as a budget of 6 and epsilon 2.")
    paid = int(Fraction(repr(float(budget))) / Fraction(repr(float(epsilon)))) if cells is None else cells
    cells = max(paid - reserved, 0)
    found = min(workers, workers * min(cells, tasks) // max(tasks, 1))
    if found < 1:
        gold = f", besides {number_of(reserved, 'gold task')}," if reserved else ""
        each = f"{number_of(workers, 'worker')} with {number_of(cells, 'task')} each{gold}"
        raise SettingsError(
            f"every task needs a worker: {each} cannot answer {number_of(tasks, 'task')}",
            value=budget,
            hint="Raise the budget, lower epsilon, or invite more workers.",
            value_in_rule=True,
        )
    return found
