"""`crowdveil review`: workers who repeat answers or copy, and workers whose ability is credibly low."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.display import truncate_items
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
from crowdveil.display.counts import number_of
from crowdveil.registry import METHOD_NAMES

if TYPE_CHECKING:
    from crowdveil.quality.review.listing import Kind
    from crowdveil.quality.review.workers import GroupOfCopies
    from crowdveil.storage.recorded_reading_options import NamedReports

SHOWN_WORKERS, SHOWN_GROUPS = 10, 5
RULE = (
    "; a worker is listed if the whole 90 % interval is below it (default: halfway from 1 / labels to "
    "the median ability)"
)
BEHIND_CHANNEL = "Only abilities are reviewed: the noise of the channel hides repeated answers and copies."
KIND_TEXTS: dict[Kind, str] = {
    "repeats": "repeating answers",
    "copies": "answering alike",
    "chance": "near chance",
    "unclear": "unclear",
    "far": "far away",
    "ability": "of low ability",
}
"""Words for the kinds of workers to review, in their order."""


@click.command(
    cls=Verb,
    values=REPORTS,
    example="crowdveil review labels.csv --out review.csv",
    main_options=("out", "below", "method", "as_json"),
    short_help="List the workers to review: repeated answers, copies, low ability.",
)
@click.option(
    "--out", type=FILE_PATH, help="CSV file: worker, kind, ability, its interval, reports, weight, group, reason."
)
@click.option(
    "--below",
    type=float,
    metavar="A",
    help="Ability below which a worker is listed. [default: halfway from chance to the median]",
)
@click.option("--method", type=NameChoice(METHOD_NAMES), help="Estimator, as in infer.")
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
    """List the workers to review: first those who repeat answers or copy, last those of low ability.

    REPORTS is what infer reads, or the folder that it wrote. The list asks questions and gives no verdict: tasks may be
    ambiguous, or labels swapped.

    \f
    The order of the list: workers who repeat labels or a number whatever others answer; groups who answer more alike
    than independent work explains, with the number of workers that they count as; workers who agree with others barely
    more than by chance, or less; workers who give one answer to all tasks, which may be careful work; workers whose
    numbers are far from those of others; and workers whose 90 % credible interval of the ability ends below the bound.

    The bound is --below. By default it is the middle between 1 / labels and the median ability, and workers who agree
    with others well are not listed. All kinds but the last are found from the answers alone, because such workers can
    distort the truths. A note says where answers are too few to tell workers apart.

    For reports with a certificate only the interval counts, which includes the noise; perturbed numbers are not
    reviewed. Protected reports without a certificate are refused. With --truths, workers with equal answers are listed,
    and pairs whose errors are alike.
    """
    from crowdveil.inference.infer import infer
    from crowdveil.quality.review.workers import refuse_reports_without_channel, review_columns, review_workers
    from crowdveil.storage.given_files import read_history

    with open_reports(reports, out, "review", [history]) as read:
        refuse_reports_without_channel(read.evidence)
        earlier = None if history is None else read_history(history)
        fitted = infer(read.evidence, method, gold=read.gold_of_results, history=earlier)
        found = review_workers(fitted, bound=below)
    items = [asdict(one) for one in found.found[:SHOWN_WORKERS]]
    groups = [_group_of_copies(one) for one in found.groups[:SHOWN_GROUPS]]
    data = {
        "method": found.method,
        "below": found.bound,
        "channel_used": found.channel_used,
        "workers": found.workers,
        "notes": found.notes,
        "kinds": {kind: sum(one.kind == kind for one in found.found) for kind in KIND_TEXTS},
        "copies": truncate_items(groups, len(found.groups)),
        "review": truncate_items(items, len(found.found)),
    }
    read.write_table_and_print(data, _rows_to_print, lambda: review_columns(found))


def _group_of_copies(group: GroupOfCopies) -> dict[str, Any]:
    """Return a group with its first names."""
    names = list(group.workers)
    return {"workers": truncate_items(names[:SHOWN_WORKERS], len(names)), "counts_as": group.counts_as}


def _rows_to_print(data: dict[str, Any]) -> list[tuple[str, str]]:
    listed = data["review"]
    kinds = ", ".join(f"{count:,} {KIND_TEXTS[kind]}" for kind, count in data["kinds"].items() if count)
    shown = f"; first {listed['shown']:,}" if listed["shown"] < listed["of"] else ""
    return [
        ("method", data["method"]),
        *([] if data["below"] is None else [("below", f"ability {data['below']:.3f}{RULE}")]),
        *([("note", BEHIND_CHANNEL)] if data["channel_used"] else []),
        *[("note", note) for note in data["notes"]],
        *[("copies", _copies_text(group)) for group in data["copies"]["items"]],
        ("review", f"{listed['of']:,} of {number_of(data['workers'], 'worker')}{kinds and f': {kinds}'}{shown}"),
        *[("", _line_of_worker(one)) for one in listed["items"]],
    ]


def _copies_text(group: dict[str, Any]) -> str:
    """Return the names of a group, and the number of workers that it counts as."""
    names, counts = group["workers"], group["counts_as"]
    others = names["of"] - names["shown"]
    listed = ", ".join(names["items"]) + (f" and {others:,} more" if others else "")
    count = "" if math.isnan(counts) else f", who count as {counts:.1f}"
    return f"{number_of(names['of'], 'worker')} answer alike{count}: {listed}"


def _line_of_worker(one: dict[str, Any]) -> str:
    """Return the line of a worker; the ability only where it is the reason, since bad workers can bend it."""
    ability = f"ability {one['ability']:.2f}{_interval(one)}, " if one["kind"] == "ability" else ""
    weight = "" if math.isnan(one["weight"]) else f", each counts {one['weight']:.2f}"
    return f"{one['worker']}: {ability}{number_of(one['reports'], 'report')}{weight}. {' '.join(one['reasons'])}"


def _interval(one: dict[str, Any]) -> str:
    """Return the interval of an ability as text; empty without one."""
    return "" if math.isnan(one["low"]) else f" (90 % interval {one['low']:.2f} to {one['high']:.2f})"
