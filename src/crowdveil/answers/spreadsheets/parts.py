"""Parts of a workbook (.xlsx, .xlsm, .ods) that are looked at before its cells are read.

Sizes are checked before a reader makes a table of them: a small file can unpack to more than any memory, and a sheet
with one cell at its end has seventeen thousand million cells. Cells that a reader would give as empty are found: errors
such as #N/A, and formulas without a stored value.
"""

import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from xml.parsers import expat

from crowdveil.errors import ReportsError

MAX_BYTES = 1 << 30
"""Largest size of all parts of a workbook, unpacked."""
MAX_CELLS = 10_000_000
"""Largest number of cells of a sheet, up to its last row and column with a content."""
MAX_FAULTS = 1_000
"""Largest number of faulty cells that are kept; the first ones are named."""
MAX_EXACT = 2**53
"""Whole numbers from here on are rounded by a spreadsheet."""
PART_BYTES = 1 << 20
ODS_TYPE = b"application/vnd.oasis.opendocument.spreadsheet"
CELL = re.compile(r"([A-Z]{1,3})(\d{1,7})")
Fault = Literal["error", "formula", "number", "merged"]
Form = Literal["xlsx", "ods"]


@dataclass
class SheetParts:
    """What the parts of a workbook say about a sheet.

    Attributes:
        rows, columns: number of rows and columns up to the last cell with a content.
        faults: kind of fault and content of each faulty cell, by row and column, both from 1.
    """

    rows: int = 0
    columns: int = 0
    faults: dict[tuple[int, int], tuple[Fault, str]] = field(default_factory=dict)

    def add(self, row: int, column: int) -> None:
        """Note a cell with a content."""
        self.rows, self.columns = max(self.rows, row), max(self.columns, column)

    def add_fault(self, row: int, column: int, kind: Fault, content: str) -> None:
        """Note a faulty cell."""
        if len(self.faults) < MAX_FAULTS:
            self.faults.setdefault((row, column), (kind, content))


def column_letters(column: int) -> str:
    """Return the name of a column of a sheet, counted from 1.

    >>> column_letters(1), column_letters(28)
    ('A', 'AB')
    """
    letters = ""
    while column > 0:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def workbook_form(path: Path) -> Form | None:
    """Return the form of a zip archive that is a workbook; None for other archives, and damaged ones."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            if "xl/workbook.xml" in names:
                return "xlsx"
            is_ods = "content.xml" in names and "mimetype" in names
            return "ods" if is_ods and archive.read("mimetype").startswith(ODS_TYPE) else None
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError):
        return None


def sheets_of_workbook(path: Path, form: Form) -> dict[str, SheetParts]:
    """Return what the parts of a workbook say about each sheet, by name.

    Raises:
        ReportsError: a part or a sheet is too large, encrypted or damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _refuse_large_parts(archive, path)
            found = _xlsx_sheets(archive) if form == "xlsx" else _ods_sheets(archive)
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError, expat.ExpatError) as error:
        raise damaged_workbook_error(path, str(error)) from error
    except (KeyError, ValueError) as error:
        raise damaged_workbook_error(path, f"a part is missing or wrong: {error}") from error
    for name, sheet in found.items():
        if sheet.rows * sheet.columns > MAX_CELLS:
            raise ReportsError(
                f"a sheet must have at most {MAX_CELLS:,} cells",
                source=f"{path}, sheet {name!r}",
                examples=f"{sheet.rows:,} rows, {sheet.columns:,} columns",
                hint="Remove stray cells beyond the table, or save the sheet as CSV.",
            )
    return found


def damaged_workbook_error(path: Path, found: str) -> ReportsError:
    """Return the error of a workbook that cannot be read."""
    return ReportsError(
        "a workbook must be complete, undamaged and without a password",
        source=str(path),
        examples=found[:200].rstrip("."),
        hint="Open it in a spreadsheet program and save it again, or save the sheet as CSV.",
    )


def _refuse_large_parts(archive: zipfile.ZipFile, path: Path) -> None:
    """Refuse an archive of more than `MAX_BYTES`: its parts are unpacked, since their stated sizes can be wrong."""
    left = MAX_BYTES
    for info in archive.infolist():
        info.file_size = 1 << 62  # it is read to its end, whatever size it states
        with archive.open(info) as stream:
            while left >= 0 and (part := stream.read(PART_BYTES)):
                left -= len(part)
        if left < 0:
            raise ReportsError(
                f"a workbook must unpack to at most {MAX_BYTES:,} bytes",
                source=str(path),
                examples=f"{path.stat().st_size:,} bytes that unpack to more",
                hint="Remove pictures and other sheets, or save the sheet as CSV.",
            )


class _Elements:
    """Reader of the elements of an XML part; subclasses have the methods `start`, `end` and `text`."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Note the start of an element, by its name and attributes without prefixes."""

    def end(self, name: str) -> None:
        """Note the end of an element."""

    def text(self, content: str) -> None:
        """Note text inside an element."""

    def read(self, archive: zipfile.ZipFile, name: str) -> None:
        """Read a part of an archive."""
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = lambda tag, found: self.start(_local(tag), {_local(k): found[k] for k in found})
        parser.EndElementHandler = lambda tag: self.end(_local(tag))
        parser.CharacterDataHandler = self.text
        parser.StartDoctypeDeclHandler = _refuse_doctype
        with archive.open(name) as stream:
            parser.ParseFile(stream)


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _refuse_doctype(*_: Any) -> None:
    raise ValueError("a document type, which no spreadsheet program writes")


class _Listed(_Elements):
    """Attributes of all elements of one name."""

    def __init__(self, element: str) -> None:
        self.element, self.found = element, list[dict[str, str]]()

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Keep the attributes of an element of this name."""
        if name == self.element:
            self.found.append(dict(attributes))


def _listed(archive: zipfile.ZipFile, part: str, element: str) -> list[dict[str, str]]:
    listed = _Listed(element)
    listed.read(archive, part)
    return listed.found


def _xlsx_sheets(archive: zipfile.ZipFile) -> dict[str, SheetParts]:
    """Return the sheets of an .xlsx file; sheets of charts are left out."""
    targets = {one["Id"]: one for one in _listed(archive, "xl/_rels/workbook.xml.rels", "Relationship")}
    found: dict[str, SheetParts] = {}
    for sheet in _listed(archive, "xl/workbook.xml", "sheet"):
        target = targets[sheet["id"]]
        if not target["Type"].endswith("/worksheet"):
            continue
        inside = target["Target"]
        part = inside.lstrip("/") if inside.startswith("/") else str(PurePosixPath("xl", inside))
        cells = _XlsxCells()
        cells.read(archive, part)
        found[sheet["name"]] = cells.sheet
    return found


class _XlsxCells(_Elements):
    """Cells of a sheet of an .xlsx file."""

    def __init__(self) -> None:
        self.sheet = SheetParts()
        self.row = self.column = 0
        self.kind = self.content = ""
        self.reads = self.has_formula = self.has_content = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Note rows, cells, and which text is their content."""
        if name == "row":
            self.row, self.column = int(attributes.get("r", self.row + 1)), 0
        elif name == "c":
            place = CELL.fullmatch(attributes.get("r", ""))
            if place is None:
                self.column += 1
            else:
                self.column, self.row = _column_number(place[1]), int(place[2])
            self.kind, self.content = attributes.get("t", "n"), ""
            self.has_formula = self.has_content = False
        elif name in ("v", "t"):
            self.reads = self.has_content = True
        elif name == "f":
            self.has_formula = self.has_content = True
        elif name == "mergeCell":
            _add_merged(self.sheet, *map(_row_and_column, attributes["ref"].split(":")[:2]))

    def text(self, content: str) -> None:
        """Add to the content of the cell."""
        if self.reads and len(self.content) < MAX_FAULTS:
            self.content += content

    def end(self, name: str) -> None:
        """Note the cell and its fault at its end."""
        if name in ("v", "t"):
            self.reads = False
        elif name == "c" and self.has_content:
            self.sheet.add(self.row, self.column)
            if self.kind == "e":
                self.sheet.add_fault(self.row, self.column, "error", self.content)
            elif self.has_formula and not self.content and self.kind != "str":
                self.sheet.add_fault(self.row, self.column, "formula", "")
            elif self.kind == "n" and _is_rounded(self.content):
                self.sheet.add_fault(self.row, self.column, "number", self.content)


def _row_and_column(place: str) -> tuple[int, int]:
    found = CELL.fullmatch(place.replace("$", ""))
    if found is None:
        raise ValueError(f"the cell {place!r}")
    return int(found[2]), _column_number(found[1])


def _add_merged(sheet: SheetParts, first: tuple[int, int], last: tuple[int, int]) -> None:
    """Note the cells of a merged range, as far as faults are kept."""
    places = ((row, column) for row in range(first[0], last[0] + 1) for column in range(first[1], last[1] + 1))
    for row, column in _first(places, MAX_FAULTS):
        sheet.add_fault(row, column, "merged", "")


def _first(places: Iterator[tuple[int, int]], most: int) -> Iterator[tuple[int, int]]:
    for _, place in zip(range(most), places, strict=False):
        yield place


def _is_rounded(text: str) -> bool:
    """Return whether a number is a whole one that a spreadsheet may have rounded."""
    return len(text) > len("1E+15") and abs(float(text)) >= MAX_EXACT


def _ods_sheets(archive: zipfile.ZipFile) -> dict[str, SheetParts]:
    cells = _OdsCells()
    cells.read(archive, "content.xml")
    return cells.sheets


class _OdsCells(_Elements):
    """Cells of all sheets of an .ods file, of which rows and cells stand once for several equal ones."""

    def __init__(self) -> None:
        self.sheets: dict[str, SheetParts] = {}
        self.sheet = SheetParts()
        self.depth = self.row = self.column = 0
        self.last_column = self.times = 0
        self.has_text = False
        self.cell: Mapping[str, str] = {}

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Note sheets, rows and cells."""
        if name == "table":
            self.depth += 1
            if self.depth == 1:
                self.sheet = self.sheets[attributes["name"]] = SheetParts()
                self.row = 0
        elif self.depth != 1:
            return
        elif name == "table-row":
            self.times = int(attributes.get("number-rows-repeated", 1))
            self.column = self.last_column = 0
        elif name in ("table-cell", "covered-table-cell"):
            self.cell, self.has_text = attributes, False

    def text(self, content: str) -> None:
        """Note that the cell has a text."""
        self.has_text |= bool(content.strip())

    def end(self, name: str) -> None:
        """Note a cell or row at its end."""
        if name == "table":
            self.depth -= 1
        elif self.depth == 1 and name in ("table-cell", "covered-table-cell"):
            self._end_of_cell()
        elif self.depth == 1 and name == "table-row":
            self.row += self.times
            if self.last_column:
                self.sheet.add(self.row, self.last_column)

    def _end_of_cell(self) -> None:
        cell, place = self.cell, (self.row + 1, self.column + 1)
        self.column += int(cell.get("number-columns-repeated", 1))
        if self.has_text or "value-type" in cell or "formula" in cell:
            self.last_column = self.column
        if cell.get("value-type") == "error":
            self.sheet.add_fault(*place, "error", "")
        elif "formula" in cell and "value-type" not in cell:
            self.sheet.add_fault(*place, "formula", "")
        elif _is_rounded(cell.get("value", "")):
            self.sheet.add_fault(*place, "number", cell["value"])
        rows, columns = (int(cell.get(f"number-{unit}-spanned", 1)) for unit in ("rows", "columns"))
        if rows > 1 or columns > 1:
            _add_merged(self.sheet, place, (place[0] + rows - 1, place[1] + columns - 1))
