"""Least expected error at budgets per worker, with and without assignment, for crowds of three published sizes.

The crowds are those that `crowdveil plan` assumes (mean ability .75, or normal errors with standard deviations 1 and 5,
and truths of equal shares); only tasks, workers, labels and answers per worker are those of the sources.

Usage: python experiments/worker_budget/sizes.py. Writes results/sizes.csv beside this file; crowds that it already has
are kept.
"""

import csv
from pathlib import Path

from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.planning import Campaign, Plan, PlanRow, plan_budgets
from crowdveil.planning.expected_campaign import expected_campaign
from crowdveil.planning.worker_budget import BUDGETS
from crowdveil.privacy.mechanism_settings import Expectation

RESULTS = Path(__file__).parent / "results" / "sizes.csv"
COLUMNS = ("crowd", "budget", "participation", "assigned", "tasks_per_worker", "epsilon_per_answer", "mechanism")
ERRORS = ("error", "low", "high", "constant", "unprotected")
SIZES: dict[str, tuple[Alphabet, int, int, float]] = {
    "Duchenne": (Categories(("no", "yes")), 2134, 64, 30319 / (2134 * 64)),
    "AdultContent2": (Categories(("G", "P", "R", "X"), ordered=True), 11028, 825, 92721 / (11028 * 825)),
    "Sun et al., sparsity .9": (Scale(0, 9), 200, 2000, 0.1),
}
"""Alphabet, tasks, workers, and share of all tasks that a worker answers."""


def campaign(crowd: str) -> Campaign:
    """Return the campaign of a crowd, participation protected."""
    alphabet, tasks, workers, rate = SIZES[crowd]
    sigmas = (1.0, 5.0) if isinstance(alphabet, Scale) else ()
    expected = Expectation(prior=None, participation_rate=rate, ability=None, sigmas=sigmas)
    return expected_campaign(alphabet, expected, "protected", tasks=tasks, workers=workers)


def row(crowd: str, made: Plan, choice: PlanRow) -> list[object]:
    """Return a row of the table."""
    found = choice.prediction
    return [
        crowd,
        f"{choice.position:g}",
        choice.campaign.participation,
        "yes" if choice.campaign.assigned_per_task is not None else "no",
        choice.cost.cells,
        f"{choice.cost.cell_epsilon:.4g}",
        choice.name,
        *(
            f"{value:.4f}"
            for value in (found.error, found.low, found.high, made.constant_error, made.unprotected.error)
        ),
    ]


def main() -> None:
    """Plan every crowd that the table lacks."""
    RESULTS.parent.mkdir(exist_ok=True)
    known = set()
    if RESULTS.exists():
        with RESULTS.open(newline="", encoding="utf-8") as stream:
            known = {line["crowd"] for line in csv.DictReader(stream)}
    else:
        RESULTS.write_text(",".join((*COLUMNS, *ERRORS)) + "\n", "utf-8")
    for crowd in SIZES:
        if crowd in known:
            continue
        made = plan_budgets(campaign(crowd), BUDGETS, participations=("protected", "public"))
        with RESULTS.open("a", newline="", encoding="utf-8") as stream:
            rows = [row(crowd, made, choice) for choice in (*made.results, *made.without_assignment)]
            csv.writer(stream, lineterminator="\n").writerows(rows)
        print(crowd, "done", flush=True)


if __name__ == "__main__":
    main()
