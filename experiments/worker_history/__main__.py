"""Gain of a worker history on ten public data sets, and harm of a wrong one: `python -m experiments.worker_history`.

Tasks are split in halves at random. The default method is fitted to all answers of one half; its abilities and
intervals are the history of the fit of the other half, of which each task keeps 1, 2, 3 or 5 random answers. "Shuffled"
gives each worker the history of a random one. Means over sets and `SPLITS` splits; nothing is fitted to gold. The first
of repeated answers counts, ties are split. Needs the folder `CROWDVEIL_DATA`; about a minute on one core. Writes
`results/worker_history.csv` and prints its means.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from experiments.methods.comparison import SETS, log_loss
from experiments.rows import read_rows, write_rows

from crowdveil import HierarchicalDawidSkene, Reports
from crowdveil.answers import datasets
from crowdveil.em.estimate import Estimate
from crowdveil.em.worker_history import WorkerHistory
from crowdveil.inference.scores.gold_errors import align_gold
from crowdveil.inference.scores.metrics import score

RESULTS = Path(__file__).parent / "results" / "worker_history.csv"
ANSWERS, SPLITS = (1, 2, 3, 5), 5
CAPS = (5.0, 20.0, 100.0)


@dataclass(frozen=True, slots=True)
class Row:
    """Errors and log-losses with a history on a set, and the error of the best constant; means over splits."""

    data: str
    answers: int
    history: str
    error: float
    log_loss: float
    constant: float


def some_answers(reports: Reports, tasks: np.ndarray, most: int | None, rng: np.random.Generator) -> Reports:
    """Return the reports of some tasks, at most a number of random ones of each."""
    kept = np.flatnonzero(np.isin(np.asarray(reports.task), tasks))
    if most is not None:
        order = rng.permutation(kept)
        order = order[np.argsort(np.asarray(reports.task)[order], kind="stable")]
        task = np.asarray(reports.task)[order]
        place = np.arange(len(task)) - np.searchsorted(task, task)
        kept = np.sort(order[place < most])
    task, worker, value = (np.asarray(column)[kept] for column in (reports.task, reports.worker, reports.value))
    return Reports(task, worker, value, reports.tasks, reports.workers, reports.alphabet)


def histories(estimate: Estimate, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Yield the compared histories by name."""
    yield "none", None
    for cap in CAPS:
        history = WorkerHistory.from_estimate(estimate, max_answers=cap)
        yield f"at most {cap:g} answers", history
        names = rng.permutation(np.array(history.workers)).tolist()
        yield f"shuffled, at most {cap:g}", replace(history, workers=tuple(names))


def measured(name: str) -> Iterator[Row]:
    """Yield the rows of a data set."""
    data = datasets.load(name, duplicates="first")
    reports, method = data.answers, HierarchicalDawidSkene()
    found: dict[tuple[int, str], list[tuple[float, float, float]]] = {}
    for split in range(SPLITS):
        rng = np.random.default_rng(split)
        first, second = np.array_split(rng.permutation(np.flatnonzero(np.asarray(reports.per_task))), 2)
        earlier = method.fit(some_answers(reports, first, None, rng))
        names = {str(reports.tasks[code]) for code in second.tolist()}
        gold = {task: truth for task, truth in data.gold.items() if str(task) in names}
        for most in ANSWERS:
            few = some_answers(reports, second, most, rng)
            for kind, history in histories(earlier, rng):
                estimate = method.fit(few, history=history)
                one = score(estimate, gold)
                found.setdefault((most, kind), []).append(
                    (one.error, log_loss(align_gold(estimate, gold)), one.baseline)
                )
    for (most, kind), values in found.items():
        yield Row(name, most, kind, *np.mean(values, axis=0).tolist())


def table(rows: list[Row], column: str) -> Iterator[str]:
    """Yield the lines of a Markdown table of means over sets, by history and number of answers."""
    yield f"| {column} | {' | '.join(map(str, ANSWERS))} |"
    yield "| --- |" + " --- |" * len(ANSWERS)
    for kind in dict.fromkeys(row.history for row in rows):
        kept = [row for row in rows if row.history == kind]
        means = [mean(getattr(row, column) for row in kept if row.answers == most) for most in ANSWERS]
        yield f"| {kind} | {' | '.join(f'{value:.3f}' for value in means)} |"


if __name__ == "__main__":
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        found = (row for name in SETS for row in measured(name))
        write_rows(stream, Row, found, lambda cell: f"{cell:.5f}" if isinstance(cell, float) else cell)
    for column in ("error", "log_loss", "constant"):
        print("\n".join(table(read_rows(RESULTS, Row), column)), end="\n\n")
