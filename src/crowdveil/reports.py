"""Reports: integer-coded task, worker and value columns, sorted by task, read-only; the only data estimators see.

The same class holds unprotected answers (what `simulate` perturbs) and perturbed reports (what `infer` reads): NULL cells
are never stored, they follow from the lists of tasks and workers, which also name those without a single report.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.errors import ReportsError
from crowdveil.labels import Alphabet, Categories, Scale

Duplicates = Literal["error", "first", "last", "all"]
EXAMPLES_SHOWN = 5
BLOCK_REPORTS = 1 << 21
"""Reports per block: tables of a block stay within tens of megabytes."""


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


@dataclass(frozen=True, eq=False)
class Reports:
    """Non-NULL reports of a crowd, in one canonical order whatever order they came in.

    Attributes:
        task, worker: codes into `tasks` and `workers`, int32, shape (reports,).
        value: int16 codes into `alphabet.names` if there is an alphabet, else float64 numbers.
        tasks, workers: names in code order; they include those without reports.
        alphabet: what a value can be; None for numbers on no fixed grid.
    """

    task: NDArray[np.int32]
    worker: NDArray[np.int32]
    value: NDArray[Any]
    tasks: NDArray[Any]
    workers: NDArray[Any]
    alphabet: Alphabet | None = None

    def __post_init__(self) -> None:
        order = _canonical_order(np.asarray(self.task), np.asarray(self.worker), np.asarray(self.value))
        dtypes = {"task": np.int32, "worker": np.int32, "value": np.float64 if self.alphabet is None else np.int16}
        for name, dtype in dtypes.items():
            column = np.asarray(getattr(self, name))[order].astype(dtype)
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        for name in ("tasks", "workers"):
            names = np.asarray(getattr(self, name))
            names.flags.writeable = False
            object.__setattr__(self, name, names)

    def __len__(self) -> int:
        """Number of non-NULL reports."""
        return len(self.task)

    @property
    def labels(self) -> int:
        """Number of labels; 0 for numbers on no grid."""
        return 0 if self.alphabet is None else self.alphabet.size

    @cached_property
    def per_worker(self) -> NDArray[np.int64]:
        """Non-NULL reports of each worker, shape (workers,)."""
        return np.bincount(self.worker, minlength=len(self.workers))

    @cached_property
    def per_task(self) -> NDArray[np.int64]:
        """Non-NULL reports on each task, shape (tasks,)."""
        return np.bincount(self.task, minlength=len(self.tasks))

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """Each report as a number: the value itself, the grid point, or the label's position; shape (reports,)."""
        return self.value if self.alphabet is None else self.alphabet.values[self.value]

    def blocks(self, reports: int = BLOCK_REPORTS) -> Iterator[Block]:
        """Yield the tasks in contiguous ranges of about `reports` reports each, every task in exactly one block."""
        ends = np.concatenate(([0], np.cumsum(self.per_task)))
        first = 0
        while first < len(self.tasks):
            stop = max(first + 1, int(np.searchsorted(ends, ends[first] + reports, side="right")) - 1)
            part = slice(int(ends[first]), int(ends[stop]))
            yield Block(first, stop, ends[first : stop + 1] - ends[first], self.worker[part], self.value[part])
            first = stop

    @classmethod
    def from_arrays(
        cls,
        task: ArrayLike,
        worker: ArrayLike,
        value: ArrayLike,
        *,
        alphabet: Alphabet | None = None,
        numeric: bool = False,
        tasks: Sequence[Any] | NDArray[Any] | None = None,
        workers: Sequence[Any] | NDArray[Any] | None = None,
        duplicates: Duplicates = "error",
        source: str = "data",
    ) -> Self:
        """Code three columns of equal length.

        Args:
            task, worker: ids, integers or strings, shape (rows,).
            value: labels or numbers, shape (rows,).
            alphabet: what a value can be; by default the distinct labels, sorted, or plain numbers if `numeric`.
            numeric: read values as numbers.
            tasks, workers: all names, those without a row included; by default those that occur.
            duplicates: policy for repeated (task, worker) pairs: refuse, keep the first or last in row order, keep all.
            source: where the rows come from, for error messages.

        Raises:
            ReportsError: no rows, unequal lengths, missing ids, NaN or unknown labels, repeated pairs under "error",
                ids not listed in `tasks` or `workers`.
        """
        columns = [np.asarray(column) for column in (task, worker, value)]
        if len({len(column) for column in columns}) != 1:
            raise ReportsError("task, worker and value must have equal lengths", source=source)
        if not len(columns[0]) and (tasks is None or workers is None):
            raise ReportsError("there is no answer in it", source=source, way_out="Check the file and its header.")
        task_names, task_codes = _encode(columns[0], tasks, "task", source)
        worker_names, worker_codes = _encode(columns[1], workers, "worker", source)
        known, codes = _encode_values(columns[2], alphabet, numeric, source)
        pair = task_codes.astype(np.int64) * len(worker_names) + worker_codes
        kept = _resolve_duplicates(pair, duplicates, columns, source)
        return cls(task_codes[kept], worker_codes[kept], codes[kept], task_names, worker_names, known)


def _canonical_order(
    task: NDArray[np.integer], worker: NDArray[np.integer], value: NDArray[Any]
) -> NDArray[np.int64] | slice:
    """Return what sorts by task, worker and value; rows that stand so already are not sorted again."""
    same = task[1:] == task[:-1]
    if bool(((task[1:] > task[:-1]) | (same & (worker[1:] > worker[:-1]))).all()):
        return slice(None)
    return np.lexsort((value, worker, task))


def _encode(
    column: NDArray[Any], names: Sequence[Any] | NDArray[Any] | None, what: str, source: str
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Code ids by their sorted names, or by position in the given names."""
    if column.dtype.kind in "fc" and np.isnan(column).any():
        rows = _first_rows(np.isnan(column))
        raise ReportsError(f"every row needs a {what}", source=source, rows=rows, way_out="Remove or complete the rows.")
    if names is None:
        found, codes = np.unique(column, return_inverse=True)
        return found, codes.astype(np.int32)
    listed = np.asarray(names)
    order = np.argsort(listed, kind="stable")
    if (listed[order][1:] == listed[order][:-1]).any():
        raise ReportsError(f"the list of {what}s must not repeat a name", source=source)
    if not len(column):
        return listed, np.empty(0, dtype=np.int32)
    at = np.minimum(np.searchsorted(listed, column, sorter=order), len(listed) - 1)
    codes = order[at]
    unknown = listed[codes] != column
    if unknown.any():
        rows = _first_rows(unknown)
        raise ReportsError(
            f"every {what} must be in the given list of {what}s",
            source=source,
            rows=rows,
            examples=", ".join(repr(str(column[row - 1])) for row in rows),
        )
    return listed, codes.astype(np.int32)


def _encode_values(
    column: NDArray[Any], alphabet: Alphabet | None, numeric: bool, source: str
) -> tuple[Alphabet | None, NDArray[Any]]:
    if numeric or isinstance(alphabet, Scale):
        numbers = _numbers(column, source)
        return alphabet, alphabet.encode(numbers) if isinstance(alphabet, Scale) else numbers
    if column.dtype.kind == "f":
        bad = np.isnan(column)
        if bad.any():
            raise ReportsError("labels must not be NaN", source=source, rows=_first_rows(bad), way_out="Leave absent answers out.")
        whole = column == np.rint(column)
        column = column.astype(np.int64) if whole.all() else column
    text = column.astype(str)
    known = alphabet or Categories(_label_order(np.unique(text)))
    _, codes = _encode(text, known.names, "label", source)
    return known, codes.astype(np.int16)


def _label_order(names: NDArray[Any]) -> tuple[str, ...]:
    """Sort labels as numbers where all are numbers, else as text."""
    listed = [str(name) for name in names]
    try:
        return tuple(sorted(listed, key=float))
    except ValueError:
        return tuple(sorted(listed))


def _numbers(column: NDArray[Any], source: str) -> NDArray[np.float64]:
    try:
        numbers = column.astype(float)
    except (TypeError, ValueError) as error:
        raise ReportsError(
            "values must be numbers", source=source, examples=str(error), way_out="For labels, say kind='categorical'."
        ) from error
    bad = ~np.isfinite(numbers)
    if bad.any():
        raise ReportsError(
            "values must be finite numbers", source=source, rows=_first_rows(bad), way_out="Leave absent answers out."
        )
    return numbers


def _resolve_duplicates(
    pair: NDArray[np.int64], policy: Duplicates, columns: list[NDArray[Any]], source: str
) -> NDArray[np.int64]:
    """Return the rows to keep."""
    if policy == "all":
        return np.arange(len(pair))
    if policy == "last":
        return len(pair) - 1 - np.unique(pair[::-1], return_index=True)[1]
    first = np.unique(pair, return_index=True)[1]
    if policy == "error" and len(first) < len(pair):
        repeated = np.ones(len(pair), dtype=bool)
        repeated[first] = False
        rows = _first_rows(repeated)
        shown = ", ".join(f"({columns[0][row - 1]}, {columns[1][row - 1]})" for row in rows)
        raise ReportsError(
            f"a worker answers a task once, but {int(repeated.sum())} rows repeat a (task, worker) pair",
            source=source,
            rows=rows,
            examples=shown,
            way_out="Choose duplicates='first', 'last' or 'all' (--duplicates on the command line).",
        )
    return first


def _first_rows(bad: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(row) + 1 for row in np.flatnonzero(bad)[:EXAMPLES_SHOWN])
