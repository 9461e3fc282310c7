"""A row of a comma-separated file as text; every cell comes back from a reader as it was."""

import re
from collections.abc import Iterable

NEEDS_QUOTES = re.compile(r'[",\r\n]|^\s|\s$|^$')
"""Separators, and what readers strip or skip: spaces at the ends, an empty row. Python's own writer leaves a carriage
return without quotes where lines end in a line feed."""


def csv_line(cells: Iterable[object]) -> str:
    """Return the cells with commas between them, quoted where they need it, without a line end."""
    return ",".join(map(_cell, cells))


def _cell(content: object) -> str:
    text = str(content)
    if not NEEDS_QUOTES.search(text):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'
