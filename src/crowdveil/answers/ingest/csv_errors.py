"""Errors of damaged CSV files, each with its row."""

from crowdveil.errors import ReportsError
from crowdveil.hints import advice

COMMA = ","
DELIMITERS = {COMMA: "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
"""Delimiters of cells with their names, the default first."""
PDF = b"%PDF-"
BINARY_FORMS = {
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "a workbook or document of an older form, such as .xls",
    PDF: "a PDF",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"\x04\x22\x4d\x18": "a file compressed by LZ4",
    b"SQLite format 3\x00": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "an array of numpy",
    b"\x80\x04": "a pickle of Python",
    b"\x80\x05": "a pickle of Python",
    b"ORC": "an ORC file",
    b"Obj\x01": "an Avro file",
}
"""Files that are not read, by their first bytes."""


def row_error(source: str, row: int, rule: str, hint: str, found: str = "") -> ReportsError:
    """Return the error of a row, or of the header for row 0, which has no number."""
    return ReportsError(rule, source=source, rows=(row,) if row else (), examples=found, hint=hint)


def not_utf8_error(source: str, row: int, byte: int) -> ReportsError:
    """Return the error of a byte that is not UTF-8."""
    rule = "the file must be text in UTF-8" + ("" if row else " (its header is not)")
    state = "state the encoding, cp1252 (western Windows), cp1250 (central European) or cp1251 (Cyrillic)"
    how = advice(", such as {encoding}", " (Reports.from_source)", encoding="cp1252")
    hint = f"Answers: {state}{how}. Other files: iconv -f cp1252 -t utf-8."
    return row_error(source, row, rule, hint, f"byte 0x{byte:02x}")


def nul_byte_error(source: str, row: int) -> ReportsError:
    """Return the error of a NUL byte."""
    rule = "the file must be text without NUL bytes" + ("" if row else " (its header has one)")
    hint = advice(
        "Remove it; for UTF-16 without a byte-order mark (answers), state utf-16-le or utf-16-be ({encoding}).",
        "Remove it, or write the text in UTF-8.",
    )
    return row_error(source, row, rule, hint, "byte 0x00")


def other_form_error(source: str, form: str) -> ReportsError:
    """Return the error of a file of another form than text."""
    return ReportsError(
        "the file must be a table as text or a spreadsheet, JSON, Parquet or Arrow",
        source=source,
        examples=form,
        hint="Write it as CSV, or unpack the file.",
    )


def delimiter_name(delimiter: str) -> str:
    """Return the name of a delimiter in a sentence."""
    return DELIMITERS.get(delimiter, repr(delimiter))


def quotes_error(source: str, row: int, found: str, delimiter: str) -> ReportsError:
    """Return the error of an open quote, or of text after a closing one."""
    ends = f"a {delimiter_name(delimiter)} or the end of the row"
    rule = f"quotes must be closed, and only {ends} may follow a closing quote"
    return row_error(source, row, rule, "Close the quote; write a quote inside a quoted cell twice.", found)


def row_too_long_error(source: str, row: int, most: int) -> ReportsError:
    """Return the error of a row of more than `most` bytes."""
    hint = "Check the line ends and quotes; leave out columns of long texts, which are not read anyway."
    return row_error(source, row, f"a row must have at most {most:,} bytes", hint)


def ragged_errors(source: str, width: int, ragged: list[tuple[int, int]]) -> list[ReportsError]:
    """Return the error of rows, each with its number of cells, in a file of another width; none without such rows."""
    if not ragged:
        return []
    return [
        ReportsError(
            f"every row must have as many cells as the header, {width}",
            source=source,
            rows=tuple(row for row, _ in ragged),
            examples=", ".join(f"{cells} cells" for _, cells in ragged),
            hint="Quote cells that hold the delimiter; remove cells that are too many.",
        )
    ]
