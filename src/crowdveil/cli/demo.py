"""`crowdveil demo`: every mechanism and method compared on real or simulated answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crowdveil.channels.rounding import format_bound
from crowdveil.cli.display import checked_stdout, print_written, warning_rows
from crowdveil.cli.options import FOLDER, SEED, NonemptyPath
from crowdveil.cli.progress import progress_bar
from crowdveil.cli.verb import Verb, wants_json

WIDE = 70
"""Smallest terminal width, in columns, with full headings."""

if TYPE_CHECKING:
    from crowdveil.answers.datasets import Dataset
    from crowdveil.comparison.demo import Demo
    from crowdveil.comparison.trials import Row


@click.command(
    cls=Verb,
    example="crowdveil demo --out shown",
    main_options=("data", "out", "seed"),
    short_help="Compare every mechanism and method on one page.",
)
@click.option("--data", type=NonemptyPath("FOLDER", exists=True, file_okay=False), help="Folder with the data sets.")
@click.option(
    "--out", type=FOLDER, default=Path("crowdveil-demo"),
    help="Folder for demo.html and demo.json.",
)  # fmt: skip
@click.option("--seed", type=SEED, default=1, help="Seed of the simulated devices.")
def demo(data: Path | None, out: Path, seed: int) -> None:
    """Compare every mechanism and method on three crowds, as a table and one HTML page.

    The crowds are AdultContent2, Duchenne and temperatures of cities from the data directory, or two synthetic ones.
    Each row states epsilon of a single answer (cell) and the participation. Devices are simulated: no privacy.
    """
    from crowdveil.comparison.demo import PAGE_FILE, ROWS_FILE, run_demo
    from crowdveil.comparison.demo.crowds import demo_crowds
    from crowdveil.files.atomic_write import Outputs, write_outputs

    outputs, page = Outputs(folder=out, names=(PAGE_FILE, ROWS_FILE), kind="demo"), str(out / PAGE_FILE)
    replaced = outputs.check_replaced_files()
    crowds = demo_crowds(_data_set_loader(data))
    with progress_bar("perturbing and inferring") as bar:
        done = run_demo(crowds, seed=seed, progress=lambda n, of, _: bar(n, of))
    write_outputs(outputs, done.texts(page))
    if not wants_json():
        _print_table(done)
    note = f"simulation only: no privacy. The reports follow from the seed {seed}"
    document = done.to_json(page) | {"warnings": [note]}
    print_written(document, warning_rows(document), outputs.paths, replaced)


def _data_set_loader(data: Path | None) -> Callable[[str], Dataset] | None:
    """Return the reader of the data sets of a folder; None if no folder is given, and the usual one lacks some."""
    from crowdveil.answers.datasets import available, load
    from crowdveil.comparison.demo.crowds import REAL

    if data is None and not REAL.issubset(available()):
        return None
    return partial(load, duplicates="first", directory=data)


@checked_stdout()
def _print_table(done: Demo) -> None:
    """Print one table per crowd: a heading per mechanism, one line per method."""
    from rich.console import Console
    from rich.table import Table

    from crowdveil.comparison.trials import sentences_not_run

    console = Console(highlight=False)
    for crowd in done.crowds:
        rows = [row for row in done.rows if row.crowd == crowd.name]
        console.print(f"\n[bold]{crowd.title}[/bold]", crowd.description, sep="\n", markup=True)
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
        table.add_column("inference", overflow="fold")
        for name in ("error", "constant", "unprotected", "correlation"):
            table.add_column(name if console.width >= WIDE else name[:6], justify="right", no_wrap=True)
        for group, lines in groupby(rows, key=_mechanism_text):
            table.add_row(f"[bold]{group}[/bold]")
            for row in lines:
                figures = (row.error, row.constant_error, row.unprotected, row.correlation)
                table.add_row(f"  {row.method}", *(f"{figure:.3f}" for figure in figures))
        console.print(table)
        for sentence in sentences_not_run([pair for pair in done.not_run if pair.crowd == crowd.name], rows):
            console.print(sentence, markup=False)


def _mechanism_text(row: Row) -> str:
    """Return mechanism, participation and epsilon per cell."""
    if row.claimed is None or row.exact is None:
        return row.mechanism
    claim = "" if row.exact <= row.claimed * (1 + 1e-9) else f" (claimed {row.claimed:.4g})"
    return f"{row.mechanism}, participation {row.participation}: epsilon {format_bound(row.exact, 4)}{claim} per cell"
