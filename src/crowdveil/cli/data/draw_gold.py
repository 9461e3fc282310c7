"""`crowdveil data draw-gold`: tasks drawn at random for people who know the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from crowdveil.cli.display import truncate_items
from crowdveil.cli.options import COUNT, FILE_PATH, SEED
from crowdveil.cli.results.reports_argument import REPORTS, ReadReports, asked_options, open_reports, reports_options
from crowdveil.cli.verb import Verb
from crowdveil.display.counts import number_of

if TYPE_CHECKING:
    from crowdveil.quality.gold_tasks import GoldDraw
    from crowdveil.storage.recorded_reading_options import NamedReports

SHOWN_TASKS = 5
KIND = "gold"


@click.command(
    "draw-gold",
    cls=Verb,
    values=REPORTS,
    example="crowdveil data draw-gold labels.csv --number 50 --out gold.csv",
    main_options=("number", "seed", "out", "as_json"),
    short_help="Draw random tasks for experts to label.",
)
@click.option("--number", type=COUNT, required=True, help="Number of tasks.")
@click.option("--seed", type=SEED, help="Seed of the draw. [default: random]")
@click.option("--out", type=FILE_PATH, required=True, help="CSV file: task, truth, seed.")
@reports_options
@asked_options
def draw_gold(reports: NamedReports, number: int, seed: int | None, out: Path) -> None:
    """Draw random tasks for experts to label: gold.

    The file has the columns task, truth (empty) and seed. Write truths into it from the top, as many as you can afford.
    Then give the file to infer, conclude or next as --gold.

    \f
    Tasks with reports are ordered by the SHA-256 of the seed and their name. Anybody can therefore check the draw, and
    next --gold can extend it. Keep the order and leave no task out: without the hard tasks, results look better than
    they are.
    """
    from crowdveil.quality.gold_tasks import draw_tasks_without_known

    with open_reports(reports, out, KIND) as read:
        drawn = draw_tasks_without_known(read.evidence.reports, number, seed=seed)
    _write_and_print_drawn_tasks(read, drawn)


def more_gold(reports: NamedReports, number: int, gold: str, out: Path | None) -> None:
    """Read, draw the next tasks after those of a file of gold, write, print."""
    from crowdveil.quality.gold_tasks import draw_more
    from crowdveil.storage.given_files import read_known_truths

    with open_reports(reports, out, KIND, [Path(gold)]) as read:
        drawn = draw_more(read.evidence, number, read_known_truths(gold, "categorical"))
    _write_and_print_drawn_tasks(read, drawn)


def _write_and_print_drawn_tasks(read: ReadReports, drawn: GoldDraw) -> None:
    """Write the drawn tasks, if asked for, and print them."""
    listed = truncate_items(list(drawn.tasks[:SHOWN_TASKS]), len(drawn.tasks))
    rows = [
        ("drawn", f"{listed['of']:,} of {number_of(drawn.of, 'task')} with reports, seed {drawn.seed}"),
        ("tasks", ", ".join(listed["items"]) + (", ..." if listed["shown"] < listed["of"] else "")),
        ("next", "write their truths into a file, starting with the first, and give it as --gold"),
    ]
    data = {"tasks": drawn.of, "seed": drawn.seed, "drawn": listed}
    read.write_table_and_print(data, lambda _: rows, drawn.gold_form_columns)
