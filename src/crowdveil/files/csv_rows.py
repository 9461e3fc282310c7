"""Rows of CSV files as text, with quotes where they are needed."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

NEEDS_QUOTES = re.compile(r'[",\r\n]|^\s|\s$|^$')
"""Cells with separators or outer spaces, and empty cells. Python's csv writer leaves carriage returns unquoted."""


def csv_row(cells: Iterable[object]) -> str:
    """Return the cells with commas between them, quoted where they need it, without a line end."""
    return ",".join(map(_quoted_cell, cells))


def _quoted_cell(content: object) -> str:
    text = str(content)
    if not NEEDS_QUOTES.search(text):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return the text of a CSV file with quotes where needed."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([header, *rows])
    return stream.getvalue()
