"""Codes of columns in temporary files: answers that are read within a limit of memory.

Codes in files are `numpy.memmap` arrays of whole files, so every function of arrays takes them. Functions of all rows
go through them in parts.
"""

import ctypes
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError

ROWS_AT_ONCE = 1 << 18
"""Rows per part."""


@dataclass(frozen=True, slots=True)
class ReadingLimit:
    """Limit of the memory that reading adds to the process.

    Attributes:
        folder: folder of temporary files, which exist until all was used.
        memory: the limit in bytes.
    """

    folder: Path
    memory: int


class CodesWriter:
    """Writer of int32 codes to a new file in a folder."""

    def __init__(self, folder: Path) -> None:
        self._stream = NamedTemporaryFile(dir=folder, suffix=".codes", delete=False)  # noqa: SIM115 closed by `finish`
        self.path = Path(self._stream.name)

    def write(self, codes: NDArray[Any]) -> None:
        """Add codes; errors as `write_to_disk`."""
        write_to_disk(self._stream, np.ascontiguousarray(codes, dtype=np.int32))

    def finish(self) -> NDArray[np.int32]:
        """Return all codes as a mapped array; an empty file cannot be mapped."""
        self._stream.close()
        return np.memmap(self.path, np.int32, "r") if self.path.stat().st_size else np.empty(0, np.int32)


def return_unused_memory() -> None:
    """Return freed memory to the system, where the C library keeps it for later (glibc)."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)


def write_to_disk(stream: Any, array: NDArray[Any]) -> None:
    """Write an array to an open temporary file.

    Raises:
        SettingsError: the disk is full, or the file cannot be written.
    """
    try:
        stream.write(array.view(np.uint8).data)
        stream.flush()
    except OSError as error:
        raise SettingsError(
            f"answers that are read within a limit of memory need space for temporary files ({error.strerror})",
            value=str(Path(stream.name).parent),
            hint="Set TMPDIR to a folder on a larger disk, or raise the limit.",
        ) from error


def is_in_file(codes: NDArray[Any]) -> bool:
    """Return whether codes are in a file."""
    return isinstance(codes, np.memmap)


def code_parts(*columns: NDArray[np.int32]) -> Iterator[tuple[int, list[NDArray[np.int32]]]]:
    """Yield the first row of each part, and the part of each column; those of files are read, not mapped."""
    for first in range(0, len(columns[0]), ROWS_AT_ONCE):
        yield first, [_rows_of(codes, first, min(ROWS_AT_ONCE, len(codes) - first)) for codes in columns]


def _rows_of(codes: Any, first: int, count: int) -> NDArray[np.int32]:
    if not is_in_file(codes):
        return np.asarray(codes[first : first + count])
    # Pages that are mapped would count as memory of the process.
    return np.fromfile(codes.filename, np.int32, count, offset=first * codes.itemsize)


def place_of_codes(place: NDArray[np.int32], codes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return `place[code]` of each code, in a file if the codes are in one; the last place is that of empty cells."""
    if not is_in_file(codes):
        return place[codes]
    file: Any = codes
    writer = CodesWriter(Path(file.filename).parent)
    for _, (part,) in code_parts(codes):
        writer.write(place[part])
    return writer.finish()
