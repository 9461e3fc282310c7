"""Coverage and width of the intervals of `crowdveil conclude` on ten public sets: `python -m experiments.conclusions`.

The tasks of each set are those with a known truth and answers; its truths are the values to be covered. Each of `DRAWS`
seeds draws 20, 50 and 100 gold tasks (at most half of the tasks), and the intervals for prevalences, accuracies of
workers and the difference of the two workers with the most answers are compared with the values, and with Wilson's
intervals from gold alone. The default method is fitted to the answers once, without gold. The pseudo-observations of
`evaluation.prediction_powered` were chosen on these sets among four pairs. Needs the folder `CROWDVEIL_DATA`; some
minutes on one core. Writes `results/conclusions.csv` and `.md`.
"""

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil import HierarchicalDawidSkene, Reports
from crowdveil.crowd_review.conclusions import conclude_from
from crowdveil.data import datasets
from crowdveil.em.estimate import Estimate
from crowdveil.evaluation.gold_draw import drawn_tasks
from crowdveil.folder.evidence import Evidence

RESULTS = Path(__file__).parent / "results"
SETS = ("d_product", "d_possent", "s_rel", "adult2", "bluebird", "dog", "snow_rte", "snow_wsd", "web_zhou", "duchenne")
GOLD, DRAWS = (20, 50, 100), 200
QUANTITIES = ("prevalence", "accuracy", "difference")


def known_part(name: str) -> tuple[Evidence, dict[str, Any]]:
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
    evidence = Evidence(
        reports=reports, crowd=None, channel=None, certificate=None, no_channel_reason="", assignment=None, notes=()
    )
    return evidence, {task: gold[task] for task in listed}


def measured(evidence: Evidence, estimate: Estimate, gold: dict[str, Any], number: int) -> dict[str, list[float]]:
    """Return by quantity: intervals that hold the value, those of gold alone that do, and both widths; means."""
    counts = np.bincount(evidence.reports.worker, minlength=len(evidence.reports.workers))
    first, second = (str(evidence.reports.workers[code]) for code in np.argsort(-counts, kind="stable")[:2])
    every = conclude_from(evidence, estimate, gold, seed=0, compare=[(first, second)])
    common = common_tasks(evidence.reports, first, second)
    exact = {(row.quantity, row.name): row.found.estimate for row in every.rows}
    found: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for seed in range(DRAWS):
        order = drawn_tasks(estimate.tasks, np.asarray(estimate.reports_per_task), seed)
        sample = {task: gold[task] for task in order[:number]}
        both = len(common.intersection(sample)) >= 5
        for row in conclude_from(evidence, estimate, sample, seed=seed, compare=[(first, second)] if both else []).rows:
            value = exact[row.quantity, row.name]
            held = [one.low - 1e-9 <= value <= one.high + 1e-9 for one in (row.found, row.gold_alone)]
            found[row.quantity].append((*held, *(one.high - one.low for one in (row.found, row.gold_alone))))
    return {quantity: np.mean(rows, axis=0).tolist() for quantity, rows in found.items()}


def common_tasks(reports: Reports, *workers: str) -> set[str]:
    """Return the tasks that all these workers have answered."""
    names = np.asarray(reports.workers).astype(str)
    sets = [set(reports.task[reports.worker == int(np.flatnonzero(names == name)[0])].tolist()) for name in workers]
    return {str(reports.tasks[code]) for code in set.intersection(*sets)}


def main() -> None:
    """Measure, print and write the tables."""
    rows = []
    for name in SETS:
        evidence, gold = known_part(name)
        estimate = HierarchicalDawidSkene().fit(evidence.reports)
        for number in GOLD:
            if 2 * number > len(gold):
                continue
            for quantity, values in measured(evidence, estimate, gold, number).items():
                rows.append([name, number, quantity, *(f"{value:.4f}" for value in values)])
                print(*rows[-1], flush=True)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "conclusions.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([["data", "gold", "quantity", "held", "gold_held", "width", "gold_width"], *rows])
    lines = [
        "| gold | quantity | sets | held | lowest set | gold alone held | width / gold alone |",
        "|" + " --- |" * 7,
    ]
    for number in GOLD:
        for quantity in QUANTITIES:
            part = np.array([row[3:] for row in rows if row[1] == number and row[2] == quantity], dtype=float)
            ratio = (part[:, 2] / part[:, 3]).mean()
            held = f"{part[:, 0].mean():.3f} | {part[:, 0].min():.3f} | {part[:, 1].mean():.3f}"
            lines.append(f"| {number} | {quantity} | {len(part)} | {held} | {ratio:.2f} |")
    (RESULTS / "conclusions.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
