"""Distinct names in order: by the first bytes that tell them apart, as numbers; only ties are compared as text.

The memory of Arrow text arrays: bytes of all cells one behind the other, and where each cell ends.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

MOST_BYTES = np.iinfo(np.int32).max
"""Text beyond it needs 64-bit offsets."""


def cell_ends(array: Any) -> NDArray[np.integer]:
    """Return where the cells of a text array begin and end in its bytes, shape (cells + 1,)."""
    kind: type[np.signedinteger] = np.int64 if pa.types.is_large_string(array.type) else np.int32
    if not len(array):
        return np.zeros(1, dtype=kind)
    return np.frombuffer(array.buffers()[1], dtype=kind)[array.offset : array.offset + len(array) + 1]


def text_bytes(array: Any) -> NDArray[np.uint8]:
    """Return the bytes of a text array, those of cells outside a slice included."""
    return np.frombuffer(array.buffers()[2] or b"", dtype=np.uint8)


def text_array(text: NDArray[np.uint8], ends: NDArray[np.integer]) -> Any:
    """Return a text array of these bytes, whose cells begin and end where `ends` says, shape (cells + 1,)."""
    long = text.size > MOST_BYTES
    kind: Any = pa.LargeStringArray if long else pa.StringArray
    offsets: Any = np.ascontiguousarray(ends, dtype=np.int64 if long else np.int32)
    letters: Any = np.ascontiguousarray(text).ravel()
    return kind.from_buffers(len(ends) - 1, pa.py_buffer(offsets), pa.py_buffer(letters))


KEY_BYTES = 8
"""Bytes of a name that fit into one number to sort by."""


def name_order(names: Any) -> NDArray[np.int64]:
    """Return the positions that sort an Arrow array of distinct names, nulls last; text by code points."""
    if not len(names) or names.null_count or not pa.types.is_string(names.type):
        return pc.array_sort_indices(names).to_numpy().astype(np.int64)
    keys = _first_bytes(names)
    order = np.argsort(keys)
    same = keys[order[1:]] == keys[order[:-1]]
    if same.any():
        # Names that these bytes do not tell apart stand side by side: only they are sorted as text.
        tied = np.append(same, False) | np.append(False, same)
        places = order[tied]
        order[tied] = places[pc.array_sort_indices(names.take(pa.array(places))).to_numpy()]
    return order


def _first_bytes(names: Any) -> NDArray[np.uint64]:
    """Return each name's next few bytes, after those that all names begin with, as a number; zeros behind its end."""
    ends, text = cell_ends(names), text_bytes(names)
    starts, lengths = ends[:-1], np.diff(ends)
    keys = np.zeros(len(names), dtype=np.uint64)
    longest, shortest = int(lengths.max()), int(lengths.min())
    at = used = 0
    while at < longest and used < KEY_BYTES:
        whole = at < shortest
        letters = (
            text[starts + at] if whole else np.where(at < lengths, text[np.minimum(starts + at, text.size - 1)], 0)
        )
        if used or not whole or (letters != letters[0]).any():
            keys |= letters.astype(np.uint64) << (8 * (KEY_BYTES - 1 - used))
            used += 1
        at += 1
    return keys
