"""Files that encoded blocks hold, as their manifest lists them, with which of their answers were read."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.ingest.column_readers import ANSWERS, QUESTION
from crowdveil.answers.ingest.csv_files import content_digest
from crowdveil.answers.sources.answer_source import AnswerSource, local_source
from crowdveil.answers.sources.local_copies import url_without_credentials
from crowdveil.answers.spreadsheets.sheets import read_sheet
from crowdveil.answers.store_manifest import MANIFEST_FILE, EncodedFile, InputReading, read_manifest
from crowdveil.files.filesystem import scheme_of

SEVERAL = ""
"""Question of answers to several that were read together."""


def encoded_files(source: Path | AnswerSource, folder: Path) -> tuple[EncodedFile, ...]:
    """Return the files of a source as the manifest of blocks in a folder lists them; of blocks, those that they list.

    Raises:
        ReportsError: a file cannot be read, or has no answers.
    """
    opened = source if isinstance(source, AnswerSource) else local_source(source)
    if opened.is_block_folder:
        return read_manifest(opened.path / MANIFEST_FILE).history.inputs
    question = _question_of_source(opened)
    return tuple(
        EncodedFile(
            _recorded_name(file, folder),
            file.path.stat().st_size,
            content_digest(file.path),
            _reading_of_file(file, question, is_table=opened.importer is None),
        )
        for file in opened.files
    )


def _question_of_source(source: AnswerSource) -> str | None:
    """Return the question that is stated, or that an export has; None for tables, of which each may have its own."""
    if source.layout.question is not None or source.importer is None:
        return source.layout.question
    return source.answers_of_tool_export().question


def _reading_of_file(file: ExportFile, question: str | None, *, is_table: bool) -> InputReading:
    """Return which answers of a file are read; `question` is that of all files."""
    sheet = read_sheet(file.sheet_path).name if file.sniffed.is_sheet else None
    if not is_table:
        return InputReading(_as_utf8(sheet), question=_as_utf8(question))
    delimiter, roles = file.delimiter_and_column_roles()
    file = file.with_delimiter(delimiter)
    keys = {key: value for key, value in file.keys.items() if key in roles.values() and key not in file.columns}
    return InputReading(
        sheet=_as_utf8(sheet),
        keys={str(_as_utf8(key)): _as_utf8(value) for key, value in keys.items()},
        columns={role: str(_as_utf8(roles[role])) for role in ANSWERS},
        question=_as_utf8(_question_of_column(file, roles.get(QUESTION)) if question is None else question),
    )


def _question_of_column(file: ExportFile, column: str | None) -> str | None:
    """Return the only question in a column of a table, `SEVERAL`, or None without the column."""
    if column is None:
        return None
    if column in file.keys:
        return file.keys[column]
    found = pc.unique(file.table_of_roles({QUESTION: column})[QUESTION].cast(pa.string())).to_pylist()
    return found[0] if len(found) == 1 else SEVERAL


def _recorded_name(file: ExportFile, folder: Path) -> str:
    """Return the path relative to the folder; of a copy, what the user named, without a password."""
    if file.name == str(file.path):
        name = Path(os.path.relpath(file.path, folder)).as_posix()
    else:
        name = url_without_credentials(file.name) if scheme_of(file.name) else file.name
    return os.fsencode(name).decode("utf-8", "replace")


def _as_utf8(text: str | None) -> str | None:
    """Return a text of the command line or of the name of a folder as it can be written in UTF-8."""
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8")
