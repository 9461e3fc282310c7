"""Stream of the bytes of a CSV file, which notes doubtful quotes while they are read."""

import io
import time
from collections.abc import Callable
from threading import Lock
from typing import BinaryIO
from weakref import ref

import numpy as np

QUOTE = ord('"')

RELEASE_SECONDS = 1.0
"""Longest wait for bytes that Arrow still holds."""


class _Part(bytearray):
    """Bytes whose release can be awaited: `bytes` have no weak references."""


class QuoteStream(io.RawIOBase):
    """Binary stream that notes NUL bytes and doubtful quotes in the bytes read from it, which Arrow accepts anywhere.

    Args:
        raw: the bytes, without a byte-order mark.
        delimiter: the character between cells.
        progress: called with the position in the file after each read.

    Arrow reads ahead in threads of its own. `close` waits for a running read, blocks later ones, and waits until all
    bytes are released: a thread that reads, or releases bytes, while the interpreter exits would abort the process.

    Attributes:
        has_nul: whether a NUL byte was read.
    """

    def __init__(self, raw: BinaryIO, delimiter: str = ",", progress: Callable[[], None] | None = None) -> None:
        self.raw, self.has_nul, self._reading, self._progress = raw, False, Lock(), progress
        self._parts: list[ref[_Part]] = []
        # A quote may stand beside a separator, or beside the other half of a doubled quote.
        self._beside_quote = np.isin(np.arange(256), [*map(ord, delimiter + '\r\n"')])
        self._alternate, self._inside, self._tail = True, 0, b"\n"

    @property
    def has_doubtful_quotes(self) -> bool:
        """Whether quotes of the bytes read, if no more follow, do not alternate at the beginnings and ends of cells."""
        return not self._alternate or self._inside != self._tail.endswith(b'"')

    def readable(self) -> bool:
        """Return True, as Arrow requires."""
        return True

    def read(self, size: int = -1) -> bytearray:
        """Return the next bytes; none after `close`."""
        with self._reading:
            data = _Part(b"" if self.closed else self.raw.read(size))
            self._parts.append(ref(data))
            if self._progress is not None and not self.closed:
                self._progress()
            self.has_nul |= 0 in data
            self._check_quotes(data)
            return data

    def _check_quotes(self, data: bytes | bytearray) -> None:
        """Check all quotes but one that is the last byte; a doubled quote closes the cell and opens it again."""
        text = self._tail + data
        self._tail = text[-2:]
        # Most files have no quotes; this test is much faster than a search for all positions.
        if b'"' in text:
            letters = np.frombuffer(text, dtype=np.uint8)
            before = np.flatnonzero(letters[1:-1] == QUOTE)
            opening, closing = before[self._inside :: 2], before[1 - self._inside :: 2]
            neighbours = np.concatenate([letters[opening], letters[closing + 2]])
            self._alternate &= bool(self._beside_quote[neighbours].all())
            self._inside ^= len(before) % 2

    def close(self) -> None:
        """Close after a running read, and wait until Arrow holds no bytes."""
        with self._reading:
            super().close()
        end = time.monotonic() + RELEASE_SECONDS
        while any(part() is not None for part in self._parts) and time.monotonic() < end:
            time.sleep(0.001)
