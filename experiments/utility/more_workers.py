"""Error by number of workers, with and without assignment, on a simulated crowd at three epsilons.

100 tasks with four labels, abilities from 1/2 to 1, 10 answers per worker on average; randomized response with
protected participation, on all cells or on 20 assigned cells per worker (more if a task has more answers);
channel-aware Dawid-Skene. Rows are written to `results/more_workers.csv`.
Run `python experiments/utility/more_workers.py`.
"""

import csv
import math
from collections.abc import Iterator
from pathlib import Path

from crowdveil import Categories, DawidSkene, RandomizedResponse
from crowdveil.channels.rounding import format_bound, sum_rounded_up
from crowdveil.evaluation.metrics import score
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, perturb_cells, simulated_assignment

RESULTS = Path(__file__).parent / "results" / "more_workers.csv"
LABELS = Categories(("A", "B", "C", "D"))
TASKS, SPARSITY, SEEDS = 100, 0.9, 5
WORKERS, EPSILONS = (50, 100, 200, 400, 800, 1600, 3200), (1.0, 2.0, 3.0)
COLUMNS = ("workers", "epsilon", "asked", "seed", "error", "constant", "unprotected", "correlation", "exact_worker")


def rows(workers: int, seed: int) -> Iterator[tuple[object, ...]]:
    """Yield one row per epsilon, without and with an assignment of twice the answered cells."""
    crowd = categorical_crowd(workers=workers, tasks=TASKS, labels=LABELS, sparsity=SPARSITY, source=seeded(seed))
    unprotected = score(DawidSkene(tolerance=1e-4).fit(crowd.answers), crowd.gold)
    per_task = max(round(2 * (1 - SPARSITY) * workers), int(crowd.answers.per_task.max()))
    assignment = simulated_assignment(crowd.answers, per_task, seeded(100 + seed))
    for epsilon in EPSILONS:
        channel = RandomizedResponse(alphabet=LABELS, epsilon=epsilon).channel()
        for asked in (None, assignment):
            reports = perturb_cells(crowd.answers, channel, seeded(200 + seed), assignment=asked)
            estimate = DawidSkene(tolerance=1e-4).fit(reports, channel=channel, assignment=asked)
            found = score(estimate, crowd.gold)
            cells = TASKS if asked is None else TASKS * per_task / workers
            yield (
                workers,
                epsilon,
                "every task" if asked is None else "assigned tasks",
                seed,
                f"{found.error:.4f}",
                f"{found.baseline:.4f}",
                f"{unprotected.error:.4f}",
                f"{found.correlation:.4f}",
                format_bound(sum_rounded_up([(channel.epsilon, math.ceil(cells))])),
            )


def main() -> None:
    """Measure all settings and write the results."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("w", encoding="utf-8", newline="") as stream:
        lines = csv.writer(stream, lineterminator="\n")
        lines.writerow(COLUMNS)
        for workers in WORKERS:
            for seed in range(SEEDS):
                lines.writerows(rows(workers, seed))


if __name__ == "__main__":
    main()
