"""Dictionary encoding of columns by Arrow: sorted distinct values, and the position of each row's among them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.data.ingest.checked_column_codes import MISSING, CodedColumn
from crowdveil.data.ingest.csv_files import TEXT

BATCHES_AT_ONCE = 32
"""Batches whose dictionaries are merged at once."""


def encode_batches(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> dict[str, CodedColumn]:
    """Return dictionary-encoded columns as coded columns.

    Memory holds the codes of all batches, their distinct values, and the dictionaries of the last batches.

    Args:
        batches: record batches with the named columns.
        names: column names.
    """
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for batch in batches:
        for name, parts in columns.items():
            parts.append(batch[name])
            if len(parts) > BATCHES_AT_ONCE:
                parts[:] = [_with_one_dictionary(pa.chunked_array(parts))]
    return {name: encode_sorted(pa.chunked_array(parts, None if parts else TEXT)) for name, parts in columns.items()}


def encode_sorted(column: Any) -> CodedColumn:
    """Return the coded column of an Arrow column; dictionaries are not hashed again, and their unused entries dropped.

    Args:
        column: Arrow chunked array; null is missing.
    """
    if not len(column):
        return CodedColumn(np.empty(0, dtype=object), np.empty(0, dtype=np.int32))
    whole = _with_one_dictionary(column if pa.types.is_dictionary(column.type) else column.dictionary_encode())
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


def _with_one_dictionary(column: Any) -> Any:
    """Return one array of dictionary-encoded chunks, with indices that hold the entries of all of them."""
    parts = [pa.DictionaryArray.from_arrays(one.indices.cast(pa.int32()), one.dictionary) for one in column.chunks]
    return pa.chunked_array(parts).unify_dictionaries().combine_chunks()
