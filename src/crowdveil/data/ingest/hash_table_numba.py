"""Compiled lookup and insertion of identifiers in an open-addressing hash table with linear probing.

An identifier is a number of 64-bit words, zero-padded, and its length. `records` holds the words, flat [identifier + 1,
word]; record 0 is unused except for its first word, the salt of all hashes. A slot holds, from the
highest bit, a part of the hash, the length, and the code + 1; an empty slot is 0. Rows are processed in batches: slots
and records of a whole batch are prefetched before they are compared, so cache misses overlap.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import njit

from crowdveil.jit import kernel, memory_intrinsics

prefetch, load_word = memory_intrinsics()
BATCH = 256
"""Rows that are looked up together."""
WORD = np.uint64(8)
"""Bytes of a word."""
HALF = np.uint64(32)
LENGTH_AT, HASH_AT = np.uint64(32), np.uint64(39)
"""Lowest bits of a slot's length and of its part of the hash."""
CODE = np.uint64(2**32 - 1)
ODD = np.uint64(0x9E3779B97F4A7C15)
"""2**64 over the golden ratio: products with it spread over all bits."""
NONE, ONE, THREE = np.uint64(0), np.uint64(1), np.uint64(3)


@cache
def lookup(words: int) -> Any:
    """Return the compiled look-up of names of so many words."""

    @kernel()
    def find_or_add(
        text: Any, ends: Any, done: Any, slots: Any, records: Any, names: Any, codes: Any
    ) -> tuple[Any, Any]:
        """Fill the codes of rows; stops where the table must grow first.

        Args:
            text, ends: bytes of the rows and where rows begin and end in them, shape (rows + 1,).
            done: rows that have codes already.
            slots, records: the table; slots are a power of two.
            names: how many there are; new ones get the next codes.
            codes: to be filled, shape (rows,).

        Returns:
            How many rows have codes, and how many names there are.
        """
        width, batch = np.uint64(words), np.uint64(BATCH)
        found, row_words = np.empty(BATCH, np.uint64), np.empty(BATCH * words, np.uint64)
        keys, places = np.empty(BATCH, np.uint64), np.empty(BATCH, np.uint64)
        done, names, rows, room = np.uint64(done), np.uint64(names), np.uint64(len(codes)), np.uint64(len(slots) // 2)
        while done < rows and names + batch <= room:
            held = min(batch, rows - done)
            _read(text, ends, done, held, width, row_words, keys, places, slots, records[0])
            _guess(held, width, keys, places, slots, records, found)
            for row in range(held):
                code = found[row]
                if code == NONE or not _same(records, code * width, row_words, row * width, width):
                    code = _place(row, width, row_words, keys[row], places[row], slots, records, names)
                    names = max(names, code)
                codes[done + row] = np.int32(code) - np.int32(1)
            done += held
        return done, names

    return find_or_add


@kernel()
def move(old_slots: Any, slots: Any, records: Any, words: Any) -> None:
    """Enter all names of other slots into free ones; `records` hold their words."""
    width, mask = np.uint64(words), np.uint64(len(slots) - 1)
    for old in old_slots:
        if old != NONE:
            mixed = _mixed(records, (old & CODE) * width, width, _length(old), records[0])
            place = mixed & mask
            while slots[place] != NONE:
                place = (place + ONE) & mask
            slots[place] = _key(mixed, _length(old)) | (old & CODE)


@kernel()
def lengths_of(slots: Any, lengths: Any) -> None:
    """Fill the bytes of each name, shape (names,)."""
    for slot in slots:
        if slot != NONE:
            lengths[(slot & CODE) - ONE] = _length(slot)


@kernel()
def renumber(codes: Any, rank: Any, ranks: Any) -> None:
    """Fill each row's rank from its code, shape (rows,)."""
    for row in range(len(codes)):
        ranks[row] = rank[np.uint64(codes[row])]


@njit(nogil=True)
def _read(
    text: Any, ends: Any, first: Any, held: Any, width: Any, words: Any, keys: Any, places: Any, slots: Any, salt: Any
) -> None:
    """Fill words, keys and first places of the rows of a batch, and ask for their slots."""
    size, mask = np.uint64(len(text)), np.uint64(len(slots) - 1)
    begin = np.uint64(ends[first])
    for row in range(held):
        end = np.uint64(ends[first + row + ONE])
        at, left = begin, end - begin
        for word in range(width):
            taken = min(left, WORD)
            words[row * width + word] = _word(text, size, at, taken)
            at += taken
            left -= taken
        mixed = _mixed(words, row * width, width, end - begin, salt)
        keys[row], places[row] = _key(mixed, end - begin), mixed & mask
        prefetch(slots, places[row])
        begin = end


@njit(nogil=True)
def _guess(held: Any, width: Any, keys: Any, places: Any, slots: Any, records: Any, found: Any) -> None:
    """Fill the code + 1 of the first name with the same length and part of the hash, and ask for its record."""
    mask = np.uint64(len(slots) - 1)
    for row in range(held):
        place = places[row]
        slot = slots[place]
        while slot != NONE and (slot ^ keys[row]) >> LENGTH_AT != NONE:
            place = (place + ONE) & mask
            slot = slots[place]
        found[row] = slot & CODE
        prefetch(records, found[row] * width)


@njit(nogil=True)
def _place(row: Any, width: Any, words: Any, key: Any, place: Any, slots: Any, records: Any, names: Any) -> Any:
    """Return the code + 1 of a row's name, which gets the next one if it is new."""
    mask = np.uint64(len(slots) - 1)
    while slots[place] != NONE:
        code = slots[place] & CODE
        if (slots[place] ^ key) >> LENGTH_AT == NONE and _same(records, code * width, words, row * width, width):
            return code
        place = (place + ONE) & mask
    for word in range(width):
        records[(names + ONE) * width + word] = words[row * width + word]
    slots[place] = key | (names + ONE)
    return names + ONE


@njit(nogil=True)
def _word(text: Any, size: Any, at: Any, taken: Any) -> Any:
    """Return up to eight bytes of a text as a word, zeros behind them."""
    if taken == NONE:
        return NONE
    if at + WORD <= size:
        return load_word(text, at) << ((WORD - taken) << THREE) >> ((WORD - taken) << THREE)
    word = NONE
    for byte in range(taken):
        word |= np.uint64(text[at + byte]) << (byte << THREE)
    return word


@njit(nogil=True)
def _mixed(words: Any, at: Any, width: Any, length: Any, salt: Any) -> Any:
    """Return a hash whose low bits, which find the slot, depend on the last letters too: products hold them high."""
    mixed = salt ^ np.uint64(length)
    for word in range(width):
        mixed = (mixed ^ words[at + word]) * ODD
        mixed ^= mixed >> HALF
    mixed *= ODD
    return mixed ^ (mixed >> HALF)


@njit(nogil=True)
def _key(mixed: Any, length: Any) -> Any:
    """Return a slot's hash and length, without a code."""
    return (mixed >> HASH_AT << HASH_AT) | (length << LENGTH_AT)


@njit(nogil=True)
def _length(slot: Any) -> Any:
    return (slot >> LENGTH_AT) & ((ONE << (HASH_AT - LENGTH_AT)) - ONE)


@njit(nogil=True)
def _same(records: Any, at: Any, words: Any, row_at: Any, width: Any) -> Any:
    differ = NONE
    for word in range(width):
        differ |= records[at + word] ^ words[row_at + word]
    return differ == NONE
