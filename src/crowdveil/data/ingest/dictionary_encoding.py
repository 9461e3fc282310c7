"""Text columns as dictionaries and positions: encoded while the next rows are read, joined and put in order once.

A dictionary that comes with the data (Categorical, Enum, Arrow, Parquet) is taken as it is; rows are not hashed again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.data.ingest.arrow_strings import name_order
from crowdveil.data.ingest.encoders import COMPILED_FROM, ColumnEncoder, compiled_from, encoder_of
from crowdveil.data.ingest.validation import MISSING, Coded
from crowdveil.jit import use_compiled_code

Ended = TypeVar("Ended")


def encode_batches(batches: Iterable[pa.RecordBatch], names: Sequence[str], group_bytes: int) -> pa.Table:
    """Return text columns dictionary-encoded, in the order of the rows; arguments as `code_batches`."""
    columns = _each_column(batches, names, group_bytes, ColumnEncoder.finish)
    return pa.table(dict(zip(names, columns, strict=True)))


def code_batches(batches: Iterable[pa.RecordBatch], names: Sequence[str], group_bytes: int) -> dict[str, Coded]:
    """Return text columns coded by their sorted names.

    Batches are gathered into groups, because many short dictionaries take long to join; compiled code has one
    dictionary for all groups, which may be small. One group is encoded while the next is read, so that memory holds the
    text of two groups, and the codes and distinct names of the others.

    Args:
        batches: record batches that hold the named columns.
        names: of the columns.
        group_bytes: of text in a group.
    """
    return dict(zip(names, _each_column(batches, names, group_bytes, _coded), strict=True))


def code_text(column: Any) -> Coded:
    """Code an Arrow chunked array of text by its sorted, distinct names; null is missing."""
    return _coded(encoder_of(column))


def _each_column(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], group_bytes: int, ending: Callable[[ColumnEncoder], Ended]
) -> list[Ended]:
    """Encode all columns and return what becomes of each in the end, which is done in threads, too."""
    enough = min(compiled_from(), group_bytes)
    waiting = iter(batches)
    group = _gathered(waiting, enough if use_compiled_code(enough, enough) else group_bytes)
    compiled = use_compiled_code(sum(batch.nbytes for batch in group), enough)
    encoders = [ColumnEncoder(compiled=compiled) for _ in names]
    with ThreadPoolExecutor(max(len(names), 1)) as threads:
        under_way: list[Future[None]] = []
        while group:
            for column in under_way:
                column.result()
            text = pa.Table.from_batches(group)
            pairs = zip(encoders, names, strict=True)
            under_way = [threads.submit(encoder.add, text[name]) for encoder, name in pairs]
            group = _gathered(waiting, min(COMPILED_FROM, group_bytes) if compiled else group_bytes)
        for column in under_way:
            column.result()
        return list(threads.map(ending, encoders))


def _coded(encoder: ColumnEncoder) -> Coded:
    """Return the codes of the encoder's table, or, where not all rows are in one, those of its dictionaries."""
    coded = encoder.in_order()
    return sorted_codes(encoder.finish()) if coded is None else coded


def sorted_codes(column: Any) -> Coded:
    """Code a dictionary-encoded Arrow column by its sorted, distinct names that occur; null is missing."""
    if not len(column):
        return Coded(np.empty(0, dtype=object), np.empty(0, dtype=np.int32))
    parts = _joined(column)
    dictionary = parts.dictionary
    order = name_order(dictionary)
    order = order[_occurs(parts)[order]]
    names = dictionary.take(pa.array(order)).to_numpy(zero_copy_only=False)
    if dictionary.null_count or (names[1:] == names[:-1]).any():
        return sorted_codes(column.cast(dictionary.type).dictionary_encode())
    rank = np.full(len(dictionary) + 1, MISSING, dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return Coded(names, np.concatenate([_of_chunk(rank, *chunk) for chunk in parts.chunks]))


class _Joined(NamedTuple):
    """One dictionary for all chunks; each chunk's positions, and the place of its own entries in the dictionary."""

    dictionary: Any
    chunks: list[tuple[NDArray[np.integer], NDArray[np.int32] | None]]


def _joined(column: Any) -> _Joined:
    chunks = column.chunks
    first = chunks[0].dictionary
    if all(chunk.dictionary.equals(first) for chunk in chunks):
        return _Joined(first, [(_positions(chunk), None) for chunk in chunks])
    entries = encoder_of(pa.chunked_array([chunk.dictionary for chunk in chunks])).finish().chunk(0)
    ends = np.cumsum([0, *(len(chunk.dictionary) for chunk in chunks)])
    places = _positions(entries).astype(np.int32)
    return _Joined(
        entries.dictionary,
        [
            (_positions(chunk), np.append(places[first:stop], np.int32(MISSING)))
            for chunk, first, stop in zip(chunks, ends[:-1], ends[1:], strict=True)
        ],
    )


def _of_chunk(table: NDArray[Any], positions: NDArray[np.integer], places: NDArray[np.int32] | None) -> NDArray[Any]:
    """Look up each row in a table of the joined dictionary; its last entry is for missing cells."""
    return table[positions] if places is None else table[places][positions]


def _positions(chunk: Any) -> NDArray[np.integer]:
    """Return positions in the chunk's own dictionary, MISSING for null."""
    signed = chunk.indices.cast(pa.int32()) if chunk.indices.type.bit_width < 64 else chunk.indices
    return signed.fill_null(MISSING).to_numpy()


def _occurs(parts: _Joined) -> NDArray[np.bool_]:
    """Mark the entries of the joined dictionary that some row holds."""
    occurs = np.zeros(len(parts.dictionary) + 1, dtype=bool)
    for positions, places in parts.chunks:
        if places is None:
            occurs[positions] = True
        else:
            own = np.zeros(len(places), dtype=bool)
            own[positions] = True
            occurs[places[own]] = True
    return occurs[:-1]


def _gathered(batches: Iterator[pa.RecordBatch], group_bytes: int) -> list[pa.RecordBatch]:
    """Take batches until they hold so many bytes, or none is left."""
    held: list[pa.RecordBatch] = []
    size = 0
    while size < group_bytes and (batch := next(batches, None)) is not None:
        held.append(batch)
        size += batch.nbytes
    return held
