"""Command of the benchmark: `python -m benchmarks.crowd_kit --sizes 1e4,1e5 --out measured`.

Each program fits the same synthetic crowds (five labels, ten answers a task, a hundred a worker, integers as
identifiers), each fit in its own process, from a table in memory to the labels. Timings on a shared machine are noisy,
so the printed ratios are medians of ratios within a round.
"""

import argparse
import json
from pathlib import Path

from benchmarks.crowd_kit.comparison import METHODS, Setup, compare
from benchmarks.crowd_kit.growth_plot import growth
from benchmarks.crowd_kit.peer import Peer, find_peer, install_peer, peer_directory
from benchmarks.crowd_kit.results import Comparison, markdown


def options() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crowd_kit", description=__doc__)
    parser.add_argument("--methods", default="dawid-skene,one-coin", help=f"Some of {', '.join(METHODS)}.")
    parser.add_argument("--sizes", default="1e4,1e5", help="Numbers of answers, ascending.")
    parser.add_argument("--rounds", type=int, default=3, help="Fits of each program.")
    parser.add_argument("--steps", type=int, default=20, help="EM steps after the majority vote.")
    parser.add_argument("--patience", type=float, default=60.0, help="Seconds; a slower program is skipped.")
    peer = parser.add_mutually_exclusive_group()
    peer.add_argument("--peer-python", type=Path, help="An interpreter with crowd-kit.")
    peer.add_argument("--install-peer", action="store_true", help="Make a virtual environment with crowd-kit.")
    parser.add_argument("--out", type=Path, help="Folder for bench.json, bench.md and growth.svg.")
    return parser


def main(words: list[str] | None = None) -> None:
    """Measure, print the Markdown table, and write the files."""
    given = options().parse_args(words)
    setup = Setup(
        methods=tuple(name.strip() for name in given.methods.split(",")),
        sizes=tuple(int(float(size)) for size in given.sizes.split(",")),
        rounds=given.rounds,
        steps=given.steps,
        patience=given.patience,
        peer=_peer(given.peer_python, given.install_peer),
    )
    found = compare(setup)
    print(markdown(found.results))
    for one in found.skipped:
        print(f"skipped: {one.program} at {one.answers:,} answers, {one.method}: {one.reason}.")
    if given.out is not None:
        _write(found, given.out)


def _peer(python: Path | None, install: bool) -> Peer | None:
    if python is not None:
        return find_peer(python)
    return install_peer(peer_directory()) if install else None


def _write(found: Comparison, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.json").write_text(json.dumps(found.to_json(), indent=1) + "\n", "utf-8")
    (folder / "bench.md").write_text(markdown(found.results), "utf-8")
    (folder / "growth.svg").write_bytes(growth(found))


if __name__ == "__main__":
    main()
