"""Display of results: stacked lines that fit any terminal, or one JSON object; progress on a terminal only."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from crowdveil.channels.rounding import format_bound, format_delta
from crowdveil.cli.json_output import as_text, result
from crowdveil.errors import SettingsError

if TYPE_CHECKING:
    from crowdveil.accounting import Account

Bar = Callable[[float, float | None], None]
"""Called with the work done and the whole work, None if nobody knows it."""


def show(data: Mapping[str, Any], rows: Sequence[tuple[str, str]], *, as_json: bool) -> None:
    """Print a result: `data` as one JSON document of the running command, or `rows`, stacked.

    Raises:
        SettingsError: as `printing`.
    """
    with printing():
        click.echo(as_text(result(data)) if as_json else _stacked(rows))


@contextmanager
def printing() -> Iterator[None]:
    """Turn what the system says against stdout, such as a full disk, into a refusal; a reader who has left is none.

    Raises:
        SettingsError: the result cannot be printed.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        hint = f"{error.strerror or error}. Files that the command was to write are in place; print elsewhere."
        raise SettingsError("the result must be printed", value="stdout", hint=hint) from error


def _stacked(rows: Sequence[tuple[str, str]]) -> str:
    """Return names beside values; long values wrap, nothing is cut."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(Text(printable(name)), Text(printable(value)))
    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(grid)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def replaced_rows(replaced: Sequence[str]) -> list[tuple[str, str]]:
    """Return the line that names the files that were replaced or removed; none if there were none."""
    return [("replaced", ", ".join(replaced))] if replaced else []


def warn(text: str) -> None:
    """Say something on stderr before long work begins."""
    click.echo(f"Warning: {printable(text)}", err=True)


def number(value: float) -> str:
    """Write a number to the nearest of six digits; infinity promises nothing. Bounds are `rounding.format_bound`."""
    return "none (infinite)" if math.isinf(value) else "unknown" if math.isnan(value) else f"{value:.6g}"


def printable(text: str) -> str:
    """Replace what could move the cursor or hide text: names come from other people's files."""
    return "".join(sign if sign.isprintable() or sign == "\n" else "\N{REPLACEMENT CHARACTER}" for sign in text)


def account_data(accounts: Sequence[Account]) -> list[dict[str, Any]]:
    """Return an account as JSON values."""
    return [asdict(row) for row in accounts]


def account_rows(accounts: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return the lines of `account_data`: claimed and exact epsilon with unit and participation, then the reasons."""
    rows = []
    for row in accounts:
        of = f" of {row['cells']:,} cells" if row["unit"] == "worker" else ""
        over = f", {row['rounds']:,} rounds" if row["rounds"] > 1 else ""
        slack = f", delta {format_delta(row['delta'])}" if row["delta"] else ""
        what = f"(per {row['unit']}{of}{over}, participation {row['participation']})"
        rows.append(("epsilon", f"exact {format_bound(row['exact'])}, claimed {number(row['claimed'])}{slack} {what}"))
    reasons = dict.fromkeys(row["reason"] for row in accounts if row["reason"])
    return rows + [("because", reason) for reason in reasons]


@contextmanager
def progress_bar(text: str) -> Iterator[Bar | None]:
    """Show a bar on stderr while work goes on, if that is a terminal; give None otherwise."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(text, total=None)
        yield lambda done, total: progress.update(bar, completed=done, total=total)
