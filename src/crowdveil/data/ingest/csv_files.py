"""CSV files: streaming reader with located defects, content digest, and quoting of rows.

Accepted: UTF-8 with or without byte-order mark, plain or gzipped (detected by content), any line end, quoted commas
(or another delimiter), quotes and line ends. Memory is bounded by row codes and distinct values, not by the text.
Quotes are checked while the file is read, because the parser accepts text after a closing quote.
"""

import csv
import gzip
import hashlib
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from crowdveil.channels.alphabet import is_utf8_encodable
from crowdveil.data.ingest.dictionary_encoding import dictionary_encode_batches, encode_batches
from crowdveil.data.ingest.validation import CodedColumn
from crowdveil.errors import ReportsError

QUOTE, UTF8_MARK = ord('"'), b"\xef\xbb\xbf"
COMMA = ","
DELIMITERS = {COMMA: "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
"""Delimiters of cells with their names, the default first."""
OUTSIDE, INSIDE, DOUBLED = "outside", "inside", "doubled"
"""State at the next quote: outside a quoted cell, inside one, or second half of a doubled quote."""


class QuoteValidator(io.RawIOBase):
    """Binary stream that validates the quotes in the bytes read from it.

    Args:
        raw: the bytes.
        delimiter: the character between cells.
        progress: called with the position in the file after each read.

    Arrow reads ahead in its own thread. `close` waits for a running read and blocks later ones: a thread that reads
    while the interpreter exits would abort the process.

    Attributes:
        sound: False after text behind a closing quote; after `finish`, also if a quote was never closed.
    """

    def __init__(self, raw: BinaryIO, delimiter: str = COMMA, progress: Callable[[], None] | None = None) -> None:
        self.raw, self.sound, self._reading, self._progress = raw, True, Lock(), progress
        separators = delimiter.encode("latin-1") + b"\r\n"
        self._separates = np.isin(np.arange(256), np.frombuffer(separators, dtype=np.uint8))
        # A quote may stand beside a separator, or beside the other half of a doubled quote.
        self._beside_quote = self._separates | (np.arange(256) == QUOTE)
        self._state, self._before, self._rest, self._begun = OUTSIDE, ord("\n"), b"", False

    def readable(self) -> bool:
        """Return True, as Arrow requires."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; none after `close`."""
        with self._reading:
            data = b"" if self.closed else self.raw.read(size)
            if self._progress is not None and not self.closed:
                self._progress()
            if self.sound and data:
                self._check_bytes(data if self._begun else data.removeprefix(UTF8_MARK))
                self._begun = True
            return data

    def close(self) -> None:
        """Close after a running read."""
        with self._reading:
            super().close()

    def finish(self) -> None:
        """Check the last byte, as if a line end followed."""
        self._check_bytes(b"\n")
        self.sound &= self._state == OUTSIDE

    def _check_bytes(self, data: bytes) -> None:
        """Check all bytes except a trailing quote, whose next byte is not known yet."""
        text = self._rest + data
        self._rest = b'"' if text.endswith(b'"') else b""
        # Most files have no quotes; this test is much faster than a search for all positions.
        if b'"' in text:
            letters = np.frombuffer(text, dtype=np.uint8)
            positions = np.flatnonzero(letters[: len(letters) - len(self._rest)] == QUOTE)
            if positions.size:
                self._advance(letters, positions)
        self._before = text[-1 - len(self._rest)] if len(text) > len(self._rest) else self._before

    def _advance(self, letters: NDArray[np.uint8], positions: NDArray[np.int64]) -> None:
        """Advance the state over quotes at these positions, each followed by a byte."""
        if self._alternate(letters, positions):
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

    def _alternate(self, letters: NDArray[np.uint8], positions: NDArray[np.int64]) -> bool:
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


Result = TypeVar("Result")
Consumer = Callable[[Iterable[pa.RecordBatch], Sequence[str], int], Result]
Progress = Callable[[int, int], None]
"""Function that is called with the part done so far and the whole."""

BLOCK_BYTES = 4 << 20
"""Bytes parsed at a time; also the longest row."""
GROUP_BYTES = 256 << 20
"""Bytes of text per group that is encoded at a time."""
GZIP_MAGIC = b"\x1f\x8b"
EXAMPLES_SHOWN = 5
CELL_LIMIT = Lock()
"""Lock for changes of the process-wide field size limit of the csv module."""


def read_header(path: Path, delimiter: str = COMMA) -> list[str]:
    """Return the column names.

    Raises:
        ReportsError: the file is absent, empty, or not UTF-8 text.
    """
    with open_plain_or_gzip(path) as raw:
        start = raw.read(BLOCK_BYTES).removeprefix(UTF8_MARK)
    # The first bytes may end within a character: only the first row is used.
    text = start.decode("utf-8", errors="surrogateescape")
    with _long_cells():
        names = next((row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row), None)
    if names is None:
        raise ReportsError("the file is empty", source=str(path), hint="It needs a header and at least one row.")
    if any("\0" in name or (not name.isascii() and not is_utf8_encodable(name)) for name in names):
        raise _not_utf8(path, 0)
    return names


def read_csv(path: Path, names: Sequence[str]) -> pa.Table:
    """Return the named columns as dictionary-encoded text, rows in file order.

    Raises:
        ReportsError: a row has more or fewer cells than the header, text is not UTF-8, a quote is never closed.
    """
    return read_csv_batches(path, names, dictionary_encode_batches)


def read_csv_coded(
    path: Path, names: Sequence[str], delimiter: str = COMMA, progress: Progress | None = None
) -> dict[str, CodedColumn]:
    """Return the named columns as coded columns of text; errors as `read_csv`."""
    return read_csv_batches(path, names, encode_batches, delimiter, progress)


def read_csv_batches(
    path: Path,
    names: Sequence[str],
    consume: Consumer[Result],
    delimiter: str = COMMA,
    progress: Progress | None = None,
) -> Result:
    """Return the result of `consume` on the batches of the named text columns; errors as `read_csv`.

    `progress` is called with the bytes read so far and the size of the file.
    """
    found = ""
    with open_plain_or_gzip(path) as raw, QuoteValidator(raw, delimiter, _position(raw, path, progress)) as checked:
        try:
            columns = consume(_batches(checked, names, delimiter), names, GROUP_BYTES)
            checked.finish()
        except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
            found = str(error)[:200]
    if found:
        raise find_defect(path, delimiter) or ReportsError(
            "the file must be a readable table",
            source=str(path),
            examples=found,
            hint=f"Write it again as text in UTF-8, with a {_named(delimiter)} between cells.",
        )
    # The parser accepts unclosed quotes and text after a closing quote without an error.
    if not checked.sound:
        raise find_defect(path, delimiter) or _bad_quotes(path, 0, "", delimiter)
    return columns


def _position(raw: BinaryIO, path: Path, progress: Progress | None) -> Callable[[], None] | None:
    """Return a function that reports the position in a file, in compressed bytes if it is gzipped."""
    if progress is None:
        return None
    size, file = path.stat().st_size, getattr(raw, "fileobj", None) or raw
    return lambda: progress(file.tell(), size)


def find_defect(path: Path, delimiter: str = COMMA) -> ReportsError | None:
    """Return the first defect of a damaged file, found row by row; None if there is none."""
    ragged: list[tuple[int, int]] = []
    number, width = -1, 0
    with open_plain_or_gzip(path) as raw, io.TextIOWrapper(raw, encoding="latin-1", newline="") as text, _long_cells():
        lines = _RowLines(text, BLOCK_BYTES)
        try:
            for row in csv.reader(lines, strict=True, delimiter=delimiter):
                lines.length = 0
                number += bool(row)
                width = width or len(row)
                if any(not cell.isascii() and not _is_utf8(cell) for cell in row):
                    return _not_utf8(path, number)
                ragged += [(number, len(row))] if row and len(row) != width else []
                if len(ragged) == EXAMPLES_SHOWN:
                    break
        except csv.Error as error:
            return _ragged_error(path, width, ragged) or _bad_quotes(path, number + 1, str(error), delimiter)
        except _TooLongError:
            return _ragged_error(path, width, ragged) or _too_long(path, number + 1)
    if number <= 0:
        return ReportsError("the file must have a row below its header", source=str(path), hint="Check the file.")
    return _ragged_error(path, width, ragged)


class _TooLongError(Exception):
    """A row is longer than `BLOCK_BYTES`."""


class _RowLines:
    """Line iterator for a CSV reader, with a limit on the length of a row, which may span several lines.

    Attributes:
        length: characters of the current row; the caller resets it to 0 after each row.
    """

    def __init__(self, text: io.TextIOWrapper, most: int) -> None:
        self.text, self.most, self.length = text, most, 0

    def __iter__(self) -> Iterator[str]:
        """Return the lines themselves."""
        return self

    def __next__(self) -> str:
        """Return the next line.

        Raises:
            _TooLongError: the row exceeds `most` characters.
        """
        line = self.text.readline(self.most + 1)
        self.length += len(line)
        if self.length > self.most:
            raise _TooLongError
        if not line:
            raise StopIteration
        return line


@contextmanager
def _long_cells() -> Iterator[None]:
    """Raise the process-wide field size limit of the csv module to the longest row."""
    with CELL_LIMIT:
        before = csv.field_size_limit(BLOCK_BYTES)
        try:
            yield
        finally:
            csv.field_size_limit(before)


@contextmanager
def open_plain_or_gzip(path: Path) -> Iterator[BinaryIO]:
    """Open a plain or gzipped file for reading; OSError becomes ReportsError."""
    try:
        with open(path, "rb") as plain:
            zipped = plain.peek(2)[:2] == GZIP_MAGIC
            with gzip.open(plain) if zipped else plain as stream:
                yield cast(BinaryIO, stream)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ReportsError(
            "a gzipped file must be complete and undamaged",
            source=str(path),
            examples=str(error),
            hint="Copy or compress it again.",
        ) from error
    except OSError as error:
        raise ReportsError(
            "the file must exist and be readable", source=str(path), examples=error.strerror or str(error)
        ) from error


def _batches(stream: Any, names: Sequence[str], delimiter: str) -> Iterable[pa.RecordBatch]:
    return pa.csv.open_csv(
        stream,
        read_options=pa.csv.ReadOptions(block_size=BLOCK_BYTES),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True, delimiter=delimiter),
        convert_options=pa.csv.ConvertOptions(
            column_types={name: pa.string() for name in names}, include_columns=list(names), strings_can_be_null=False
        ),
    )


def _is_utf8(cell: str) -> bool:
    try:
        cell.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _not_utf8(path: Path, row: int) -> ReportsError:
    return ReportsError(
        "the file must be text in UTF-8" + ("" if row else " (its header is not)"),
        source=str(path),
        rows=(row,) if row else (),
        hint="Save it again as UTF-8 (not UTF-16, Latin-1 or a spreadsheet), or: iconv -f latin1 -t utf-8.",
    )


def _named(delimiter: str) -> str:
    return DELIMITERS.get(delimiter, repr(delimiter))


def _bad_quotes(path: Path, row: int, found: str, delimiter: str) -> ReportsError:
    return ReportsError(
        f"quotes must be closed, and only a {_named(delimiter)} or the end of the row may follow a closing quote",
        source=str(path),
        rows=(row,) if row else (),
        examples=found,
        hint="Close the quote; write a quote inside a quoted cell twice.",
    )


def _too_long(path: Path, row: int) -> ReportsError:
    return ReportsError(
        f"a row must have at most {BLOCK_BYTES:,} bytes",
        source=str(path),
        rows=(row,) if row else (),
        hint="Check the line ends and quotes; leave out columns of long texts, which are not read anyway.",
    )


def _ragged_error(path: Path, width: int, ragged: list[tuple[int, int]]) -> ReportsError | None:
    if not ragged:
        return None
    return ReportsError(
        f"every row must have as many cells as the header, {width}",
        source=str(path),
        rows=tuple(row for row, _ in ragged),
        examples=", ".join(f"{cells} cells" for _, cells in ragged),
        hint="Quote cells that hold the delimiter; remove cells that are too many.",
    )


PART_BYTES = 1 << 20
"""Bytes read at a time."""


def content_digest(path: str | PathLike[str]) -> str:
    """Return the SHA-256 of a file's content in hexadecimal; gzipped files are decompressed.

    Raises:
        ReportsError: the file cannot be read, or its compression is damaged.
    """
    digest = hashlib.sha256()
    with open_plain_or_gzip(Path(path)) as stream:
        while part := stream.read(PART_BYTES):
            digest.update(part)
    return digest.hexdigest()


NEEDS_QUOTES = re.compile(r'[",\r\n]|^\s|\s$|^$')
"""Cells with separators or outer spaces, and empty cells. Python's csv writer leaves carriage returns unquoted."""


def csv_row(cells: Iterable[object]) -> str:
    """Return the cells with commas between them, quoted where they need it, without a line end."""
    return ",".join(map(_cell, cells))


def _cell(content: object) -> str:
    text = str(content)
    if not NEEDS_QUOTES.search(text):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'
