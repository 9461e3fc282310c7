"""Text columns as dictionaries and positions: encoded while the next rows are read, joined and put in order once.

A dictionary that comes with the data (Categorical, Enum, Arrow, Parquet) is taken as it is; rows are not hashed again.


Text columns as dictionaries and positions, by the fastest way that fits: compiled code, numbers, or Arrow itself."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.data.ingest.validation import MISSING, CodedColumn
from crowdveil.jit import use_compiled_code

if TYPE_CHECKING:
    from crowdveil.data.ingest.hash_table import TextTable

COMPILED_FROM = 16 << 20
"""Bytes of text from which on compiled code is used: there is less to gain below."""
LOADED_FROM = 128 << 20
"""The same where numba is still to be loaded, which takes half a second."""
MAX_TABLE_ENTRIES_PER_ROW = 8
"""Largest size of a direct-address table of integers, in entries per row."""
SMALL_TABLE = 1 << 16
"""Entries up to which a direct-address table is used for any number of rows."""
ROWS_AT_ONCE = 1 << 16
"""Rows per pass; they stay in a core's cache."""
TEXT: Any = pa.dictionary(pa.int32(), pa.string())


class ColumnEncoder:
    """A text column that comes group by group."""

    def __init__(self, *, compiled: bool) -> None:
        self.compiled = compiled
        self.table: TextTable | None = None
        self.codes: list[NDArray[np.int32]] = []
        self.done: list[Any] = []

    def add(self, column: Any) -> None:
        """Encode the next rows, an Arrow chunked array of text."""
        if self.compiled:
            codes = self._look_up(column)
            if codes is not None:
                self.codes.append(codes)
                return
            # What the table cannot hold goes the other ways, and so does all that follows.
            self._close_table()
        self.done.append(_plainly(column))

    def finish(self) -> Any:
        """Return all rows as an Arrow chunked array of dictionaries and positions."""
        if self.compiled:
            self._close_table()
        return pa.chunked_array(self.done) if self.done else pa.chunked_array([], TEXT)

    def in_order(self) -> CodedColumn | None:
        """Return all rows coded by their sorted names; None if not all of them are in the table."""
        if self.table is None or self.done:
            return None
        return self.table.in_order(self.codes)

    def _look_up(self, column: Any) -> NDArray[np.int32] | None:
        if self.table is None:
            from crowdveil.data.ingest.hash_table import TextTable

            self.table = TextTable()
        return self.table.codes(column)

    def _close_table(self) -> None:
        if self.table is not None and self.codes:
            codes: Any = pa.array(np.concatenate(self.codes))
            self.done.append(pa.DictionaryArray.from_arrays(codes, self.table.dictionary(), safe=False))
        self.compiled, self.table, self.codes = False, None, []


def compiled_from() -> int:
    """Return the bytes of text from which on compiled code is used."""
    return COMPILED_FROM if "numba" in sys.modules else LOADED_FROM


def encoder_of(column: Any) -> ColumnEncoder:
    """Return an encoder to which the cells of an Arrow chunked array of text have been added."""
    encoder = ColumnEncoder(compiled=use_compiled_code(column.get_total_buffer_size(), compiled_from()))
    if len(column):
        encoder.add(column)
    return encoder


def _plainly(column: Any) -> Any:
    """Encode text chunks into one; Arrow gives all chunks the same dictionary, so only positions are joined."""
    coded = column.dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        pa.concat_arrays([one.indices for one in coded.chunks]), coded.chunks[-1].dictionary
    )


Ended = TypeVar("Ended")


def dictionary_encode_batches(batches: Iterable[pa.RecordBatch], names: Sequence[str], group_bytes: int) -> pa.Table:
    """Return text columns dictionary-encoded, in the order of the rows; arguments as `encode_batches`."""
    columns = _each_column(batches, names, group_bytes, ColumnEncoder.finish)
    return pa.table(dict(zip(names, columns, strict=True)))


def encode_batches(batches: Iterable[pa.RecordBatch], names: Sequence[str], group_bytes: int) -> dict[str, CodedColumn]:
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


def encode_text(column: Any) -> CodedColumn:
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


def _coded(encoder: ColumnEncoder) -> CodedColumn:
    """Return the codes of the encoder's table, or, where not all rows are in one, those of its dictionaries."""
    coded = encoder.in_order()
    return encode_sorted(encoder.finish()) if coded is None else coded


def encode_sorted(column: Any) -> CodedColumn:
    """Code a dictionary-encoded Arrow column by its sorted, distinct names that occur; null is missing."""
    if not len(column):
        return CodedColumn(np.empty(0, dtype=object), np.empty(0, dtype=np.int32))
    parts = _joined(column)
    dictionary = parts.dictionary
    order = pc.array_sort_indices(dictionary).to_numpy()
    order = order[_occurs(parts)[order]]
    names = dictionary.take(pa.array(order)).to_numpy(zero_copy_only=False)
    if dictionary.null_count or (names[1:] == names[:-1]).any():
        return encode_sorted(column.cast(dictionary.type).dictionary_encode())
    rank = np.full(len(dictionary) + 1, MISSING, dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return CodedColumn(names, np.concatenate([_of_chunk(rank, *chunk) for chunk in parts.chunks]))


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
    place = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    codes = np.empty(len(numbers), dtype=np.int32)
    for part in parts:
        codes[part] = place[(numbers[part] - low).view(f"u{numbers.itemsize}")]
    return np.flatnonzero(occurs).astype(numbers.dtype) + low, codes
