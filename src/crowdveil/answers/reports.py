"""Crowd reports: integer-coded task, worker and value columns in canonical order.

Data model: a report is a triple (task, worker, value). A (task, worker) cell has at most one report, unless repeated
pairs are kept (`duplicates="all"`). A cell without a report is NULL ("no answer"); NULL is not stored, it follows from
the lists of tasks and workers. Rows are sorted by task, then worker, then value, so results do not depend on their
order of arrival. The same class holds unperturbed answers (input of `perturb`) and reports (input of `infer`).
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.answers.blocks import Block as Block
from crowdveil.answers.blocks import InMemoryRows, read_only, sort_by_counting, sort_canonically
from crowdveil.answers.columnar_store import MappedRows, ReportChunk, open_encoded, save_encoded
from crowdveil.answers.facts.asked import LISTED, UNKNOWN, Asked
from crowdveil.answers.frames import OriginalColumns, coded_and_original_columns
from crowdveil.answers.identifiers import Identifiers, LazyIdentifiers
from crowdveil.answers.ingest.arrow_columns import read_parquet_columns
from crowdveil.answers.ingest.choices import NEVER, NothingTicked, columns_by_choice
from crowdveil.answers.ingest.column_checks import (
    CodedColumn,
    Duplicates,
    Grid,
    Missing,
    encode_array,
    encode_ids,
    resolve_duplicates,
)
from crowdveil.answers.ingest.column_readers import NO_NAMES, ColumnNames, ReportColumns, read_columns
from crowdveil.answers.ingest.labels import columns_as_stated
from crowdveil.answers.ingest.labels import map_labels as with_mapped_labels
from crowdveil.answers.ingest.questions import refuse_mixed_questions
from crowdveil.answers.read_options import IdentifierList, Kind, ReadKeywords, ReadOptions
from crowdveil.arguments import require_instance
from crowdveil.channels.alphabet import Alphabet, abbreviate_names, alphabet_to_json
from crowdveil.display.counts import crowd_text, number_of
from crowdveil.display.html import notebook_card, table
from crowdveil.display.svg_pictures import count_bars
from crowdveil.errors import ReportsError, SettingsError, join_errors, results_or_all_errors
from crowdveil.hints import advising_own_arguments

ReportRows = InMemoryRows | MappedRows
"""Storage of reports in canonical order."""
COLUMNS = frozenset({"task", "worker", "value"})
BLOCK_REPORTS = 1 << 21
"""Reports per block; the tables of a block need tens of megabytes."""
SHOWN, COUNTED = 5, 1 << 22
"""Reports in a notebook's table, and the largest number that is counted for its picture."""
NAMES_AT_ONCE = 1 << 14
"""Names per step of the digest."""
TASKS_AT_ONCE = 1 << 20
"""Tasks per step when reports per task are counted."""


@dataclass(frozen=True, eq=False, match_args=False)
class Reports:
    """Non-NULL reports in canonical order; read-only.

    Attributes:
        task, worker: int32 codes into `tasks` and `workers`, shape (reports,).
        value: int16 codes into `alphabet.names` if there is an alphabet, else float64 numbers, shape (reports,).
        tasks, workers: identifiers in code order, including those without reports. Identifiers of an opened folder are
            read on demand; `numpy.asarray` makes an array of them.
        alphabet: possible values; None for numbers on no grid.
        asked: which lists (labels, tasks, workers) were stated to the reader, and whether tasks and workers are all
            that were asked. Lists that follow from the rows reveal who answered, so no guarantee may rest on them.
            Readers say what they were given; this class itself takes `tasks` and `workers` for all that were asked.
        original: names and types of the columns of the frame that the reports were read from; None for other sources.
        rows: storage of the columns; those of an opened folder are read on first use.

    >>> reports = Reports.from_frame({"task": [1, 1, 1, 2, 2, 2], "worker": [*"abcabc"], "label": [*"yynnnn"]})
    >>> len(reports), reports.alphabet.names
    (6, ('n', 'y'))
    """

    task: NDArray[np.int32]
    worker: NDArray[np.int32]
    value: NDArray[Any]
    tasks: Identifiers
    workers: Identifiers
    alphabet: Alphabet | None = None
    asked: Asked = LISTED
    original: OriginalColumns | None = field(default=None, repr=False)
    rows: ReportRows = field(init=False, repr=False)

    if TYPE_CHECKING:

        def __init__(
            self,
            task: ArrayLike,
            worker: ArrayLike,
            value: ArrayLike,
            tasks: Identifiers,
            workers: Identifiers,
            alphabet: Alphabet | None = None,
            asked: Asked = LISTED,
            original: OriginalColumns | None = None,
        ) -> None:
            """Columns of any integers and numbers are converted."""

    def __post_init__(self) -> None:
        columns = sort_canonically(np.asarray(self.task), np.asarray(self.worker), np.asarray(self.value))
        dtypes = {"task": np.int32, "worker": np.int32, "value": np.float64 if self.alphabet is None else np.int16}
        for (name, dtype), column in zip(dtypes.items(), columns, strict=True):
            # A view is copied: its memory could be changed through its base.
            object.__setattr__(self, name, column.astype(dtype, copy=column.base is not None))
        rows = InMemoryRows(self.task, self.worker, self.value, len(self.tasks))
        self._set_fields(rows, self.tasks, self.workers, self.alphabet, self.asked, self.original)

    def _set_fields(
        self,
        rows: ReportRows,
        tasks: Identifiers,
        workers: Identifiers,
        alphabet: Alphabet | None,
        asked: Asked,
        original: OriginalColumns | None,
    ) -> None:
        values: dict[str, object] = {
            "tasks": tasks if isinstance(tasks, LazyIdentifiers) else read_only(tasks),
            "workers": workers if isinstance(workers, LazyIdentifiers) else read_only(workers),
            "alphabet": alphabet,
        }
        values |= {"rows": rows, "asked": asked, "original": original}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_rows(
        cls,
        rows: ReportRows,
        tasks: Identifiers,
        workers: Identifiers,
        alphabet: Alphabet | None,
        asked: Asked = UNKNOWN,
        original: OriginalColumns | None = None,
    ) -> Self:
        """Return reports over rows that already have canonical order and the right types; nothing is checked."""
        reports = cls.__new__(cls)
        reports._set_fields(rows, tasks, workers, alphabet, asked, original)
        return reports

    def with_asked(self, asked: Asked) -> Self:
        """Return the same reports with other knowledge of those asked."""
        return self.from_rows(self.rows, self.tasks, self.workers, self.alphabet, asked, self.original)

    # Hidden from type checkers, which would otherwise accept any attribute.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a column from the storage if it was not copied into memory."""
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
        """Non-NULL reports on each task, shape (tasks,); int32 if the total fits, else int64."""
        ends = self.rows.pointers
        kind: type[np.signedinteger] = np.int32 if len(self) <= np.iinfo(np.int32).max else np.int64
        counts = np.empty(len(self.tasks), dtype=kind)
        for first in range(0, len(counts), TASKS_AT_ONCE):
            counts[first : first + TASKS_AT_ONCE] = np.diff(ends[first : first + TASKS_AT_ONCE + 1])
        return counts

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """Each report as a number: the value, the grid point, or the label's position; shape (reports,)."""
        return self.value if self.alphabet is None else self.alphabet.values[self.value]

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of labels or scale, names of tasks and workers, and all reports, in hexadecimal."""
        values = None if self.alphabet is None else alphabet_to_json(self.alphabet)
        found = hashlib.sha256(json.dumps([values, len(self.tasks), len(self.workers)]).encode())
        for names in (self.tasks, self.workers):
            for first in range(0, len(names), NAMES_AT_ONCE):
                found.update(json.dumps(names[first : first + NAMES_AT_ONCE].tolist(), default=str).encode())
        for block in self.blocks():
            for column in (block.pointers, block.worker, block.value):
                found.update(np.ascontiguousarray(column).data)
        return found.hexdigest()

    def __repr__(self) -> str:
        """Return the size of the reports, and their labels."""
        labels = "numbers" if self.alphabet is None else abbreviate_names(self.alphabet.names)
        return f"<Reports: {self._size_text()}; {labels}>"

    def _size_text(self) -> str:
        return f"{number_of(len(self), 'report')} of {crowd_text(len(self.workers), len(self.tasks))}"

    def _repr_html_(self) -> str:
        """Return the first reports for a notebook, and the counts of labels."""
        block = self.rows.block(0, min(SHOWN, len(self.tasks)))
        names = None if self.alphabet is None else self.alphabet.names
        rows = [
            (str(self.tasks[task]), str(self.workers[worker]), f"{value:g}" if names is None else names[value])
            for task, worker, value in zip(block.task, block.worker, block.value, strict=True)
        ]
        shown = table(("task", "worker", "value" if names is None else "label"), rows[:SHOWN], total=len(self))
        if names is None or len(self) > COUNTED:
            return notebook_card("Reports", [self._size_text()], shown)
        counts = sum((np.bincount(part.value, minlength=len(names)) for part in self.blocks()), np.zeros(len(names)))
        picture = count_bars(None, "Reports by label", names, counts.astype(int).tolist())
        return notebook_card("Reports", [self._size_text()], shown, picture)

    def blocks(self, reports: int = BLOCK_REPORTS) -> Iterator[Block]:
        """Yield contiguous ranges of tasks with about `reports` reports each; every task is in exactly one block."""
        ends = self.rows.pointers
        first = 0
        while first < len(self.tasks):
            stop = max(first + 1, int(np.searchsorted(ends, ends[first] + reports, side="right")) - 1)
            yield self.rows.block(first, stop)
            first = stop

    def chunks(self) -> Iterator[ReportChunk]:
        """Yield the columns block by block, with global task codes."""
        return (ReportChunk(block.task + block.first, block.worker, block.value) for block in self.blocks())

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the reports atomically as a folder of encoded blocks, which `open` maps into memory.

        Raises:
            SettingsError: the system refuses to write there.
            ReportsError: an identifier cannot be written as text.
        """
        save_encoded(folder, self.chunks(), self.tasks, self.workers, self.alphabet)

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> Self:
        """Open a folder of encoded blocks; reports are read and checked on first use.

        Opening checks the manifest, the size of every file, the identifiers and the task index. The folder must not
        change while it is open. It does not record the origin of its lists: `asked` is unknown.

        Raises:
            ReportsError: no such folder, another format, or damage; also later, when a damaged piece is first used.
        """
        return cls.from_rows(*open_encoded(Path(folder)))

    @classmethod
    @advising_own_arguments
    def from_arrays(
        cls,
        task: ArrayLike,
        worker: ArrayLike,
        value: ArrayLike,
        *,
        alphabet: Alphabet | None = None,
        numeric: bool = False,
        tasks: IdentifierList | None = None,
        workers: IdentifierList | None = None,
        duplicates: Duplicates = "error",
        merge_labels: bool = False,
        missing: Missing = "error",
        multiple: str | None = None,
        nothing_ticked: NothingTicked = "no",
        map_labels: Mapping[str, str] | None = None,
        source: str = "data",
    ) -> Self:
        """Return reports from three columns of equal length.

        Args:
            task, worker: identifiers, integers or strings, shape (rows,).
            value: labels or numbers, shape (rows,).
            alphabet: possible values; by default the distinct labels, sorted, or free numbers if `numeric`.
            numeric: read values as numbers.
            tasks, workers, duplicates, merge_labels, missing, multiple, nothing_ticked, map_labels: as in
                `from_csv`.
            source: origin of the rows, for error messages.

        Raises:
            ReportsError: no rows, unequal lengths, missing identifiers, NaN or unknown labels, repeated pairs under
                "error", identifiers outside `tasks` or `workers`.
        """
        labels: Kind | None = "categorical" if alphabet is None else None
        kind: Kind | None = "numeric" if numeric else labels
        grid: Grid = "round"
        fields = alphabet, kind, tasks, workers, duplicates, grid, merge_labels, missing, multiple, nothing_ticked
        options = ReadOptions(*fields, map_labels)
        coded = [encode_array(column, source) for column in (task, worker, value)]
        return cls.from_columns(ReportColumns(coded[0], coded[1], coded[2], "label", source), options)

    @classmethod
    @advising_own_arguments
    def from_csv(
        cls,
        path: str | PathLike[str],
        *,
        alphabet: Alphabet | None = None,
        kind: Kind | None = None,
        tasks: IdentifierList | None = None,
        workers: IdentifierList | None = None,
        duplicates: Duplicates = "error",
        grid: Grid = "round",
        merge_labels: bool = False,
        missing: Missing = "error",
        multiple: str | None = None,
        nothing_ticked: NothingTicked = "no",
        map_labels: Mapping[str, str] | None = None,
    ) -> Self:
        """Return the reports of a text file with a header, plain or gzipped, in UTF-8 or marked UTF-16.

        The delimiter is a comma, semicolon, tab or vertical bar, as the header shows. Blank rows are skipped. The
        answer NULL says that the worker gave none.

        Args:
            path: has exactly one column each of task | item; worker | performer | annotator; label | value | answer.
                Other columns are not read.
            alphabet: possible values; by default the distinct labels.
            kind: "categorical" or "numeric". By default numeric if the alphabet is a Scale or the column is `value`.
                A label column with more than 20 different numbers is refused without it.
            tasks, workers: all identifiers, as text, including those without a row. By default those that occur, which
                then are not stated.
            duplicates: policy for repeated (task, worker) pairs: "error", or keep the "first", the "last" or "all".
            grid: numbers on a Scale are clipped and rounded to it ("round", for answers) or must be its points
                ("exact", for reports of a mechanism).
            merge_labels: merge labels that differ only in outer spaces, case, Unicode form or number format, into the
                given label or else the most frequent spelling.
            missing: refuse empty answers and NaN ("error"), or read them as NULL ("skip").
            multiple: separator of several choices in a label, such as ";": each choice of a task then is a task
                TASK|CHOICE, with the labels yes and no. Lists are read so without it; "none" reads them as they stand.
            nothing_ticked: whether an empty list says no to every choice ("no"), or is no answer ("skip").
            map_labels: labels that are replaced by others, such as {"Y": "yes"}, before spellings are merged.

        Raises:
            ReportsError: the file or a row breaks a rule; the message has file, rows, rule and hint.
            SettingsError: options that contradict one another.
        """
        fields = alphabet, kind, tasks, workers, duplicates, grid, merge_labels, missing, multiple, nothing_ticked
        options = ReadOptions(*fields, map_labels)
        return cls.from_columns(read_columns(path), options)

    @classmethod
    @advising_own_arguments
    def from_parquet(cls, path: str | PathLike[str], **options: Unpack[ReadKeywords]) -> Self:
        """Return the reports of a Parquet file; options as in `from_csv`, but integer identifiers stay integers."""
        return cls.from_columns(read_parquet_columns(path), ReadOptions(**options))

    @classmethod
    @advising_own_arguments
    def from_frame(
        cls,
        frame: object,
        *,
        task: str | None = None,
        worker: str | None = None,
        label: str | None = None,
        value: str | None = None,
        **options: Unpack[ReadKeywords],
    ) -> Self:
        """Return the reports of a frame: pandas, Polars, Arrow, Dask, a DuckDB relation, or a dict of columns.

        Args:
            frame: one row per answer.
            task, worker: names of the columns of identifiers; by default the usual names, as in `from_csv`.
            label, value: name of the column of labels or, instead, of numbers.
            options: as in `from_parquet`. The alphabet of an ordered categorical column is its categories, in their
                order; they are not stated.

        Raises:
            ReportsError: no such column, or as in `from_csv`.
            SettingsError: options that contradict one another.
        """
        given = ReadOptions(**options)
        columns, original = coded_and_original_columns(
            frame, ColumnNames(task=task, worker=worker, label=label, value=value)
        )
        return cls.from_coded_frame(columns, original, given)[0]

    @classmethod
    def from_coded_frame(
        cls, columns: ReportColumns, original: OriginalColumns, options: ReadOptions
    ) -> tuple[Self, ReportColumns, tuple[str, ...]]:
        """Return the reports of the coded columns of a frame, the columns as stated, and notes on them."""
        asked, options = options.asked, options.with_ordered_labels(original.ordered_labels)
        columns = options.with_missing_policy(columns)
        columns, notes = columns_as_stated(columns, options.choices, options.label_map)
        reports = cls.from_columns(columns, replace(options, map_labels=None, multiple=NEVER))
        fields = reports.rows, reports.tasks, reports.workers, reports.alphabet
        return cls.from_rows(*fields, asked, original), columns, notes

    @classmethod
    @advising_own_arguments
    def from_source(
        cls,
        *sources: str | PathLike[str],
        names: ColumnNames = NO_NAMES,
        delimiter: str | None = None,
        encoding: str | None = None,
        sheet: str | None = None,
        decimal: str = ".",
        question: str | None = None,
        tool: str | None = None,
        transpose: bool = False,
        **options: Unpack[ReadKeywords],
    ) -> Self:
        """Return the answers of sources as the command line names them; NULL is "no answer".

        Args:
            sources: files, folders, patterns, URLs, tables in DuckDB, or exports of labelling tools.
            names: columns that their names do not tell.
            delimiter: character between the cells of text files; by default the one that the header shows.
            encoding: encoding of text files, such as cp1252; by default UTF-8, or that of a byte-order mark.
            sheet: sheet of a workbook (.xlsx, .ods), if it has several.
            decimal: decimal mark of the answers, a point or comma.
            question: question of an export, or of a column `question`, with several.
            tool: tool whose export it is; by default the one that is recognised.
            transpose: whether a wide table has one row for each respondent, and one column for each task.
            options: as in `from_csv`.

        Raises:
            ReportsError: as `from_csv`; an unknown layout, or several questions.
            SettingsError: as `from_csv`; a column of confidences.
        """
        from crowdveil.answers.sources.answer_source import open_source
        from crowdveil.answers.sources.location import Layout

        for one in sources:
            hint = "A frame goes into Reports.from_frame(frame)."
            require_instance("a source", one, (str, PathLike), what="the name of a file or folder", hint=hint)
        if names.weight is not None:
            hint = "Give a frame and the column to crowdveil.infer(frame, weight=NAME)."
            raise SettingsError("reports do not hold confidences", value=names.weight, hint=hint)
        layout = Layout(
            names=names,
            delimiter=delimiter,
            encoding=encoding,
            sheet=sheet,
            decimal=decimal,
            question=question,
            tool=tool,
            transpose=transpose,
            multiple=options.get("multiple"),
            nothing_ticked=options.get("nothing_ticked", "no"),
        )
        with open_source([str(source) for source in sources], layout) as source:
            columns, _ = source.read_columns_and_notes()
        return cls.from_columns(columns, ReadOptions(**options))

    @classmethod
    def from_columns(cls, columns: ReportColumns, options: ReadOptions) -> Self:
        """Return the reports of three coded columns; errors as `from_csv`."""
        source = columns.source
        if not len(columns.task) == len(columns.worker) == len(columns.value):
            lengths = ", ".join(str(len(one)) for one in (columns.task, columns.worker, columns.value))
            raise ReportsError(
                "task, worker and value must have equal lengths",
                source=source,
                examples=lengths,
                hint="Each row is one answer.",
            )
        if not len(columns) and (options.tasks is None or options.workers is None):
            raise ReportsError(
                "there must be at least one answer", source=source, hint="Check the file and its header, or the table."
            )
        columns = options.with_missing_policy(columns)
        if options.label_map:
            columns = replace(columns, value=with_mapped_labels(columns.value, options.label_map)[0])
        if options.multiple is not None or columns.may_have_choices:
            columns = columns_by_choice(columns, options.choices)[0]
            source = columns.source
        answers, answered = columns, None
        if len(columns.null_rows):
            answers, answered = columns.without_null()
        try:
            (tasks, task_codes), (workers, worker_codes), (alphabet, values) = results_or_all_errors(
                lambda: _encode_tasks(columns, options),
                lambda: encode_ids(columns.worker, options.workers, "worker", source),
                lambda: _encode_values(answers, answered, options, source),
            )
        except ReportsError as error:
            raise join_errors([error, *_error_of_repeated_pairs_or_empty(columns, options)]) from None
        if answered is not None:
            task_codes, worker_codes = task_codes[answered], worker_codes[answered]
        sizes = (len(tasks), len(workers), 1 if alphabet is None else alphabet.size)
        ordered = sort_by_counting(task_codes, worker_codes, values, sizes)
        if ordered is not None and (not ordered.repeats or options.duplicates == "all"):
            rows = InMemoryRows(ordered.task, ordered.worker, ordered.value, len(tasks))
            return cls.from_rows(rows, tasks, workers, alphabet, options.asked)
        coded = CodedColumn(tasks, task_codes), CodedColumn(workers, worker_codes)
        kept = resolve_duplicates(*coded, options.duplicates, source, answered)
        public = options.asked
        return cls(task_codes[kept], worker_codes[kept], values[kept], tasks, workers, alphabet, public)


def _error_of_repeated_pairs_or_empty(columns: ReportColumns, options: ReadOptions) -> list[ReportsError]:
    """Return the refusal of repeated cells of columns that have other defects; empty if it does not apply."""
    named = np.flatnonzero((columns.task.codes >= 0) & (columns.worker.codes >= 0))
    task, worker = (CodedColumn(one.names, one.codes[named]) for one in (columns.task, columns.worker))
    try:
        resolve_duplicates(task, worker, options.duplicates, columns.source, named)
    except ReportsError as error:
        return [error]
    return []


def _encode_values(
    answers: ReportColumns, rows: NDArray[np.int64] | None, options: ReadOptions, source: str
) -> tuple[Alphabet | None, NDArray[Any]]:
    """Return alphabet and values of the answers in some rows of a source; a refusal names the rows of the source."""
    try:
        return options.encode_values(answers)
    except ReportsError as error:
        if rows is None:
            raise
        places = tuple(int(rows[row - 1]) + 1 for row in error.rows)
        raise error.changed(source=source, rows=places) from None


def _encode_tasks(columns: ReportColumns, options: ReadOptions) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the tasks and the code of each row; refuse answers of one task to different questions."""
    tasks, codes = encode_ids(columns.task, options.tasks, "task", columns.source)
    if columns.question is not None:
        refuse_mixed_questions(columns, codes)
    return tasks, codes
