"""Coded columns of Arrow tables and Parquet files."""

import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crowdveil.answers.ingest.column_checks import CodedColumn
from crowdveil.answers.ingest.column_readers import NO_NAMES, ColumnNames, ReportColumns, report_columns
from crowdveil.answers.ingest.csv_files import Progress
from crowdveil.answers.ingest.dictionary_encoding import encode_sorted
from crowdveil.errors import ReportsError

TEXT_KINDS = {"string", "large_string", "string_view", "binary", "large_binary", "binary_view"}
"""Names of Arrow's text types; not all supported versions have the views."""


def read_parquet_columns(
    path: str | PathLike[str], names: ColumnNames = NO_NAMES, progress: Progress | None = None, name: str | None = None
) -> ReportColumns:
    """Return the columns of a Parquet file of answers or reports; arguments and errors as `read_columns`.

    `name`: name for messages; by default the path.
    """
    source = name or str(path)
    try:
        with pq.ParquetFile(Path(path)) as file:
            roles = names.resolve_columns(file.schema_arrow.names, source)
            groups = [[number] for number in range(file.num_row_groups)] or [[]]
            tables = (file.read_row_groups(group, columns=list(roles.values())) for group in groups)
            table = pa.concat_tables(_with_progress(tables, file, Path(path), progress))
        return encode_columns(roles, table, source, value_name=names.stated_value_kind)
    except MemoryError:
        raise  # also an Arrow error, but not a defect of the file
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise unreadable_parquet_error(source, error) from error


def _with_progress(parts: Iterable[Any], file: Any, path: Path, progress: Progress | None) -> Iterator[Any]:
    """Yield all parts of a Parquet file; the bytes read are the share of its rows times its size."""
    size, read = path.stat().st_size, 0
    for part in parts:
        yield part
        read += len(part)
        if progress is not None:
            progress(size * read // max(1, file.metadata.num_rows), size)


def unreadable_parquet_error(source: str, error: Exception) -> ReportsError:
    """Return the error of a file that Arrow cannot read."""
    return ReportsError(
        "the file must be readable Parquet, with names and text in UTF-8",
        source=source,
        examples=str(error)[:200].rstrip("."),
        hint="Write the file again.",
    )


def encode_columns(
    roles: Mapping[str, str], table: pa.Table, source: str, *, value_name: str | None = None
) -> ReportColumns:
    """Return the columns, encoded in one thread each; the first error in the order of roles is raised.

    Args:
        roles: column name of each role.
        table: has these columns.
        source: for error messages.
        value_name: header of the value column; by default its name.
    """
    with ThreadPoolExecutor(len(roles)) as threads:
        waiting = {
            role: threads.submit(
                copy_context().run,
                encode_arrow_column,
                _lists_as_text(table[name]) if role == "value" else table[name],
                source,
            )
            for role, name in roles.items()
        }
        del table  # frees each column once it is encoded
        coded = {role: column.result() for role, column in waiting.items()}
    return report_columns(coded, roles, source, value_name)


def encode_arrow_column(column: Any, source: str) -> CodedColumn:
    """Return the coded column of an Arrow column of text or numbers; null is missing, bytes are UTF-8.

    Dictionary-encoded columns (Categorical, Enum) are not hashed again.

    Raises:
        ReportsError: the column holds neither text nor numbers.
    """
    kind = _cell_type(column)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = column.cast(pa.float64()).to_numpy()
        return CodedColumn(numbers, np.arange(len(numbers), dtype=np.int32))
    if pa.types.is_boolean(kind):
        column = pc.if_else(column.cast(kind), "True", "False")
    elif pa.types.is_null(kind):
        column = column.cast(pa.string())
    elif str(kind) in TEXT_KINDS:
        column = _as_plain_string_column(column)
    elif not pa.types.is_integer(kind):
        hint = "Turn it into text or numbers."
        raise ReportsError(
            "columns must hold text or numbers", source=source, examples=f"a column of {kind}", hint=hint
        )
    return encode_sorted(column)


def _lists_as_text(column: Any) -> Any:
    """Return a column of lists of texts or numbers as the JSON of each; any other column as it is."""
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or pa.types.is_nested(kind.value_type):
        return column
    if pa.types.is_temporal(kind.value_type):
        return column
    cells = column.to_pylist()
    return pa.chunked_array([[None if cell is None else json.dumps(cell, ensure_ascii=False) for cell in cells]])


def _cell_type(column: Any) -> Any:
    """Return the type of a column's cells, or of its dictionary."""
    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def _as_plain_string_column(column: Any) -> Any:
    """Return text of any Arrow type as contiguous text, inside a dictionary too."""
    if pa.types.is_string(_cell_type(column)) or pa.types.is_large_string(_cell_type(column)):
        return column
    if not pa.types.is_dictionary(column.type):
        return column.cast(pa.large_string())
    plain: Any = pa.dictionary(column.type.index_type, pa.large_string())
    chunks = [(chunk.indices, chunk.dictionary.cast(pa.large_string())) for chunk in column.chunks]
    return pa.chunked_array([pa.DictionaryArray.from_arrays(*chunk) for chunk in chunks], plain)
