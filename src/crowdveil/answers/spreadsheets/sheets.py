"""Sheets of workbooks (.xlsx, .xlsm, .ods) as comma-separated text, by python-calamine.

One sheet is read: the one that is named, as FILE?SHEET, else the only visible one with a content. Values are those that
the program stored, also those of formulas. Whole numbers have no decimals, truth values are True and False, dates and
times are written as ISO 8601. Rows without a content are blank. Hidden rows and columns are read. A column that is read
must hold no error, no formula without a value, no merged cell, and no whole number that a spreadsheet rounds.
"""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from crowdveil.answers.spreadsheets.parts import (
    Fault,
    SheetParts,
    column_letters,
    damaged_workbook_error,
    sheets_of_workbook,
    workbook_form,
)
from crowdveil.errors import ReportsError
from crowdveil.hints import advice

SUFFIXES = (".xlsx", ".xlsm", ".ods")
NAMED_SHEET = re.compile(r"(.+\.(?:xlsx|xlsm|ods))\?(.+)", re.IGNORECASE | re.DOTALL)
EXTRA = "Install the reader of spreadsheets: pip install 'crowdveil[spreadsheets]'; or save the sheet as CSV."
SHOWN = 5
KEPT_BYTES = 1 << 25
"""Largest text of a sheet that is kept after it was read, for its further readers."""
FAULTS: dict[Fault, tuple[str, str]] = {
    "error": ("a cell must hold a value, not an error", "Correct the formula, or clear the cell."),
    "formula": (
        "the value of a formula must be stored",
        "Open the workbook in a spreadsheet program and save it, or replace the formula by its value.",
    ),
    "number": (
        "a whole number must be below 2**53: a spreadsheet rounds larger ones",
        "Format the column as text, and write the names again from their source.",
    ),
    "merged": ("cells must not be merged", "Split them, and write the value into each row."),
}


class NamedSheet(NamedTuple):
    """File of a path, and the name of the sheet after its question mark; None without one."""

    file: Path
    sheet: str | None


def file_and_sheet(path: Path) -> NamedSheet:
    """Return the file and the sheet of a path such as `book.xlsx?gold`; another path is a file."""
    if path.exists():
        return NamedSheet(path, None)
    found = NAMED_SHEET.fullmatch(str(path))
    if found is not None:
        return NamedSheet(Path(found[1]), found[2])
    file, _, sheet = str(path).rpartition("?")
    return NamedSheet(Path(file), sheet) if file and workbook_form(Path(file)) is not None else NamedSheet(path, None)


def is_named_as_workbook(path: Path) -> bool:
    """Return whether the name of a file is that of a workbook."""
    return path.suffix.lower() in SUFFIXES


@dataclass(frozen=True, kw_only=True, eq=False)
class Sheet:
    """Sheet of a workbook.

    Attributes:
        file: the workbook.
        name: name of the sheet.
        others: names of the other sheets.
        text: its rows as comma-separated text in UTF-8, one for each row from the first.
        faults: kind and content of faulty cells, by column name, row and name of the cell.
        dates: a cell with a date or time by column name, with what is read.
    """

    file: Path
    name: str
    others: tuple[str, ...]
    text: bytes
    faults: dict[str, list[tuple[Fault, int, str, str]]]
    dates: dict[str, str]

    @property
    def source(self) -> str:
        """Name for messages."""
        return f"{self.file}, sheet {self.name!r}" if self.others else str(self.file)

    def refuse_faults(self, columns: Iterable[str]) -> None:
        """Refuse faulty cells in the named columns."""
        for name in columns:
            for kind, (rule, hint) in FAULTS.items():
                cells = [one for one in self.faults.get(name, ()) if one[0] == kind]
                if cells:
                    shown = ", ".join(f"{cell} {content}".strip() for _, _, cell, content in cells[:SHOWN])
                    raise ReportsError(rule, source=self.source, examples=f"in the column {name!r}: {shown}", hint=hint)

    def place(self, rows: tuple[int, ...], is_blank: Callable[[list[str], int], bool]) -> str:
        """Return the source and the rows of the sheet of data rows, of which blank ones and the header have no number.

        Args:
            rows: data rows, counted from 1.
            is_blank: whether cells are a blank row, in a table of a number of columns, or of any if it is 0.
        """
        found, number, width = dict.fromkeys(rows, 0), -1, 0
        for row, cells in enumerate(csv.reader(io.StringIO(self.text.decode("utf-8"), newline="")), 1):
            if not is_blank(cells, width):
                number, width = number + 1, width or len(cells)
                found |= {number: row} if number in found else {}
        return f"{self.source}, {'row' if len(found) == 1 else 'rows'} {', '.join(map(str, found.values()))}"

    def notes(self, columns: Iterable[str]) -> tuple[str, ...]:
        """Return sentences on which sheet was read, and on dates in the named columns."""
        read = f"Read: the sheet {self.name!r}, not {', '.join(map(repr, self.others))}." if self.others else ""
        dated = [f"{self.dates[name]} in the column {name!r}" for name in columns if name in self.dates]
        spelt = "A spreadsheet makes dates of labels such as 3-4: format the column as text if these are none."
        found = f"Dates are read as text, such as {', '.join(dated)}. {spelt}" if dated else ""
        return tuple(filter(None, (read, found)))


def read_sheet(path: Path) -> Sheet:
    """Return a sheet of a workbook, named as `file_and_sheet` reads it.

    Raises:
        ReportsError: the reader is not installed; no such sheet, or several to choose from; or as `sheets_of_workbook`.
    """
    file, sheet = file_and_sheet(path)
    state = file.stat()
    found = _kept_sheet(file, sheet, state.st_mtime_ns, state.st_size)
    if len(found.text) > KEPT_BYTES:
        _kept_sheet.cache_clear()
    return found


def sheet_or_file_text(path: Path) -> bytes:
    """Return the text of a sheet of a workbook without faulty cells, or the first bytes of another file."""
    file = file_and_sheet(path).file
    with open(file, "rb") as stream:
        if not is_named_as_workbook(file):
            return stream.read(KEPT_BYTES << 1)
    sheet = read_sheet(path)
    sheet.refuse_faults(sheet.faults)
    return sheet.text


@lru_cache(maxsize=4)
def _kept_sheet(file: Path, sheet: str | None, changed: int, size: int) -> Sheet:
    """Return a sheet of a file in the state of the last two arguments."""
    form = workbook_form(file)
    if form is None and is_named_as_workbook(file):
        raise damaged_workbook_error(file, "no zip archive with a workbook")
    if form is None:
        raise ReportsError(
            "the file must be a table or JSON, not a zip archive",
            source=str(file),
            hint="Unpack the archive; of a workbook of another form than .xlsx or .ods, save the sheet as CSV.",
        )
    try:
        calamine = import_module("python_calamine")
    except ImportError as error:
        raise ReportsError(
            "the Python package python-calamine is needed to read a spreadsheet", source=str(file), hint=EXTRA
        ) from error
    parts = sheets_of_workbook(file, form)
    try:
        with open(file, "rb") as stream, calamine.CalamineWorkbook.from_filelike(stream) as book:
            visible = [one.name for one in book.sheets_metadata if str(one.visible).endswith("Visible")]
            name = _chosen_sheet(file, sheet, parts, visible)
            rows = book.get_sheet_by_name(name).to_python(skip_empty_area=False) if parts[name].rows else []
    except (calamine.CalamineError, OSError) as error:
        raise damaged_workbook_error(file, str(error)) from error
    return _sheet_of_rows(file, name, tuple(other for other in parts if other != name), parts[name], rows)


def _chosen_sheet(file: Path, stated: str | None, parts: dict[str, SheetParts], visible: Sequence[str]) -> str:
    """Return the stated sheet, or the only visible one with a content."""
    named = ", ".join(map(repr, parts)) or "none"
    if stated is not None:
        if stated not in parts:
            raise ReportsError(
                f"there is no sheet {stated!r}", source=str(file), examples=f"the sheets {named}", hint="Name one."
            )
        return stated
    filled = [name for name in visible if name in parts and parts[name].rows]
    if len(filled) > 1:
        raise ReportsError(
            "one sheet of a workbook is read",
            source=str(file),
            examples=f"the sheets {', '.join(map(repr, filled))}",
            hint=advice("State the sheet: {sheet}; ", sheet=filled[0])
            + f"of any file, after a question mark: '{file.name}?{filled[0]}'.",
        )
    if not filled:
        raise ReportsError(
            "a workbook must have a visible sheet with a content",
            source=str(file),
            examples=f"the sheets {named}",
            hint=f"Hidden ones are read if they are named: '{file.name}?SHEET'.",
        )
    return filled[0]


def _sheet_of_rows(file: Path, name: str, others: tuple[str, ...], parts: SheetParts, rows: list[list[Any]]) -> Sheet:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")  # which leaves carriage returns unquoted
    quoted = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
    header: list[str] | None = None
    header_row, dates = 0, dict[str, str]()
    for number, row in enumerate(rows, 1):
        cells = [_cell_text(cell) for cell in row]
        if any(cells):
            (quoted if any("\r" in cell for cell in cells) else writer).writerow(cells)
        else:
            stream.write("\n")
        if header is None:
            header, header_row = (cells, number) if any(cells) else (None, 0)
        elif len(dates) < len(header):
            for column, cell in enumerate(row):
                if isinstance(cell, date | time | timedelta):
                    dates.setdefault(header[column], f"{cells[column]} ({column_letters(column + 1)}{number})")
    faults = defaultdict(list)
    for (row_number, column), (kind, content) in sorted(parts.faults.items()):
        if row_number > header_row and header is not None and column <= len(header):
            place = f"{column_letters(column)}{row_number}"
            faults[header[column - 1]].append((kind, row_number, place, content))
    text = stream.getvalue().encode("utf-8", "replace")
    return Sheet(file=file, name=name, others=others, text=text, faults=dict(faults), dates=dates)


def _cell_text(cell: Any) -> str:
    """Return a value of a cell as text."""
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else repr(cell)
    if isinstance(cell, datetime):
        return cell.isoformat(" ")
    if isinstance(cell, timedelta):
        minutes, seconds = divmod(int(cell.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return cell.isoformat() if isinstance(cell, date | time) else str(cell)


class SheetText(io.BytesIO):
    """Text of a sheet as a stream; `sheet` says what else was found in it."""

    def __init__(self, sheet: Sheet) -> None:
        super().__init__(sheet.text)
        self.sheet = sheet

    def peek(self, size: int) -> bytes:
        """Return the next bytes without a move."""
        return bytes(self.getbuffer()[self.tell() : self.tell() + size])
