"""`crowdveil bench`: how fast crowdveil is on this machine, beside crowd-kit and plain numpy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.display import printing, progress_bar, replaced_rows, show, warn
from crowdveil.cli.json_output import as_text, result
from crowdveil.cli.options import COUNT, PATH, json_option, numbers

if TYPE_CHECKING:
    from crowdveil.bench import Bench, Line, Peer
    from crowdveil.files.atomic_write import Outputs

FILES = ("bench.json", "bench.md", "growth.svg")
HELP = """Measure how fast crowdveil infers on this machine, beside crowd-kit and beside plain numpy.

Makes crowds up (five labels, ten answers a task, a hundred a worker, whole numbers for names) and fits them with each
program in turn, every fit in a process of its own, from a table in memory to the truths, code loaded before. A machine
is noisy, so what counts are ratios within a round; printed are their medians over the rounds. Where other work is going
on, processor time is the steadier one.

\b
A first look, in less than a minute:
  crowdveil bench
The peer in an environment of its own, downloaded once:
  crowdveil bench --install-peer --sizes 1e4,1e5,1e6
A picture of how time grows:
  crowdveil bench --sizes 1e4,1e5,1e6,1e7 --out measured

MB is the most that a fit held beyond its table. Labels are compared with crowdveil's; they differ where a task is tied,
or nearly. The roof is the time in which one thread reads four bytes an answer once a step, at the speed with which it
read memory in this run.

With --out, writes bench.json, bench.md and growth.svg."""


@click.command(help=HELP, short_help="Measure how fast crowdveil is, beside crowd-kit and plain numpy.")
@click.option(
    "--methods",
    default="dawid-skene,one-coin",
    metavar="A,B",
    show_default=True,
    help="What is fitted: majority-vote, dawid-skene, one-coin.",
)
@click.option("--sizes", default="1e4,1e5", metavar="N,M", show_default=True, help="Numbers of answers, ascending.")
@click.option("--rounds", type=COUNT, default=3, metavar="R", show_default=True, help="Fits of each.")
@click.option("--steps", type=COUNT, default=20, metavar="S", show_default=True, help="Updates after the votes.")
@click.option(
    "--patience",
    type=float,
    default=60.0,
    metavar="SECONDS",
    show_default=True,
    help="A program that would need longer for a fit, going by the size before, is left out.",
)
@click.option("--peer-python", type=PATH, metavar="PYTHON", help="An interpreter with crowd-kit.")
@click.option("--install-peer", is_flag=True, help="Make one in the user's cache folder, with venv and pip.")
@click.option("--out", type=PATH, metavar="DIR", help="Where files are written.")
@json_option
def bench(
    methods: str,
    sizes: str,
    rounds: int,
    steps: int,
    patience: float,
    peer_python: Path | None,
    install_peer: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure, write, print; see `HELP`."""
    from crowdveil.bench import Setup, race
    from crowdveil.files.atomic_write import Outputs

    if peer_python is not None and install_peer:
        raise click.UsageError("Give --peer-python or --install-peer, not both.")
    setup = Setup(
        methods=tuple(name.strip() for name in methods.split(",")),
        sizes=_whole(numbers(sizes, "--sizes")),
        rounds=rounds,
        steps=steps,
        patience=patience,
        peer=_peer(peer_python, install_peer),
    )
    outputs = None if out is None else Outputs(folder=out, names=FILES, kind="benchmark")
    replaced = [] if outputs is None else outputs.check()
    with progress_bar("fitting") as bar:
        found = race(setup, bar)
    data = found.to_json()
    data["warnings"] = _warnings(found)
    data["files"] = [] if outputs is None else list(map(str, outputs.paths))
    data["replaced"] = list(map(str, replaced))
    if outputs is not None:
        _write(outputs, found, data)
    if not as_json:
        _print_table(found)
    show(data, _rows(found, data), as_json=as_json)


def _whole(sizes: tuple[float, ...]) -> tuple[int, ...]:
    if not all(size.is_integer() for size in sizes):
        raise click.BadParameter(f"{sizes} are not whole numbers.", param_hint="'--sizes'")
    return tuple(map(int, sizes))


def _peer(python: Path | None, install: bool) -> Peer | None:
    from crowdveil.bench import find_peer, install_peer, peer_home

    if python is not None:
        return find_peer(python)
    if not install:
        return None
    home = peer_home()
    warn(f"the peer lives in {home}; what is missing there is downloaded with pip.")
    return install_peer(home)


def _warnings(found: Bench) -> list[str]:
    warnings = []
    if found.versions["crowd-kit"] is None:
        warnings.append("No peer: give --peer-python PYTHON, or --install-peer, to run crowd-kit in turn.")
    return warnings + [
        f"{one.program} was left out at {one.answers:,} answers, {one.method}: {one.because}." for one in found.left_out
    ]


def _write(outputs: Outputs, found: Bench, data: dict[str, Any]) -> None:
    from crowdveil.bench import growth, markdown
    from crowdveil.files.atomic_write import write_outputs

    contents = (as_text(result(data)) + "\n", markdown(found.lines), growth(found))
    write_outputs(outputs, dict(zip(FILES, contents, strict=True)))


def _rows(found: Bench, data: dict[str, Any]) -> list[tuple[str, str]]:
    machine, versions = found.machine, found.versions
    loads = f"load {machine['load_before']} before, {machine['load_after']} after"
    named = ", ".join(f"{name} {number}" for name, number in versions.items() if number is not None)
    return [
        ("times", "processor seconds over crowdveil's of the same round, median"),
        *[("warning", text) for text in data["warnings"]],
        ("machine", f"{machine['processor']}, {machine['cores']} cores; {loads}"),
        ("versions", named),
        ("roof", f"{found.roof:.3g} GB/s, read by one thread"),
        *replaced_rows(data["replaced"]),
        *[("written", path) for path in data["files"]],
    ]


@printing()
def _print_table(found: Bench) -> None:
    """Print a heading for each method and size, and below it a line for each program."""
    from itertools import groupby

    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    for name in ("program", "wall s", "processor s", "times", "MB", "equal", "roof"):
        table.add_column(name, justify="left" if name == "program" else "right", overflow="fold")
    for (method, answers), lines in groupby(found.lines, key=lambda line: (line.method, line.answers)):
        table.add_row(f"[bold]{method}, {answers:,}[/bold]")
        for line in lines:
            table.add_row(f"  {line.program}", *_figures(line))
    Console(highlight=False).print(table)


def _figures(line: Line) -> tuple[str, ...]:
    times, equal, roof = f"{line.processor_ratio:.3g}", f"{line.equal_labels:.2%}", f"{line.share_of_roof:.2%}"
    return (f"{line.wall:.3g}", f"{line.processor:.3g}", times, f"{line.memory:,.0f}", equal, roof)
