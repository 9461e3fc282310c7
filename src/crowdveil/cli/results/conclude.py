"""`crowdveil conclude`: prevalences, accuracies and differences of workers, from a random sample of known truths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.display import truncated_json_rows
from crowdveil.cli.options import FILE_PATH
from crowdveil.cli.results.reports_argument import REPORTS, asked_options, open_reports, reports_options, truths_option
from crowdveil.cli.verb import Verb
from crowdveil.display.counts import number_of

if TYPE_CHECKING:
    from crowdveil.storage.recorded_reading_options import NamedReports

SHOWN_ROWS = 20


@click.command(
    cls=Verb,
    values=REPORTS,
    example="crowdveil conclude labels.csv --gold gold.csv --out conclusions.csv",
    main_options=("gold", "out", "compare", "random", "as_json"),
    short_help="Estimate prevalences and accuracies from few known truths.",
)
@click.option("--gold", required=True, metavar="FILE", help="Known truths: task,truth, and the seed of the draw.")
@click.option(
    "--compare", multiple=True, metavar="A,B", help="Compare the accuracies of two workers; repeat it for more."
)
@click.option("--random", is_flag=True, help="State that gold without a seed was drawn at random.")
@click.option("--out", type=FILE_PATH, help="CSV file of all conclusions.")
@truths_option
@reports_options
@asked_options
def conclude(
    reports: NamedReports,
    gold: str,
    compare: tuple[str, ...],
    random: bool,
    out: Path | None,
) -> None:
    """Estimate from few known truths how common each truth is and how often each worker is right.

    REPORTS is what infer reads, or the folder that it wrote. Gold must be a random sample of the tasks: draw it with
    `crowdveil data draw-gold`. Answers to the other tasks make the intervals shorter than those of the sample alone.

    \f
    All quantities are of the tasks with reports: the prevalence of each truth, the accuracy of each worker (a person or
    a model) with 5 gold answers or more, and with --compare the difference of the accuracies of two workers on the
    tasks that both have answered. Each has its own 90 % interval. The intervals hold whatever the quality of the
    inferred truths (prediction-powered inference); good truths make them short. Gold does not guide these truths. File
    and JSON also have the prevalences of Rogan and Gladen, which correct the inferred truths by their errors on gold.
    If these are far away, gold is too small.

    Gold with a column seed must be the first tasks of its draw, without gaps. For gold without that column, --random
    states that you drew it at random. Gold that looks different from the other tasks is refused. For reports with a
    certificate, and with --truths, only prevalences are estimated.
    """
    from crowdveil.answers.evidence import require_known_channel
    from crowdveil.inference.infer import infer
    from crowdveil.quality.conclusions import conclude_from_drawn_gold
    from crowdveil.storage.given_files import read_known_truths

    pairs = [_two_worker_names(text) for text in compare]
    with open_reports(reports, out, "conclusions", [Path(gold)]) as read:
        require_known_channel(read.evidence, "a prevalence")
        fitted = infer(read.evidence)
        known = read_known_truths(gold, "categorical" if fitted.estimate.categorical else "numeric")
        found = conclude_from_drawn_gold(fitted, known, stated_random=random, compare=pairs)
    data = {
        "gold": found.gold,
        "tasks": found.tasks,
        "drawn": found.drawn,
        "workers_left_out": found.left_out,
        "conclusions": truncated_json_rows(found.columns(), SHOWN_ROWS),
        "warnings": list(found.notes),
    }
    read.write_table_and_print(data, _rows_to_print, found.columns)


def _two_worker_names(text: str) -> tuple[str, str]:
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        raise click.UsageError(f"--compare names two workers, separated by a comma, not {text!r}.")
    return names[0], names[1]


def _rows_to_print(data: dict[str, Any]) -> list[tuple[str, str]]:
    listed, few = data["conclusions"], data["workers_left_out"]
    return [
        ("gold", f"{data['gold']:,} of {number_of(data['tasks'], 'task')}, {data['drawn']}"),
        *([("left out", f"{number_of(few, 'worker')} with fewer than 5 gold answers")] if few else []),
        ("conclusions", f"first {listed['shown']:,} of {listed['of']:,}, with 90 % intervals; gold alone in brackets"),
        *[("", _conclusion_line(one)) for one in listed["items"]],
    ]


def _conclusion_line(one: dict[str, Any]) -> str:
    """Return a conclusion as one line."""
    name = f"{one['name']} less {one['other']}" if one["other"] else one["name"]
    of = {"accuracy": f", on its {one['tasks']:,} tasks", "difference": f", on the {one['tasks']:,} tasks of both"}
    name += of.get(one["quantity"], "")
    ends = [f"{one[end]:.3f}" for end in ("estimate", "low", "high", "gold_low", "gold_high")]
    return f"{one['quantity']} of {name}: {ends[0]} ({ends[1]} to {ends[2]}) [{ends[3]} to {ends[4]}]"
