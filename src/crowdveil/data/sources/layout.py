"""Layout of a source: columns, delimiter and tool, as a user states them or its files show them, and their tables."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, get_args

import pyarrow as pa

from crowdveil.arguments import require_choice
from crowdveil.data.importers.export_file import ExportFile
from crowdveil.data.importers.importer import Importer
from crowdveil.data.importers.registry import TOOLS, find_importer
from crowdveil.data.ingest.checked_column_codes import Missing
from crowdveil.data.ingest.column_readers import NO_NAMES, ColumnNames, delimiter_and_roles
from crowdveil.data.ingest.csv_files import COMMA, DELIMITERS, ENCODINGS, Progress, read_csv_table
from crowdveil.errors import ReportsError, SettingsError


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Layout of a source as far as a user states it.

    Attributes:
        names: columns of task, worker and answer.
        delimiter: character between the cells of text files.
        encoding: encoding of text files without byte-order mark; None for UTF-8.
        decimal: decimal mark of the answers, a point or comma.
        missing: whether empty answers are refused ("error") or no answers ("skip").
        question: question of an export or table with several.
        tool: tool whose export it is; None to recognise it.
    """

    names: ColumnNames = NO_NAMES
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str = "."
    missing: Missing = "error"
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
        hint = "Save the file as UTF-8, or state the one that it has."
        require_choice("the encoding", self.encoding, (*ENCODINGS, None), hint=hint)
        require_choice("the decimal mark", self.decimal, (".", ","), hint="State the one that the numbers have.")
        require_choice("missing", self.missing, get_args(Missing), hint="NULL is skipped in any case.")
        require_choice("the tool", self.tool, (*TOOLS, None))


def importer_of_file(file: ExportFile, layout: Layout) -> Importer | None:
    """Return the importer of a file; None if it has plain columns of answers.

    Raises:
        ReportsError: neither; the message has the columns found and what can be stated.
    """
    refusal = None
    try:
        delimiter, roles = delimiter_and_column_roles(file, layout)
        if layout.names != NO_NAMES or not is_label_studio_table(with_delimiter(file, delimiter), roles):
            return None
    except ReportsError as error:
        refusal = error
    for delimiter in possible_delimiters(file, layout):
        with suppress(ReportsError):  # the refusal names all defects of the file
            importer = find_importer(with_delimiter(file, delimiter))
            if importer is not None:
                return importer
    if refusal is None:
        return None
    raise refusal.changed(
        source=file.name,
        hint=f"{refusal.hint} No export of {', '.join(TOOLS[:-1])} was recognised either; a table with a column for "
        "each worker is read by crowdveil import wide FILE.",
    )


def is_label_studio_table(file: ExportFile, roles: Mapping[str, str]) -> bool:
    """Return whether a file is a table of Label Studio, whose data may have columns named like those of answers."""
    return roles.get("worker") == "annotator" and "annotation_id" in file.columns


def delimiter_and_column_roles(
    file: ExportFile, layout: Layout, *, by_header: bool = False
) -> tuple[str, dict[str, str]]:
    """Return the delimiter of a file (a comma unless it is text), and its columns by role."""
    if file.form == "text":
        return delimiter_and_roles(
            file.path,
            layout.names.stated_or_found_column_by_role,
            layout.delimiter,
            layout.encoding,
            by_header=by_header,
        )
    return COMMA, layout.names.stated_or_found_column_by_role(file.columns, file.name)


def with_delimiter(file: ExportFile, delimiter: str) -> ExportFile:
    """Return the file with a delimiter; the same file, with what was read of it, if it has that one."""
    return file if file.delimiter == delimiter else replace(file, delimiter=delimiter)


def possible_delimiters(file: ExportFile, layout: Layout) -> tuple[str, ...]:
    """Return the delimiters that a file may have."""
    if file.form != "text":
        return (COMMA,)
    return tuple(DELIMITERS) if layout.delimiter is None else (layout.delimiter,)


def with_delimiter_the_importer_recognises(file: ExportFile, importer: Importer, layout: Layout) -> ExportFile:
    """Return a file with the delimiter by which its columns are those of the importer; else with the most columns."""
    choices = [with_delimiter(file, delimiter) for delimiter in possible_delimiters(file, layout)]
    return next(
        (one for one in choices if importer.recognises(one.columns)), max(choices, key=lambda one: len(one.columns))
    )


def table_by_role(file: ExportFile, layout: Layout, progress: Progress | None) -> tuple[dict[str, str], pa.Table]:
    """Return the column of each role, and the table of these columns, named by role."""
    delimiter, roles = delimiter_and_column_roles(file, layout)
    wanted = list(roles.values())
    table: Any
    if file.form == "text":
        table = read_csv_table(file.path, wanted, delimiter, progress, layout.encoding)
    elif file.form == "json":
        table = pa.table(
            {name: [_json_cell_text(record.get(name)) for record in file.rows_as_mappings] for name in wanted}
        )
    else:
        table = file.arrow_table()
    return roles, table.select(wanted).rename_columns(list(roles))


def _json_cell_text(cell: Any) -> str | None:
    """Return a cell of JSON as text; None stays missing."""
    return None if cell is None else str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)


def concatenate_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Return tables of the same columns as one; a column of several types becomes text."""
    columns = {}
    for role in tables[0].column_names:
        parts = [table[role] for table in tables]
        if len({part.type for part in parts}) > 1:
            parts = [part.cast(pa.string()) for part in parts]
        columns[role] = pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
    return pa.table(columns).unify_dictionaries()
