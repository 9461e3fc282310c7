"""Streaming dictionary encoding of text columns: one group of rows is encoded while the next is read.

Existing dictionaries (Categorical, Enum, Arrow, Parquet) are reused without hashing. Large columns use a compiled
hash table, dense integers a direct-address table, all others Arrow.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.answers.ingest.checked_column_codes import MISSING, CodedColumn
from crowdveil.em.kernels.jit import use_compiled_by_environment_or_size

if TYPE_CHECKING:
    from crowdveil.answers.ingest.hash_table import TextTable

COMPILED_FROM = 16 << 20
"""Bytes of text from which compiled code is used if numba is loaded."""
LOADED_FROM = 128 << 20
"""Bytes of text from which numba is imported; the import lasts half a second."""
MAX_TABLE_ENTRIES_PER_ROW = 8
"""Largest size of a direct-address table of integers, in entries per row."""
SMALL_TABLE = 1 << 16
"""Entries up to which a direct-address table is used for any number of rows."""
ROWS_AT_ONCE = 1 << 16
"""Rows per pass; they stay in a core's cache."""
TEXT: Any = pa.dictionary(pa.int32(), pa.string())


class ColumnEncoder:
    """Streaming dictionary encoder of a text column: compiled hash table if possible, else Arrow."""

    def __init__(self, *, compiled: bool) -> None:
        self.table = _new_table() if compiled else None
        self.codes: list[NDArray[np.int32]] = []
        self.done: list[Any] = []

    def add(self, column: Any) -> None:
        """Add rows, an Arrow chunked array of text with at least one chunk."""
        codes = None if self.table is None else self.table.code_of_each_row_or_none(column)
        if codes is not None:
            self.codes.append(codes)
            return
        if self.table is not None and self.codes:
            # From the first group that the hash table cannot hold, Arrow encodes.
            names = self.table.dictionary().cast(column.type)
            self.done.append(pa.DictionaryArray.from_arrays(pa.array(np.concatenate(self.codes)), names, safe=False))
        self.table, self.codes = None, []
        coded = column.dictionary_encode()  # all chunks have the same dictionary
        indices = pa.concat_arrays([one.indices for one in coded.chunks])
        self.done.append(pa.DictionaryArray.from_arrays(indices, coded.chunks[-1].dictionary))

    def coded(self) -> CodedColumn:
        """Return all rows as a coded column."""
        if self.table is not None and self.codes:
            return self.table.sorted_coded_column(self.codes)
        return encode_sorted(pa.chunked_array(self.done) if self.done else pa.chunked_array([], TEXT))


def _new_table() -> "TextTable":
    from crowdveil.answers.ingest.hash_table import TextTable

    return TextTable()


def least_bytes_for_compiled_code() -> int:
    """Return the bytes of text from which compiled code is used."""
    return COMPILED_FROM if "numba" in sys.modules else LOADED_FROM


def encode_text(column: Any) -> CodedColumn:
    """Return the coded column of an Arrow chunked array of text; null is missing."""
    encoder = ColumnEncoder(
        compiled=use_compiled_by_environment_or_size(column.get_total_buffer_size(), least_bytes_for_compiled_code())
    )
    if len(column):
        encoder.add(column)
    return encoder.coded()


def encode_batches(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> dict[str, CodedColumn]:
    """Return text columns as coded columns, encoded in threads.

    Memory holds the text of one group of batches, and the codes and distinct values of the others.

    Args:
        batches: record batches with the named columns.
        names: column names.
    """
    enough, waiting = least_bytes_for_compiled_code(), iter(batches)
    group = _next_group(waiting, enough)
    compiled = use_compiled_by_environment_or_size(sum(batch.nbytes for batch in group), enough)
    encoders = {name: ColumnEncoder(compiled=compiled) for name in names}
    with ThreadPoolExecutor(max(len(names), 1)) as threads:
        while group:
            text = pa.Table.from_batches(group)
            under_way = [threads.submit(encoder.add, text[name]) for name, encoder in encoders.items()]
            group = _next_group(waiting, COMPILED_FROM)
            for column in under_way:
                column.result()
        return dict(zip(names, threads.map(ColumnEncoder.coded, encoders.values()), strict=True))


def encode_sorted(column: Any) -> CodedColumn:
    """Return the coded column of a dictionary-encoded Arrow column; unused dictionary entries are dropped."""
    if not len(column):
        return CodedColumn(np.empty(0, dtype=object), np.empty(0, dtype=np.int32))
    whole = _with_wide_indices(column).unify_dictionaries().combine_chunks()
    dictionary, positions = whole.dictionary, whole.indices.fill_null(MISSING).to_numpy()
    occurs = np.zeros(len(dictionary) + 1, dtype=bool)
    occurs[positions] = True
    order = pc.array_sort_indices(dictionary).to_numpy()
    order = order[occurs[order]]
    names = dictionary.take(pa.array(order)).to_numpy(zero_copy_only=False)
    if dictionary.null_count or (names[1:] == names[:-1]).any():
        return encode_sorted(column.cast(dictionary.type).dictionary_encode())
    rank = np.full(len(dictionary) + 1, MISSING, dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return CodedColumn(names, rank[positions])


def _with_wide_indices(column: Any) -> Any:
    """Return a column of dictionary-encoded chunks whose indices hold the entries of all chunks together."""
    if column.type.index_type == pa.int32():
        return column
    parts = [pa.DictionaryArray.from_arrays(one.indices.cast(pa.int32()), one.dictionary) for one in column.chunks]
    return pa.chunked_array(parts)


def _next_group(batches: Iterator[pa.RecordBatch], group_bytes: int) -> list[pa.RecordBatch]:
    """Return the next batches with at least `group_bytes` in total, or all that are left."""
    held: list[pa.RecordBatch] = []
    size = 0
    while size < group_bytes and (batch := next(batches, None)) is not None:
        held.append(batch)
        size += batch.nbytes
    return held


def encode_integers(column: Any) -> tuple[NDArray[Any], NDArray[np.int32]] | None:
    """Return the sorted distinct values of an integer Arrow column and each row's position among them.

    Uses a direct-address table, not hashing. None if a value is null, or the range is large for the number of rows.
    """
    if column.null_count or not len(column):
        return None
    ends: Any = pc.min_max(column).as_py()
    size = ends["max"] - ends["min"] + 1
    if size > max(MAX_TABLE_ENTRIES_PER_ROW * len(column), SMALL_TABLE):
        return None
    numbers = column.to_numpy()
    parts = [slice(first, first + ROWS_AT_ONCE) for first in range(0, len(numbers), ROWS_AT_ONCE)]
    low = numbers.dtype.type(ends["min"])
    occurs = np.zeros(size, dtype=bool)
    for part in parts:
        occurs[(numbers[part] - low).view(f"u{numbers.itemsize}")] = True
    # Without a gap, the offset from the smallest number is the code.
    code_of = None if occurs.all() else np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    codes = np.empty(len(numbers), dtype=np.int32)
    for part in parts:
        offset = (numbers[part] - low).view(f"u{numbers.itemsize}")
        codes[part] = offset if code_of is None else code_of[offset]
    return np.flatnonzero(occurs).astype(numbers.dtype) + low, codes
