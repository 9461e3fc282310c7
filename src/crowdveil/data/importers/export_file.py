"""Files of labelling tools: delimited text, JSON, JSON lines, Parquet or Arrow, told apart by content."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from crowdveil.data.ingest.column_readers import NO_NAMES, ColumnNames, unreadable_parquet_error
from crowdveil.data.ingest.csv_files import (
    COMMA,
    UTF8_MARK,
    Progress,
    open_plain_or_gzip_as_utf8,
    read_csv_table,
    read_header,
)
from crowdveil.errors import ReportsError
from crowdveil.presentation.hints import advice

Form = Literal["parquet", "arrow", "arrow stream", "json", "text"]
MAGIC: dict[bytes, Form] = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow stream"}
STANDARD_INPUT = "standard input"
"""Name of a copy of standard input."""
ZIP = b"PK\x03\x04"
PEEKED = 1 << 16
"""Bytes by which the form is found."""


def file_form_from_first_bytes(path: Path) -> Form:
    """Return the form of a file, plain or gzipped, from its first bytes.

    Raises:
        ReportsError: the file cannot be read, or is a zip archive or spreadsheet.
    """
    with open_plain_or_gzip_as_utf8(path) as stream:
        start = stream.read(PEEKED)
    if start.startswith(ZIP):
        raise ReportsError(
            "the file must be a table or JSON, not a zip archive or spreadsheet",
            source=str(path),
            hint="Unpack the archive, or save the sheet as CSV.",
        )
    for magic, form in MAGIC.items():
        if start.startswith(magic):
            return form
    return "json" if start.removeprefix(UTF8_MARK).lstrip()[:1] in (b"[", b"{") else "text"


@dataclass(frozen=True)
class ExportFile:
    """One file of an export.

    Attributes:
        path: the file.
        name: name for messages; that of the file before it was copied.
        delimiter: character between the cells of a text file.
        encoding: encoding of a text without byte-order mark; None for UTF-8.
        names: columns that a user states.
    """

    path: Path
    name: str
    delimiter: str = COMMA
    encoding: str | None = None
    names: ColumnNames = NO_NAMES

    @cached_property
    def form(self) -> Form:
        """Form of the file; errors as `file_form_from_first_bytes`."""
        return file_form_from_first_bytes(self.path)

    @cached_property
    def is_blank_or_empty_json_list(self) -> bool:
        """Whether the file may be JSON without a record: it is blank, or an empty list."""
        with open_plain_or_gzip_as_utf8(self.path) as stream:
            return b"".join(stream.read(PEEKED).removeprefix(UTF8_MARK).split()) in (b"", b"[]")

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns of a table, or keys of the records."""
        if self.form == "text":
            return read_header(self.path, self.delimiter, self.encoding)
        if self.form == "json":
            return list(dict.fromkeys(key for record in self.rows_as_mappings for key in record))
        with self._open_parquet_or_arrow() as file:
            return list((file.schema_arrow if self.form == "parquet" else file.schema).names)

    @cached_property
    def rows_as_mappings(self) -> list[dict[str, Any]]:
        """Rows as mappings; cells of a text file are text.

        Raises:
            ReportsError: the file cannot be read, or is JSON without records.
        """
        if self.form == "json":
            return self._json_records()
        if self.form != "text":
            return self.arrow_table().to_pylist()
        return list(self.rows(self.columns))

    def rows(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield the rows with the named columns only.

        Raises:
            ReportsError: two of the columns have the same name.
        """
        if self.form != "text":
            yield from ({name: record.get(name) for name in names} for record in self.rows_as_mappings)
            return
        wanted = list(names)
        counts = Counter(self.columns)
        repeated = sorted(name for name in set(wanted) if counts[name] > 1)
        if repeated:
            raise ReportsError(
                "each column needs a name of its own",
                source=self.name,
                examples=", ".join(map(repr, repeated[:5])),
                hint="Rename the columns.",
            )
        yield from read_csv_table(self.path, wanted, self.delimiter, encoding=self.encoding).to_pylist()

    def arrow_table(self) -> pa.Table:
        """Return the table of a Parquet or Arrow file."""
        with self._open_parquet_or_arrow() as file:
            return file.read() if self.form == "parquet" else file.read_all()

    @contextmanager
    def _open_parquet_or_arrow(self) -> Iterator[Any]:
        """Open a Parquet or Arrow file; Arrow's errors become a ReportsError."""
        openers = {"parquet": pq.ParquetFile, "arrow stream": pa.ipc.open_stream, "arrow": pa.ipc.open_file}
        try:
            with pa.OSFile(str(self.path)) as file, openers[self.form](file) as reader:
                yield reader
        except MemoryError:
            raise
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise unreadable_parquet_error(self.name, error) from error

    def _json_records(self) -> list[dict[str, Any]]:
        """Return the records of a JSON list, or of JSON lines."""
        with open_plain_or_gzip_as_utf8(self.path, self.encoding) as stream:
            data = stream.read().removeprefix(UTF8_MARK)
        try:
            text = data.decode("utf-8")
            found = json.loads(text) if text.lstrip().startswith("[") else _records_of_lines(text)
        except (ValueError, RecursionError) as error:
            state = advice(", or state its encoding: {encoding}", encoding="cp1252")
            encoded = state if isinstance(error, UnicodeDecodeError) else ""
            raise ReportsError(
                "the file must be JSON in UTF-8: a list of records, or one record in each line",
                source=self.name,
                examples=str(error)[:200],
                hint=f"Export it again{encoded}.",
            ) from error
        if not found or not all(isinstance(record, dict) for record in found):
            raise ReportsError(
                "the file must hold at least one record, and records only",
                source=self.name,
                hint="Export the list of tasks or annotations, not a single object.",
            )
        return found


def first_file_and_count_of_others(files: Sequence[ExportFile]) -> str:
    """Return the name of the first file for messages, and how many more there are."""
    return files[0].name + (f" and {len(files) - 1} more" if len(files) > 1 else "")


@contextmanager
def whole_file_progress(files: Sequence[ExportFile], progress: Progress | None) -> Iterator[None]:
    """Report the size of files before they are read, and that all was read at the end; JSON is parsed at once."""
    size = sum(file.path.stat().st_size for file in files if file.path.is_file())
    if progress is not None and size:
        progress(0, size)
    yield
    if progress is not None and size:
        progress(size, size)


def _records_of_lines(text: str) -> list[Any]:
    """Return the records of JSON lines; a single object over several lines is one record."""
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        return [json.loads(text)]
