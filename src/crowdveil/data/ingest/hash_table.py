"""Compiled hash table of text identifiers; it encodes in about two thirds of the time of Arrow.

The bytes of an identifier are stored as 64-bit words, and every row is compared with the identifier found. Lengths may
differ; a longer identifier widens all records.
"""

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.data.ingest.arrow_strings import cell_ends, text_array, text_bytes
from crowdveil.data.ingest.coded_columns import CodedColumn
from crowdveil.data.ingest.hash_table_numba import lengths_of, lookup, rehash, renumber

WORD = 8
"""Bytes per word."""
MAX_WORDS = 8
"""Largest length of an identifier, in words; columns with longer ones are encoded by Arrow."""
FIRST_SLOTS = 1 << 12
MAX_SLOTS = 1 << 32
"""Largest number of slots: at most half of them are used, and codes are int32."""


class TextTable:
    """Distinct identifiers in order of first occurrence, in an open-addressing hash table.

    Args:
        salt: 64-bit seed of the hashes; random if None, so that identifiers cannot be chosen to collide. Codes do not
            depend on it.
    """

    def __init__(self, salt: int | None = None) -> None:
        self.words, self.names = 1, 0
        self.slots, self.records = _empty(FIRST_SLOTS, self.words)
        self.records[0] = secrets.randbits(64) if salt is None else salt

    def codes(self, column: Any) -> NDArray[np.int32] | None:
        """Return each row's code, shape (rows,); None if cells are missing, or identifiers exceed the table's limits.

        Args:
            column: Arrow chunked array of text.
        """
        if column.null_count or not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            return None
        parts = [(_read_only(text_bytes(chunk)), _read_only(cell_ends(chunk))) for chunk in column.chunks]
        longest = max((int(np.diff(ends).max(initial=0)) for _, ends in parts), default=0)
        if longest > MAX_WORDS * WORD:
            return None
        while longest > self.words * WORD:
            self._rebuild(len(self.slots), 2 * self.words)
        codes = np.empty(len(column), dtype=np.int32)
        at = 0
        for text, ends in parts:
            if not self._fill(text, ends, codes[at : at + len(ends) - 1]):
                return None
            at += len(ends) - 1
        return codes

    def dictionary(self) -> Any:
        """Return the identifiers in code order, as an Arrow text array."""
        lengths = np.empty(self.names, dtype=np.int64)
        lengths_of(self.slots, lengths)
        letters = self.records[self.words : (self.names + 1) * self.words].view(np.uint8)
        table = letters.reshape(self.names, self.words * WORD)
        shortest, longest = int(lengths.min(initial=0)), int(lengths.max(initial=0))
        text = table[:, :longest] if shortest == longest else table[np.arange(table.shape[1]) < lengths[:, None]]
        return text_array(text, np.concatenate(([0], np.cumsum(lengths))))

    def in_order(self, parts: Sequence[NDArray[np.int32]]) -> CodedColumn:
        """Return the coded column, sorted, of rows given by their codes in parts; every identifier must occur."""
        names = self.dictionary()
        order = pc.array_sort_indices(names).to_numpy()
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        codes = np.empty(sum(len(part) for part in parts), dtype=np.int32)
        at = 0
        for part in parts:
            renumber(part, rank, codes[at : at + len(part)])
            at += len(part)
        return CodedColumn(names.take(pa.array(order)).to_numpy(zero_copy_only=False), codes)

    def _fill(self, text: NDArray[np.uint8], ends: NDArray[np.integer], codes: NDArray[np.int32]) -> bool:
        """Write the code of each row; return False if the table would exceed `MAX_SLOTS`."""
        done = 0
        while True:
            done, self.names = lookup(self.words)(text, ends, done, self.slots, self.records, self.names, codes)
            if done == len(codes):
                return True
            if 2 * len(self.slots) > MAX_SLOTS:
                return False
            self._rebuild(2 * len(self.slots), self.words)

    def _rebuild(self, size: int, words: int) -> None:
        """Move all identifiers into a table with `size` slots and `words` words per record."""
        slots, records = _empty(size, words)
        filled = self.names + 1
        records.reshape(-1, words)[:filled, : self.words] = self.records.reshape(-1, self.words)[:filled]
        rehash(self.slots, slots, records, words)
        self.slots, self.records, self.words = slots, records, words


def _empty(slots: int, words: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return empty slots, and records for half as many identifiers and record 0."""
    return np.zeros(slots, dtype=np.uint64), np.zeros((slots // 2 + 1) * words, dtype=np.uint64)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view; the loops are compiled for this array type only."""
    view = array.view()
    view.flags.writeable = False
    return view
