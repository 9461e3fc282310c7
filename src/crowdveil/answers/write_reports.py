"""Arrow tables of reports, and their files as CSV, Parquet or JSON, written block by block with bounded memory."""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, BinaryIO, Literal, get_args

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from crowdveil.answers.ingest.column_checks import number_or_nan
from crowdveil.answers.reports import Reports
from crowdveil.answers.spreadsheets.write import require_workbook_writer, write_workbook
from crowdveil.channels.alphabet import Scale
from crowdveil.files.csv_rows import csv_row

TableForm = Literal["csv", "parquet", "json", "jsonl", "xlsx"]
TABLE_FORMS: tuple[TableForm, ...] = get_args(TableForm)


ROWS_AT_ONCE = 1 << 14
"""Rows that are written at a time as JSON."""
FORMULA_SIGNS, NAMES_LOOKED_AT = tuple("=+-@"), 1_000_000
"""Signs with which a formula of a spreadsheet begins, and the number of names of each list that are looked at."""


def formula_names_warning(form: str, *lists: Iterable[object]) -> tuple[str, ...]:
    """Return a warning with the first name in the lists that a spreadsheet reads as a formula.

    Empty without any, and for files of another form than CSV.
    """
    if form != "csv":
        return ()
    names = (str(name) for names in lists for name in islice(names, NAMES_LOOKED_AT))
    first = next((name for name in names if name.startswith(FORMULA_SIGNS) and math.isnan(number_or_nan(name))), None)
    if first is None:
        return ()
    return (f"A spreadsheet reads {first!r} in the CSV as a formula: import its columns as text.",)


def ordered_reports_table(reports: Reports) -> pa.Table:
    """Return columns task, worker and label (or value), in the order of tasks and workers: not in order of arrival."""
    return pa.Table.from_batches(
        [batch for table in block_tables(reports) for batch in table.to_batches()], report_schema(reports)
    )


def block_tables(reports: Reports) -> Iterator[pa.Table]:
    """Yield the reports block by block, as columns task, worker and label (or value)."""
    tasks, workers = _arrow_text_array(reports.tasks), _arrow_text_array(reports.workers)
    labels = None if reports.alphabet is None else _arrow_text_array(reports.alphabet.names)
    for part in reports.chunks():
        columns = [
            pa.DictionaryArray.from_arrays(pa.array(part.task, pa.int32()), tasks),
            pa.DictionaryArray.from_arrays(pa.array(part.worker, pa.int32()), workers),
            pa.array(part.value)
            if labels is None
            else pa.DictionaryArray.from_arrays(pa.array(part.value, pa.int16()), labels),
        ]
        yield pa.Table.from_arrays(columns, schema=report_schema(reports))


def require_form(form: str) -> None:
    """Refuse a form whose writer is not installed, before there is something to write; errors as `write_workbook`."""
    if form == "xlsx":
        require_workbook_writer()


def write_table(stream: BinaryIO, table: pa.Table, form: TableForm = "csv") -> None:
    """Write a table; cells of CSV, in UTF-8, are quoted only in files where one of them needs it."""
    write_tables(stream, table.schema, lambda: [table], form)


def write_tables(
    stream: BinaryIO, schema: pa.Schema, tables: Callable[[], Iterable[pa.Table]], form: TableForm
) -> None:
    """Write tables of one schema, one after the other, as one file; `tables` may be called twice.

    Errors as `write_workbook`. JSON is a list of records, one in each line; JSON lines are the same without the list.
    """
    if form == "csv":
        _write_csv(stream, schema, tables)
    elif form == "parquet":
        _write_parquet(stream, schema, tables())
    elif form == "xlsx":
        write_workbook(stream, schema.names, tables())
    else:
        _write_json(stream, tables(), lines=form == "jsonl")


def _write_json(stream: BinaryIO, tables: Iterable[pa.Table], *, lines: bool) -> None:
    """Write records line by line, with bounded memory."""
    before = "" if lines else "[\n"
    for table in tables:
        for batch in table.to_batches(ROWS_AT_ONCE):
            texts = [json.dumps(record, ensure_ascii=False, allow_nan=False) for record in batch.to_pylist()]
            if texts:
                stream.write((before + ("\n" if lines else ",\n").join(texts)).encode("utf-8"))
                before = "\n" if lines else ",\n"
    stream.write(b"\n" if lines else b"\n]\n" if before != "[\n" else b"[]\n")


def _write_csv(stream: BinaryIO, schema: pa.Schema, tables: Callable[[], Iterable[pa.Table]]) -> None:
    """Write a header and tables without quotes, or all of them again with quotes if a cell needs them."""
    stream.write((csv_row(schema.names) + "\n").encode("utf-8"))
    start = stream.tell()
    try:
        _write_csv_rows_without_header(stream, schema, tables(), "none")
    except pa.ArrowInvalid:
        stream.seek(start)
        stream.truncate()
        _write_csv_rows_without_header(stream, schema, tables(), "needed")


def _write_csv_rows_without_header(
    stream: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table], quoting: Literal["none", "needed"]
) -> None:
    options = pa.csv.WriteOptions(include_header=False, quoting_style=quoting)
    with pa.csv.CSVWriter(stream, schema, write_options=options) as writer:
        for table in tables:
            writer.write_table(table)


def _write_parquet(stream: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    coded: Any = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    with pq.ParquetWriter(stream, schema, use_dictionary=coded) as writer:
        for table in tables:
            writer.write_table(table)


def report_schema(reports: Reports) -> pa.Schema:
    """Return the schema: dictionaries of task, worker and label, or numbers as value."""
    ids: Any = pa.dictionary(pa.int32(), pa.string())
    if reports.alphabet is None:
        return pa.schema([("task", ids), ("worker", ids), ("value", pa.float64())])
    name = "value" if isinstance(reports.alphabet, Scale) else "label"
    return pa.schema([("task", ids), ("worker", ids), (name, pa.dictionary(pa.int16(), pa.string()))])


def _arrow_text_array(names: Any) -> Any:
    return pa.array([str(name) for name in names], pa.string())
