"""Tables of `results/real_tables.csv` in Markdown, written between their marks in README.md.

Means over seeds; the error rate (numbers: the mean absolute error) with its standard error.
Run `python experiments/utility/real_report.py`.
"""

import csv
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

RESULTS = Path(__file__).parent / "results" / "real_tables.csv"
PAGE = Path(__file__).parent / "README.md"
Lines = Sequence[dict[str, str]]
METHODS = {
    "adult2": (("dawid-skene", "learned"), ("ordinal-dawid-skene", "learned"), ("ordinal-dawid-skene", "public")),
    "web_zhou": (
        ("one-coin", "public"),
        ("dawid-skene", "public"),
        ("ordinal-dawid-skene", "public"),
        ("ordinal-dawid-skene", "learned"),
    ),
    "n_emotion": (("gaussian", "public"), ("gaussian", "learned")),
    "weather_temperature": (("gaussian", "public"), ("gaussian", "learned")),
}
"""Methods and priors shown for each set; the results have the other priors too."""
NAIVE = (("majority-vote", "learned"), ("weighted-vote", "learned"), ("weighted-mean", "learned"))
FIGURES = {True: ("error_rate", "mae", "correlation"), False: ("mae", "correlation")}
"""Metrics in each cell of a table, for labels and for numbers."""
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


def table(rows: Lines, data: str) -> Iterator[str]:
    """Yield the Markdown lines of one data set."""
    rows = [row for row in rows if row["data"] == data]
    columns = FIGURES[rows[0]["error_rate"] != "nan"]
    epsilons = sorted({float(row["epsilon"]) for row in rows} - {math.inf})
    yield "| channel | inference | unprotected | " + " | ".join(f"{epsilon:g}" for epsilon in epsilons) + " |"
    yield "|---|---|" + "---|" * (len(epsilons) + 1)
    constant = (f"{float(rows[0]['constant_' + column]):.3f}" for column in columns[:-1])
    yield f"| best constant | | {' / '.join((*constant, '0'))} |" + " |" * len(epsilons)
    for mechanism in MECHANISMS:
        for method, prior in NAIVE if mechanism == "naive" else METHODS[data]:
            found = {column: series(rows, mechanism, method, prior, column) for column in columns}
            if found[columns[0]]:
                plain = {column: series(rows, "unprotected", method, prior, column) for column in columns}
                cells = " | ".join(show(found, epsilon) for epsilon in epsilons)
                said = f"{method}, public prior" if prior == "public" and method != "one-coin" else method
                yield f"| {mechanism} | {said} | {show(plain, math.inf)} | {cells} |"


def show(found: dict[str, dict[float, Point]], epsilon: float) -> str:
    """Return the metrics of one cell as text, the first with its standard error."""
    if not all(epsilon in points for points in found.values()):
        return "–"
    first, *others = (points[epsilon] for points in found.values())
    bar = "" if math.isnan(first.error) else f" ± {first.error:.3f}"
    return f"{first.mean:.3f}{bar} / " + " / ".join(f"{other.mean:.2f}" for other in others)


def main() -> None:
    """Write every table into README.md."""
    rows, page = read(), PAGE.read_text("utf-8")
    for data in METHODS:
        if any(row["data"] == data for row in rows):
            begin, end = f"<!-- {data}, by real_report.py -->", "<!-- end -->"
            body = "\n".join((begin, "", *table(rows, data), "", end))
            page = re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _, body=body: body, page, flags=re.DOTALL)
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
