"""Reports: integer-coded task, worker and value columns, sorted by task, read-only; the only data estimators see.

The same class holds unprotected answers (what `simulate` perturbs) and perturbed reports (what `infer` reads): NULL
cells are never stored, they follow from the lists of tasks and workers, which also name those without a single report.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.data.blocks import Block as Block
from crowdveil.data.blocks import InMemoryRows, ReportRows
from crowdveil.data.columnar_store import ReportChunk, open_encoded, save_encoded
from crowdveil.data.identifiers import Identifiers, as_identifiers
from crowdveil.data.ingest.labels import encode_labels, merge_spellings, require_stated_kind
from crowdveil.data.ingest.readers import ReportColumns, read_columns, read_frame_columns, read_parquet_columns
from crowdveil.data.ingest.sorting import sort_columns, sort_packed
from crowdveil.data.ingest.validation import (
    CodedColumn,
    Duplicates,
    Grid,
    encode_array,
    encode_ids,
    encode_on_scale,
    parse_number_column,
    require_duplicates_policy,
    resolve_duplicates,
)
from crowdveil.data.public_lists import NO_LISTS, ListName, given_lists
from crowdveil.errors import ReportsError, SettingsError

Kind = Literal["categorical", "numeric"]
Names = Sequence[Any] | NDArray[Any]
COLUMNS = frozenset({"task", "worker", "value"})
BLOCK_REPORTS = 1 << 21
"""Reports per block: tables of a block stay within tens of megabytes."""
TASKS_AT_ONCE = 1 << 20
"""Tasks counted together."""


@dataclass(frozen=True, eq=False)
class Reports:
    """Non-NULL reports of a crowd, in one canonical order whatever order they came in.

    Attributes:
        task, worker: codes into `tasks` and `workers`, int32, shape (reports,).
        value: int16 codes into `alphabet.names` if there is an alphabet, else float64 numbers.
        tasks, workers: names in code order; they include those without reports. Those of an opened folder stay in it:
            `numpy.asarray` makes an array of them.
        alphabet: what a value can be; None for numbers on no fixed grid.
        public_lists: which of labels, tasks and workers were given when the reports were read; the others were taken
            from the rows, so that they show who answered, and a guarantee must not rest on them. None unless said. Of
            a collection, all that its `crowd.json` does not name as missing: with public participation that holds
            tasks and workers even if they follow from the answers, as everyone sees who answered.
        rows: where the columns are kept; those of an opened folder are read from it when first used.
    """

    task: NDArray[np.int32]
    worker: NDArray[np.int32]
    value: NDArray[Any]
    tasks: Identifiers
    workers: Identifiers
    alphabet: Alphabet | None = None
    public_lists: frozenset[ListName] = NO_LISTS
    rows: ReportRows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        columns = sort_columns(np.asarray(self.task), np.asarray(self.worker), np.asarray(self.value))
        dtypes = {"task": np.int32, "worker": np.int32, "value": np.float64 if self.alphabet is None else np.int16}
        for (name, dtype), column in zip(dtypes.items(), columns, strict=True):
            object.__setattr__(self, name, _own(column, dtype))
        held = InMemoryRows(self.task, self.worker, self.value, len(self.tasks))
        self._set(held, self.tasks, self.workers, self.alphabet, self.public_lists)

    def _set(
        self,
        rows: ReportRows,
        tasks: Identifiers,
        workers: Identifiers,
        alphabet: Alphabet | None,
        public_lists: frozenset[ListName],
    ) -> None:
        parts = {"tasks": as_identifiers(tasks), "workers": as_identifiers(workers), "alphabet": alphabet, "rows": rows}
        for name, part in {**parts, "public_lists": public_lists}.items():
            object.__setattr__(self, name, part)

    @classmethod
    def from_rows(
        cls,
        rows: ReportRows,
        tasks: Identifiers,
        workers: Identifiers,
        alphabet: Alphabet | None,
        public_lists: frozenset[ListName] = NO_LISTS,
    ) -> Self:
        """Take rows that stand in canonical order, with the right types, as they are."""
        made = cls.__new__(cls)
        made._set(rows, tasks, workers, alphabet, public_lists)
        return made

    def with_public_lists(self, public_lists: frozenset[ListName]) -> Self:
        """Return the same reports, of which these lists are public."""
        return self.from_rows(self.rows, self.tasks, self.workers, self.alphabet, public_lists)

    # Hidden from type checkers, which would otherwise accept any attribute.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Take a column that was not copied from where the rows are kept."""
            if name not in COLUMNS:
                raise AttributeError(f"Reports have no attribute {name!r}.", name=name, obj=self)
            return getattr(self.rows, name)

    def __len__(self) -> int:
        """Number of non-NULL reports."""
        return len(self.rows)

    @property
    def labels(self) -> int:
        """Number of labels; 0 for numbers on no grid."""
        return 0 if self.alphabet is None else self.alphabet.size

    @cached_property
    def per_worker(self) -> NDArray[np.int64]:
        """Non-NULL reports of each worker, shape (workers,)."""
        counts = np.zeros(len(self.workers), dtype=np.int64)
        for block in self.blocks():
            counts += np.bincount(block.worker, minlength=len(counts))
        return counts

    @cached_property
    def per_task(self) -> NDArray[np.integer]:
        """Non-NULL reports on each task, shape (tasks,); int32 if no task can have more, else int64."""
        ends = self.rows.pointers
        kind: type[np.signedinteger] = np.int32 if len(self) <= np.iinfo(np.int32).max else np.int64
        counts = np.empty(len(self.tasks), dtype=kind)
        for first in range(0, len(counts), TASKS_AT_ONCE):
            counts[first : first + TASKS_AT_ONCE] = np.diff(ends[first : first + TASKS_AT_ONCE + 1])
        return counts

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """Each report as a number: the value itself, the grid point, or the label's position; shape (reports,)."""
        return self.value if self.alphabet is None else self.alphabet.values[self.value]

    def blocks(self, reports: int = BLOCK_REPORTS) -> Iterator[Block]:
        """Yield the tasks in contiguous ranges of about `reports` reports each, every task in exactly one block."""
        ends = self.rows.pointers
        first = 0
        while first < len(self.tasks):
            stop = max(first + 1, int(np.searchsorted(ends, ends[first] + reports, side="right")) - 1)
            yield self.rows.block(first, stop)
            first = stop

    def parts(self) -> Iterator[ReportChunk]:
        """Yield the columns block by block, with task codes of the whole."""
        return (ReportChunk(block.task + block.first, block.worker, block.value) for block in self.blocks())

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the reports as encoded blocks, which `open` maps into memory; they appear whole or not at all.

        Raises:
            SettingsError: the system refuses to write there.
            ReportsError: a name cannot be written as text.
        """
        save_encoded(folder, self.parts(), self.tasks, self.workers, self.alphabet)

    @classmethod
    def open(cls, folder: str | PathLike[str], *, verify: bool = False) -> Self:
        """Open encoded blocks without reading them: reports are read, and checked, when they are first used.

        Opening checks the manifest, the size of every file, the names and the index of tasks; `verify` checks every
        report as well, and that unsorted names differ however many there are. The folder must not change while open.
        It does not say where its lists come from: none of them counts as public.

        Raises:
            ReportsError: no such folder, another format, or damage; also later, where a damaged piece is first used.
        """
        return cls.from_rows(*open_encoded(Path(folder), verify=verify))

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
        merge_labels: bool = False,
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
            merge_labels: as `from_csv`.
            source: where the rows come from, for error messages.

        Raises:
            ReportsError: no rows, unequal lengths, missing ids, NaN or unknown labels, repeated pairs under "error",
                ids not listed in `tasks` or `workers`.
        """
        coded = [encode_array(column, source) for column in (task, worker, value)]
        labels: Kind | None = "categorical" if alphabet is None else None
        return cls.from_columns(
            ReportColumns(coded[0], coded[1], coded[2], "label", source),
            alphabet=alphabet,
            kind="numeric" if numeric else labels,
            tasks=tasks,
            workers=workers,
            duplicates=duplicates,
            merge_labels=merge_labels,
        )

    @classmethod
    def from_csv(
        cls,
        path: str | PathLike[str],
        *,
        alphabet: Alphabet | None = None,
        kind: Kind | None = None,
        tasks: Names | None = None,
        workers: Names | None = None,
        duplicates: Duplicates = "error",
        grid: Grid = "round",
        merge_labels: bool = False,
    ) -> Self:
        """Read a comma-separated UTF-8 file, gzipped or not, with a header; all other columns are left unread.

        Args:
            path: has exactly one column each of task | item; worker | performer | annotator; label | value | answer.
            alphabet: what a value can be; by default the distinct labels.
            kind: "categorical" or "numeric"; by default numeric if the column is `value` or the alphabet a Scale. A
                column for labels that holds more than 20 different numbers is refused without it.
            tasks, workers: all names, those without a row included; by default those that occur, and then not among
                `public_lists`. Ids are text.
            duplicates: policy for repeated (task, worker) pairs: refuse, keep the first or last in row order, keep all.
            grid: numbers on a Scale are clipped and rounded to it ("round", for answers) or must be its points
                ("exact", for reports of a mechanism).
            merge_labels: read labels that differ only in spaces at their ends, case, Unicode form or the way a number
                is written as one: the given one, or else as most rows spell it.

        Raises:
            ReportsError: the file or a row breaks a rule; the message names file, row, rule and way out.
        """
        columns = read_columns(path)
        return cls.from_columns(
            columns,
            alphabet=alphabet,
            kind=kind,
            tasks=tasks,
            workers=workers,
            duplicates=duplicates,
            grid=grid,
            merge_labels=merge_labels,
        )

    @classmethod
    def from_parquet(
        cls,
        path: str | PathLike[str],
        *,
        alphabet: Alphabet | None = None,
        kind: Kind | None = None,
        tasks: Names | None = None,
        workers: Names | None = None,
        duplicates: Duplicates = "error",
        grid: Grid = "round",
        merge_labels: bool = False,
    ) -> Self:
        """Read a Parquet file; everything else as `from_csv`, but whole-number ids stay numbers."""
        columns = read_parquet_columns(path)
        return cls.from_columns(
            columns,
            alphabet=alphabet,
            kind=kind,
            tasks=tasks,
            workers=workers,
            duplicates=duplicates,
            grid=grid,
            merge_labels=merge_labels,
        )

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        alphabet: Alphabet | None = None,
        kind: Kind | None = None,
        tasks: Names | None = None,
        workers: Names | None = None,
        duplicates: Duplicates = "error",
        grid: Grid = "round",
        merge_labels: bool = False,
    ) -> Self:
        """Take a pandas, Polars or Arrow table, or a DuckDB relation; everything else as `from_csv`.

        Whole-number ids stay numbers. Columns that are coded already (Categorical, Enum, dictionary) are not hashed.
        """
        columns = read_frame_columns(frame)
        return cls.from_columns(
            columns,
            alphabet=alphabet,
            kind=kind,
            tasks=tasks,
            workers=workers,
            duplicates=duplicates,
            grid=grid,
            merge_labels=merge_labels,
        )

    @classmethod
    def from_columns(
        cls,
        columns: ReportColumns,
        *,
        alphabet: Alphabet | None = None,
        kind: Kind | None = None,
        tasks: Names | None = None,
        workers: Names | None = None,
        duplicates: Duplicates = "error",
        grid: Grid = "round",
        merge_labels: bool = False,
    ) -> Self:
        """Check coded columns and put them together; arguments and errors as `from_csv`."""
        task, worker, source = columns.task, columns.worker, columns.source
        if not len(task) == len(worker) == len(columns.value):
            raise ReportsError("task, worker and value must have equal lengths", source=source)
        if not len(task) and (tasks is None or workers is None):
            raise ReportsError("there is no answer in it", source=source, hint="Check the file and its header.")
        task_names, task_codes = encode_ids(task, tasks, "task", source)
        worker_names, worker_codes = encode_ids(worker, workers, "worker", source)
        known, values = _code_values(columns, alphabet, kind, grid, merge_labels)
        require_duplicates_policy(duplicates)
        public = given_lists(labels=alphabet, tasks=tasks, workers=workers)
        sizes = (len(task_names), len(worker_names), 1 if known is None else known.size)
        ordered = sort_packed(task_codes, worker_codes, values, sizes)
        if ordered is not None and (not ordered.repeats or duplicates == "all"):
            rows = InMemoryRows(ordered.task, ordered.worker, ordered.value, len(task_names))
            return cls.from_rows(rows, task_names, worker_names, known, public)
        coded = CodedColumn(task_names, task_codes), CodedColumn(worker_names, worker_codes)
        kept = resolve_duplicates(*coded, duplicates, source)
        return cls(task_codes[kept], worker_codes[kept], values[kept], task_names, worker_names, known, public)


def _own(column: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return a column of that type whose memory nobody else can write to."""
    return column.astype(dtype, copy=column.base is not None)


def _code_values(
    columns: ReportColumns, alphabet: Alphabet | None, kind: Kind | None, grid: Grid, merge_labels: bool
) -> tuple[Alphabet | None, NDArray[Any]]:
    if kind not in (None, "categorical", "numeric"):
        raise SettingsError("kind must be 'categorical' or 'numeric'", value=kind)
    if kind is None:
        by_name = columns.value_name == "value" and alphabet is None
        if alphabet is None and not by_name:
            require_stated_kind(columns.value, columns.source)
        kind = "numeric" if by_name or isinstance(alphabet, Scale) else "categorical"
    if alphabet is not None and (kind == "numeric") != isinstance(alphabet, Scale):
        raise SettingsError(
            "numeric answers go with a Scale, categorical ones with Categories",
            value=(kind, alphabet),
            hint="Leave kind out: it follows from the alphabet.",
        )
    if merge_labels and kind == "numeric":
        raise SettingsError("merge_labels goes with labels", value="numbers", hint="Leave it out.")
    if kind == "categorical":
        known = alphabet if isinstance(alphabet, Categories) else None
        merged = merge_spellings(columns.value, () if known is None else known.names) if merge_labels else columns.value
        return encode_labels(merged, known, columns.source)
    numbers = parse_number_column(columns.value, columns.source)
    if isinstance(alphabet, Scale):
        return alphabet, encode_on_scale(numbers, alphabet, grid, columns.source)
    return None, numbers
