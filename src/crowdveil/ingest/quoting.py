"""Quotes in comma-separated text: a stream that checks where quoted cells begin and end while it is read.

A cell is quoted if its first byte is a quote. Inside it, a quote is written twice, and a comma or the end of the row
must follow the closing one. A quote inside a cell that does not begin with one is text like any other.
"""

import io
from threading import Lock
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

QUOTE, UTF8_MARK = ord('"'), b"\xef\xbb\xbf"
SEPARATORS = np.isin(np.arange(256), np.frombuffer(b",\r\n", dtype=np.uint8))
"""Bytes that a cell begins after and ends before."""
BESIDE_QUOTES = SEPARATORS | (np.arange(256) == QUOTE)
"""The same, and the other quote of two that write one."""
OUTSIDE, INSIDE, DOUBLED = "outside", "inside", "doubled"
"""Where the next quote stands: outside a quoted cell, inside one, or second of two that write one."""


class QuoteCheck(io.RawIOBase):
    """A binary file, and whether the quotes in the bytes read from it are well placed.

    Arrow reads ahead in a thread of its own. `close` waits for a read that has begun, and ends all later ones: a thread
    that still reads when the interpreter ends would abort the process.

    Attributes:
        sound: False once text followed a closing quote; after `finish`, also if a quote was never closed.
    """

    def __init__(self, raw: BinaryIO) -> None:
        self.raw, self.sound, self._reading = raw, True, Lock()
        self._state, self._before, self._rest, self._begun = OUTSIDE, ord("\n"), b"", False

    def readable(self) -> bool:
        """Return True: Arrow asks."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; none once the file is closed."""
        with self._reading:
            data = b"" if self.closed else self.raw.read(size)
            if self.sound and data:
                self._take(data if self._begun else data.removeprefix(UTF8_MARK))
                self._begun = True
            return data

    def close(self) -> None:
        """Wait until no read is in progress, and close."""
        with self._reading:
            super().close()

    def finish(self) -> None:
        """Check the last byte, which the end of the file follows."""
        self._take(b"\n")
        self.sound &= self._state == OUTSIDE

    def _take(self, data: bytes) -> None:
        """Check all bytes but the last if it is a quote: what follows it is not known yet."""
        text = self._rest + data
        self._rest = b'"' if text.endswith(b'"') else b""
        # Most files have no quote, which is found out much faster than where they are.
        if b'"' in text:
            letters = np.frombuffer(text, dtype=np.uint8)
            places = np.flatnonzero(letters[: len(letters) - len(self._rest)] == QUOTE)
            if places.size:
                self._check(letters, places)
        self._before = text[-1 - len(self._rest)] if len(text) > len(self._rest) else self._before

    def _check(self, letters: NDArray[np.uint8], places: NDArray[np.int64]) -> None:
        """Go on behind the quotes in these places, each of which a letter follows."""
        if self._alternate(letters, places):
            return
        before = letters[places - 1]
        before[0] = before[0] if places[0] else self._before
        for opening, following in zip(SEPARATORS[before].tolist(), letters[places + 1].tolist(), strict=True):
            if self._state == DOUBLED:
                self._state = INSIDE
            elif self._state == OUTSIDE:
                self._state = INSIDE if opening else OUTSIDE
            elif following == QUOTE:
                self._state = DOUBLED
            else:
                self._state = OUTSIDE
                self.sound &= bool(SEPARATORS[following])

    def _alternate(self, letters: NDArray[np.uint8], places: NDArray[np.int64]) -> bool:
        """Return whether all quotes are well placed in turn, opening and closing, and then go on behind them.

        A quote that is written twice closes the cell and opens it again. No quote is text of a cell without quotes.
        """
        first = int(self._state == INSIDE)
        begins = BESIDE_QUOTES[letters[places[first::2] - 1]]
        if not first:
            before = letters[places[0] - 1] if places[0] else self._before
            begins[0] = self._state == DOUBLED or SEPARATORS[before]
        if not (begins.all() and BESIDE_QUOTES[letters[places[1 - first :: 2] + 1]].all()):
            return False
        inside = (len(places) + first) % 2 == 1
        self._state = INSIDE if inside else DOUBLED if letters[places[-1] + 1] == QUOTE else OUTSIDE
        return True
