"""`crowdveil review`: workers whose ability is credibly low, or whose answers look like spam."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.display import shown_items_with_full_count
from crowdveil.cli.options import FILE_PATH, NameChoice
from crowdveil.cli.results.reports_argument import (
    REPORTS,
    asked_options,
    history_option,
    open_reports,
    reports_options,
    truths_option,
)
from crowdveil.cli.verb import Verb
from crowdveil.presentation.counts import number_of
from crowdveil.registry import METHOD_NAMES

if TYPE_CHECKING:
    from crowdveil.folder.recorded_reading_options import NamedReports

SHOWN_WORKERS = 10
RULE = ": who is below it by the whole 90 % interval is listed (default: halfway from 1 / labels to the median ability)"


@click.command(
    cls=Verb,
    values=REPORTS,
    example="crowdveil review labels.csv --out review.csv",
    main_options=("out", "below", "method", "as_json"),
    short_help="List the workers to review: low ability, spam.",
)
@click.option("--out", type=FILE_PATH, help="CSV file: worker, ability, its interval, reports, reason.")
@click.option("--below", type=float, metavar="A", help="Ability below which a worker is listed. [default: see above]")
@click.option("--method", type=NameChoice(METHOD_NAMES), help="Estimator, as of infer.")
@truths_option
@history_option
@reports_options
@asked_options
def review(
    reports: NamedReports,
    out: Path | None,
    below: float | None,
    method: str | None,
    history: Path | None,
) -> None:
    """List the workers to review: credibly low ability, or answers that look like spam.

    REPORTS is what infer reads, or the folder that it wrote. A listed worker is a question, not a verdict: tasks may be
    ambiguous, or labels swapped.

    \f
    A worker is listed if the upper end of the 90 % credible interval of the ability is below the bound (--below; by
    default the middle between 1 / labels and the median ability), if all answers are equal, which is improbable at the
    crowd's shares of labels (probability below .001), or if the answers agree with those of others hardly more than by
    chance (kappa below .1, with 95 % certainty).

    Behind a channel only the interval counts, which includes the noise. Protected reports without a certificate are
    refused. With --truths, workers with equal answers are listed, and pairs whose errors are alike.
    """
    from crowdveil.crowd_review.workers import refuse_reports_without_channel, review_columns, review_workers
    from crowdveil.folder.given_files import read_history
    from crowdveil.inference.infer import infer

    with open_reports(reports, out, "review", [history]) as read:
        refuse_reports_without_channel(read.evidence)
        earlier = None if history is None else read_history(history)
        fitted = infer(read.evidence, method, gold=read.gold_of_results, history=earlier)
        found = review_workers(fitted, bound=below)
    items = [asdict(one) for one in found.found[:SHOWN_WORKERS]]
    data = {
        "method": found.method,
        "below": found.bound,
        "channel_used": found.channel_used,
        "workers": found.workers,
        "review": shown_items_with_full_count(items, len(found.found)),
    }
    read.write_table_and_print(data, _rows_to_print, lambda: review_columns(found))


def _interval(one: dict[str, Any]) -> str:
    """Return the interval of an ability as text; empty without one."""
    return "" if one["low"] != one["low"] else f" (90 % interval {one['low']:.2f} to {one['high']:.2f})"


def _rows_to_print(data: dict[str, Any]) -> list[tuple[str, str]]:
    listed = data["review"]
    lines = [
        f"{one['worker']}: ability {one['ability']:.2f}{_interval(one)}, {number_of(one['reports'], 'report')}. "
        f"{' '.join(one['reasons'])}"
        for one in listed["items"]
    ]
    return [
        ("method", data["method"]),
        *([] if data["below"] is None else [("below", f"ability {data['below']:.3f}{RULE}")]),
        ("review", f"{listed['of']:,} of {number_of(data['workers'], 'worker')}; first {listed['shown']:,}"),
        *[("", line) for line in lines],
    ]
