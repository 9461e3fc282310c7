"""Ids that are numbers are coded without hashing: whole numbers, and text of one beginning and digits of one width
(task-000123)."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.data.ingest.arrow_strings import cell_ends, text_array, text_bytes

MOST_DIGITS = 8
NUMBERS_PER_ROW = 8
"""The table of all numbers may have at most so many entries for every row."""
SMALL_TABLE = 1 << 16
ROWS_AT_ONCE = 1 << 16
"""Rows looked up together: they stay in a core's own cache."""
ZERO = ord("0")


class Pattern(NamedTuple):
    """What all ids must look like: these bytes, then so many digits."""

    beginning: bytes
    digits: int

    @property
    def width(self) -> int:
        """Return the bytes of a name."""
        return len(self.beginning) + self.digits


def whole_numbers(column: Any) -> tuple[NDArray[Any], NDArray[np.int32]] | None:
    """Return the distinct numbers of an Arrow column of whole numbers, sorted, and each row's position among them.

    None if a number is missing, or they are sparse.
    """
    if column.null_count or not len(column):
        return None
    ends: Any = pc.min_max(column).as_py()
    size = ends["max"] - ends["min"] + 1
    if size > max(NUMBERS_PER_ROW * len(column), SMALL_TABLE):
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


def encode_numbered(column: Any) -> Any:
    """Dictionary-encode an Arrow text column of numbered ids; None if some row is no such id, or numbers are sparse."""
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    pattern = _pattern(chunks[0][0].as_py()) if chunks and pa.types.is_string(column.type) else None
    if pattern is None or 10**pattern.digits > max(NUMBERS_PER_ROW * len(column), SMALL_TABLE):
        return None
    occurs = np.zeros(10**pattern.digits, dtype=bool)
    numbers = np.empty(len(column), dtype=np.int32)
    at = 0
    for chunk in chunks:
        found = _numbers(chunk, pattern)
        if found is None:
            return None
        occurs[found] = True
        numbers[at : at + len(found)] = found
        at += len(found)
    place = np.cumsum(occurs, dtype=np.int32)
    place -= 1
    positions: Any = pa.array(place[numbers])
    return pa.DictionaryArray.from_arrays(positions, numbered_text(np.flatnonzero(occurs), pattern))


def _pattern(first: str | None) -> Pattern | None:
    """Return the pattern that an id suggests, None if it does not end in a few digits."""
    text = (first or "").encode("utf-8")
    digits = len(text) - len(text.rstrip(b"0123456789"))
    return Pattern(text[: len(text) - digits], digits) if 0 < digits <= MOST_DIGITS else None


def _numbers(chunk: Any, pattern: Pattern) -> NDArray[np.int32] | None:
    """Return the number of every row; None if one does not follow the pattern."""
    ends = cell_ends(chunk)
    if chunk.null_count or not (np.diff(ends) == pattern.width).all():
        return None
    text = text_bytes(chunk)[ends[0] : ends[-1]].reshape(len(chunk), pattern.width)
    if any((text[:, at] != letter).any() for at, letter in enumerate(pattern.beginning)):
        return None
    numbers = np.zeros(len(chunk), dtype=np.int32)
    for at in range(len(pattern.beginning), pattern.width):
        digit = text[:, at] - np.uint8(ZERO)  # letters before 0 wrap round to large numbers
        if (digit > 9).any():
            return None
        numbers *= 10
        numbers += digit
    return numbers


def numbered_text(numbers: NDArray[np.int64], pattern: Pattern) -> Any:
    """Write ids from their numbers, as an Arrow text array."""
    text = np.empty((len(numbers), pattern.width), dtype=np.uint8)
    text[:, : len(pattern.beginning)] = np.frombuffer(pattern.beginning, dtype=np.uint8)
    left = numbers
    for at in range(pattern.width - 1, len(pattern.beginning) - 1, -1):
        # Division by a number is fast where the remainder is not asked for.
        tens = left // 10
        text[:, at] = left - 10 * tens + ZERO
        left = tens
    return text_array(text, np.arange(len(numbers) + 1) * pattern.width)
