"""Text columns as dictionaries and positions, by the fastest way that fits: compiled code, numbers, or Arrow itself."""

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.data.ingest.fixed_width import encode_fixed_width
from crowdveil.data.ingest.numbered import encode_numbered
from crowdveil.data.ingest.validation import Coded
from crowdveil.jit import use_compiled_code

if TYPE_CHECKING:
    from crowdveil.data.ingest.hash_table import TextTable

COMPILED_FROM = 16 << 20
"""Bytes of text from which on compiled code is used: there is less to gain below."""
LOADED_FROM = 128 << 20
"""The same where numba is still to be loaded, which takes half a second."""
TEXT: Any = pa.dictionary(pa.int32(), pa.string())


class ColumnEncoder:
    """A text column that comes group by group."""

    def __init__(self, *, compiled: bool) -> None:
        self.compiled = compiled
        self.table: TextTable | None = None
        self.codes: list[NDArray[np.int32]] = []
        self.done: list[Any] = []

    def add(self, column: Any) -> None:
        """Encode the next rows, an Arrow chunked array of text."""
        if self.compiled:
            codes = self._look_up(column)
            if codes is not None:
                self.codes.append(codes)
                return
            # What the table cannot hold goes the other ways, and so does all that follows.
            self._close_table()
        self.done.append(_plainly(column))

    def finish(self) -> Any:
        """Return all rows as an Arrow chunked array of dictionaries and positions."""
        if self.compiled:
            self._close_table()
        return pa.chunked_array(self.done) if self.done else pa.chunked_array([], TEXT)

    def in_order(self) -> Coded | None:
        """Return all rows coded by their sorted names; None if not all of them are in the table."""
        if self.table is None or self.done:
            return None
        return self.table.in_order(self.codes)

    def _look_up(self, column: Any) -> NDArray[np.int32] | None:
        if self.table is None:
            from crowdveil.data.ingest.hash_table import TextTable

            self.table = TextTable()
        return self.table.codes(column)

    def _close_table(self) -> None:
        if self.table is not None and self.codes:
            codes: Any = pa.array(np.concatenate(self.codes))
            self.done.append(pa.DictionaryArray.from_arrays(codes, self.table.dictionary(), safe=False))
        self.compiled, self.table, self.codes = False, None, []


def compiled_from() -> int:
    """Return the bytes of text from which on compiled code is used."""
    return COMPILED_FROM if "numba" in sys.modules else LOADED_FROM


def encoder_of(column: Any) -> ColumnEncoder:
    """Return an encoder to which the cells of an Arrow chunked array of text have been added."""
    encoder = ColumnEncoder(compiled=use_compiled_code(column.nbytes, compiled_from()))
    if len(column):
        encoder.add(column)
    return encoder


def _plainly(column: Any) -> Any:
    """Encode text chunks into one; Arrow gives all chunks the same dictionary, so only positions are joined."""
    for encode in (encode_numbered, encode_fixed_width):
        quickly = encode(column)
        if quickly is not None:
            return quickly
    coded = column.dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        pa.concat_arrays([one.indices for one in coded.chunks]), coded.chunks[-1].dictionary
    )
