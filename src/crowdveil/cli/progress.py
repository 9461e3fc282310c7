"""Progress of long work on stderr: a bar on a terminal, elsewhere a line every few seconds, with --log-json as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from time import monotonic
from typing import Literal, Protocol

import click

from crowdveil.cli.verb import wants_json_log

LOG_FORMAT = "crowdveil-log/1"
LOG_SECONDS = 5.0
"""Time between two lines of one phase; a shorter phase has its last line only, and only as JSON."""
Unit = Literal["steps", "bytes"]


class Bar(Protocol):
    """Progress function of a phase."""

    def __call__(self, done: float, total: float | None, change: float | None = None) -> None:
        """Tell the work done, the total work (None if it is unknown), and the largest change of a step of a fit."""


@contextmanager
def progress_bar(text: str, unit: Unit = "steps") -> Iterator[Bar]:
    """Context with the progress of a phase on stderr."""
    if wants_json_log() or not sys.stderr.isatty():
        lines = _Lines(text, unit, as_json=wants_json_log())
        yield lines
        lines.end()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    amount = DownloadColumn() if unit == "bytes" else TextColumn("{task.fields[steps]}")
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(text, total=None, visible=False, steps="")

        def show(done: float, total: float | None, change: float | None = None) -> None:
            steps = f"{done:,.0f}" if total is None else f"{done:,.0f} of {total:,.0f}"
            progress.update(bar, completed=done, total=total, visible=True, steps=steps)

        yield show


class _Lines:
    """Progress of a phase as lines."""

    def __init__(self, text: str, unit: Unit, *, as_json: bool) -> None:
        self._text, self._unit, self._as_json = text, unit, as_json
        self._start = self._shown = monotonic()
        self._last: tuple[float, float | None, float | None] = (0, None, None)

    def __call__(self, done: float, total: float | None, change: float | None = None) -> None:
        """Write a line if the last one is long enough ago."""
        self._last = done, total, change
        if monotonic() - self._shown >= LOG_SECONDS:
            self._shown = monotonic()
            self._write(is_finished=False)

    def end(self) -> None:
        """Write the last line of a phase that had work; of a short one only as JSON."""
        if self._last[0] and (self._as_json or self._shown > self._start):
            self._write(is_finished=True)

    def _write(self, *, is_finished: bool) -> None:
        (done, total, change), seconds = self._last, monotonic() - self._start
        if self._as_json:
            counts = {"unit": self._unit, "done": done, "total": total, "change": _finite(change)}
            line = {"format": LOG_FORMAT, "phase": self._text, **counts, "seconds": round(seconds, 3)}
            click.echo(json.dumps(line | {"finished": is_finished}), err=True)
            return
        amount = f"{done:,.0f}" if total is None else f"{done:,.0f} of {total:,.0f}"
        moved = "" if _finite(change) is None else f", largest change {change:.2g}"
        click.echo(f"{self._text}: {amount} {self._unit}{moved}, {seconds:.0f} s", err=True)


def _finite(change: float | None) -> float | None:
    """Return a change; None for that of the first step, which is infinite."""
    return change if change is not None and isfinite(change) else None
