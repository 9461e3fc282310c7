"""Coverage and width of the intervals of `crowdveil conclude` on ten public sets: `python -m experiments.conclusions`.

The tasks of each set are those with a known truth and answers; its truths are the values to be covered. Each of `DRAWS`
seeds draws 20, 50 and 100 gold tasks (at most half of the tasks), and the intervals for prevalences, accuracies of
workers and the difference of the two workers with the most answers are compared with the values, and with Wilson's
intervals from gold alone. The default method is fitted to the answers once, without gold. The pseudo-observations of
`quality.prediction_powered` were chosen on these sets among four pairs. Needs the folder `CROWDVEIL_DATA`; some
minutes on one core. Writes `results/conclusions.csv` and prints its means.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from experiments.methods.comparison import SETS
from experiments.rows import read_rows, write_rows

from crowdveil import HierarchicalDawidSkene, Reports
from crowdveil.answers import datasets
from crowdveil.answers.evidence import Evidence
from crowdveil.inference.given import KnownTruths
from crowdveil.inference.gold_draw import tasks_in_draw_order
from crowdveil.inference.infer import Inference
from crowdveil.quality.conclusions import conclude_from_drawn_gold

RESULTS = Path(__file__).parent / "results" / "conclusions.csv"
GOLD, DRAWS = (20, 50, 100), 200
QUANTITIES = ("prevalence", "accuracy", "difference")


@dataclass(frozen=True, slots=True)
class Row:
    """Shares of intervals that hold the value and their mean width, and those of intervals from gold alone."""

    data: str
    gold: int
    quantity: str
    held: float
    gold_held: float
    width: float
    gold_width: float


def known_part(name: str) -> tuple[Reports, dict[str, Any]]:
    """Return the reports on tasks whose truth is a label of the answers, and these truths."""
    data = datasets.load(name)
    answers = data.answers
    names = set(answers.alphabet.names)
    gold = {str(task): truth for task, truth in data.gold.items() if truth in names}
    tasks = [str(task) for task in np.asarray(answers.tasks).tolist()]
    kept = np.flatnonzero(np.array([task in gold for task in tasks])[answers.task])
    codes, place = np.unique(answers.task[kept], return_inverse=True)
    columns = place.astype(np.int32), answers.worker[kept], answers.value[kept]
    listed = [tasks[code] for code in codes.tolist()]
    reports = Reports(*columns, np.array(listed), answers.workers, answers.alphabet)
    return reports, {task: gold[task] for task in listed}


def measured(inferred: Inference, gold: dict[str, Any], number: int) -> dict[str, list[float]]:
    """Return by quantity: intervals that hold the value, those of gold alone that do, and both widths; means."""
    reports, estimate = inferred.evidence.reports, inferred.estimate
    counts = np.bincount(reports.worker, minlength=len(reports.workers))
    first, second = (str(reports.workers[code]) for code in np.argsort(-counts, kind="stable")[:2])
    every = conclude_from_drawn_gold(inferred, KnownTruths(truths=gold, seed=0), compare=[(first, second)])
    common = common_tasks(reports, first, second)
    exact = {(row.quantity, row.name): row.found.estimate for row in every.rows}
    found: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for seed in range(DRAWS):
        order = tasks_in_draw_order(estimate.tasks, np.asarray(estimate.reports_per_task), seed)
        sample = KnownTruths(truths={task: gold[task] for task in order[:number]}, seed=seed)
        both = len(common.intersection(sample.truths)) >= 5
        for row in conclude_from_drawn_gold(inferred, sample, compare=[(first, second)] if both else []).rows:
            value = exact[row.quantity, row.name]
            held = [one.low - 1e-9 <= value <= one.high + 1e-9 for one in (row.found, row.gold_alone)]
            found[row.quantity].append((*held, *(one.high - one.low for one in (row.found, row.gold_alone))))
    return {quantity: np.mean(rows, axis=0).tolist() for quantity, rows in found.items()}


def common_tasks(reports: Reports, *workers: str) -> set[str]:
    """Return the tasks that all these workers have answered."""
    names = np.asarray(reports.workers).astype(str)
    sets = [set(reports.task[reports.worker == int(np.flatnonzero(names == name)[0])].tolist()) for name in workers]
    return {str(reports.tasks[code]) for code in set.intersection(*sets)}


def rows() -> Iterator[Row]:
    """Yield the rows of all sets."""
    for name in SETS:
        reports, gold = known_part(name)
        estimate = HierarchicalDawidSkene().fit(reports)
        inferred = Inference(estimate=estimate, evidence=Evidence(observed=reports), noise_model="none", notes=())
        for number in GOLD:
            if 2 * number <= len(gold):
                for quantity, values in measured(inferred, gold, number).items():
                    yield Row(name, number, quantity, *(round(value, 4) for value in values))


def table(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the table of means over sets."""
    yield "| gold | quantity | sets | held | lowest set | gold alone held | width / gold alone |"
    yield "|" + " --- |" * 7
    for number, quantity in product(GOLD, QUANTITIES):
        part = [row for row in rows if (row.gold, row.quantity) == (number, quantity)]
        held, alone = [row.held for row in part], mean(row.gold_held for row in part)
        ratio = mean(row.width / row.gold_width for row in part)
        shown = f"{mean(held):.3f} | {min(held):.3f} | {alone:.3f} | {ratio:.2f}"
        yield f"| {number} | {quantity} | {len(part)} | {shown} |"


if __name__ == "__main__":
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, rows())
    print("\n".join(table(read_rows(RESULTS, Row))))
