"""CSV files: streaming reader with located defects and content digest.

Accepted: UTF-8, UTF-16 with byte-order mark or a stated encoding, plain or compressed by gzip, bzip2, xz or zstd
(detected by content), any line end, quoted commas (or another delimiter), quotes and line ends; a sheet of a workbook.
Blank rows and a first line `sep=;` are skipped. Memory is bounded by row codes and distinct values, not by the text.
Where Arrow refuses a file, or quotes are doubtful, which it accepts anywhere, the csv module reads the file again.
"""

import bz2
import codecs
import csv
import gzip
import hashlib
import io
import lzma
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial, reduce
from itertools import islice
from os import PathLike
from pathlib import Path
from threading import RLock
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from crowdveil.answers.ingest.csv_errors import (
    BINARY_FORMS,
    COMMA,
    DELIMITERS,
    PDF,
    delimiter_name,
    not_utf8_error,
    nul_byte_error,
    other_form_error,
    quotes_error,
    ragged_errors,
    row_too_long_error,
)
from crowdveil.answers.ingest.csv_quotes import QuoteStream
from crowdveil.answers.spreadsheets.sheets import SheetText, file_and_sheet, read_sheet
from crowdveil.errors import ReportsError, RowSource, join_errors, place_of_lines
from crowdveil.files.filesystem import refuse_change_while_read
from crowdveil.hints import advice

UTF8_MARK, UTF16_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
ENCODINGS = ("utf-8", "cp1250", "cp1251", "cp1252", "utf-16-le", "utf-16-be")
"""Encodings of text that can be stated, the default first."""

Result = TypeVar("Result")
Progress = Callable[[int, int], None]
"""Function that is called with the part done so far and the whole."""

BLOCK_BYTES = 4 << 20
"""Bytes parsed at a time; also the longest row."""
SIGNATURE_BYTES = 6
START_LINES = 20
"""Lines of a file in which a header is looked for that is not the first row."""
CODECS = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
"""Compressions by their first bytes."""
ZIP = b"PK\x03\x04"
TAR, TAR_START = b"ustar", 257
EXAMPLES_SHOWN = 5
CELL_LIMIT = RLock()
"""Lock for changes of the process-wide field size limit of the csv module."""


class Header(NamedTuple):
    """First row of a text file that is not blank.

    Attributes:
        names: its cells; read as cp1252 if they are not UTF-8.
        skipped: number of blank rows above it.
        defects: that of its first byte that is not UTF-8, if there is one.
        start: first `START_LINES` lines of the file.
        is_last: whether no row follows.
    """

    names: list[str]
    skipped: int
    defects: list[ReportsError]
    start: str
    is_last: bool


class TextStart(NamedTuple):
    """First bytes of a text file.

    Attributes:
        source: name of the file, for error messages.
        content: the bytes, in UTF-8 without byte-order mark.
        is_whole: whether these are all bytes of the file.
        is_sheet: whether they are the text of a sheet of a workbook.
    """

    source: str
    content: bytes
    is_whole: bool
    is_sheet: bool = False

    def header(self, delimiter: str = COMMA) -> Header:
        """Return the header by a delimiter.

        Raises:
            ReportsError: the file is empty, or its header holds NUL bytes.
        """
        # The bytes may end within a character: only the first row is used.
        with self._open_text() as text, _long_cells_allowed():
            rows = enumerate(csv.reader(text, delimiter=delimiter))
            found = ((number, row) for number, row in rows if not (_is_blank_row(row, 0) or _names_delimiter(row)))
            skipped, names = next(found, (0, []))
            is_last = self.is_whole and next(rows, None) is None
        if not names:
            hint = "It needs a header and at least one row."
            raise ReportsError("the file is empty", source=self.source, hint=hint)
        if any("\0" in name for name in names):
            raise nul_byte_error(self.source, 0)
        written = [name.encode(errors="surrogateescape") for name in names]
        defects = _error_of_first_non_utf8_byte(self.source, 0, (name.decode("latin-1") for name in written))
        shown = [name.decode("cp1252", "replace") for name in written] if defects else names
        with self._open_text() as text:
            return Header(shown, skipped, defects, "".join(islice(text, START_LINES)), is_last)

    def _open_text(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(self.content), "utf-8", "surrogateescape", newline="")


Headers = Mapping[str, Header | ReportsError]
"""Header of a text file by delimiter, or the error of a file without one."""


def read_text_start(path: Path, encoding: str | None = None) -> TextStart:
    """Return the first `BLOCK_BYTES` of a text file.

    Raises:
        ReportsError: as `open_as_utf8`, or a file of another form, which is named.
    """
    with open_as_utf8(path, encoding) as raw:
        start = raw.read(BLOCK_BYTES)
        is_sheet = hasattr(raw, "sheet")
    magic = next(filter(start.startswith, BINARY_FORMS), b"")
    form = "a tar archive" if start[TAR_START:].startswith(TAR) else BINARY_FORMS.get(magic, "")
    again = next((name for signature, name in CODECS.items() if start.startswith(signature)), "")
    if again and b"\0" in start:
        raise other_form_error(str(path), f"a file compressed by {again} inside a compressed file")
    # A table may begin with a column named like a form.
    if form and (b"\0" in start or not magic.isascii() or magic == PDF):
        raise other_form_error(str(path), form)
    return TextStart(str(path), start, len(start) < BLOCK_BYTES, is_sheet)


def headers_by_delimiter(start: TextStart, delimiters: Iterable[str]) -> Headers:
    """Return the header of a text file by each delimiter, or the error of a file without one."""
    found: dict[str, Header | ReportsError] = {}
    for delimiter in delimiters:
        try:
            found[delimiter] = start.header(delimiter)
        except ReportsError as error:
            found[delimiter] = error
    return found


def header_or_raise(headers: Headers, delimiter: str) -> Header:
    """Return the header by a delimiter; raises the error of a file without one."""
    header = headers[delimiter]
    if isinstance(header, ReportsError):
        raise header
    return header


def find_header(path: Path, delimiter: str = COMMA, encoding: str | None = None) -> Header:
    """Return the header of a text file; errors as `read_text_start` and `TextStart.header`."""
    return read_text_start(path, encoding).header(delimiter)


def read_header(
    path: Path, delimiter: str = COMMA, encoding: str | None = None, headers: Headers | None = None
) -> list[str]:
    """Return the column names; `headers` are those of the file, if its start was read.

    Raises:
        ReportsError: the file is absent, empty, or not UTF-8 text.
    """
    header = find_header(path, delimiter, encoding) if headers is None else header_or_raise(headers, delimiter)
    if header.defects:
        raise join_errors(find_defects(path, delimiter, encoding))
    return header.names


def read_csv_table(
    path: Path,
    names: Sequence[str],
    delimiter: str = COMMA,
    progress: Progress | None = None,
    encoding: str | None = None,
    header: Header | None = None,
) -> pa.Table:
    """Return the named columns as text, rows in file order; arguments and errors as `read_csv_batches`."""
    schema = pa.schema([(name, pa.string()) for name in names])
    return read_csv_batches(
        path, names, lambda batches: pa.Table.from_batches(batches, schema), delimiter, progress, encoding, header
    )


def read_csv_batches(
    path: Path,
    names: Sequence[str],
    consume: Callable[[Iterable[pa.RecordBatch]], Result],
    delimiter: str = COMMA,
    progress: Progress | None = None,
    encoding: str | None = None,
    header: Header | None = None,
    block_bytes: int | None = None,
) -> Result:
    """Return the result of `consume` on the batches of the named text columns.

    Args:
        path: a file with a header.
        names: columns that are read.
        consume: function of the batches, whose columns are in the order of `names`.
        delimiter, encoding: as in `find_header`.
        progress: called with the bytes read so far and the size of the file.
        header: its header, if its start was read.
        block_bytes: bytes parsed at a time, by default `BLOCK_BYTES`; no row may be longer.

    Raises:
        ReportsError: a row has more or fewer cells than the header, text is not UTF-8, a quote is never closed.
    """
    found, header = "", header or find_header(path, delimiter, encoding)
    block_bytes = block_bytes or BLOCK_BYTES
    with (
        open_as_utf8(path, encoding) as raw,
        QuoteStream(raw, delimiter, _report_position(raw, path, progress)) as stream,
    ):
        if hasattr(raw, "sheet"):
            raw.sheet.refuse_faults(names)
        try:
            with closing(_nonblank_batches_of_columns(stream, names, delimiter, header, block_bytes)) as batches:
                columns = consume(batches)
        except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
            found = str(error)[:200]
    if found or stream.has_nul or (stream.has_doubtful_quotes and not _quotes_are_sound(path, delimiter, encoding)):
        unknown = ReportsError(
            "the file must be a readable table",
            source=str(path),
            examples=found,
            hint=f"Write it again as text in UTF-8, with a {delimiter_name(delimiter)} between cells.",
        )
        raise join_errors(find_defects(path, delimiter, encoding, longest=block_bytes) or [unknown])
    return columns


def _report_position(raw: Any, path: Path, progress: Progress | None) -> Callable[[], None] | None:
    """Return a function that reports the position in a file, in compressed bytes if it is gzipped."""
    if progress is None:
        return None
    size, file = file_and_sheet(path).file.stat().st_size, getattr(raw, "fileobj", None) or raw
    return lambda: progress(min(file.tell(), size), size)


def text_source(path: Path, delimiter: str | None = None, encoding: str | None = None, name: str = "") -> RowSource:
    """Return the name of a text file, by default its path, which finds the lines of rows.

    Without a delimiter it is the one that gives the header the most cells.
    """
    return RowSource(name or str(path), partial(_place_in_text, name or str(path), path, delimiter, encoding))


def _place_in_text(name: str, path: Path, delimiter: str | None, encoding: str | None, rows: tuple[int, ...]) -> str:
    with open_as_utf8(path, encoding) as raw:
        if hasattr(raw, "sheet"):
            return raw.sheet.place(rows, _is_blank_row)
    return place_of_lines(name, _first_line_of_each_row(path, delimiter, encoding, rows))


def _first_line_of_each_row(
    path: Path, delimiter: str | None, encoding: str | None, rows: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the first line of each row, counted from 1, in a file whose rows up to these can be read."""
    found = dict.fromkeys(rows, 0)
    delimiter = delimiter or max(DELIMITERS, key=lambda one: len(find_header(path, one, encoding).names))
    with _open_bytes_as_text(path, encoding) as text, suppress(csv.Error, _TooLongError):
        for number, line, _ in _rows_of_text(text, delimiter):
            found |= {number: line} if number in found else {}
            if number >= max(rows):
                break
    return tuple(found.values())


@contextmanager
def _open_bytes_as_text(path: Path, encoding: str | None) -> Iterator[io.TextIOWrapper]:
    """Open the bytes of a text in UTF-8 as characters, for the csv module."""
    with (
        open_as_utf8(path, encoding) as raw,
        io.TextIOWrapper(raw, encoding="latin-1", newline="") as text,
        _long_cells_allowed(),
    ):
        yield text


def _quotes_are_sound(path: Path, delimiter: str, encoding: str | None) -> bool:
    """Return whether the csv module reads a file without a complaint."""
    with _open_bytes_as_text(path, encoding) as text, suppress(csv.Error):
        deque(csv.reader(text, strict=True, delimiter=delimiter), maxlen=0)
        return True
    return False


def _rows_of_text(
    text: io.TextIOWrapper, delimiter: str, longest: int | None = None
) -> Iterator[tuple[int, int, list[str]]]:
    """Yield number, first line and cells of every row that is not blank; the header has the number 0.

    A row that cannot be read has no cells; csv.Error or `_TooLongError` follows.
    """
    lines = _RowLines(text, longest or BLOCK_BYTES)
    reader = csv.reader(lines, strict=True, delimiter=delimiter)
    number, width, line = 0, 0, 1
    try:
        for row in reader:
            lines.length = 0
            if not (_is_blank_row(row, width) or (number == 0 and _names_delimiter(row))):
                yield number, line, row
                number, width = number + 1, width or len(row)
            line = reader.line_num + 1
    except (csv.Error, _TooLongError):
        yield number, line, []
        raise


def find_defects(
    path: Path,
    delimiter: str = COMMA,
    encoding: str | None = None,
    most: int | None = None,
    longest: int | None = None,
) -> list[ReportsError]:
    """Return the defects of a damaged file, each with its first rows.

    They are found in at most `most` rows; a row of more than `longest` bytes, by default
    `BLOCK_BYTES`, is one.
    """
    source = text_source(path, delimiter, encoding)
    defects: list[ReportsError] = []
    zeros: list[ReportsError] = []
    broken: list[ReportsError] = []
    ragged: list[tuple[int, int]] = []
    number, width = -1, 0
    with _open_bytes_as_text(path, encoding) as text:
        try:
            for number, _, row in islice(_rows_of_text(text, delimiter, longest), most):
                width = width or len(row)
                defects += [] if defects else _error_of_first_non_utf8_byte(source, number, row)
                zeros += [nul_byte_error(source, number)] if not zeros and any("\0" in cell for cell in row) else []
                ragged += [(number, len(row))] if row and len(row) != width and len(ragged) < EXAMPLES_SHOWN else []
        except csv.Error as error:
            broken.append(quotes_error(source, number, str(error), delimiter))
        except _TooLongError:
            broken.append(row_too_long_error(source, number, longest or BLOCK_BYTES))
    defects += [*zeros, *ragged_errors(source, width, ragged), *broken]
    if number <= 0 and not defects:
        return [ReportsError("the file must have a row below its header", source=str(path), hint="Check the file.")]
    return defects


def _is_blank_row(row: list[str], width: int) -> bool:
    """Return whether a row has no cells, or as many empty ones as the header, but for one; `width` 0 is any number."""
    return not row or (width != 1 and len(row) == (width or len(row)) and not any(row))


def _names_delimiter(row: list[str]) -> bool:
    """Return whether a row is the first line `sep=;` of a spreadsheet, split by any delimiter."""
    return row[0].lower().startswith("sep=") and "".join(row).lower().removeprefix("sep=") in ("", *DELIMITERS)


class _TooLongError(Exception):
    """A row is longer than it may be."""


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
def _long_cells_allowed() -> Iterator[None]:
    """Raise the process-wide field size limit of the csv module to the longest row."""
    with CELL_LIMIT:
        before = csv.field_size_limit(BLOCK_BYTES)
        try:
            yield
        finally:
            csv.field_size_limit(before)


@contextmanager
def open_decompressed(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, plain or decompressed; OSError becomes ReportsError."""
    codec = ""
    try:
        file = file_and_sheet(path).file if "?" in path.name else path
        with open(file, "rb") as plain, refuse_change_while_read(plain, str(path)):
            start = plain.peek(SIGNATURE_BYTES)
            codec = next((name for magic, name in CODECS.items() if start.startswith(magic)), "")
            with _decompressed(plain, codec) if codec else plain as stream:
                yield cast(BinaryIO, stream)
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if codec and (not isinstance(error, OSError) or error.errno is None):
            raise ReportsError(
                f"a file compressed by {codec} must be complete and undamaged",
                source=str(path),
                examples=str(error),
                hint="Copy or compress it again.",
            ) from error
        if not isinstance(error, OSError):
            raise
        raise ReportsError(
            "the file must exist and be readable",
            source=str(path),
            examples=error.strerror or str(error),
            hint="Check its name and folder.",
        ) from error


def _decompressed(plain: Any, codec: str) -> Any:
    """Return the stream of the content of a compressed file, which is its `fileobj`."""
    if codec == "zstd":
        return _Buffered(cast(Any, pa.CompressedInputStream(pa.PythonFile(plain, "r"), codec)), plain)
    openers: dict[str, Callable[[Any], Any]] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
    stream = openers[codec](plain)
    stream.fileobj = plain
    return stream


class _Buffered(io.BufferedReader):
    """Buffered stream of the unpacked or decoded content of a file, `fileobj`, which has the position."""

    def __init__(self, raw: Any, fileobj: Any) -> None:
        super().__init__(raw)
        self.fileobj = fileobj


@contextmanager
def open_as_utf8(path: Path, encoding: str | None = None) -> Iterator[Any]:
    """Open a plain or gzipped text for reading as UTF-8 without a mark: decoded by its mark, else from `encoding`.

    Raises:
        ReportsError: the file cannot be read, or is not in that encoding.
    """
    with open_decompressed(path) as opened:
        start = cast(Any, opened).peek(len(ZIP))
        if start.startswith(ZIP):
            yield SheetText(read_sheet(path))
            return
        start = start[: len(UTF8_MARK)]
        source = "utf-16" if start.startswith(UTF16_MARKS) else encoding or ENCODINGS[0]
        if start == UTF8_MARK or source == ENCODINGS[0]:
            opened.read(len(UTF8_MARK) if start == UTF8_MARK else 0)
            yield opened
            return
        try:
            decoded = pa.transcoding_input_stream(pa.PythonFile(opened, "r"), source, ENCODINGS[0])
            yield _Buffered(cast(Any, decoded), getattr(opened, "fileobj", opened))
        except UnicodeDecodeError as error:
            raise ReportsError(
                f"the file must be text in {source}",
                source=str(path),
                examples=f"byte 0x{error.object[error.start]:02x}",
                hint="Copy it again, or state another encoding.",
            ) from error


def refuse_encoding_of_utf8(path: Path, encoding: str | None) -> None:
    """Refuse to read a text as `encoding` whose start has letters beyond ASCII in UTF-8: others would replace them.

    Raises:
        ReportsError: so it is.
    """
    if encoding in (None, ENCODINGS[0]):
        return
    with open_decompressed(path) as raw:
        start = raw.read(BLOCK_BYTES)
    if start.isascii() or b"\0" in start or start.startswith((UTF8_MARK, *UTF16_MARKS)):
        return
    with suppress(UnicodeDecodeError):
        codecs.getincrementaldecoder(ENCODINGS[0])().decode(start)
        raise ReportsError(
            f"a text in UTF-8 must not be read as {encoding}", source=str(path), hint=advice("Leave {encoding} out.")
        )


def _nonblank_batches_of_columns(
    stream: Any, names: Sequence[str], delimiter: str, header: Header, block_bytes: int
) -> Generator[pa.RecordBatch]:
    """Yield the named columns without blank rows."""
    several = len(header.names) > 1
    if header.is_last:
        stream.read(BLOCK_BYTES)  # notes its quotes: the parser refuses a header without a line end
        return

    reader = pa.csv.open_csv(
        stream,
        read_options=pa.csv.ReadOptions(block_size=block_bytes, skip_rows=header.skipped),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True, delimiter=delimiter),
        convert_options=pa.csv.ConvertOptions(
            # A row is blank if all its cells are: cells of columns that are not read may have any bytes.
            column_types={name: pa.string() if name in names else pa.binary() for name in header.names},
            strings_can_be_null=False,
        ),
    )
    try:
        for batch in reader:
            empty = reduce(pc.and_, (pc.equal(pc.binary_length(column), 0) for column in batch.columns))
            count = pc.sum(empty).as_py() if several else 0
            if count != batch.num_rows:
                yield (batch.filter(pc.invert(empty)) if count else batch).select(list(names))
    finally:
        del reader  # its end stops the thread that reads ahead


def _error_of_first_non_utf8_byte(source: str, row: int, cells: Iterable[str]) -> list[ReportsError]:
    """Return the defect of the first byte that is not UTF-8, if there is one; cells are read as latin-1."""
    for cell in cells:
        try:
            cell.isascii() or cell.encode("latin-1").decode("utf-8")
        except UnicodeDecodeError as error:
            return [not_utf8_error(source, row, error.object[error.start])]
    return []


PART_BYTES = 1 << 20
"""Bytes read at a time."""


def content_digest(path: str | PathLike[str]) -> str:
    """Return the SHA-256 of a file's content in hexadecimal; gzipped files are decompressed.

    Raises:
        ReportsError: the file cannot be read, or its compression is damaged.
    """
    digest = hashlib.sha256()
    with open_decompressed(Path(path)) as stream:
        while part := stream.read(PART_BYTES):
            digest.update(part)
    return digest.hexdigest()
