"""Compiled hash table of text identifiers, with open addressing and linear probing.

For a million names it takes a quarter of the time of Arrow. An identifier is its bytes, zero-padded to whole 64-bit
words, and its length in bytes; every row is compared with the identifier found. `records` is the flat table of words,
indexed [code + 1, word]; record 0 holds the salt of all hashes in its first word. A slot holds three bit fields, from
the highest bit: some bits of the hash, the length, and code + 1; an empty slot is 0. Rows are processed in batches:
slots and records of a whole batch are prefetched before they are compared, so cache misses overlap. A longer identifier
widens all records.
"""

import secrets
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit
from numpy.typing import NDArray

from crowdveil.answers.ingest.checked_column_codes import CodedColumn
from crowdveil.em.kernels.jit import compile_with_numba, prefetch_and_load_word_intrinsics

prefetch, load_word = prefetch_and_load_word_intrinsics()
BATCH = 256
"""Rows per batch of prefetches."""
WORD = np.uint64(8)
"""Bytes per word."""
MAX_WORDS = 8
"""Largest length of an identifier, in words; columns with longer ones are encoded by Arrow."""
FIRST_SLOTS = 1 << 12
HALF = np.uint64(32)
"""Bits of half a word."""
LENGTH_AT, HASH_AT = np.uint64(32), np.uint64(39)
"""Positions of the lowest bits of the length and of the hash in a slot."""
CODE = np.uint64(2**32 - 1)
"""Bit mask of code + 1 in a slot."""
HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""Odd multiplier of the hash, 2**64 / golden ratio (Fibonacci hashing, Knuth 1973)."""
NONE, ONE, THREE = np.uint64(0), np.uint64(1), np.uint64(3)


class TextTable:
    """Distinct identifiers in order of first occurrence.

    Args:
        salt: 64-bit seed of the hashes; random if None, so that identifiers cannot be chosen to collide. Codes do not
            depend on it.
    """

    def __init__(self, salt: int | None = None) -> None:
        self.words, self.names = 1, 0
        self.slots, self.records = _empty_slots_and_records(FIRST_SLOTS, self.words)
        self.records[0] = secrets.randbits(64) if salt is None else salt

    def code_of_each_row_or_none(self, column: Any) -> NDArray[np.int32] | None:
        """Return each row's code, shape (rows,); None if cells are missing, no text, or longer than a record can be.

        Args:
            column: Arrow chunked array.
        """
        if column.null_count or not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            return None
        parts = [_text_and_ends(chunk) for chunk in column.chunks]
        longest = max((int(np.diff(ends).max(initial=0)) for _, ends in parts), default=0)
        if longest > MAX_WORDS * WORD:
            return None
        while longest > self.words * WORD:
            self._rebuild(len(self.slots), 2 * self.words)
        return np.concatenate([np.empty(0, np.int32), *(self._codes_of_part(*part) for part in parts)])

    def dictionary(self) -> Any:
        """Return the identifiers in code order, as an Arrow text array."""
        lengths = np.empty(self.names, dtype=np.int64)
        used = self.slots[self.slots != NONE]
        lengths[(used & CODE) - ONE] = _length(used)
        letters = self.records[self.words : (self.names + 1) * self.words].view(np.uint8)
        letters = letters.reshape(self.names, 8 * self.words)[np.arange(8 * self.words) < lengths[:, None]]
        ends = np.concatenate(([0], np.cumsum(lengths)))
        return pa.LargeStringArray.from_buffers(self.names, pa.py_buffer(ends), pa.py_buffer(letters))

    def sorted_coded_column(self, parts: Sequence[NDArray[np.int32]]) -> CodedColumn:
        """Return the coded column, sorted, of rows given by their codes in parts; every identifier must occur."""
        names = self.dictionary()
        order = pc.array_sort_indices(names).to_numpy()
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        codes = np.concatenate([np.empty(0, np.int32), *(rank[part] for part in parts)])
        return CodedColumn(names.take(pa.array(order)).to_numpy(zero_copy_only=False), codes)

    def _codes_of_part(self, text: NDArray[np.uint8], ends: NDArray[np.integer]) -> NDArray[np.int32]:
        codes, done = np.empty(len(ends) - 1, dtype=np.int32), 0
        while True:
            done, self.names = lookup(self.words)(text, ends, done, self.slots, self.records, self.names, codes)
            if done == len(codes):
                return codes
            self._rebuild(2 * len(self.slots), self.words)

    def _rebuild(self, size: int, words: int) -> None:
        """Move all identifiers into a table with `size` slots and `words` words per record."""
        slots, records = _empty_slots_and_records(size, words)
        filled = self.names + 1
        records.reshape(-1, words)[:filled, : self.words] = self.records.reshape(-1, self.words)[:filled]
        rehash(self.slots, slots, records, words)
        self.slots, self.records, self.words = slots, records, words


def _empty_slots_and_records(slots: int, words: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return empty slots, and records for half as many identifiers and record 0."""
    return np.zeros(slots, dtype=np.uint64), np.zeros((slots // 2 + 1) * words, dtype=np.uint64)


def _text_and_ends(array: Any) -> tuple[NDArray[np.uint8], NDArray[np.integer]]:
    """Return the bytes of a text array, and the byte offsets of its cells in them, shape (cells + 1,); read-only."""
    _, ends, text = array.buffers()
    kind: type[np.signedinteger] = np.int64 if pa.types.is_large_string(array.type) else np.int32
    offsets = np.frombuffer(ends or bytes(8), dtype=kind)[array.offset : array.offset + len(array) + 1]
    # The loops are compiled for read-only arrays: those of Arrow's buffers may be either.
    letters = np.frombuffer(text or b"", dtype=np.uint8)
    letters.flags.writeable = offsets.flags.writeable = False
    return letters, offsets


@cache
def lookup(words: int) -> Any:
    """Return the compiled lookup for records of `words` words."""

    @compile_with_numba()
    def find_or_add(
        text: Any, ends: Any, done: Any, slots: Any, records: Any, names: Any, codes: Any
    ) -> tuple[Any, Any]:
        """Write the codes of rows until all rows are done or the table must grow.

        Args:
            text, ends: concatenated bytes of all rows, and offsets of the rows in them, shape (rows + 1,).
            done: number of rows that already have codes.
            slots, records: the table; the number of slots is a power of two.
            names: number of identifiers in the table; new ones get the next codes.
            codes: output, shape (rows,).

        Returns:
            Numbers of rows with codes, and of identifiers in the table.
        """
        width, batch = np.uint64(words), np.uint64(BATCH)
        found, row_words = np.empty(BATCH, np.uint64), np.empty(BATCH * words, np.uint64)
        keys, home_slots = np.empty(BATCH, np.uint64), np.empty(BATCH, np.uint64)
        done, names, rows, capacity = (
            np.uint64(done),
            np.uint64(names),
            np.uint64(len(codes)),
            np.uint64(len(slots) // 2),
        )
        while done < rows and names + batch <= capacity:
            count = min(batch, rows - done)
            _load_batch(text, ends, done, count, width, row_words, keys, home_slots, slots, records[0])
            _find_candidates(count, width, keys, home_slots, slots, records, found)
            for row in range(count):
                code = found[row]
                if code == NONE or not _equal_words(records, code * width, row_words, row * width, width):
                    code = _find_or_insert(row, width, row_words, keys[row], home_slots[row], slots, records, names)
                    names = max(names, code)
                codes[done + row] = np.int32(code) - np.int32(1)
            done += count
        return done, names

    return find_or_add


@compile_with_numba()
def rehash(old_slots: Any, slots: Any, records: Any, words: Any) -> None:
    """Insert all identifiers of `old_slots` into the empty `slots`; `records` holds their words."""
    width, mask = np.uint64(words), np.uint64(len(slots) - 1)
    for old in old_slots:
        if old != NONE:
            hashed = _hash(records, (old & CODE) * width, width, _length(old), records[0])
            position = hashed & mask
            while slots[position] != NONE:
                position = (position + ONE) & mask
            slots[position] = _slot_fields(hashed, _length(old)) | (old & CODE)


@njit(nogil=True)
def _load_batch(
    text: Any,
    ends: Any,
    first: Any,
    count: Any,
    width: Any,
    words: Any,
    keys: Any,
    home_slots: Any,
    slots: Any,
    salt: Any,
) -> None:
    """Write words, keys and home slots of the rows of a batch, and prefetch the slots."""
    size, mask = np.uint64(len(text)), np.uint64(len(slots) - 1)
    begin = np.uint64(ends[first])
    for row in range(count):
        end = np.uint64(ends[first + row + ONE])
        at, left = begin, end - begin
        for word in range(width):
            size_in_word = min(left, WORD)
            words[row * width + word] = _word(text, size, at, size_in_word)
            at += size_in_word
            left -= size_in_word
        hashed = _hash(words, row * width, width, end - begin, salt)
        keys[row], home_slots[row] = _slot_fields(hashed, end - begin), hashed & mask
        prefetch(slots, home_slots[row])
        begin = end


@njit(nogil=True)
def _find_candidates(count: Any, width: Any, keys: Any, home_slots: Any, slots: Any, records: Any, found: Any) -> None:
    """Write code + 1 of the first slot that agrees in length and hash bits, 0 if there is none; prefetch the record."""
    mask = np.uint64(len(slots) - 1)
    for row in range(count):
        position = home_slots[row]
        slot = slots[position]
        while slot != NONE and (slot ^ keys[row]) >> LENGTH_AT != NONE:
            position = (position + ONE) & mask
            slot = slots[position]
        found[row] = slot & CODE
        prefetch(records, found[row] * width)


@njit(nogil=True)
def _find_or_insert(
    row: Any, width: Any, words: Any, key: Any, position: Any, slots: Any, records: Any, names: Any
) -> Any:
    """Return code + 1 of a row's identifier; a new identifier is inserted with the next code."""
    mask = np.uint64(len(slots) - 1)
    while slots[position] != NONE:
        code = slots[position] & CODE
        if (slots[position] ^ key) >> LENGTH_AT == NONE and _equal_words(
            records, code * width, words, row * width, width
        ):
            return code
        position = (position + ONE) & mask
    for word in range(width):
        records[(names + ONE) * width + word] = words[row * width + word]
    slots[position] = key | (names + ONE)
    return names + ONE


@njit(nogil=True)
def _word(text: Any, size: Any, at: Any, size_in_word: Any) -> Any:
    """Return up to eight bytes of a text as a zero-padded word."""
    if size_in_word == NONE:
        return NONE
    if at + WORD <= size:
        return load_word(text, at) << ((WORD - size_in_word) << THREE) >> ((WORD - size_in_word) << THREE)
    word = NONE
    for byte in range(size_in_word):
        word |= np.uint64(text[at + byte]) << (byte << THREE)
    return word


@njit(nogil=True)
def _hash(words: Any, at: Any, width: Any, length: Any, salt: Any) -> Any:
    """Return the hash of an identifier; the last shift mixes high bits of the product into the slot index."""
    hashed = salt ^ np.uint64(length)
    for word in range(width):
        hashed = (hashed ^ words[at + word]) * HASH_MULTIPLIER
        hashed ^= hashed >> HALF
    hashed *= HASH_MULTIPLIER
    return hashed ^ (hashed >> HALF)


@njit(nogil=True)
def _slot_fields(hashed: Any, length: Any) -> Any:
    """Return the hash and length fields of a slot, with an empty code field."""
    return (hashed >> HASH_AT << HASH_AT) | (length << LENGTH_AT)


@njit(nogil=True)
def _length(slot: Any) -> Any:
    """Return the length field of a slot, in bytes."""
    return (slot >> LENGTH_AT) & ((ONE << (HASH_AT - LENGTH_AT)) - ONE)


@njit(nogil=True)
def _equal_words(records: Any, at: Any, words: Any, row_at: Any, width: Any) -> Any:
    """Return whether a record and the words of a row are equal."""
    difference = NONE
    for word in range(width):
        difference |= records[at + word] ^ words[row_at + word]
    return difference == NONE
