"""Answers from one or several sources, with the layout found: plain columns, or the export of a labelling tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np

from crowdveil.answers.facts.notes import NUMBERED_WORKERS, Note
from crowdveil.answers.importers.export_file import (
    STANDARD_INPUT,
    ExportFile,
    abbreviate_files,
    concatenate_tables,
    whole_file_progress,
)
from crowdveil.answers.importers.imported_answers import ImportedAnswers, answers_to_one_question, collect_all_questions
from crowdveil.answers.importers.importer import Importer
from crowdveil.answers.importers.registry import (
    RECOGNISED_TOOLS,
    TOOLS,
    find_importer,
    importer_of,
    with_recognised_delimiter,
)
from crowdveil.answers.importers.unread_exports import refuse_other_output
from crowdveil.answers.ingest.arrow_columns import encode_columns, read_parquet_columns
from crowdveil.answers.ingest.choices import NEVER, NothingTicked, choice_notes, refuse_choices_in_parts
from crowdveil.answers.ingest.column_checks import with_decimal_points
from crowdveil.answers.ingest.column_readers import NO_NAMES, QUESTION, ReportColumns, normal_name, read_columns
from crowdveil.answers.ingest.csv_errors import COMMA
from crowdveil.answers.ingest.csv_files import Progress, refuse_encoding_of_utf8
from crowdveil.answers.ingest.labels import columns_as_stated, map_labels, refuse_unstated_numbers
from crowdveil.answers.ingest.mapped_codes import ReadingLimit
from crowdveil.answers.ingest.questions import answers_to, split_by_question
from crowdveil.answers.ingest.row_sources import source_of_files, source_of_kept_rows
from crowdveil.answers.sources.folder_keys import folder_keys, keys_of_copy, notes_on_keys
from crowdveil.answers.sources.local_copies import (
    copy_duckdb_query,
    copy_duckdb_table,
    copy_remote_files,
    copy_stdin,
)
from crowdveil.answers.sources.location import (
    COMPANIONS,
    DATASET,
    QUERY,
    STDIN,
    Layout,
    database_and_table,
    is_block_folder,
    local_files,
    refuse_files_beside_companions,
)
from crowdveil.answers.sources.spilled_columns import FILES_IN_BATCHES, spill_files
from crowdveil.answers.spreadsheets.parts import workbook_form
from crowdveil.answers.spreadsheets.sheets import SUFFIXES as WORKBOOKS
from crowdveil.answers.spreadsheets.sheets import file_and_sheet, read_sheet
from crowdveil.display.counts import number_of
from crowdveil.errors import ReportsError
from crowdveil.files.filesystem import scheme_of, temporary_folder
from crowdveil.hints import advice

NUMBERED = "workers were named by an address or a time, and now have numbers."
"""End of the note on workers whose names hold within one import."""


@dataclass(frozen=True)
class AnswerSource:
    """Answers that were found, not yet read.

    Attributes:
        path: local file or folder, beside which the files of a collection are looked for; `dataset:NAME` as a path.
        files: the files to be read; none for blocks and data sets.
        layout: what the user states.
        copied: name that the user gave, if `path` is a temporary copy.
        columns: the answers to one question of several, already read; None for all that is still to be read.
        notes: on how `columns` were read.
        private: whether single answers must decide neither what is read nor what is refused. Then each file must be a
            table with a header, with plain columns and of one question.
        limit: limit of the memory for reading, with which plain columns are read in batches; None for none.
    """

    path: Path
    files: tuple[ExportFile, ...] = ()
    layout: Layout = field(default_factory=Layout)
    copied: str | None = None
    columns: ReportColumns | None = None
    notes: tuple[str, ...] = ()
    private: bool = False
    limit: ReadingLimit | None = None

    @property
    def name(self) -> str:
        """Name for messages."""
        return abbreviate_files(self.files) if self.files else self.copied or str(self.path)

    @property
    def is_single_file(self) -> bool:
        """Whether it is one file, beside which there may be the files of a collection."""
        return len(self.files) == 1

    @property
    def is_block_folder(self) -> bool:
        """Whether it is a folder of encoded blocks."""
        return not self.files and self.path.is_dir()

    @property
    def collection_path(self) -> Path | None:
        """Path of the reports beside which files of a collection are looked for; None for several files."""
        return self.path if self.is_single_file or self.is_block_folder else None

    @property
    def inputs(self) -> list[Path]:
        """Files that are read, which no output may replace."""
        return [file.path for file in self.files] if self.files else [self.path]

    @property
    def unread_columns(self) -> list[str]:
        """Names of the columns of plain tables that are not read; empty for exports, blocks and data sets."""
        if self.importer is not None:
            return []
        found = dict[str, None]()
        for file in self.files:
            if not file.is_empty_json:
                delimiter, roles = file.delimiter_and_column_roles()
                names = file.with_delimiter(delimiter).columns
                found |= dict.fromkeys(name for name in names if name not in roles.values())
        return list(found)

    @cached_property
    def importer(self) -> Importer | None:
        """Importer of the files; None for plain columns of answers.

        Raises:
            ReportsError: standard input is empty; the files have different layouts, or none that is known; or a private
                source is no plain table of one question.
        """
        if self.private:
            self._require_plain_tables()
            return None
        if self.copied == STDIN and self.files[0].is_empty_json:
            hint = "Check that the command before the pipe writes something."
            raise ReportsError("the input must not be empty", source=STANDARD_INPUT, hint=hint)
        for file in self.files:
            refuse_encoding_of_utf8(file.path, self.layout.encoding)
        if self.layout.tool is not None:
            return importer_of(self.layout.tool)
        if not self.files or self._all_names_are_stated:
            return None
        found = [_importer_of_file(file) for file in self.files]
        tools = dict.fromkeys("plain columns" if one is None else one.title for one in found)
        if len(tools) > 1:
            raise ReportsError(
                "all files must have the same layout",
                source=self.name,
                examples=", ".join(tools),
                hint="Import them one by one with crowdveil import.",
            )
        return found[0]

    def _require_plain_tables(self) -> None:
        """Refuse layouts of which single answers decide what is read: exports, JSON, and a column of questions."""
        for file in self.files:
            roles = self._roles_by_header_of_plain_table(file)
            if roles is None or _is_label_studio_table(file, roles):
                raise ReportsError(
                    "private answers must have plain columns, in a table with a header",
                    source=self.name,
                    hint="Import them first (crowdveil import), or write them as CSV.",
                )
            if self.layout.multiple is not None:
                raise ReportsError(
                    "private answers must be of one choice each",
                    source=self.name,
                    examples=f"the separator {self.layout.multiple!r}",
                    hint="Write them as one yes/no task for each choice of a task first.",
                )
            if self.layout.question is not None or QUESTION in roles:
                raise ReportsError(
                    "private answers must be to one question, without a column of questions",
                    source=self.name,
                    hint="Write the answers to the question, without that column, into a separate file.",
                )

    def _roles_by_header_of_plain_table(self, file: ExportFile) -> dict[str, str] | None:
        """Return the columns by role of a plain table, by its header alone; None for JSON and exports."""
        if self.layout.tool is not None or file.is_empty_json or file.form == "json":
            return None
        try:
            return file.delimiter_and_column_roles(by_header=True)[1]
        except ReportsError:
            if find_importer(file) is not None:
                return None
            raise  # names the defects of the header

    @property
    def _all_names_are_stated(self) -> bool:
        names = self.layout.names
        return None not in (names.task, names.worker) and (names.label or names.value) is not None

    def answers_of_tool_export(self, progress: Progress | None = None) -> ImportedAnswers:
        """Return the answers of an export; errors as `answers_to_one_question`."""
        with whole_file_progress(self.files, progress):
            importer = self.importer
            if importer is None:
                raise ReportsError(
                    "no tool's export was recognised",
                    source=self.name,
                    hint=f"State the tool, one of {', '.join(TOOLS)}; plain columns are read without an import.",
                )
            files, layout = self._export_files_with_delimiter(importer), self.layout
            return answers_to_one_question(importer, files, layout.question, layout.choices)

    def _export_files_with_delimiter(self, importer: Importer) -> list[ExportFile]:
        return [with_recognised_delimiter(file, importer) for file in self.files]

    def read_columns_and_notes(self, progress: Progress | None = None) -> tuple[ReportColumns, tuple[str, ...]]:
        """Return the columns of answers, and notes on how they were read.

        Args:
            progress: called with the bytes read so far and the size of the files.

        Raises:
            ReportsError: a file is damaged, or its layout is unknown or ambiguous.
        """
        with whole_file_progress(self.files, progress):
            columns, notes = self._columns_with_numbers_unchanged(progress)
            if self.limit is not None:
                refuse_choices_in_parts(columns, self.layout.choices)
            if not self.private:
                columns, more = columns_as_stated(columns, self.layout.choices, self.layout.label_map)
                notes += self._notes_on_sheets() + self._notes_on_folder_keys() + more
            elif self.layout.label_map:
                columns = replace(columns, value=map_labels(columns.value, self.layout.label_map)[0])
        if self.layout.decimal == ",":
            columns = replace(columns, value=with_decimal_points(columns.value, columns.source))
            if columns.weight is not None:
                columns = replace(columns, weight=with_decimal_points(columns.weight, columns.source))
        return columns, notes

    def _notes_on_sheets(self) -> tuple[str, ...]:
        """Return sentences on which sheets were read, and on dates in the columns of a table."""
        sheets = [file for file in self.files if file.sniffed.is_sheet]
        plain = bool(sheets) and self.importer is None
        columns = [file.delimiter_and_column_roles()[1].values() if plain else () for file in sheets]
        notes = [read_sheet(file.sheet_path).notes(names) for file, names in zip(sheets, columns, strict=True)]
        return tuple(note for one in notes for note in one)

    def _notes_on_folder_keys(self) -> tuple[str, ...]:
        """Return a sentence on the keys of folders that are not read."""
        plain, files = self.importer is None, [file for file in self.files if file.keys]
        columns = [file.delimiter_and_column_roles()[1].values() if plain else () for file in files]
        return notes_on_keys((file.keys, names) for file, names in zip(files, columns, strict=True))

    def _columns_with_numbers_unchanged(self, progress: Progress | None) -> tuple[ReportColumns, tuple[str, ...]]:
        """Return columns and notes as `read` does, with numbers as the source has them."""
        if self.columns is not None:
            columns = self._with_missing_policy(self.columns)
            return columns, self.notes or _notes_on_blank_and_null_rows(columns)
        if not self.files:
            raise ReportsError(
                "encoded blocks and data sets have readers of their own",
                source=self.name,
                hint="In Python: Reports.open for blocks, crowdveil.answers.datasets.load for data sets.",
            )
        if self.importer is not None:
            imported = self.answers_of_tool_export()
            return _columns_and_notes(imported, self.importer, self.name, self.layout.nothing_ticked)
        columns = self._with_missing_policy(self._read_plain_columns(progress))
        if self.layout.question is not None:
            columns = answers_to(columns, self.layout.question)
        return columns, () if self.private else _notes_on_blank_and_null_rows(columns)

    def _with_missing_policy(self, columns: ReportColumns) -> ReportColumns:
        """Return the columns, whose empty answers are none if the user says so."""
        return replace(columns, skip_empty=self.layout.missing == "skip")

    @property
    def unlikely_labels_reason(self) -> str:
        """Why the answers to one question of several are hardly labels: all are one, or numbers; else empty."""
        if self.columns is None or self.columns.value_name == "value":
            return ""
        answers, _ = self._with_missing_policy(self.columns).without_null()
        names = answers.value.names
        if len(names) == 1:
            return f"all answers to it are {str(names[0])!r}"
        try:
            refuse_unstated_numbers(answers.value, answers.source)
        except ReportsError as error:
            return f"its answers are {error.value}"
        return ""

    def by_question(self, *, every: bool = False, progress: Progress | None = None) -> dict[str, AnswerSource]:
        """Return a source for each question of an export, or of a table if a task has answers to several.

        Empty if there is one question or one is chosen; sources without questions are not read. Errors as `read`. With
        `every`, each question of a table has a source, whether or not a task has answers to several.
        """
        if self.layout.question is not None or not self.files:
            return {}
        with whole_file_progress(self.files, progress):
            if self.importer is not None:
                return self._imported_questions(self.importer)
            if not self._has_question_column:
                return {}
            tables = split_by_question(self._read_plain_columns(progress), every=every)
            return {question: replace(self, columns=columns) for question, columns in tables.items()}

    def _imported_questions(self, importer: Importer) -> dict[str, AnswerSource]:
        found = collect_all_questions(importer, self._export_files_with_delimiter(importer), self.layout.choices)
        read = {
            question: _columns_and_notes(
                one, importer, f"{self.name}, question {question!r}", self.layout.nothing_ticked
            )
            for question, one in found.items()
        }
        return {name: replace(self, columns=columns, notes=notes) for name, (columns, notes) in read.items()}

    @property
    def is_readable_in_batches(self) -> bool:
        """Whether all files are tables of plain columns, of one answer each to one question, without confidences."""
        layout, forms = self.layout, {file.form for file in self.files}
        if not self.files or not forms <= FILES_IN_BATCHES or self.importer is not None:
            return False
        return layout.multiple in (None, NEVER) and layout.names.weight is None and not self._has_question_column

    @property
    def _has_question_column(self) -> bool:
        files = (one for file in self.files for one in file.by_each_delimiter)
        return any(normal_name(name) == QUESTION for file in files for name in [*file.columns, *file.keys])

    def _read_plain_columns(self, progress: Progress | None) -> ReportColumns:
        names = self.layout.names
        if self.is_single_file and self.limit is None and not self.files[0].has_read_keys:
            file = self.files[0]
            if file.form == "text":
                stated = self.layout.delimiter, progress, self.layout.encoding
                columns = read_columns(file.sheet_path, names, *stated, file.sniffed.headers)
                return replace(columns, source=file.row_source)
            if file.form == "parquet":
                return read_parquet_columns(file.path, names, progress, self.name)
        files, roles = self._files_with_column_roles()
        value_name = names.answer_name([own["value"] for own in roles])
        shown = _progress_over_all_file_bytes(files, progress)
        if self.limit is not None:
            spilled, source = spill_files(files, roles, self.limit, self.name, shown)
            one = roles[0] if len(files) == 1 else {role: role for role in roles[0]}
            return spilled.finish(one, source, value_name)
        tables = []
        for file, own, part in zip(files, roles, shown, strict=True):
            with whole_file_progress([file], part):
                tables.append(file.table_of_roles(own, part))
        return encode_columns(
            {role: role for role in tables[0].column_names},
            concatenate_tables(tables),
            source_of_files(self.name, [file.row_source for file in self.files], [len(table) for table in tables]),
            value_name=value_name,
        )

    def _files_with_column_roles(self) -> tuple[list[ExportFile], list[dict[str, str]]]:
        """Return the files, each with its delimiter, and the columns by role of each, which must go together."""
        found = [file.delimiter_and_column_roles() for file in self.files]
        files = [file.with_delimiter(delimiter) for file, (delimiter, _) in zip(self.files, found, strict=True)]
        roles = [own for _, own in found]
        if len({len(own) for own in roles}) > 1:
            raise ReportsError(
                "all files must have a column 'question', or none",
                source=self.name,
                hint="Read the files one by one, or add the column.",
            )
        if {"label", "value"} <= {own["value"] for own in roles}:
            raise ReportsError(
                "all files must have labels, or all must have numbers",
                source=self.name,
                examples="columns 'label' and 'value'",
                hint="Read the files one by one.",
            )
        return files, roles


def _importer_of_file(file: ExportFile) -> Importer | None:
    """Return the importer of a file; None if it has plain columns of answers.

    Raises:
        ReportsError: neither; the message has the columns found and what can be stated.
    """
    refused = False
    try:
        delimiter, roles = file.delimiter_and_column_roles(by_header=True)
        if file.names != NO_NAMES or not _is_label_studio_table(file.with_delimiter(delimiter), roles):
            return None
    except ReportsError:
        refused = True
    importer = find_importer(file)
    if importer is not None or not refused:
        return importer
    refuse_other_output(file)
    try:
        file.delimiter_and_column_roles()  # names the defects of the rows, too
    except ReportsError as refusal:
        raise refusal.changed(
            source=file.name,
            hint=f"{refusal.hint} No export of {', '.join(RECOGNISED_TOOLS)} was recognised either; a table with a "
            "column for each worker is read by crowdveil import wide FILE, one file for each annotator by crowdveil "
            "import doccano FILES.",
        ) from None
    return None


def _is_label_studio_table(file: ExportFile, roles: Mapping[str, str]) -> bool:
    """Return whether a file is a table of Label Studio, whose data may have columns named like those of answers."""
    return roles.get("worker") == "annotator" and "annotation_id" in file.columns


def _progress_over_all_file_bytes(files: Sequence[ExportFile], progress: Progress | None) -> list[Progress | None]:
    """Return a progress function for each file, all of which count the bytes of all files."""
    sizes = [file.path.stat().st_size for file in files]
    starts = [sum(sizes[:place]) for place in range(len(sizes))]

    def counted(start: int) -> Progress | None:
        return None if progress is None else lambda read, _: progress(start + read, sum(sizes))

    return [counted(start) for start in starts]


def _columns_and_notes(
    imported: ImportedAnswers, importer: Importer, name: str, nothing_ticked: NothingTicked
) -> tuple[ReportColumns, tuple[str, ...]]:
    """Return the coded columns of imported answers, and sentences on their import; `name` is for messages."""
    roles = {"task": "task", "worker": "worker", "value": "label"}
    source = source_of_kept_rows(imported.source, np.arange(len(imported.table)) // max(1, len(imported.choices)), name)
    columns = encode_columns(roles, imported.table, source, value_name="label")
    return columns, import_notes(imported, importer.title, nothing_ticked)


def import_notes(imported: ImportedAnswers, title: str, nothing_ticked: NothingTicked) -> tuple[str, ...]:
    """Return sentences on an import: what was read, left out, not kept and renamed."""
    rows = len(imported.table)
    notes = [f"Read as an export of {title}, question {imported.question!r}: {number_of(rows, 'record')}."]
    notes += imported.columns
    notes += choice_notes(imported.choices, imported.nothing_ticked, nothing_ticked) if imported.choices else ()
    if imported.not_read:
        notes.append(f"Not read (texts, regions, rankings, or no answers): {', '.join(imported.not_read)}.")
    if imported.data:
        listed = ", ".join(imported.data)
        read = advice(" (read one with {question})")
        notes.append(f"Not read, since no two answers to a task differ in them: {listed}{read}.")
    if imported.no_answer:
        notes.append(_no_answer_note(imported.no_answer))
    for reason, count in imported.left_out.items():
        notes.append(f"Left out: {count:,} ({reason}).")
    if imported.dropped:
        notes.append(f"Not kept (times, ratings or addresses): {', '.join(imported.dropped)}.")
    if imported.renamed:
        notes.append(Note(f"{imported.renamed:,} {NUMBERED}", NUMBERED_WORKERS))
    return tuple(notes)


def _notes_on_blank_and_null_rows(columns: ReportColumns) -> tuple[str, ...]:
    null = len(columns.null_rows)
    return (_no_answer_note(null),) if null else ()


def _no_answer_note(count: int) -> str:
    return f"No answer (NULL): {number_of(count, 'record')}."


@contextmanager
def open_source(
    sources: Sequence[str], layout: Layout | None = None, progress: Progress | None = None
) -> Iterator[AnswerSource]:
    """Yield the source of answers that a user names; copies of remote files and tables are removed at the end.

    Args:
        sources: files, folders, patterns, URLs, `-` for standard input; a table in DuckDB; or one folder of encoded
            blocks or `dataset:NAME`.
        layout: what the user states about columns, delimiter, question and tool.
        progress: called with the bytes copied so far and the size of each remote file.

    Raises:
        ReportsError: no such source, or sources that do not go together.
    """
    layout = layout or Layout()
    local = all(map(_is_local, sources))
    with nullcontext(Path()) if local else temporary_folder(Path(gettempdir())) as temporary:
        if len(sources) == 1:
            yield _source_of_name(sources[0], layout, temporary / "0", progress)
            return
        files = [
            file
            for number, source in enumerate(sources)
            for file in _files_of_name(source, layout, temporary / str(number), progress)
        ]
        refuse_files_beside_companions([file.path for file in files])
        yield AnswerSource(files[0].path, tuple(files), layout=layout)


def _files_of_name(source: str, layout: Layout, temporary: Path, progress: Progress | None) -> tuple[ExportFile, ...]:
    """Return the files of one source of several; blocks and data sets are refused."""
    files = _source_of_name(source, layout, temporary, progress).files
    if not files:
        hint = "Give encoded blocks and data sets one by one."
        raise ReportsError("several sources must be files of answers", source=source, hint=hint)
    return files


def _is_local(source: str) -> bool:
    """Return whether a source is read where it lies, without a copy."""
    return source != STDIN and not scheme_of(source) and database_and_table(source) is None


def _source_of_name(source: str, layout: Layout, temporary: Path, progress: Progress | None) -> AnswerSource:
    """Return the source of one name."""
    if source.startswith(DATASET):
        return _refuse_question_without_files(AnswerSource(Path(source), layout=layout))
    if _is_local(source):
        return _refuse_question_without_files(local_source(Path(source), layout))
    table = database_and_table(source)
    temporary.mkdir(exist_ok=True)
    if source == STDIN:
        path = copy_stdin(temporary, progress)
    elif table is not None:
        path = (copy_duckdb_query if QUERY.match(table[1]) else copy_duckdb_table)(*table, temporary)
    else:
        path = copy_remote_files(source, temporary, COMPANIONS, progress)
    return _refuse_question_without_files(local_source(path, layout, source))


def _refuse_question_without_files(source: AnswerSource) -> AnswerSource:
    """Return the source; refuse a question of a data set or of encoded blocks, which have one each."""
    question = source.layout.question
    if question is not None and not source.files:
        raise ReportsError(
            "a data set, and a folder of encoded blocks, has one question",
            source=source.name,
            examples=f"the question {question!r}",
            hint=advice("Leave {question} out."),
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
    if "?" in path.name:
        path, sheet = file_and_sheet(path)
        layout = layout if sheet is None else replace(layout, sheet=sheet)
    if path.is_dir() and is_block_folder(path):
        return AnswerSource(path, layout=layout, copied=copied)
    found = local_files(str(path))
    names = [str(file) if copied is None else _user_facing_name_of_copy(file, path, copied) for file in found]
    keys = [folder_keys(file) if copied is None else keys_of_copy(file, path, copied) for file in found]
    stated: Any = {"encoding": layout.encoding, "names": layout.names, "delimiters": layout.delimiters}
    stated["transposed"] = layout.transpose
    files = tuple(
        _with_sheet(ExportFile(file, name, keys=above, **stated), layout)
        for file, name, above in zip(found, names, keys, strict=True)
    )
    if layout.sheet is not None and not any(file.sheet for file in files):
        raise ReportsError(
            "only a workbook has sheets",
            source=files[0].name,
            examples=f"the sheet {layout.sheet!r}",
            hint=advice("Leave {sheet} out, or give an .xlsx or .ods file."),
        )
    if len(found) > 1:
        refuse_files_beside_companions(found)
    return AnswerSource(found[0], files, layout=layout, copied=copied)


def _with_sheet(file: ExportFile, layout: Layout) -> ExportFile:
    """Return a workbook with its sheet, whose text has commas; standard input is one by its content."""
    named = file.path.suffix.lower() in WORKBOOKS
    if not named and (layout.sheet is None or workbook_form(file.path) is None):
        return file
    return replace(file, sheet=layout.sheet, delimiters=(COMMA,))


def _user_facing_name_of_copy(file: Path, path: Path, copied: str) -> str:
    """Return the name of a copied file as the user would give it."""
    if copied == STDIN:
        return STANDARD_INPUT
    return copied if file == path else f"{copied.rstrip('/')}/{file.relative_to(path)}"
