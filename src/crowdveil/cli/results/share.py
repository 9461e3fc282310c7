"""`crowdveil share`: share of each label among the answers to a task, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.display import progress_bar, truncate_items
from crowdveil.cli.options import FILE_PATH
from crowdveil.cli.results.reports_argument import REPORTS, asked_options, open_reports, reports_options
from crowdveil.cli.verb import Verb
from crowdveil.display.counts import number_of

if TYPE_CHECKING:
    from crowdveil.quality.shares import Shares
    from crowdveil.storage.recorded_reading_options import NamedReports

SHOWN_TASKS = 20


@click.command(
    cls=Verb,
    values=REPORTS,
    example="crowdveil share labels.csv --out shares.csv",
    main_options=("out", "labels", "scale", "as_json"),
    short_help="Estimate the share of each label (what share said yes).",
)
@click.option("--out", type=FILE_PATH, help="CSV file: task, label, of, share, low, high, reports.")
@reports_options
@asked_options
def share(reports: NamedReports, out: Path | None) -> None:
    """Estimate the share of each label among the answers to each task: what share said yes.

    REPORTS is what infer reads, or the folder that it wrote. `crowdveil infer` finds the truth of a task, which has one
    right answer; for opinions and other answers that differ from person to person, use share.

    \f
    The share of a label is among the answers to the task; people without an answer are left out. If participation is
    protected, the share of "no answer" is among all who were asked. Intervals treat these people as a random sample of
    a larger group; for these people alone they are too wide. Each interval by itself holds with 90 %.

    Shares maximize the likelihood of the reports under the channel of the certificate; the intervals are those of the
    profile likelihood. If the reports do not determine a share (labels of one block), file and JSON have only its
    interval. Reports without a certificate are read as answers; protected reports are then refused.
    """
    from crowdveil.answers.evidence import require_known_channel
    from crowdveil.quality.shares import label_shares

    with open_reports(reports, out, "shares") as read, progress_bar("estimating") as bar:
        channel = require_known_channel(read.evidence, "share")
        found = label_shares(read.evidence.reports, channel, assignment=read.evidence.assignment, progress=bar)
    data = {
        "channel_used": channel is not None,
        "shares": truncate_items(_first_task_shares_as_json(found), len(found.tasks)),
    }
    read.write_table_and_print(data, _rows_of_label_shares, found.columns)


def _first_task_shares_as_json(found: Shares) -> list[dict[str, Any]]:
    """Return the shares of the first tasks as JSON data."""
    columns = found.columns(SHOWN_TASKS)
    names = ("label", "of", "share", "low", "high")
    rows = [dict(zip(names, row, strict=True)) for row in zip(*(columns[name].tolist() for name in names), strict=True)]
    width = len(found.symbols)
    return [
        {"task": str(task), "reports": int(found.reports[place]), "symbols": rows[place * width : (place + 1) * width]}
        for place, task in enumerate(found.tasks[:SHOWN_TASKS])
    ]


def _rows_of_label_shares(data: dict[str, Any]) -> list[tuple[str, str]]:
    shares = data["shares"]
    return [
        ("reports", "corrected for the noise of the channel" if data["channel_used"] else "read as answers"),
        ("shares", f"{shares['shown']:,} of {number_of(shares['of'], 'task')}, with 90 % intervals"),
        *[("", f"{one['task']}: {', '.join(map(_share_with_interval, one['symbols']))}") for one in shares["items"]],
    ]


def _share_with_interval(one: dict[str, Any]) -> str:
    """Return a share with its interval as text."""
    value = "not determined" if one["share"] != one["share"] else f"{one['share']:.1%}"
    name = one["label"] if one["of"] == "answers" else "no answer, of those asked"
    return f"{name} {value} ({one['low']:.1%} to {one['high']:.1%})"
