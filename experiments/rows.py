"""Rows of results as CSV: a dataclass or a named tuple a line, whose fields are the columns."""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO, get_args, get_type_hints


def write_rows(
    stream: TextIO, kind: type, rows: Iterable[Any], shown: Callable[[Any], Any] = lambda value: value
) -> None:
    """Write rows of a kind, each as soon as it is known, with their values as `shown`; None is an empty cell."""
    names = list(get_type_hints(kind))
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([shown(getattr(row, name)) for name in names])
        stream.flush()


def four_digits(value: Any) -> Any:
    """Return a float with four significant digits, anything else as it is."""
    return f"{value:.4g}" if isinstance(value, float) else value


def read_rows(path: Path, kind: type[Any]) -> list[Any]:
    """Return the rows of a kind in a file of `write_rows`."""
    types = get_type_hints(kind)
    with path.open(newline="", encoding="utf-8") as stream:
        return [
            kind(**{name: _value(types[name], cell) for name, cell in line.items()}) for line in csv.DictReader(stream)
        ]


def _value(kind: Any, cell: str) -> Any:
    if get_args(kind):
        kind = get_args(kind)[0] if cell else lambda _: None
    return cell == "True" if kind is bool else kind(cell)
