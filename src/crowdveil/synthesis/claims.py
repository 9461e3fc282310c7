"""Claims: the original numeric answers held by a trusted curator, sorted by task, within bounds.

A claim is one worker's number for one task (Huai et al. call a task an object). Claims that were left out or moved to a
bound are counted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.channels.alphabet import Scale
from crowdveil.data.ingest.validation import (
    CodedColumn,
    Duplicates,
    encode_array,
    encode_ids,
    parse_numbers,
    resolve_duplicates,
)
from crowdveil.data.read_options import IdentifierList
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError

Outside = Literal["error", "clip", "drop"]
"""Policy for claims outside the bounds: refuse, move to the nearer bound, or leave out (both counted)."""
Missing = Literal["error", "drop"]
Bounds = tuple[ArrayLike, ArrayLike]
"""Lowest and highest possible claim: two numbers for all tasks, or two arrays in the order of the tasks."""

LARGEST = 1e100
"""Largest absolute value of a claim, so that its square is finite; given bounds clip or drop larger ones."""
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
        low, high: bounds of every task, shape (tasks,); NaN for a task without claims where they are derived.
        public_bounds: True if the bounds were given. Derived bounds are the smallest and largest claim of a task; any
            output that depends on them reveals these claims.
        public_tasks: True if the list of tasks was given. A list taken from the claims names only tasks with a claim
            and reveals participation.
        clipped: number of claims that were moved to a bound.
        dropped: number of claims outside the bounds that were left out.
        missing: number of rows without a number that were left out.
    """

    pointers: Integers
    worker: NDArray[np.int32]
    value: Floats
    tasks: NDArray[Any]
    workers: NDArray[Any]
    low: Floats
    high: Floats
    public_bounds: bool
    public_tasks: bool = False
    clipped: int = 0
    dropped: int = 0
    missing: int = 0

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
    def task(self) -> Integers:
        """Task code of each claim, shape (claims,)."""
        return np.repeat(np.arange(len(self.tasks)), self.per_task)

    @cached_property
    def largest_repeat(self) -> int:
        """Largest number of claims of one worker on one task; 1 unless duplicates were kept, 0 without claims."""
        if not len(self):
            return 0
        changes = np.flatnonzero((np.diff(self.task) != 0) | (np.diff(self.worker) != 0)) + 1
        return int(np.diff(np.concatenate(([0], changes, [len(self)]))).max())

    def of_task(self, task: int) -> Floats:
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
            bounds: range of possible claims; by default that of the scale, else derived from each task's claims.
            outside: policy for claims outside given bounds.
            public_tasks: whether the list of tasks is independent of the answers.

        Raises:
            ReportsError: a claim is outside given bounds under "error", not a number, or beyond `LARGEST`.
            SettingsError: bounds that are not finite, not in order or not one pair per task; labels without numbers.
        """
        if reports.alphabet is not None and not isinstance(reports.alphabet, Scale):
            raise SettingsError("claims must be numbers", value=reports.alphabet.names[:EXAMPLES_SHOWN])
        if bounds is None and isinstance(reports.alphabet, Scale):
            bounds = (reports.alphabet.low, reports.alphabet.high)
        return cls._within(reports, bounds, outside, missing=0, public_tasks=public_tasks)

    @classmethod
    def from_arrays(
        cls,
        task: ArrayLike,
        worker: ArrayLike,
        value: ArrayLike,
        *,
        bounds: Bounds | None = None,
        outside: Outside = "error",
        missing: Missing = "error",
        duplicates: Duplicates = "error",
        tasks: IdentifierList | None = None,
        workers: IdentifierList | None = None,
    ) -> Self:
        """Return the claims of three columns of equal length.

        Args:
            task, worker: identifiers, integers or text, shape (rows,).
            value: numbers or their text, shape (rows,); NaN, None, "" and other text are missing numbers.
            bounds: range of possible claims; by default derived from each task's claims.
            outside: policy for claims outside given bounds; an infinity lies outside all bounds.
            missing: policy for rows without a number: refuse, or leave out and count.
            duplicates: policy for repeated (task, worker) pairs.
            tasks, workers: all identifiers, public; by default those that occur, in rows with or without a number.

        Raises:
            ReportsError: as `from_reports` and `Reports.from_arrays`; a number is missing under "error".
            SettingsError: as `from_reports`.
        """
        numbers = _numbers(value)
        given = ~np.isnan(numbers)
        if missing == "error":
            _refuse(~given, numbers, "every claim must be a number", "Set missing='drop' to leave such rows out.")
        pair = []
        for column, listed, role in ((task, tasks, "task"), (worker, workers, "worker")):
            coded = encode_array(column, "data")
            if len(coded) != len(numbers):
                raise ReportsError("task, worker and value must have equal lengths")
            pair.append(CodedColumn(*encode_ids(coded, listed, role, "data")))
        rows = np.flatnonzero(given)
        rows = rows[resolve_duplicates(pair[0].keep(rows), pair[1].keep(rows), duplicates, "data")]
        sorted_rows = Reports(pair[0].codes[rows], pair[1].codes[rows], numbers[rows], pair[0].names, pair[1].names)
        return cls._within(sorted_rows, bounds, outside, missing=int((~given).sum()), public_tasks=tasks is not None)

    @classmethod
    def _within(
        cls, reports: Reports, bounds: Bounds | None, outside: Outside, *, missing: int, public_tasks: bool
    ) -> Self:
        """Return the claims after the policies for bounds; rows are sorted and may be infinite."""
        if outside not in ("error", "clip", "drop"):
            raise SettingsError("outside must be 'error', 'clip' or 'drop'", value=outside)
        task, worker, value, tasks = reports.task, reports.worker, reports.numbers, np.asarray(reports.tasks)
        low, high = _checked_bounds(bounds, len(tasks))
        beyond = ~((value >= low[task]) & (value <= high[task]))
        if bounds is None:
            _refuse(
                beyond,
                value,
                f"claims must be numbers within {LARGEST:g}",
                "Give bounds, and clip or drop beyond them.",
            )
        elif outside == "error":
            _refuse(
                beyond, value, "claims must lie within the bounds", "Set outside='clip' or 'drop', or widen the bounds."
            )
        kept = ~beyond if outside == "drop" else np.ones(len(value), dtype=bool)
        task, worker, value = task[kept], worker[kept], np.clip(value, low[task], high[task])[kept]
        pointers = np.concatenate(([0], np.cumsum(np.bincount(task, minlength=len(tasks)))))
        if bounds is None:
            low, high = (_extreme(value, pointers, extreme) for extreme in (np.minimum, np.maximum))
        counts = {policy: int(beyond.sum()) * (outside == policy) for policy in ("clip", "drop")}
        return cls(
            pointers=pointers,
            worker=worker,
            value=value,
            tasks=tasks,
            workers=np.asarray(reports.workers),
            low=low,
            high=high,
            public_bounds=bounds is not None,
            public_tasks=public_tasks,
            clipped=counts["clip"],
            dropped=counts["drop"],
            missing=missing,
        )


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
    def counted(self) -> Integers:
        """Number of claims of each task, shape (tasks,)."""
        return np.bincount(self.task, minlength=self.tasks)


def scale_claims(claims: Claims, rows: Integers, used: NDArray[np.bool_]) -> ScaledClaims:
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


def _numbers(value: ArrayLike) -> Floats:
    """Return the number of each row, NaN if it is missing."""
    column = encode_array(value, "data")
    return np.append(parse_numbers(column.names), np.nan)[column.codes]  # the code of an empty cell is -1


def _checked_bounds(bounds: Bounds | None, tasks: int) -> tuple[Floats, Floats]:
    low, high = (-LARGEST, LARGEST) if bounds is None else bounds
    ends = [np.asarray(end, dtype=float) for end in (low, high)]
    if any(end.shape not in ((), (tasks,)) for end in ends):
        raise SettingsError(f"bounds must be two numbers or two arrays of {tasks}", value=[end.shape for end in ends])
    full = [np.broadcast_to(end, (tasks,)) for end in ends]
    wrong = ~((full[0] < full[1]) & (np.abs(full[0]) <= LARGEST) & (np.abs(full[1]) <= LARGEST))
    if wrong.any():
        first = int(wrong.argmax())
        raise SettingsError(
            f"bounds must be low < high within {LARGEST:g}", value=(float(full[0][first]), float(full[1][first]))
        )
    return full[0], full[1]


def _refuse(bad: NDArray[np.bool_], value: Floats, rule: str, hint: str) -> None:
    if bad.any():
        shown = ", ".join(f"{number:g}" for number in value[bad][:EXAMPLES_SHOWN])
        raise ReportsError(rule, examples=f"{shown} ({int(bad.sum())} in all)", hint=hint)


def _extreme(
    value: Floats,
    pointers: Integers,
    extreme: Callable[[Floats, Floats], Floats],
) -> Floats:
    """Return each task's smallest or largest claim, NaN for a task without claims."""
    found = np.full(len(pointers) - 1, np.nan)
    some = np.diff(pointers) > 0
    if some.any():
        found[some] = extreme.reduceat(value, pointers[:-1][some])  # type: ignore[attr-defined]
    return found
