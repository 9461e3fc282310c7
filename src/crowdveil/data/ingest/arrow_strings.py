"""Buffers of Arrow text arrays: the concatenated bytes of all cells, and the offsets of the cells."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

MOST_BYTES = np.iinfo(np.int32).max
"""Bytes of text from which an array needs 64-bit offsets."""


def cell_ends(array: Any) -> NDArray[np.integer]:
    """Return the byte offsets of the cells of a text array, shape (cells + 1,)."""
    kind: type[np.signedinteger] = np.int64 if pa.types.is_large_string(array.type) else np.int32
    if not len(array):
        return np.zeros(1, dtype=kind)
    return np.frombuffer(array.buffers()[1], dtype=kind)[array.offset : array.offset + len(array) + 1]


def text_bytes(array: Any) -> NDArray[np.uint8]:
    """Return the bytes of a text array, including cells outside its slice."""
    return np.frombuffer(array.buffers()[2] or b"", dtype=np.uint8)


def text_array(text: NDArray[np.uint8], ends: NDArray[np.integer]) -> Any:
    """Return a text array from bytes and cell offsets `ends`, shape (cells + 1,)."""
    long = text.size > MOST_BYTES
    kind: Any = pa.LargeStringArray if long else pa.StringArray
    offsets: Any = np.ascontiguousarray(ends, dtype=np.int64 if long else np.int32)
    letters: Any = np.ascontiguousarray(text).ravel()
    return kind.from_buffers(len(ends) - 1, pa.py_buffer(offsets), pa.py_buffer(letters))
