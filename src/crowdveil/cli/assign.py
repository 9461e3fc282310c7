"""`crowdveil assign`: random public assignment of tasks to workers."""

from __future__ import annotations

from pathlib import Path

import click

from crowdveil.cli.display import print_result, replaced_rows
from crowdveil.cli.options import COUNT, PATH, json_option
from crowdveil.cli.verb import Verb

EXAMPLE = """crowdveil assign --tasks tasks.csv --workers workers.csv
         --per-task 5 --out asked.csv"""


@click.command(
    cls=Verb,
    example=EXAMPLE,
    main_options=("per_task", "budget", "epsilon"),
    short_help="Draw a random public assignment of tasks to workers.",
)
@click.option("--tasks", type=PATH, required=True, metavar="FILE", help="CSV file, column task.")
@click.option("--workers", type=PATH, required=True, metavar="FILE", help="CSV file, column worker.")
@click.option("--per-task", type=COUNT, metavar="N", help="Workers assigned to each task.")
@click.option("--budget", type=float, metavar="E", help="Privacy loss of a worker; with --epsilon, for --per-task.")
@click.option("--epsilon", type=float, metavar="E", help="Privacy loss of a single answer.")
@click.option("--out", type=PATH, required=True, metavar="FILE", help="CSV file to be written.")
@json_option
def assign(
    tasks: Path,
    workers: Path,
    per_task: int | None,
    budget: float | None,
    epsilon: float | None,
    out: Path,
    as_json: bool,
) -> None:
    """Draw a random public assignment of tasks to workers, as even as possible, before the campaign.

    The assignment is public and must not depend on the answers. With it (perturb --assignment), devices report on
    assigned cells only, and protected participation hides which of these a worker skipped. A worker then loses epsilon
    per assigned cell instead of per task, and the reports contain no noise from other cells.

    With --budget and --epsilon each worker has as many tasks as the budget pays for: budget / epsilon, rounded down.
    """
    if (per_task is None) == (budget is None) or (budget is None) != (epsilon is None):
        raise click.UsageError("Give --per-task, or --budget and --epsilon.")
    from crowdveil.data.assignment import Assignment, workers_per_task
    from crowdveil.files.atomic_write import Outputs, write_outputs
    from crowdveil.randomness import secure
    from crowdveil.workflow.io import read_names

    outputs = Outputs(folder=out.parent, names=(out.name,), kind="assignment")
    replaced = list(map(str, outputs.check(inputs=[tasks, workers])))
    names = read_names(tasks, "task"), read_names(workers, "worker")
    if budget is not None and epsilon is not None:
        per_task = workers_per_task(budget, epsilon, tasks=len(names[0]), workers=len(names[1]))
    assert per_task is not None
    drawn = Assignment.balanced(*names, per_task, secure())
    write_outputs(outputs, {out.name: drawn.to_csv()})
    loads = drawn.per_worker
    fewest, most = int(loads.min()), int(loads.max())
    data = {
        "tasks": len(names[0]),
        "workers": len(names[1]),
        "cells": len(drawn),
        "fewest": fewest,
        "most": most,
        "files": [str(out)],
        "replaced": replaced,
    }
    each = f"{fewest} to {most}" if fewest < most else str(most)
    rows = [
        ("cells", f"{data['cells']:,}: {per_task} workers for each of {data['tasks']:,} tasks"),
        ("tasks of a worker", each),
        *replaced_rows(replaced),
        ("written", str(out)),
    ]
    print_result(data, rows, as_json=as_json)
