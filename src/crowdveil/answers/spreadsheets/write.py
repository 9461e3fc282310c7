"""Tables as a workbook (.xlsx) with one sheet, by XlsxWriter, written row by row with bounded memory.

Every name is a text cell, whatever it begins with: no formula, link or number is made of it, also after it is edited.
Numbers are number cells; an unknown value is an empty cell.
"""

import math
from collections.abc import Iterable
from datetime import datetime
from importlib import import_module
from typing import Any, BinaryIO

import pyarrow as pa

from crowdveil.errors import SettingsError

MAX_ROWS, MAX_TEXT = 1_048_576, 32_767
"""Largest number of rows of a sheet, and of characters of a cell."""
MAX_EXACT = 2**53
SIGNS = tuple("=+-@\t\r")
"""Signs with which a cell begins that a program may take for a formula when it is edited."""
ROWS_AT_ONCE = 1 << 12
PLAIN = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False, "constant_memory": True}
WRITTEN = datetime(2000, 1, 1)
"""Date in every workbook, so that equal tables are equal files."""


def require_workbook_writer() -> Any:
    """Return the package that writes workbooks.

    Raises:
        SettingsError: it is not installed.
    """
    try:
        return import_module("xlsxwriter")
    except ImportError as error:
        raise SettingsError(
            "the Python package xlsxwriter is needed to write a spreadsheet",
            value=".xlsx",
            hint="Install it: pip install 'crowdveil[spreadsheets]'; or write CSV.",
        ) from error


def write_workbook(stream: BinaryIO, names: Iterable[str], tables: Iterable[pa.Table]) -> None:
    """Write tables with these columns, one after the other, as one sheet.

    Raises:
        SettingsError: more rows than a sheet has, a cell with a text that is too long, or the writer is not installed.
    """
    with require_workbook_writer().Workbook(stream, PLAIN) as book:
        book.set_properties({"created": WRITTEN})
        sheet = book.add_worksheet("crowdveil", _worksheet_of_exact_numbers())
        sheet.ignore_errors({"number_stored_as_text": f"A1:XFD{MAX_ROWS}"})
        kept_as_text = book.add_format({"quote_prefix": True})
        for column, name in enumerate(names):
            _write_cell(sheet, 0, column, name, kept_as_text)
        batches = (batch for table in tables for batch in table.to_batches(ROWS_AT_ONCE))
        rows = (cells for batch in batches for cells in zip(*batch.to_pydict().values(), strict=True))
        for row, cells in enumerate(rows, 1):
            if row >= MAX_ROWS:
                hint = "Write CSV or Parquet."
                raise SettingsError(f"a sheet has at most {MAX_ROWS:,} rows", value="more rows", hint=hint)
            for column, cell in enumerate(cells):
                _write_cell(sheet, row, column, cell, kept_as_text)


def _worksheet_of_exact_numbers() -> Any:
    """Return the class of a sheet whose numbers are written with all digits; XlsxWriter's own leaves the 17th out."""
    own = import_module("xlsxwriter.worksheet").Worksheet
    return type("ExactWorksheet", (own,), {"_xml_number_element": _write_exact_number})


def _write_exact_number(sheet: Any, number: float, attributes: Iterable[tuple[str, object]] = ()) -> None:
    stated = "".join(f' {name}="{value}"' for name, value in attributes)
    sheet.fh.write(f"<c{stated}><v>{number!r}</v></c>")


def _write_cell(sheet: Any, row: int, column: int, cell: Any, kept_as_text: Any) -> None:
    """Write a value; nothing for an unknown one."""
    if isinstance(cell, bool):
        sheet.write_boolean(row, column, cell)
    elif isinstance(cell, int | float) and abs(cell) < MAX_EXACT and math.isfinite(cell):
        sheet.write_number(row, column, cell)
    elif cell is not None and cell == cell:
        text = str(cell)
        if len(text) > MAX_TEXT:
            rule = f"a cell has at most {MAX_TEXT:,} characters"
            raise SettingsError(rule, value=f"{text[:40]}... of {len(text):,}", hint="Write CSV or Parquet.")
        sheet.write_string(row, column, text, kept_as_text if text.startswith(SIGNS) else None)
