"""Tables of the comparison of methods, in Markdown."""

from collections.abc import Sequence

import numpy as np
from experiments.methods.comparison import CONSTANT, SETS, Row


def methods_of(rows: Sequence[Row]) -> list[str]:
    """Return the methods by mean accuracy, the highest first."""
    names = {row.method for row in rows}
    return sorted(names, key=lambda name: (-round(mean(rows, name, "accuracy") or 0.0, 3), name))


def mean(rows: Sequence[Row], method: str, column: str) -> float | None:
    """Return the mean of a column over the data sets of a method; None if it is empty."""
    found = [getattr(row, column) for row in rows if row.method == method]
    return None if None in found else float(np.mean(found))


def summary(rows: Sequence[Row]) -> list[str]:
    """Return the lines of the table of means over all sets; seconds are summed."""
    lines = ["| method | accuracy | ECE | log-loss | seconds |", "| --- | --- | --- | --- | --- |"]
    for method in methods_of(rows):
        seconds = mean(rows, method, "seconds")
        shown = [_text(mean(rows, method, column)) for column in ("accuracy", "calibration_error", "log_loss")]
        total = "" if seconds is None else f"{seconds * len(SETS):.1f}"
        lines.append(f"| {_name(method)} | {' | '.join(shown)} | {total} |")
    return lines


def by_set(rows: Sequence[Row]) -> list[str]:
    """Return the lines of the table of accuracy, calibration error, log-loss and seconds of each method on each set."""
    cells = {(row.method, row.data): row for row in rows}
    lines = [f"| method | {' | '.join(SETS)} |", f"| --- |{' --- |' * len(SETS)}"]
    for method in methods_of(rows):
        shown = [_cell(cells[method, data]) for data in SETS]
        lines.append(f"| {_name(method)} | {' | '.join(shown)} |")
    return lines


def _cell(row: Row) -> str:
    measures = (row.accuracy, row.calibration_error, row.log_loss)
    seconds = "" if row.seconds is None else f" {row.seconds:.2f} s"
    return " / ".join(_text(one) for one in measures if one is not None) + seconds


def _text(number: float | None) -> str:
    return "" if number is None else f"{number:.3f}".removeprefix("0")


def _name(method: str) -> str:
    return method if method == CONSTANT else f"`{method}`"
