"""Comparisons of frames, and of every source of answers: tables, and the exports of labelling tools."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from crowdveil.answers.comparisons.columns import (
    ACCEPTED,
    NO_COMPARISON_NAMES,
    OPTIONAL,
    ComparisonNames,
    comparisons_of_table,
)
from crowdveil.answers.comparisons.values import Comparisons
from crowdveil.answers.frames import as_table
from crowdveil.answers.importers.export_file import ExportFile, concatenate_tables
from crowdveil.answers.importers.imported_answers import answers_to_one_question
from crowdveil.answers.importers.importer import Importer
from crowdveil.answers.importers.registry import find_importer, importer_of, with_recognised_delimiter
from crowdveil.answers.ingest.column_readers import Match, delimiter_and_roles
from crowdveil.answers.ingest.row_sources import source_of_files
from crowdveil.answers.sources.answer_source import AnswerSource, import_notes
from crowdveil.answers.sources.folder_keys import notes_on_keys
from crowdveil.errors import ReportsError

Read = tuple[Comparisons, tuple[str, ...]]
"""Comparisons, and notes on how they were read."""


def comparisons_of_frame(
    frame: Any, names: ComparisonNames = NO_COMPARISON_NAMES, outputs: tuple[str, ...] | None = None
) -> Read:
    """Return the comparisons of a frame; `outputs` are the reports of a channel.

    Raises:
        ReportsError: not a frame, a missing column, or as `comparisons_of_table`.
    """
    table = as_table(frame)
    roles = names.roles(table.column_names, "data")
    return comparisons_of_table(_by_role(table, roles), roles, "data", outputs)


def _by_role(table: pa.Table, roles: Mapping[str, str]) -> pa.Table:
    return table.select(list(roles.values())).rename_columns(list(roles))


def comparisons_of_source(
    source: AnswerSource,
    names: ComparisonNames = NO_COMPARISON_NAMES,
    outputs: tuple[str, ...] | None = None,
    *,
    private: bool = False,
    every_row: bool = False,
) -> Read:
    """Return the comparisons of an opened source.

    Args:
        source: tables or exports.
        names: columns that are stated.
        outputs: reports of a channel; None for answers.
        private: whether single answers must not decide what is read: then only plain tables are.
        every_row: whether a row without an answer is refused.

    Raises:
        ReportsError: the source has no comparisons, or as `comparisons_of_table`.
    """
    if not source.files:
        raise ReportsError(
            "comparisons are read from files with the columns left, right, worker and label",
            source=source.name,
            hint="Encoded blocks and data sets have single answers.",
        )
    parts = [_table_of_file(file, names, source, private=private) for file in source.files]
    if len({"list" in table.column_names for _, table, _ in parts}) > 1:
        raise ReportsError("all files must have a column 'list', or none", source=source.name, hint="Add the column.")
    tables = [table.select([role for role in ACCEPTED if role in table.column_names]) for _, table, _ in parts]
    rows = source_of_files(source.name, [file.row_source for file in source.files], [len(one) for one in tables])
    roles = parts[0][0]
    found, notes = comparisons_of_table(concatenate_tables(tables), roles, rows, outputs, every_row=every_row)
    keys = [(file.keys, part[0].values()) for file, part in zip(source.files, parts, strict=True)]
    return found, (*(note for part in parts for note in part[2]), *(() if private else notes_on_keys(keys)), *notes)


def _table_of_file(
    file: ExportFile, names: ComparisonNames, source: AnswerSource, *, private: bool
) -> tuple[dict[str, str], pa.Table, tuple[str, ...]]:
    """Return roles, columns by role, and notes on the import of a file."""
    if private:
        if source.layout.tool is not None or source.layout.question is not None or file.form == "json":
            raise ReportsError(
                "private comparisons must have plain columns, in a table with a header",
                source=file.name,
                hint="Write them as CSV: left, right, worker, label.",
            )
        return *plain_table(file, names.roles), ()
    if source.layout.tool is not None:
        return _imported(file, importer_of(source.layout.tool), names, source)
    try:
        return *plain_table(file, names.roles), ()
    except ReportsError:
        importer = find_importer(file)
        if importer is None:
            raise
        return _imported(file, importer, names, source)


def plain_table(file: ExportFile, match: Match) -> tuple[dict[str, str], pa.Table]:
    """Return the column of each role, and the table of these columns, named by role; errors as `match`."""
    match = file.match_with_keys(match)
    if file.form != "text":
        roles = match(file.columns, file.name)
        return roles, file.table_of_roles(roles)
    delimiter = file.delimiters[0] if len(file.delimiters) == 1 else None
    delimiter, roles = delimiter_and_roles(
        file.sheet_path, match, delimiter, file.encoding, headers=file.sniffed.headers
    )
    return roles, file.with_delimiter(delimiter).table_of_roles(roles)


def _imported(
    file: ExportFile, importer: Importer, names: ComparisonNames, source: AnswerSource
) -> tuple[dict[str, str], pa.Table, tuple[str, ...]]:
    """Return the answers of an export, with the two items of each task from the data of the task.

    Raises:
        ReportsError: as `answers_to_one_question`; the tool's export does not hold the data of its tasks, or they have
            no two items.
    """
    export = with_recognised_delimiter(file, importer)
    pairs = {str(task): data for task, data in importer.task_data(export)}
    if not pairs:
        raise ReportsError(
            f"an export of {importer.title} is not read as comparisons",
            source=file.name,
            hint="Write its rows as a table: left, right, worker, label.",
        )
    asked = ComparisonNames(left=names.left, right=names.right, worker="worker", label="label", list=names.list)
    fields = list(dict.fromkeys(name for data in pairs.values() for name in data))
    found = asked.roles([*fields, "worker", "label"], file.name)
    answers = answers_to_one_question(importer, [export], source.layout.question)
    table, items = answers.table, {role: found[role] for role in ("left", "right", OPTIONAL) if role in found}
    tasks = table["task"].to_pylist()
    columns = {role: [_text(pairs[task].get(name)) for task in tasks] for role, name in items.items()}
    notes = import_notes(replace(answers, data=()), importer.title, "no")
    return found, pa.table(columns | {"worker": table["worker"], "label": table["label"]}), notes


def _text(cell: Any) -> str | None:
    return None if cell is None else str(cell)
