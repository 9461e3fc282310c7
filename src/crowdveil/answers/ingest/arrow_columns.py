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
from numpy.typing import NDArray

from crowdveil.answers.ingest.column_checks import MISSING, CodedColumn
from crowdveil.answers.ingest.column_readers import NO_NAMES, ColumnNames, ReportColumns, report_columns
from crowdveil.answers.ingest.csv_files import Progress
from crowdveil.answers.ingest.dictionary_encoding import codes_with_more_names, distinct_values, encode_sorted
from crowdveil.answers.ingest.mapped_codes import CodesWriter, place_of_codes
from crowdveil.errors import ReportsError

NAME_GROUPS = 16
"""Groups of the distinct values of a column that arrives in parts."""
NAME_COPIES, BYTES_PER_NAME = 2, 80
"""Copies of the text of names, and bytes per name beside, that reading needs at its end."""
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
                lists_as_text(table[name]) if role == "value" else table[name],
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
    if _holds_floats(column):
        numbers = column.cast(pa.float64()).to_numpy()
        return CodedColumn(numbers, np.arange(len(numbers), dtype=np.int32))
    return encode_sorted(_as_text_or_integers(column, source))


def _holds_floats(column: Any) -> bool:
    kind = _cell_type(column)
    return pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _as_text_or_integers(column: Any, source: str) -> Any:
    """Return a column that is not one of floats as text or integers; errors as `encode_arrow_column`."""
    kind = _cell_type(column)
    if pa.types.is_boolean(kind):
        return pc.if_else(column.cast(kind), "True", "False")
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    if str(kind) in TEXT_KINDS:
        return _as_plain_string_column(column)
    if not pa.types.is_integer(kind):
        hint = "Turn it into text or numbers."
        raise ReportsError(
            "columns must hold text or numbers", source=source, examples=f"a column of {kind}", hint=hint
        )
    return column


class SpilledColumn:
    """Column whose parts are coded as they arrive: the codes go to a file, the distinct values stay in memory.

    The values are in `NAME_GROUPS` by their last bytes: a table of hashes is made for one group at a time.

    Args:
        folder: of the file.
        source: for error messages.
    """

    def __init__(self, folder: Path, source: str) -> None:
        self._codes, self._source = CodesWriter(folder), source
        self._names: list[Any] = [None] * NAME_GROUPS
        self._are_floats = False

    @property
    def name_bytes(self) -> int:
        """Bytes of the distinct values and of their objects in Python, which are made at the end."""
        groups = [names for names in self._names if names is not None]
        return sum(int(names.nbytes) * NAME_COPIES + BYTES_PER_NAME * len(names) for names in groups)

    def add(self, column: Any) -> None:
        """Add an Arrow column of the type of the columns before; errors as `encode_arrow_column`."""
        self._are_floats = _holds_floats(column)
        if self._are_floats:
            # Equal bits are equal numbers: no zero loses its sign.
            column = pa.chunked_array([column.cast(pa.float64()).to_numpy().view(np.int64)])
        else:
            column = _as_text_or_integers(column, self._source)
            kind = _cell_type(column)
            column = column.cast(pa.large_string() if pa.types.is_string(kind) else kind)
        rows, values = distinct_values(column)
        group = _group_of_each(values)
        codes = np.full(len(values) + 1, MISSING, dtype=np.int32)
        for number in np.unique(group).tolist():
            own = np.flatnonzero(group == number)
            known = self._names[number]
            place, self._names[number] = codes_with_more_names(values.take(pa.array(own)), known)
            codes[own] = place * NAME_GROUPS + number
        self._codes.write(codes[rows])

    def finish(self) -> CodedColumn:
        """Return the coded column, with codes in a file."""
        codes = self._codes.finish()
        groups = [(number, names) for number, names in enumerate(self._names) if names is not None]
        self._names.clear()
        if not groups:
            return CodedColumn(np.empty(0, dtype=object), codes)
        given = np.concatenate([np.arange(len(names)) * NAME_GROUPS + number for number, names in groups])
        values = pa.concat_arrays([names for _, names in groups])
        groups.clear()
        order = pc.array_sort_indices(values).to_numpy()
        rank = np.full(int(given.max()) + 2, MISSING, dtype=np.int32)
        rank[given[order]] = np.arange(len(order), dtype=np.int32)
        del given
        values = values.take(pa.array(order))
        del order
        ranked = place_of_codes(rank, codes)
        self._codes.path.unlink()
        names = values.to_numpy(zero_copy_only=False)
        return CodedColumn(names.view(np.float64) if self._are_floats else names, ranked)


def _group_of_each(values: Any) -> NDArray[np.integer]:
    """Return a group below `NAME_GROUPS` for each text, by its last two bytes, or for each integer."""
    if pa.types.is_integer(values.type):
        return values.to_numpy() % NAME_GROUPS
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    held = np.frombuffer(data or b"", np.uint8)
    lengths = np.diff(ends)
    group = np.zeros(len(values), dtype=np.int64)
    for back, weight in ((1, 1), (2, 7)):
        long = lengths >= back
        group[long] += weight * held[ends[1:][long] - back]
    return group % NAME_GROUPS


def lists_as_text(column: Any) -> Any:
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
