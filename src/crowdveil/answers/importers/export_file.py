"""Files of labelling tools: delimited text, JSON, JSON lines, Parquet or Arrow, told apart by content."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crowdveil.answers.ingest.arrow_columns import encode_arrow_column, unreadable_parquet_error
from crowdveil.answers.ingest.column_checks import CodedColumn
from crowdveil.answers.ingest.column_readers import (
    NO_NAMES,
    ROWS_SHOWN,
    Accepted,
    ColumnNames,
    Match,
    delimiter_and_roles,
    match_columns,
    read_csv_by_role,
)
from crowdveil.answers.ingest.csv_errors import COMMA, DELIMITERS
from crowdveil.answers.ingest.csv_files import (
    Headers,
    Progress,
    Result,
    header_or_raise,
    headers_by_delimiter,
    open_as_utf8,
    read_csv_batches,
    read_csv_table,
    read_header,
    read_text_start,
    text_source,
)
from crowdveil.answers.ingest.json_tables import records_of_table
from crowdveil.answers.sources.folder_keys import (
    Keys,
    constant_column,
    keys_by_column,
    keys_without_column,
    refuse_other_values,
)
from crowdveil.errors import ReportsError
from crowdveil.hints import advice

Form = Literal["parquet", "arrow", "arrow stream", "json", "text"]
MAGIC: dict[bytes, Form] = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow stream"}
STANDARD_INPUT = "standard input"
"""Name of a copy of standard input."""
MAX_JSON_BYTES = 1 << 30
"""Largest size of JSON, which is parsed as a whole."""
BATCH_ROWS = 1 << 16
"""Rows of Parquet that are read at a time."""
PEEKED = 1 << 16
"""Bytes by which the form is found."""


class Sniffed(NamedTuple):
    """Content of a file, found by its first bytes.

    Attributes:
        form: form of the file.
        is_blank: whether it may be JSON without a record: it is blank, or an empty list.
        headers: header of a text file by delimiter; empty for other forms.
        is_sheet: whether the text is that of a sheet of a workbook.
    """

    form: Form
    is_blank: bool
    headers: Headers
    is_sheet: bool = False


def sniff(path: Path, delimiters: Sequence[str], encoding: str | None) -> Sniffed:
    """Return what the first bytes of a file show, plain or gzipped; they are read once unless an encoding is stated.

    Raises:
        ReportsError: as `read_text_start`.
    """
    start = read_text_start(path)
    form = "text" if start.is_sheet else _form_of_first_bytes(start.content)
    text = start if form != "text" or encoding is None else read_text_start(path, encoding)
    headers = headers_by_delimiter(text, delimiters) if form == "text" else {}
    return Sniffed(form, b"".join(start.content[:PEEKED].split()) in (b"", b"[]"), headers, start.is_sheet)


def _form_of_first_bytes(start: bytes) -> Form:
    for magic, form in MAGIC.items():
        if start.startswith(magic):
            return form
    return "json" if start[:PEEKED].lstrip()[:1] in (b"[", b"{") else "text"


@dataclass(frozen=True)
class ExportFile:
    """One file of answers, as its user states it and as its first bytes show it.

    Attributes:
        path: the file.
        name: name for messages; that of the file before it was copied.
        delimiter: character between the cells of a text file.
        encoding: encoding of a text without byte-order mark; None for UTF-8.
        names: columns that a user states.
        delimiters: delimiters that a text file may have.
        transposed: whether a wide table has one row for each worker, and one column for each task.
        sheet: sheet of a workbook; None for the only one.
        keys: values by the keys of its folders, which are columns unless the file has them.
    """

    path: Path
    name: str
    delimiter: str = COMMA
    encoding: str | None = None
    names: ColumnNames = NO_NAMES
    delimiters: tuple[str, ...] = tuple(DELIMITERS)
    transposed: bool = False
    sheet: str | None = None
    keys: Keys = field(default_factory=dict, hash=False)

    @property
    def sheet_path(self) -> Path:
        """Path as readers of text take it: with the name of the sheet, as `file_and_sheet` reads it."""
        return self.path if self.sheet is None else Path(f"{self.path}?{self.sheet}")

    @cached_property
    def sniffed(self) -> Sniffed:
        """Form and headers; errors as `sniff`."""
        return sniff(self.sheet_path, self.delimiters, self.encoding)

    def with_delimiter(self, delimiter: str) -> "ExportFile":
        """Return the file with a delimiter; the same file, with what was read of it, if it has that one."""
        if self.delimiter == delimiter:
            return self
        other = replace(self, delimiter=delimiter)
        vars(other)["sniffed"] = self.sniffed  # the first bytes are not read again
        return other

    @property
    def by_each_delimiter(self) -> list["ExportFile"]:
        """The file with each delimiter that it may have."""
        return [self.with_delimiter(one) for one in (self.delimiters if self.form == "text" else (COMMA,))]

    @property
    def form(self) -> Form:
        """Form of the file; errors as `sniff`."""
        return self.sniffed.form

    @property
    def is_empty_json(self) -> bool:
        """Whether the file may be JSON without a record: it is blank, or an empty list."""
        return self.sniffed.is_blank

    def delimiter_and_column_roles(self, *, by_header: bool = False) -> tuple[str, dict[str, str]]:
        """Return the delimiter of plain columns (a comma unless they are text), and the columns by role.

        `by_header`: whether a refusal must not depend on the rows. Errors as `delimiter_and_roles`.
        """
        match = self.match_with_keys(self.names.resolve_columns)
        if self.form != "text":
            return COMMA, match(self.columns, self.name)
        return delimiter_and_roles(
            self.sheet_path,
            match,
            self.delimiters[0] if len(self.delimiters) == 1 else None,
            self.encoding,
            by_header=by_header,
            headers=self.sniffed.headers,
        )

    def match_with_keys(self, match: Match) -> Match:
        """Return the function of the columns of the file that finds roles in its keys, too."""
        return lambda found, source: match([*found, *keys_without_column(self.keys, found)], source)

    @property
    def has_read_keys(self) -> bool:
        """Whether a key of its folders is a column that is read, or is compared with one of the file."""
        if not self.keys:
            return False
        delimiter, roles = self.delimiter_and_column_roles()
        return bool(keys_by_column(self.keys, [*roles.values(), *self.with_delimiter(delimiter).columns]))

    def table_of_roles(self, roles: Mapping[str, str], progress: Progress | None = None) -> pa.Table:
        """Return the columns of roles, named by role; those of text and JSON are text.

        Raises:
            ReportsError: the file is damaged, or a cell of JSON is a list or object in another role than "value".
        """
        keys = keys_without_column(self.keys, self.columns)
        table = self._table_of_columns({role: name for role, name in roles.items() if name not in keys}, progress)
        if shared := keys_by_column(self.keys, self.columns):
            refuse_other_values(self._table_of_columns({name: name for name in shared}), shared, self.row_source)
        for role, name in roles.items():
            if name in keys:
                table = table.append_column(role, constant_column(keys[name], len(table)))
        return table.select(list(roles)) if keys else table

    def _table_of_columns(self, roles: Mapping[str, str], progress: Progress | None = None) -> pa.Table:
        """Return columns of the file itself, as `table_of_roles`."""
        wanted = list(roles.values())
        table: Any
        if self.form == "text":
            header = header_or_raise(self.sniffed.headers, self.delimiter)
            table = read_csv_table(self.sheet_path, wanted, self.delimiter, progress, self.encoding, header)
        elif self.form == "json":
            return pa.table({role: self._json_column(name, role) for role, name in roles.items()})
        else:
            table = self.arrow_table()
        return table.select(wanted).rename_columns(list(roles))

    def _json_column(self, name: str, role: str) -> list[str | None]:
        """Return a column of records as text; a list or object is refused unless it is a label."""
        cells = [record.get(name) for record in self.rows_as_mappings]
        wrong = [number for number, cell in enumerate(cells, 1) if isinstance(cell, list | dict) and role != "value"]
        if wrong:
            raise ReportsError(
                f"a {role} must be a text or a number",
                source=self.name,
                rows=tuple(wrong[:ROWS_SHOWN]),
                examples=json.dumps(cells[wrong[0] - 1], ensure_ascii=False)[:80],
                hint=f"Write the name of the {role}.",
            )
        return [_json_cell_text(cell) for cell in cells]

    @property
    def row_source(self) -> str:
        """Name of the file, which says for a text where its rows stand."""
        if self.form != "text":
            return self.name
        delimiter = self.delimiters[0] if len(self.delimiters) == 1 else None
        return text_source(self.sheet_path, delimiter, self.encoding, self.name)

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns of a table, or keys of the records."""
        if self.form == "text":
            return read_header(self.sheet_path, self.delimiter, self.encoding, self.sniffed.headers)
        if self.form == "json":
            return list(dict.fromkeys(key for record in self.rows_as_mappings for key in record))
        return list(self.schema.names)

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types of the columns of a table; cells of text files are text."""
        if self.form == "text":
            return pa.schema([(name, pa.string()) for name in self.columns])
        with self._open_parquet_or_arrow() as file:
            return file.schema_arrow if self.form == "parquet" else file.schema

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
                "no two columns may have the same name",
                source=self.name,
                examples=", ".join(f"{counts[name]} columns {name!r}" for name in repeated),
                hint="Rename the columns.",
            )
        header = header_or_raise(self.sniffed.headers, self.delimiter)
        table = read_csv_table(self.sheet_path, wanted, self.delimiter, encoding=self.encoding, header=header)
        yield from table.to_pylist()

    def arrow_table(self) -> pa.Table:
        """Return the table of a Parquet or Arrow file."""
        with self._open_parquet_or_arrow() as file:
            return file.read() if self.form == "parquet" else file.read_all()

    def type_of_column(self, name: str) -> Any:
        """Return the Arrow type of a column of a table, or of a key of its folders."""
        return self.schema.field(name).type if name in self.schema.names else constant_column("", 0).type

    def read_batches(
        self,
        roles: Mapping[str, str],
        consume: Callable[[Iterable[pa.RecordBatch]], Result],
        progress: Progress | None,
        block_bytes: int,
    ) -> Result:
        """Return the result of `consume` on batches of a table with the columns of roles, named by role.

        Args:
            roles: name of the column of each role.
            consume: function of the batches.
            progress: called with the bytes read so far and the size of the file.
            block_bytes: bytes that are read at a time of a text, or of a column of Parquet.
        """
        shared = keys_by_column(self.keys, self.columns)
        names = list(dict.fromkeys([*(name for name in roles.values() if name in self.columns), *shared]))
        if self.form == "text":
            stated = self.delimiter, progress, self.encoding, header_or_raise(self.sniffed.headers, self.delimiter)
            by_role = partial(self._batches_by_role, roles=roles, shared=shared)
            return read_csv_batches(
                self.sheet_path, names, lambda batches: consume(by_role(batches)), *stated, block_bytes
            )
        return consume(self._batches_by_role(self._arrow_batches(names, block_bytes), roles, shared))

    def _batches_by_role(
        self, batches: Iterable[pa.RecordBatch], roles: Mapping[str, str], shared: Keys
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches with keys of folders as columns; refuse columns with other values than the keys they share."""
        row = 0
        for batch in batches:
            try:
                refuse_other_values(pa.Table.from_batches([batch]).select(list(shared)), shared, self.name)
            except ReportsError as error:
                raise error.changed(source=self.row_source, rows=tuple(row + one for one in error.rows)) from None
            row += len(batch)
            columns = [
                batch.column(name) if name in self.columns else constant_column(self.keys[name], len(batch))
                for name in roles.values()
            ]
            yield pa.RecordBatch.from_arrays(columns, list(roles))

    def _arrow_batches(self, names: Sequence[str], buffer_bytes: int) -> Iterator[pa.RecordBatch]:
        with self._open_parquet_or_arrow(buffer_size=buffer_bytes) as file:
            if self.form == "parquet":
                yield from file.iter_batches(BATCH_ROWS, columns=list(names))
            elif self.form == "arrow":
                yield from (file.get_batch(number).select(names) for number in range(file.num_record_batches))
            else:
                yield from (batch.select(names) for batch in file)

    @contextmanager
    def _open_parquet_or_arrow(self, **buffered: int) -> Iterator[Any]:
        """Open a Parquet or Arrow file; Arrow's errors become a ReportsError."""
        openers = {
            "parquet": partial(pq.ParquetFile, **buffered),
            "arrow stream": pa.ipc.open_stream,
            "arrow": pa.ipc.open_file,
        }
        try:
            with pa.OSFile(str(self.path)) as file, openers[self.form](file) as reader:
                yield reader
        except MemoryError:
            raise
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise unreadable_parquet_error(self.name, error) from error

    def _json_records(self) -> list[dict[str, Any]]:
        """Return the records of a JSON list, or of JSON lines."""
        with open_as_utf8(self.path, self.encoding) as stream:
            data = stream.read(MAX_JSON_BYTES + 1)
        if len(data) > MAX_JSON_BYTES:
            raise ReportsError(
                f"JSON must have at most {MAX_JSON_BYTES:,} bytes, without compression",
                source=self.name,
                examples=f"a file of {self.path.stat().st_size:,} bytes that holds more",
                hint="Write the table as CSV or Parquet, which are read in parts.",
            )
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
        if len(found) == 1 and isinstance(found[0], dict):
            names = self.names
            found = records_of_table(found[0], [names.task, names.worker, names.label, names.value]) or found
        if not found or not all(isinstance(record, dict) for record in found):
            raise ReportsError(
                "the file must hold at least one record, and records only",
                source=self.name,
                hint="Export the list of tasks or annotations, not a single object; a data frame, with its columns.",
            )
        return found


def _json_cell_text(cell: Any) -> str | None:
    """Return a cell of JSON as text, lists and objects as JSON; None stays missing."""
    if isinstance(cell, list | dict):
        return json.dumps(cell, ensure_ascii=False)
    return None if cell is None else str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)


def abbreviate_files(files: Sequence[ExportFile]) -> str:
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


class GivenColumns(NamedTuple):
    """Columns of a table that is given beside the answers.

    Attributes:
        roles: name of the column of each role.
        coded: coded column of each role.
        source: origin of the rows, for error messages.
    """

    roles: dict[str, str]
    coded: dict[str, CodedColumn]
    source: str


def read_given_columns(path: Path, accepted: Accepted, optional: Sequence[str] = ()) -> GivenColumns:
    """Return the columns of a table of any form that is no answers; arguments and errors as `read_csv_by_role`."""
    file = ExportFile(path, str(path))
    if file.form == "text":
        return GivenColumns(*read_csv_by_role(path, accepted, optional), text_source(path))
    found = file.columns
    roles = match_columns(found, accepted, file.name) | {name: name for name in optional if name in found}
    table = file.table_of_roles(roles)
    columns = {role: encode_arrow_column(integers_if_whole(table[role]), file.name) for role in roles}
    return GivenColumns(roles, columns, file.name)


def integers_if_whole(column: Any) -> Any:
    """Return whole numbers as integers: with an empty cell among them, pandas reads a column of them as floats."""
    if not pa.types.is_floating(column.type):
        return column
    known = pc.if_else(pc.is_finite(column), column, None)
    try:
        return known.cast(pa.int64()) if known.null_count else column
    except pa.ArrowInvalid:
        return column


def concatenate_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Return tables of the same columns as one; a column of several types becomes text."""
    columns = {}
    for role in tables[0].column_names:
        parts = [table[role] for table in tables]
        if len({part.type for part in parts}) > 1:
            parts = [part.cast(pa.string()) for part in parts]
        columns[role] = pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
    return pa.table(columns).unify_dictionaries()
