"""Claims: the original numeric answers held by a trusted curator, sorted by task, within bounds.

A claim is one worker's number for one task (Huai et al. call a task an object). Claims that were left out or moved to a
bound are counted.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.answers.ingest.column_checks import Duplicates
from crowdveil.answers.read_options import IdentifierList
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import MAX_MAGNITUDE, Scale
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.hints import command_advice

Outside = Literal["error", "clip"]
"""Policy for claims outside the bounds: refuse, or move to the nearer bound (counted)."""
Bounds = tuple[ArrayLike, ArrayLike]
"""Lowest and highest possible claim: two numbers for all tasks, or two arrays in the order of the tasks."""

EXAMPLES_SHOWN = 5
"""Number of offending claims that an error message quotes."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Claims:
    """Finite numbers, sorted by task and worker, read-only.

    Attributes:
        pointers: shape (tasks + 1,); the claims on task t are `value[pointers[t]:pointers[t + 1]]`.
        worker: codes into `workers`, int32, shape (claims,).
        value: the numbers, shape (claims,), in the units of the task.
        tasks, workers: identifiers in code order, including those without claims.
        low, high: bounds of every task, shape (tasks,), independent of the claims.
        public_tasks: True if the list of tasks was given. A list taken from the claims names only tasks with a claim
            and reveals participation.
        clipped: number of claims that were moved to a bound.
    """

    pointers: Integers
    worker: NDArray[np.int32]
    value: Floats
    tasks: NDArray[Any]
    workers: NDArray[Any]
    low: Floats
    high: Floats
    public_tasks: bool = False
    clipped: int = 0

    def __post_init__(self) -> None:
        for name in ("pointers", "worker", "value", "low", "high"):
            column = np.array(getattr(self, name))
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    def __len__(self) -> int:
        """Return the number of claims."""
        return len(self.value)

    @cached_property
    def per_task(self) -> Integers:
        """Number of claims on each task, shape (tasks,)."""
        return np.diff(self.pointers)

    @cached_property
    def per_worker(self) -> Integers:
        """Number of claims of each worker, shape (workers,)."""
        return np.bincount(self.worker, minlength=len(self.workers))

    @cached_property
    def task_of_each_claim(self) -> Integers:
        """Task code of each claim, shape (claims,)."""
        return np.repeat(np.arange(len(self.tasks)), self.per_task)

    def claims_of_task(self, task: int) -> Floats:
        """Return the claims on the task with this code, shape (its claims,)."""
        return self.value[self.pointers[task] : self.pointers[task + 1]]

    @classmethod
    def from_reports(
        cls,
        reports: Reports,
        *,
        bounds: Bounds | None = None,
        outside: Outside = "error",
        public_tasks: bool = False,
    ) -> Self:
        """Return the claims of unperturbed numeric answers that were read as `Reports`.

        Args:
            reports: numbers, with or without a scale; labels are refused.
            bounds: range of possible claims; by default that of the scale.
            outside: policy for claims outside given bounds.
            public_tasks: whether the list of tasks is independent of the answers.

        Raises:
            ReportsError: a claim is outside given bounds under "error".
            SettingsError: no bounds, or some that are not finite, not in order or not one pair per task; labels without
                numbers.
        """
        if reports.alphabet is not None and not isinstance(reports.alphabet, Scale):
            raise SettingsError(
                "claims must be numbers",
                value=reports.alphabet.names[:EXAMPLES_SHOWN],
                hint="Give the column of numbers as value.",
            )
        if outside not in ("error", "clip"):
            raise SettingsError("outside must be 'error' or 'clip'", value=outside)
        if bounds is None and reports.alphabet is not None:
            bounds = (reports.alphabet.low, reports.alphabet.high)
        if bounds is None:
            raise SettingsError(
                "bounds must be public: bounds taken from the claims reveal the smallest and the largest claim",
                value=None,
                hint="Give bounds that are known independently of the claims.",
            )
        task, worker, value, tasks = reports.task, reports.worker, reports.numbers, np.asarray(reports.tasks)
        low, high = _bounds_by_task(bounds, len(tasks))
        beyond = ~((value >= low[task]) & (value <= high[task]))
        if outside == "error" and beyond.any():
            shown = ", ".join(f"{number:g}" for number in value[beyond][:EXAMPLES_SHOWN])
            raise ReportsError(
                "claims must lie within the bounds",
                examples=f"{shown} ({int(beyond.sum())} in all)",
                hint="Set outside='clip', or widen the bounds.",
            )
        return cls(
            pointers=np.concatenate(([0], np.cumsum(np.bincount(task, minlength=len(tasks))))),
            worker=worker,
            value=np.clip(value, low[task], high[task]),
            tasks=tasks,
            workers=np.asarray(reports.workers),
            low=low,
            high=high,
            public_tasks=public_tasks,
            clipped=int(beyond.sum()),
        )

    @classmethod
    def from_arrays(
        cls,
        task: ArrayLike,
        worker: ArrayLike,
        value: ArrayLike,
        *,
        bounds: Bounds | None = None,
        outside: Outside = "error",
        duplicates: Duplicates = "error",
        tasks: IdentifierList | None = None,
        workers: IdentifierList | None = None,
    ) -> Self:
        """Return the claims of three columns of equal length.

        Args:
            task, worker, value, tasks, workers, duplicates: as for `Reports.from_arrays`.
            bounds, outside: as for `from_reports`.

        Raises:
            ReportsError, SettingsError: as `Reports.from_arrays` and `from_reports`.
        """
        if tasks is not None and workers is None and not np.size(task):
            workers = ()  # listed tasks may have no claim
        reports = Reports.from_arrays(
            task, worker, value, numeric=True, duplicates=duplicates, tasks=tasks, workers=workers
        )
        return cls.from_reports(reports, bounds=bounds, outside=outside, public_tasks=tasks is not None)


class ScaledClaims(NamedTuple):
    """Used claims of some tasks, scaled to the unit interval.

    Attributes:
        tasks: number of tasks.
        task: position of each claim's task among these tasks, ascending, shape (claims,).
        position: (claim - low) / (high - low), shape (claims,).
    """

    tasks: int
    task: Integers
    position: Floats

    @property
    def claims_per_task(self) -> Integers:
        """Number of claims of each task, shape (tasks,)."""
        return np.bincount(self.task, minlength=self.tasks)


def scaled_claims(claims: Claims, rows: Integers, used: NDArray[np.bool_]) -> ScaledClaims:
    """Return the used claims of some tasks, scaled to the unit interval.

    Args:
        claims: all claims, with bounds.
        rows: task codes, ascending, shape (tasks,).
        used: which claims are used, shape (claims,).
    """
    sizes = claims.per_task[rows]
    task = np.repeat(np.arange(len(rows)), sizes)
    before = np.concatenate(([0], np.cumsum(sizes)))[:-1]
    index = (claims.pointers[rows] - before)[task] + np.arange(len(task))
    task, index = task[used[index]], index[used[index]]
    low, high = claims.low[rows][task], claims.high[rows][task]
    return ScaledClaims(len(rows), task, (claims.value[index] - low) / (high - low))


def _bounds_by_task(bounds: Bounds, tasks: int) -> tuple[Floats, Floats]:
    """Return the lowest and the highest claim of every task, shape (tasks,); refuse impossible ones."""
    ends = [np.asarray(end, dtype=float) for end in bounds]
    if any(end.shape not in ((), (tasks,)) for end in ends):
        raise SettingsError(f"bounds must be two numbers or two arrays of {tasks}", value=[end.shape for end in ends])
    low, high = (np.broadcast_to(end, (tasks,)) for end in ends)
    wrong = ~((low < high) & (np.abs(low) <= MAX_MAGNITUDE) & (np.abs(high) <= MAX_MAGNITUDE))
    if wrong.any():
        first = int(wrong.argmax())
        found = float(low[first]), float(high[first])
        raise SettingsError(
            f"bounds must be low < high within {MAX_MAGNITUDE:g}",
            value=found,
            hint=command_advice("Such as {bounds}; they must be public.", "They must be public.", bounds="0:100"),
        )
    return low, high
