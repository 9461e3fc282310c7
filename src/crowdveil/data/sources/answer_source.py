"""Answers from one or several sources, with the layout found: plain columns, or the export of a labelling tool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from crowdveil.data.importers.collecting import ImportedAnswers, collect_all_questions, collect_answers
from crowdveil.data.importers.export_file import STANDARD_INPUT, ExportFile
from crowdveil.data.importers.importer import Importer
from crowdveil.data.importers.registry import TOOLS, importer_of, recognised
from crowdveil.data.ingest.csv_files import COMMA, DELIMITERS, Progress, read_csv_batches
from crowdveil.data.ingest.dictionary_encoding import dictionary_encode_batches
from crowdveil.data.ingest.questions import answers_by_question, answers_to
from crowdveil.data.ingest.readers import (
    NO_NAMES,
    QUESTION,
    ColumnNames,
    ReportColumns,
    encode_columns,
    normal_name,
    read_columns,
    read_parquet_columns,
)
from crowdveil.data.sources.location import (
    COMPANIONS,
    DATASET,
    STDIN,
    is_blocks,
    local_files,
    refuse_collections,
    refuse_database,
    scheme_of,
    sql_parts,
)
from crowdveil.data.sources.saved_dataset import with_label_names
from crowdveil.data.sources.sql_table import SqlTable
from crowdveil.data.sources.staging import copy_remote, copy_stdin
from crowdveil.errors import ReportsError, SettingsError

MAX_CHOICES_SHOWN = 10
NUMBERED = "workers were named by an address or a time, and now have numbers."
"""End of the note on workers whose names hold within one import."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What a user states about a source.

    Attributes:
        names: columns of task, worker and answer.
        delimiter: character between the cells of text files.
        question: question of an export or table with several.
        tool: tool whose export it is; None to recognise it.
    """

    names: ColumnNames = NO_NAMES
    delimiter: str | None = None
    question: str | None = None
    tool: str | None = None

    def __post_init__(self) -> None:
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or self.delimiter in '"\r\n' or self.delimiter > "\x7f"
        ):
            raise SettingsError(
                "the delimiter must be one ASCII character, and no quote or line end",
                value=self.delimiter,
                hint="For a tab, write '\\t'.",
            )
        if self.tool is not None and self.tool not in TOOLS:
            raise SettingsError(f"the tool must be one of {', '.join(TOOLS)}", value=self.tool)


@dataclass(frozen=True)
class AnswerSource:
    """Answers that were found, not yet read.

    Attributes:
        path: local file or folder, beside which the files of a collection are looked for; `dataset:NAME` as a path.
        files: the files to be read; none for blocks, data sets and SQL.
        table: SQL table; None for files.
        layout: what the user states.
        copied: name that the user gave, if `path` is a temporary copy.
        columns: the answers to one question of several, already read; None for all that is still to be read.
        notes: on how `columns` were read.
    """

    path: Path
    files: tuple[ExportFile, ...] = ()
    table: SqlTable | None = None
    layout: Layout = field(default_factory=Layout)
    copied: str | None = None
    columns: ReportColumns | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name for messages."""
        if self.table is not None:
            return self.table.name
        if self.files:
            return self.files[0].name + (f" and {len(self.files) - 1} more" if len(self.files) > 1 else "")
        return self.copied or str(self.path)

    @property
    def is_single_file(self) -> bool:
        """Whether it is one file, beside which there may be the files of a collection."""
        return len(self.files) == 1

    @property
    def is_blocks(self) -> bool:
        """Whether it is a folder of encoded blocks."""
        return not self.files and self.table is None and self.path.is_dir()

    @property
    def collection_path(self) -> Path | None:
        """Path of the reports beside which files of a collection are looked for; None for several files and tables."""
        return self.path if self.is_single_file or self.is_blocks else None

    @property
    def inputs(self) -> list[Path]:
        """Files that are read, which no output may replace."""
        return [file.path for file in self.files] if self.files else [self.path]

    @property
    def column_names(self) -> list[str]:
        """Names of the columns of a table, of one plain file; empty for other sources."""
        if self.table is not None:
            return self.table.column_names
        plain = self.is_single_file and self.files[0].form in ("text", "parquet")
        return self.files[0].columns if plain and self.importer is None else []

    @cached_property
    def importer(self) -> Importer | None:
        """Importer of the files; None for plain columns of answers.

        Raises:
            ReportsError: the files have different layouts, or none that is known.
        """
        if self.layout.tool is not None:
            return importer_of(self.layout.tool)
        if not self.files or self._stated_names:
            return None
        found = [recognised_layout(file, self.layout) for file in self.files]
        tools = dict.fromkeys("plain columns" if one is None else one.title for one in found)
        if len(tools) > 1:
            raise ReportsError(
                "all files must have the same layout",
                source=self.name,
                examples=", ".join(tools),
                hint="Import them one by one with crowdveil import.",
            )
        return found[0]

    @property
    def _stated_names(self) -> bool:
        names = self.layout.names
        return None not in (names.task, names.worker) and (names.label or names.value) is not None

    def import_answers(self) -> ImportedAnswers:
        """Return the answers of an export; errors as `collect_answers`."""
        importer = self.importer
        if importer is None:
            raise ReportsError(
                "no tool's export was recognised",
                source=self.name,
                hint=f"State the tool, one of {', '.join(TOOLS)}; plain columns are read without an import.",
            )
        return collect_answers(importer, self._exports(importer), self.layout.question, self.layout.names)

    def _exports(self, importer: Importer) -> list[ExportFile]:
        return [_with_delimiter(file, importer, self.layout) for file in self.files]

    def read(self, progress: Progress | None = None) -> tuple[ReportColumns, tuple[str, ...]]:
        """Return the columns of answers, and notes on how they were read.

        Raises:
            ReportsError: a file is damaged, or its layout is unknown or ambiguous.
        """
        if self.columns is not None:
            return self.columns, self.notes or _null_notes(self.columns)
        if not self.files and self.table is None:
            raise ReportsError(
                "encoded blocks and data sets have readers of their own",
                source=self.name,
                hint="In Python: Reports.open for blocks, crowdveil.data.datasets.load for data sets.",
            )
        if self.table is None and self.importer is not None:
            return self._imported(self.import_answers(), self.importer)
        columns = self._plain_columns(progress)
        if self.layout.question is not None:
            columns = answers_to(columns, self.layout.question)
        return columns, _null_notes(columns)

    def _imported(self, imported: ImportedAnswers, importer: Importer) -> tuple[ReportColumns, tuple[str, ...]]:
        roles = {"task": "task", "worker": "worker", "value": "label"}
        columns = encode_columns(roles, imported.table, self.name, value_name="label")
        return columns, import_notes(imported, importer.title)

    def by_question(self, progress: Progress | None = None) -> dict[str, AnswerSource]:
        """Return a source for each question of an export, or of a table if a task has answers to several.

        Empty if there is one question or one is chosen; sources without questions are not read. Errors as `read`.
        """
        if self.layout.question is not None or (self.table is None and not self.files):
            return {}
        importer = None if self.table is not None else self.importer
        if importer is not None:
            every = collect_all_questions(importer, self._exports(importer), self.layout.names)
            read = {question: self._imported(one, importer) for question, one in every.items()}
            return {name: replace(self, columns=columns, notes=notes) for name, (columns, notes) in read.items()}
        if not self._has_questions:
            return {}
        found = answers_by_question(self._plain_columns(progress))
        return {question: replace(self, columns=columns) for question, columns in found.items()}

    @property
    def _has_questions(self) -> bool:
        delimited = (_delimited(file, one) for file in self.files for one in _delimiters(file, self.layout))
        names = (name for file in delimited for name in file.columns) if self.table is None else self.table.column_names
        return any(normal_name(name) == QUESTION for name in names)

    def _plain_columns(self, progress: Progress | None) -> ReportColumns:
        names, delimiter = self.layout.names, self.layout.delimiter
        if self.table is not None:
            return self.table.read(names)
        if self.is_single_file:
            file = self.files[0]
            if file.form == "text":
                return replace(read_columns(file.path, names, delimiter, progress), source=self.name)
            if file.form == "parquet":
                return replace(read_parquet_columns(file.path, names), source=self.name)
        tables, value_names = [], set()
        for file in self.files:
            roles, table = _file_table(file, self.layout, progress)
            value_names.add(roles["value"])
            tables.append(table)
        if len({len(table.column_names) for table in tables}) > 1:
            raise ReportsError(
                "all files must have a column 'question', or none",
                source=self.name,
                hint="Read the files one by one, or add the column.",
            )
        return encode_columns(
            {role: role for role in tables[0].column_names},
            _joined(tables),
            self.name,
            value_name=names.answer_name(value_names),
        )


def recognised_layout(file: ExportFile, layout: Layout) -> Importer | None:
    """Return the importer of a file; None if it has plain columns of answers.

    Raises:
        ReportsError: neither; the message has the columns found and what can be stated.
    """
    refusal: ReportsError | None = None
    for delimiter in _delimiters(file, layout):
        one = _delimited(file, delimiter)
        try:
            layout.names.roles(one.columns, file.name)
            return None
        except ReportsError as error:
            refusal = refusal or error
        importer = recognised(one)
        if importer is not None:
            return importer
    if refusal is None:
        raise ValueError("a file has at least one delimiter")
    raise ReportsError(
        refusal.rule,
        source=file.name,
        examples=str(refusal.value or ""),
        hint=f"{refusal.hint} No export of {', '.join(TOOLS[:-1])}, and no wide table, was recognised either.",
    )


def _delimited(file: ExportFile, delimiter: str) -> ExportFile:
    """Return the file with a delimiter; the same file, with what was read of it, if it has that one."""
    return file if file.delimiter == delimiter else replace(file, delimiter=delimiter)


def _delimiters(file: ExportFile, layout: Layout) -> tuple[str, ...]:
    """Return the delimiters that a file may have."""
    if file.form != "text":
        return (COMMA,)
    return tuple(DELIMITERS) if layout.delimiter is None else (layout.delimiter,)


def _with_delimiter(file: ExportFile, importer: Importer, layout: Layout) -> ExportFile:
    """Return a file with the delimiter by which its columns are those of the importer; else with the most columns."""
    choices = [_delimited(file, delimiter) for delimiter in _delimiters(file, layout)]
    return next(
        (one for one in choices if importer.recognises(one.columns)), max(choices, key=lambda one: len(one.columns))
    )


def _file_table(file: ExportFile, layout: Layout, progress: Progress | None) -> tuple[dict[str, str], pa.Table]:
    """Return the column of each role, and the table of these columns, named by role."""
    delimiters = _delimiters(file, layout)
    for delimiter in delimiters:
        one = _delimited(file, delimiter)
        try:
            roles = layout.names.roles(one.columns, file.name)
            break
        except ReportsError:
            if delimiter == delimiters[-1]:
                raise
    wanted = list(roles.values())
    if file.form == "text":
        table: Any = read_csv_batches(file.path, wanted, dictionary_encode_batches, one.delimiter, progress)
    elif file.form == "json":
        table = pa.table({name: [_text(record.get(name)) for record in file.records] for name in wanted})
    else:
        table = with_label_names(file.arrow_table())
    return roles, table.select(wanted).rename_columns(list(roles))


def _text(cell: Any) -> str | None:
    """Return a cell of JSON as text; None stays missing."""
    return None if cell is None else str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Return tables of the same columns as one; a column of several types becomes text."""
    columns = {}
    for role in tables[0].column_names:
        parts = [table[role] for table in tables]
        if len({part.type for part in parts}) > 1:
            parts = [part.cast(pa.string()) for part in parts]
        columns[role] = pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
    return pa.table(columns).unify_dictionaries()


def import_notes(imported: ImportedAnswers, title: str) -> tuple[str, ...]:
    """Return sentences on an import: what was read, left out, not kept and renamed."""
    rows = len(imported.table)
    notes = [f"Read as an export of {title}, question {imported.question!r}: {rows:,} records."]
    if imported.choices:
        listed = ", ".join(imported.choices[:MAX_CHOICES_SHOWN])
        notes.append(
            f"Answers have several choices: each choice of a task is a task TASK|CHOICE, yes or no ({listed})."
        )
    if imported.not_read:
        notes.append(f"Not read, since they hold no labels or numbers: {', '.join(imported.not_read)}.")
    if imported.no_answer:
        notes.append(_no_answer(imported.no_answer))
    for reason, count in imported.left_out.items():
        notes.append(f"Left out: {count:,} ({reason}).")
    if imported.dropped:
        notes.append(f"Not kept, since no epsilon covers them: {', '.join(imported.dropped)}.")
    if imported.renamed:
        notes.append(f"{imported.renamed:,} {NUMBERED}")
    return tuple(notes)


def _null_notes(columns: ReportColumns) -> tuple[str, ...]:
    count = len(columns.null_rows)
    return (_no_answer(count),) if count else ()


def _no_answer(count: int) -> str:
    return f"No answer (NULL): {count:,} record{'' if count == 1 else 's'}."


@contextmanager
def open_source(
    sources: Sequence[str], layout: Layout | None = None, progress: Progress | None = None
) -> Iterator[AnswerSource]:
    """Yield the source of answers that a user names; copies of remote files are removed at the end.

    Args:
        sources: files, folders, patterns, URLs, `-` for standard input; or one SQL table, folder of encoded blocks or
            `dataset:NAME`.
        layout: what the user states about columns, delimiter, question and tool.
        progress: called with the bytes copied so far and the size of each remote file.

    Raises:
        ReportsError: no such source, or sources that do not go together.
    """
    layout = layout or Layout()
    with TemporaryDirectory(prefix="crowdveil-") as temporary:
        if len(sources) == 1:
            yield _single(sources[0], layout, Path(temporary), progress)
            return
        files = [
            file
            for number, source in enumerate(sources)
            for file in _single(source, layout, Path(temporary) / str(number), progress).files or _refused(source)
        ]
        refuse_collections([file.path for file in files], COMPANIONS)
        yield AnswerSource(files[0].path, tuple(files), layout=layout)


def _refused(source: str) -> list[ExportFile]:
    raise ReportsError(
        "several sources must be files of answers",
        source=source,
        hint="Give encoded blocks, data sets and SQL tables one by one.",
    )


def _single(source: str, layout: Layout, temporary: Path, progress: Progress | None) -> AnswerSource:
    """Return the source of one name."""
    if source.startswith(DATASET):
        return _one_question(AnswerSource(Path(source), layout=layout))
    refuse_database(source)
    sql = sql_parts(source)
    if sql is not None:
        return AnswerSource(Path(), table=SqlTable(*sql), layout=layout)
    if source == STDIN or scheme_of(source):
        temporary.mkdir(exist_ok=True)
        path = (
            copy_stdin(temporary, progress=progress)
            if source == STDIN
            else copy_remote(source, temporary, COMPANIONS, progress)
        )
        return _one_question(local_source(path, layout, source))
    return _one_question(local_source(Path(source), layout))


def _one_question(source: AnswerSource) -> AnswerSource:
    """Return the source; refuse a question of a data set or of encoded blocks, which have one each."""
    question = source.layout.question
    if question is not None and not source.files and source.table is None:
        raise ReportsError(
            "a data set, and a folder of encoded blocks, has one question",
            source=source.name,
            examples=f"the question {question!r}",
            hint="Leave --question out.",
        )
    return source


def local_source(path: Path, layout: Layout | None = None, copied: str | None = None) -> AnswerSource:
    """Return the source of a local path; `copied` is the name that the user gave, if the path is a copy.

    Raises:
        ReportsError: as `local_files`.
    """
    layout = layout or Layout()
    if str(path).startswith(DATASET):
        return AnswerSource(path, layout=layout)
    if path.is_dir() and is_blocks(path):
        return AnswerSource(path, layout=layout, copied=copied)
    found = local_files(str(path))
    names = [str(file) if copied is None else _copied_name(file, path, copied) for file in found]
    files = tuple(ExportFile(file, name) for file, name in zip(found, names, strict=True))
    if len(found) > 1:
        refuse_collections(found, COMPANIONS)
    return AnswerSource(found[0], files, layout=layout, copied=copied)


def _copied_name(file: Path, path: Path, copied: str) -> str:
    """Return the name of a copied file as the user would give it."""
    if copied == STDIN:
        return STANDARD_INPUT
    return copied if file == path else f"{copied.rstrip('/')}/{file.relative_to(path)}"
