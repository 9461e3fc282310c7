"""Validation of the quotes in the bytes of a CSV file while they are read."""

import io
import time
from codecs import BOM_UTF8
from collections.abc import Callable
from threading import Lock
from typing import BinaryIO
from weakref import ref

import numpy as np
from numpy.typing import NDArray

QUOTE = ord('"')
OUTSIDE, INSIDE, DOUBLED = "outside", "inside", "doubled"
"""State at the next quote: outside a quoted cell, inside one, or second half of a doubled quote."""


RELEASE_SECONDS = 1.0
"""Longest wait for bytes that Arrow still holds."""


class _Part(bytearray):
    """Bytes whose release can be awaited: `bytes` have no weak references."""


class QuoteValidator(io.RawIOBase):
    """Binary stream that validates the quotes in the bytes read from it.

    Args:
        raw: the bytes.
        delimiter: the character between cells.
        progress: called with the position in the file after each read.

    Arrow reads ahead in threads of its own. `close` waits for a running read, blocks later ones, and waits until all
    bytes are released: a thread that reads, or releases bytes, while the interpreter exits would abort the process.

    Attributes:
        sound: False after a NUL byte, or text behind a closing quote; after `finish`, also if a quote was never closed.
    """

    def __init__(self, raw: BinaryIO, delimiter: str = ",", progress: Callable[[], None] | None = None) -> None:
        self.raw, self.sound, self._reading, self._progress = raw, True, Lock(), progress
        self._parts: list[ref[_Part]] = []
        separators = delimiter.encode("latin-1") + b"\r\n"
        self._separates = np.isin(np.arange(256), np.frombuffer(separators, dtype=np.uint8))
        # A quote may stand beside a separator, or beside the other half of a doubled quote.
        self._beside_quote = self._separates | (np.arange(256) == QUOTE)
        self._state, self._before, self._rest, self._begun = OUTSIDE, ord("\n"), b"", False

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
            self.sound &= 0 not in data
            if self.sound and data:
                self._check_quotes_in_bytes(data if self._begun else data.removeprefix(BOM_UTF8))
                self._begun = True
            return data

    def close(self) -> None:
        """Close after a running read, and wait until Arrow holds no bytes."""
        with self._reading:
            super().close()
        end = time.monotonic() + RELEASE_SECONDS
        while any(part() is not None for part in self._parts) and time.monotonic() < end:
            time.sleep(0.001)

    def check_end_of_file(self) -> None:
        """Check the last byte, as if a line end followed."""
        self._check_quotes_in_bytes(b"\n")
        self.sound &= self._state == OUTSIDE

    def _check_quotes_in_bytes(self, data: bytes | bytearray) -> None:
        """Check all bytes except a trailing quote, whose next byte is not known yet."""
        text = self._rest + data
        self._rest = b'"' if text.endswith(b'"') else b""
        # Most files have no quotes; this test is much faster than a search for all positions.
        if b'"' in text:
            letters = np.frombuffer(text, dtype=np.uint8)
            positions = np.flatnonzero(letters[: len(letters) - len(self._rest)] == QUOTE)
            if positions.size:
                self._advance_quote_state(letters, positions)
        self._before = text[-1 - len(self._rest)] if len(text) > len(self._rest) else self._before

    def _advance_quote_state(self, letters: NDArray[np.uint8], positions: NDArray[np.int64]) -> None:
        """Advance the state over quotes at these positions, each followed by a byte."""
        if self._quotes_alternate_and_advance(letters, positions):
            return
        before = letters[positions - 1]
        before[0] = before[0] if positions[0] else self._before
        for opening, following in zip(self._separates[before].tolist(), letters[positions + 1].tolist(), strict=True):
            if self._state == DOUBLED:
                self._state = INSIDE
            elif self._state == OUTSIDE:
                self._state = INSIDE if opening else OUTSIDE
            elif following == QUOTE:
                self._state = DOUBLED
            else:
                self._state = OUTSIDE
                self.sound &= bool(self._separates[following])

    def _quotes_alternate_and_advance(self, letters: NDArray[np.uint8], positions: NDArray[np.int64]) -> bool:
        """Return whether all quotes are valid as alternating opening and closing ones; if so, advance the state.

        A doubled quote counts as closing and reopening the cell.
        """
        first = int(self._state == INSIDE)
        begins = self._beside_quote[letters[positions[first::2] - 1]]
        if not first:
            before = letters[positions[0] - 1] if positions[0] else self._before
            begins[0] = self._state == DOUBLED or self._separates[before]
        if not (begins.all() and self._beside_quote[letters[positions[1 - first :: 2] + 1]].all()):
            return False
        inside = (len(positions) + first) % 2 == 1
        self._state = INSIDE if inside else DOUBLED if letters[positions[-1] + 1] == QUOTE else OUTSIDE
        return True
