"""Errors of methods for numbers on simulated crowds, beside mean, median and the oracle that knows each answer's error.

python -m experiments.utility.crowds.numbers > experiments/utility/results/number_crowds.csv
python -m experiments.utility.crowds.numbers --seeds 7 8 --methods student-t --part drift
python -m experiments.utility.crowds.numbers --table experiments/utility/results/number_crowds.csv
"""

import argparse
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from experiments.rows import four_digits, read_rows, write_rows
from experiments.utility.crowds.number_crowds import NumberCrowd, NumberKind, kinds
from numpy.typing import NDArray

from crowdveil import infer

METHODS = ("student-t", "catd", "crh", "weighted-mean")
MEAN, MEDIAN, ORACLE = "mean", "median", "oracle"
SEEDS = (300, 301, 302, 303, 304)
RESULTS = Path(__file__).parent.parent / "results" / "number_crowds.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberRow:
    """One method on one kind of crowd, means over seeds.

    Attributes:
        crowd, method: names.
        seeds: number of crowds.
        error: mean absolute error.
        inside: share of truths inside their 90 % interval; None without intervals.
    """

    crowd: str
    method: str
    seeds: int
    error: float
    inside: float | None


def crowd_of(kind: NumberKind, seed: int) -> NumberCrowd:
    """Return the crowd of a kind with a seed; crowds of different kinds are independent."""
    return kind.make(np.random.default_rng([seed, zlib.crc32(kind.name.encode())]))


def measured(chosen: Iterable[NumberKind], seeds: Iterable[int], methods: Iterable[str]) -> Iterator[NumberRow]:
    """Yield the row of each method, of mean, median and oracle, on each kind of crowd."""
    seeds, methods = tuple(seeds), tuple(methods)
    for kind in chosen:
        crowds = [crowd_of(kind, seed) for seed in seeds]
        for method in (*methods, MEAN, MEDIAN, ORACLE):
            found = np.array([error_and_share_inside(crowd, method) for crowd in crowds])
            error, inside = found.mean(axis=0).tolist()
            yield NumberRow(
                crowd=kind.name,
                method=method,
                seeds=len(crowds),
                error=error,
                inside=None if np.isnan(inside) else inside,
            )


def error_and_share_inside(crowd: NumberCrowd, method: str) -> tuple[float, float]:
    """Return the mean absolute error of a method, and the share of truths inside; nan without intervals."""
    truth, inside = _simple_truths(crowd, method), np.nan
    if truth is None:
        estimate = infer(crowd.reports, method).estimate
        truth = estimate.posterior
        if estimate.low is not None and estimate.high is not None:
            inside = float(((estimate.low <= crowd.truth) & (crowd.truth <= estimate.high)).mean())
    return float(np.abs(truth - crowd.truth).mean()), inside


def _simple_truths(crowd: NumberCrowd, method: str) -> NDArray[np.float64] | None:
    """Return the truths of oracle, mean or median; None for an estimator."""
    if method == ORACLE:
        return crowd.oracle()
    centres: dict[str, Callable[..., Any]] = {MEAN: np.mean, MEDIAN: np.median}
    centre = centres.get(method)
    parts = np.split(crowd.value, np.searchsorted(crowd.task, np.arange(1, len(crowd.truth))))
    return None if centre is None else np.array([centre(part) for part in parts])


def table(rows: list[NumberRow]) -> list[str]:
    """Return the error of each method by crowd, and how often the default's intervals hold, as lines of a table."""
    methods = list(dict.fromkeys(row.method for row in rows))
    lines = [" | ".join(("| crowd", *methods, "inside")) + " |", "|---" * (len(methods) + 2) + "|"]
    for crowd in dict.fromkeys(row.crowd for row in rows):
        own = {row.method: row for row in rows if row.crowd == crowd}
        inside = own[METHODS[0]].inside
        cells = (*(f"{own[method].error:.4g}" for method in methods), f"{inside:.2f}" if inside is not None else "")
        lines.append(" | ".join((f"| {crowd}", *cells)) + " |")
    return lines


def main() -> None:
    """Write the rows, or the table of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--part", default="", help="part of the names of crowds")
    parser.add_argument("--table", type=Path, help="rows to show as a table")
    given = parser.parse_args()
    if given.table is not None:
        print("\n".join(table(read_rows(given.table, NumberRow))))
        return
    chosen = [kind for kind in kinds() if given.part in kind.name]
    write_rows(sys.stdout, NumberRow, measured(chosen, given.seeds, given.methods), four_digits)


if __name__ == "__main__":
    main()
