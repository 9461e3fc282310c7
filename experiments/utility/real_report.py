"""Tables of `results/real_tables.csv` in Markdown: mean over seeds, standard error in brackets, one line per choice.

Run `python experiments/utility/real_report.py`; docs/truth-per-epsilon.md shows what it prints.
"""

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

RESULTS = Path(__file__).parent / "results" / "real_tables.csv"
Lines = Sequence[dict[str, str]]
METHODS = {
    "adult2": (("dawid-skene", "learned"), ("one-coin", "public"), ("ordinal-dawid-skene", "learned")),
    "web_zhou": (("dawid-skene", "public"), ("one-coin", "public"), ("ordinal-dawid-skene", "public")),
    "n_emotion": (("gaussian", "public"), ("gaussian", "learned")),
    "weather_temperature": (("gaussian", "public"), ("gaussian", "learned")),
}
"""What the page shows of each set; the file has the other priors too."""
NAIVE = (("majority-vote", "learned"), ("weighted-vote", "learned"), ("weighted-mean", "learned"))
MECHANISMS = (
    "naive",
    "k-RR",
    "quantized",
    "designed",
    "cuts dealt",
    "k-RR, assigned",
    "designed, assigned",
    "k-RR, participation public",
)


class Point(NamedTuple):
    """A mean over seeds and its standard error, nan for a single seed."""

    mean: float
    error: float


def read(path: Path = RESULTS) -> list[dict[str, str]]:
    """Return the rows of a file of results."""
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def point(rows: Lines, column: str) -> Point:
    """Return mean and standard error over the seeds."""
    found = [float(row[column]) for row in rows]
    spread = stdev(found) / math.sqrt(len(found)) if len(found) > 1 else math.nan
    return Point(fmean(found), spread)


def series(rows: Lines, mechanism: str, method: str, prior: str, column: str) -> dict[float, Point]:
    """Return epsilon -> point of one line of a table or picture."""
    mine = [row for row in rows if (row["mechanism"], row["method"], row["prior"]) == (mechanism, method, prior)]
    epsilons = sorted({float(row["epsilon"]) for row in mine})
    return {epsilon: point([row for row in mine if float(row["epsilon"]) == epsilon], column) for epsilon in epsilons}


def table(rows: Lines, data: str, column: str) -> Iterator[str]:
    """Yield the Markdown lines of one data set."""
    rows = [row for row in rows if row["data"] == data]
    epsilons = sorted({float(row["epsilon"]) for row in rows} - {math.inf})
    yield "| channel | inference | unprotected | " + " | ".join(f"{epsilon:g}" for epsilon in epsilons) + " |"
    yield "|---|---|" + "---|" * (len(epsilons) + 1)
    for mechanism in MECHANISMS:
        for method, prior in NAIVE if mechanism == "naive" else METHODS[data]:
            found = series(rows, mechanism, method, prior, column)
            if not found:
                continue
            plain = series(rows, "unprotected", method, prior, column)[math.inf].mean
            cells = " | ".join(show(found.get(epsilon)) for epsilon in epsilons)
            said = method if prior == "learned" or method == "one-coin" else f"{method}, public prior"
            yield f"| {mechanism} | {said} | {plain:.3f} | {cells} |"


def show(found: Point | None) -> str:
    """Return a point for people."""
    if found is None:
        return "–"
    return f"{found.mean:.3f}" + ("" if math.isnan(found.error) else f" ({found.error:.3f})")


def main() -> None:
    """Print all tables."""
    rows = read()
    for data in METHODS:
        mine = [row for row in rows if row["data"] == data]
        if not mine:
            continue
        labels = mine[0]["error_rate"] != "nan"
        for column in ("error_rate", "mae", "correlation") if labels else ("mae", "correlation"):
            constant = "" if column == "correlation" else f", constant {float(mine[0]['constant_' + column]):.3f}"
            seeds = len({row["seed"] for row in mine if row["mechanism"] != "unprotected"})
            print(f"\n{data}: {column}{constant}, {seeds} seeds\n")
            print("\n".join(table(rows, data, column)))


if __name__ == "__main__":
    main()
