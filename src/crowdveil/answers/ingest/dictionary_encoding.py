"""Dictionary encoding of columns by Arrow: sorted distinct values, and the position of each row's among them."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.answers.ingest.column_checks import MISSING, CodedColumn

TEXT: Any = pa.dictionary(pa.int32(), pa.string())
GROUP_BYTES = 128 << 20
"""Bytes of text that are coded at once."""
GROUPS_AT_ONCE = 8
"""Groups whose dictionaries are merged at once."""
WIDE_RANGE = 2
"""Numbers for each row from which on a range of integers is wide."""


def encode_batches(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> dict[str, CodedColumn]:
    """Return text columns as coded columns, coded in threads.

    Memory holds the text of one group of batches, the codes of the others, and their distinct values.

    Args:
        batches: record batches with the named columns.
        names: column names.
    """
    waiting, columns = iter(batches), {name: list[Any]() for name in names}
    with ThreadPoolExecutor(max(len(names), 1)) as threads:
        while group := _next_group(waiting):
            list(threads.map(_add_coded, columns.values(), map(pa.Table.from_batches(group).column, names)))
            group.clear()  # its text, before the next is read
        coded = threads.map(lambda parts: encode_sorted(pa.chunked_array(parts, TEXT)), columns.values())
        return dict(zip(names, coded, strict=True))


def _next_group(batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the next batches with at least `GROUP_BYTES` in total, or all that are left."""
    held: list[pa.RecordBatch] = []
    size = 0
    while size < GROUP_BYTES and (batch := next(batches, None)) is not None:
        held.append(batch)
        size += batch.nbytes
    return held


def _add_coded(parts: list[Any], column: Any) -> None:
    """Add a column to its dictionary-encoded parts; many parts become one."""
    parts.append(_coded(column))
    if len(parts) > GROUPS_AT_ONCE:
        parts[:] = [_with_one_dictionary(pa.chunked_array(parts))]


def encode_sorted(column: Any) -> CodedColumn:
    """Return the coded column of an Arrow column; dictionaries are not hashed again, and their unused entries dropped.

    Args:
        column: Arrow chunked array; null is missing.
    """
    if not len(column):
        return CodedColumn(np.empty(0, dtype=object), np.empty(0, dtype=np.int32))
    if pa.types.is_integer(column.type) and (dense := _coded_by_range(column)) is not None:
        return dense
    whole = _with_one_dictionary(column) if pa.types.is_dictionary(column.type) else _coded(column)
    dictionary, positions = whole.dictionary, whole.indices.fill_null(MISSING).to_numpy()
    occurs = np.zeros(len(dictionary) + 1, dtype=bool)
    occurs[positions] = True
    order = pc.array_sort_indices(dictionary).to_numpy()
    order = order[occurs[order]]
    names = dictionary.take(pa.array(order)).to_numpy(zero_copy_only=False)
    if dictionary.null_count or (names[1:] == names[:-1]).any():
        return encode_sorted(column.cast(dictionary.type))
    rank = np.full(len(dictionary) + 1, MISSING, dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return CodedColumn(names, rank[positions])


def _coded_by_range(column: Any) -> CodedColumn | None:
    """Return the coded column of integers by a table of their range, a tenth of the time of hashing them.

    None if there are missing cells, or the range is wide.
    """
    if column.null_count:
        return None
    numbers = column.to_numpy()
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > WIDE_RANGE * len(numbers) or high > np.iinfo(np.intp).max:
        return None
    place = np.subtract(numbers, low, dtype=np.intp, casting="unsafe")
    occurs = np.zeros(high - low + 1, dtype=bool)
    occurs[place] = True
    names = (np.flatnonzero(occurs) + low).astype(numbers.dtype)
    rank = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return CodedColumn(names, place.astype(np.int32) if occurs.all() else rank.take(place))


def _coded(column: Any) -> Any:
    """Return a column as one dictionary-encoded array."""
    chunks = column.dictionary_encode().chunks  # all have the same dictionary
    return pa.DictionaryArray.from_arrays(pa.concat_arrays([one.indices for one in chunks]), chunks[0].dictionary)


def _with_one_dictionary(column: Any) -> Any:
    """Return one array of dictionary-encoded chunks, with indices that hold the entries of all of them."""
    parts = [pa.DictionaryArray.from_arrays(one.indices.cast(pa.int32()), one.dictionary) for one in column.chunks]
    return pa.chunked_array(parts).unify_dictionaries().combine_chunks()


def distinct_values(column: Any) -> tuple[NDArray[np.int32], Any]:
    """Return the position of each cell among the distinct values, MISSING for null, and these values."""
    coded = _coded(column)
    return coded.indices.fill_null(MISSING).to_numpy(), coded.dictionary


def codes_with_more_names(values: Any, known: Any) -> tuple[NDArray[np.int32], Any]:
    """Return the codes of distinct values into known ones and those that they add after them, and all these."""
    own = pa.DictionaryArray.from_arrays(pa.array(np.arange(len(values), dtype=np.int32)), values)
    if known is None:
        return own.indices.to_numpy(), values
    before = pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), known)
    whole = _with_one_dictionary(pa.chunked_array([before, own]))
    return whole.indices.to_numpy(), whole.dictionary
