"""`crowdveil data assign`: random public assignment of tasks to workers."""

from __future__ import annotations

from pathlib import Path

import click

from crowdveil.cli.display import print_written
from crowdveil.cli.options import COUNT, DELTA, EPSILON, FILE_PATH, stated_options
from crowdveil.cli.verb import Verb
from crowdveil.display.counts import number_of

EXAMPLE = """crowdveil data assign --tasks tasks.csv --workers workers.csv
         --per-task 5 --out asked.csv"""


@click.command(
    cls=Verb,
    example=EXAMPLE,
    main_options=("per_task", "budget", "epsilon", "gold", "gold_per_worker"),
    short_help="Draw a random assignment of tasks to workers.",
)
@click.option("--tasks", type=FILE_PATH, required=True, help="CSV file: task, or left and right.")
@click.option("--workers", type=FILE_PATH, required=True, help="CSV file, column worker.")
@click.option("--per-task", type=COUNT, help="Workers assigned to each task.")
@click.option("--budget", type=EPSILON, help="Privacy loss of a worker; with --epsilon, instead of --per-task.")
@click.option("--epsilon", type=EPSILON, help="Privacy loss of a single answer.")
@click.option("--delta", type=DELTA, help="The budget holds at this delta, such as 1e-6.")
@click.option("--gold", type=FILE_PATH, help="Tasks with known truth to mix in: column task.")
@click.option("--gold-per-worker", type=COUNT, help="Gold tasks assigned to each worker.")
@click.option("--comparisons", is_flag=True, help="The tasks are pairs of items, whose sides are drawn too.")
@click.option("--out", type=FILE_PATH, required=True, help="CSV file to write.")
def assign(
    tasks: Path,
    workers: Path,
    per_task: int | None,
    budget: float | None,
    epsilon: float | None,
    delta: float | None,
    gold: Path | None,
    gold_per_worker: int | None,
    comparisons: bool,
    out: Path,
) -> None:
    """Draw a random public assignment of tasks to workers, as even as possible.

    The assignment is public and must not depend on the answers. With it (perturb --assignment), devices report on
    assigned cells only, and protected participation hides which of these a worker skipped. A worker then loses epsilon
    per assigned cell instead of per task, and the reports contain no noise from other cells.

    With --budget and --epsilon, each worker gets as many tasks as the budget allows; with --delta, it allows more
    tasks than the sum of the epsilons does. With --gold, each worker gets gold tasks among these. How often a task
    is assigned may show that it is gold.

    \f
    With --comparisons the tasks are pairs of items (columns left and right, and maybe list), and the file has left,
    right and worker: which item is shown left is drawn for each worker. perturb --comparisons reads it.
    """
    _refuse_conflicting_options(stated_options())
    from crowdveil.answers.assignment import affordable_workers_per_task, assignment_with_gold
    from crowdveil.answers.comparisons.sides import assigned_pairs_csv, with_drawn_sides
    from crowdveil.files.atomic_write import Outputs, write_outputs
    from crowdveil.privacy.composition import cells_within
    from crowdveil.randomness import secure
    from crowdveil.storage.answers import read_name_column
    from crowdveil.storage.ranking.pairs import read_pairs

    outputs = Outputs(folder=out.parent, names=(out.name,), kind="assignment")
    replaced = outputs.check_replaced_files(inputs=[tasks, workers, gold])
    asked = [pair.name for pair in read_pairs(tasks)] if comparisons else read_name_column(tasks, "task")
    names = asked, read_name_column(workers, "worker")
    known, each_gold = [] if gold is None else read_name_column(gold, "task"), gold_per_worker or 0
    others = len(set(names[0]).difference(known))
    if budget is not None and epsilon is not None:
        sizes = {"tasks": max(others, 1), "workers": len(names[1]), "reserved": each_gold}
        sizes |= {} if delta is None else {"cells": cells_within(budget, epsilon, delta)}
        per_task = affordable_workers_per_task(budget, epsilon, **sizes)
    assert per_task is not None
    drawn = assignment_with_gold(*names, per_task, secure(), gold=known, per_worker=each_gold)
    text = assigned_pairs_csv(with_drawn_sides(drawn, secure())) if comparisons else drawn.to_csv()
    write_outputs(outputs, {out.name: text})
    fewest, most = int(drawn.per_worker.min()), int(drawn.per_worker.max())
    sizes = {"tasks": len(names[0]), "workers": len(names[1]), "cells": len(drawn)}
    data = {**sizes, "gold_cells": each_gold * len(names[1]), "fewest": fewest, "most": most}
    rows = [
        ("cells", f"{data['cells']:,}: {per_task} workers for each of {number_of(others, 'task')}"),
        *([("gold", f"{each_gold} of {number_of(len(known), 'gold task')} for each worker")] if known else []),
        ("tasks of a worker", f"{fewest} to {most}" if fewest < most else str(most)),
    ]
    print_written(data, rows, [out], replaced)


def _refuse_conflicting_options(stated: set[str]) -> None:
    """Refuse no or two numbers of workers per task, and options without the one that they go with."""
    if {"per_task", "budget", "epsilon"} & stated not in ({"per_task"}, {"budget", "epsilon"}):
        raise click.UsageError("Give --per-task, or --budget and --epsilon.")
    if "delta" in stated and "budget" not in stated:
        raise click.UsageError("--delta requires --budget.")
    if len({"gold", "gold_per_worker"} & stated) == 1:
        raise click.UsageError("Give --gold and --gold-per-worker together.")
    if {"gold", "comparisons"} <= stated:
        raise click.UsageError("--gold is of tasks, not of --comparisons: `crowdveil rank --gold` has known orders.")
