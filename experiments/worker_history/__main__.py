"""Gain of a worker history on ten public data sets, and harm of a wrong one: `python -m experiments.worker_history`.

Tasks are split in halves at random. The default method is fitted to all answers of one half; its abilities and
intervals are the history of the fit of the other half, of which each task keeps 1, 2, 3 or 5 random answers. "Shuffled"
gives each worker the history of a random one. Means over sets and `SPLITS` splits; nothing is fitted to gold. The first
of repeated answers counts, ties are split. Needs the folder `CROWDVEIL_DATA`; about a minute on one core. Writes
`results/worker_history.csv` and `.md`.
"""

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from crowdveil import HierarchicalDawidSkene, Reports
from crowdveil.data import datasets
from crowdveil.em.estimate import Estimate
from crowdveil.em.history import WorkerHistory
from crowdveil.evaluation.gold import align_gold, gold_codes
from crowdveil.evaluation.metrics import score

RESULTS = Path(__file__).parent / "results"
SETS = ("d_product", "d_possent", "s_rel", "adult2", "bluebird", "dog", "snow_rte", "snow_wsd", "web_zhou", "duchenne")
ANSWERS, SPLITS, SMALLEST = (1, 2, 3, 5), 5, 1e-3
CAPS = (5.0, 20.0, 100.0)
COLUMNS = ("data", "answers", "history", "error", "log_loss", "constant")
Row = dict[str, Any]


def some_answers(reports: Reports, tasks: np.ndarray, most: int | None, rng: np.random.Generator) -> Reports:
    """Return the reports of some tasks, at most a number of random ones of each."""
    kept = np.flatnonzero(np.isin(np.asarray(reports.task), tasks))
    if most is not None:
        order = rng.permutation(kept)
        order = order[np.argsort(np.asarray(reports.task)[order], kind="stable")]
        task = np.asarray(reports.task)[order]
        place = np.arange(len(task)) - np.searchsorted(task, task)
        kept = np.sort(order[place < most])
    columns = (np.asarray(column)[kept] for column in (reports.task, reports.worker, reports.value))
    return Reports(*columns, reports.tasks, reports.workers, reports.alphabet)


def shuffled(history: WorkerHistory, rng: np.random.Generator) -> WorkerHistory:
    """Return the history with the names of its workers at random."""
    names = np.array(history.workers)
    return replace(history, workers=tuple(rng.permutation(names).tolist()))


def histories(estimate: Estimate, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Yield the compared histories by name."""
    yield "none", None
    for cap in CAPS:
        history = WorkerHistory.from_estimate(estimate, max_answers=cap)
        yield f"at most {cap:g} answers", history
        yield f"shuffled, at most {cap:g}", shuffled(history, rng)


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
                found.setdefault((most, kind), []).append((one.error, log_loss(estimate, gold), one.baseline))
    for (most, kind), values in found.items():
        error, loss, constant = np.mean(values, axis=0).tolist()
        yield dict(zip(COLUMNS, (name, most, kind, error, loss, constant), strict=True))


def log_loss(estimate: Estimate, gold: dict[str, Any]) -> float:
    """Return the mean negative log-probability of gold, in nats, each probability at least `SMALLEST`."""
    aligned = align_gold(estimate, gold)
    return float(-np.log(np.maximum(estimate.posterior[aligned.at, gold_codes(aligned)], SMALLEST)).mean())


def table(rows: list[Row], column: str) -> list[str]:
    """Return a Markdown table of means over sets, by history and number of answers; accuracy for the error."""
    shown = {
        kind: [row for row in rows if row["history"] == kind] for kind in dict.fromkeys(r["history"] for r in rows)
    }
    means = {
        kind: [mean(r[column] for r in kept if r["answers"] == most) for most in ANSWERS]
        for kind, kept in shown.items()
    }
    if column == "error":
        means["best constant"] = [mean(row["constant"] for row in rows)] * len(ANSWERS)
        means = {kind: [1 - error for error in errors] for kind, errors in means.items()}
    lines = [f"| history | {' | '.join(map(str, ANSWERS))} |", "| --- |" + " --- |" * len(ANSWERS)]
    return lines + [f"| {kind} | {' | '.join(f'{one:.3f}' for one in cells)} |" for kind, cells in means.items()]


if __name__ == "__main__":
    rows = [row for name in SETS for row in measured(name)]
    with open(RESULTS / "worker_history.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {name: f"{value:.5f}" if isinstance(value, float) else value for name, value in row.items()} for row in rows
        )
    parts = ["# Worker history on ten data sets", "Accuracy by answers a task:", "\n".join(table(rows, "error"))]
    parts += ["Log-loss, in nats:", "\n".join(table(rows, "log_loss"))]
    (RESULTS / "worker_history.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print("\n\n".join(parts))
