"""Ids of one width, such as the random ones of platforms, are hashed as numbers: two thirds of the time of text.

A row's bytes are a few 64-bit words, mixed into one number that is dictionary-encoded in place of the text. Two ids may
share that number, though it hardly happens: every row is compared with the id it was taken for.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.data.ingest.arrow_strings import cell_ends

WORD = 8
"""Bytes of a word."""
MOST_WORDS = 4
"""Above it, hashing the text is as fast."""
ROWS_AT_ONCE = 1 << 16
"""Rows compared together: they stay in a core's own cache."""
ODD = np.uint64(0x9E3779B97F4A7C15)
"""2**64 over the golden ratio: products with it spread over all bits."""


def encode_fixed_width(column: Any) -> Any:
    """Dictionary-encode an Arrow text column of one width; None if rows have several, or if two ids mix alike."""
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if not chunks or column.null_count or not pa.types.is_string(column.type):
        return None
    width = len(chunks[0][0].as_py().encode("utf-8"))
    if not WORD <= width <= MOST_WORDS * WORD or not all(_has_width(chunk, width) for chunk in chunks):
        return None
    starts = [*range(0, width - WORD, WORD), width - WORD]  # the last word may share bytes with the one before
    words = [np.concatenate([_words(chunk, width, at) for chunk in chunks]) for at in starts]
    mixed = words[0].copy()
    for word in words[1:]:
        mixed *= ODD
        mixed ^= word
    coded = pa.array(mixed).dictionary_encode()
    codes = coded.indices.to_numpy()
    first = _first_rows(codes, len(coded.dictionary))
    if len(words) > 1 and not all(_same(word, word[first], codes) for word in words):
        return None
    return pa.DictionaryArray.from_arrays(coded.indices, column.take(pa.array(first)).combine_chunks())


def _has_width(chunk: Any, width: int) -> bool:
    return bool((np.diff(cell_ends(chunk)) == width).all())


def _words(chunk: Any, width: int, at: int) -> NDArray[np.uint64]:
    """Return the word that begins at one place of each row."""
    return np.ndarray(
        len(chunk), np.uint64, buffer=chunk.buffers()[2], offset=int(cell_ends(chunk)[0]) + at, strides=(width,)
    )


def _first_rows(codes: NDArray[np.int32], size: int) -> NDArray[np.int32]:
    """Return the first row of each code."""
    first = np.empty(size, dtype=np.int32)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1, dtype=np.int32)
    return first


def _same(word: NDArray[np.uint64], of_code: NDArray[np.uint64], codes: NDArray[np.int32]) -> bool:
    parts = (slice(first, first + ROWS_AT_ONCE) for first in range(0, len(codes), ROWS_AT_ONCE))
    return all(bool((of_code[codes[part]] == word[part]).all()) for part in parts)
