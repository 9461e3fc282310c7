"""`crowdveil agreement`: Krippendorff's alpha, kappa and pairwise agreement, of all workers and of each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.display import number_with_six_digits, truncate_items
from crowdveil.cli.options import FILE_PATH
from crowdveil.cli.results.reports_argument import REPORTS, asked_options, open_reports, reports_options
from crowdveil.cli.verb import Verb
from crowdveil.display.counts import number_of, verb_of

if TYPE_CHECKING:
    from crowdveil.quality.agreement.alpha import Agreement
    from crowdveil.storage.recorded_reading_options import NamedReports

SHOWN_WORKERS = 5
NAMES = {"agreement": "equal answers", "difference": "difference"}
"""Names of pairwise agreement in the table."""


@click.command(
    cls=Verb,
    values=REPORTS,
    example="crowdveil agreement labels.csv --out agreement.csv",
    main_options=("out", "level", "labels", "scale", "as_json"),
    short_help="Show the agreement of workers (alpha and kappa).",
)
@click.option("--out", type=FILE_PATH, help="CSV file of each worker's agreement with the others.")
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    metavar="P",
    help="Level of the intervals, such as .95.",
)
@reports_options
@asked_options
def agreement(reports: NamedReports, out: Path | None, level: float) -> None:
    """Show the agreement of workers: Krippendorff's alpha, kappa and the share of equal answers.

    REPORTS is what infer reads (a file with the columns task, worker, and label or, for numbers, value; or
    dataset:NAME), or the folder that infer wrote. Alpha and kappa are 1 if all answers to a task are equal, and 0 if
    answers agree no more than by chance.

    \f
    Alpha is nominal for labels, also ordinal for ordered labels (--labels A,B,C --ordered), and interval for numbers.
    Kappa is Cohen's for two workers (for ordered labels also with linear and quadratic weights) and Fleiss' for more.
    Each task has the same weight, however many answers it has. For numbers, the root mean squared difference of two
    answers replaces the share of equal answers. Intervals need at least 10 tasks.

    Reports with a certificate are corrected for the noise of their channel; workers are then not compared, and there is
    no kappa. Protected reports without a certificate are refused.
    """
    from crowdveil.quality.agreement.measured import agreement_corrected_for_channel, agreement_notes, worker_columns

    with open_reports(reports, out, "agreement", any_labels=True) as read:
        found = agreement_corrected_for_channel(read.evidence, level)
    data = {"warnings": [*read.evidence.notes, *agreement_notes(found)]} | _data_to_print_as_json(found)
    read.write_table_and_print(data, _rows_to_print, lambda: worker_columns(found))


def _data_to_print_as_json(found: Agreement) -> dict[str, Any]:
    return {
        "channel_used": found.channel_used,
        "tasks": found.tasks,
        "answers": found.answers,
        "single": found.single,
        "level": found.level,
        "all_agree": found.all_agree,
        "alpha": {metric: alpha._asdict() for metric, alpha in found.alphas.items()},
        "kappa": {name: kappa._asdict() for name, kappa in found.kappas.items()},
        "pairwise": {"name": found.pairwise_name, **found.pairwise._asdict()},
        "workers": _workers_who_agree_least(found),
    }


def _workers_who_agree_least(found: Agreement) -> dict[str, Any] | None:
    """Return the workers who agree least with the others; None if workers are not compared."""
    import numpy as np

    if found.workers is None:
        return None
    known = np.flatnonzero(found.workers.pairs)
    worst = found.workers.pairwise if found.pairwise_name == "agreement" else -found.workers.pairwise
    shown = known[np.lexsort((-found.workers.pairs[known], worst[known]))][:SHOWN_WORKERS]
    items = [
        {
            "worker": str(found.workers.names[worker]),
            found.pairwise_name: float(found.workers.pairwise[worker]),
            "pairs": int(found.workers.pairs[worker]),
        }
        for worker in shown.tolist()
    ]
    return truncate_items(items, len(known))


def _rows_to_print(data: dict[str, Any]) -> list[tuple[str, str]]:
    name, workers = data["pairwise"]["name"], data["workers"]
    corrected = "corrected for the noise of the channel" if data["channel_used"] else "read as answers, without noise"
    alone = f"{number_of(data['single'], 'answer')} {verb_of(data['single'], 'has', 'have')}"
    single = f", {alone} no second answer to the same task" if data["single"] else ""
    coefficients = [
        (f"{kind}, {name}", _value_with_interval(value, data["level"]))
        for kind in ("alpha", "kappa")
        for name, value in data[kind].items()
    ]
    if data["all_agree"]:
        same = "all compared answers are equal: alpha and kappa, which compare with chance, are undefined"
        coefficients = [("all agree", same)]
    rows = [
        ("answers", f"{data['answers']:,} to {number_of(data['tasks'], 'task')} with two or more{single}"),
        ("reports", corrected),
        *coefficients,
        (NAMES[name], f"{_value_with_interval(data['pairwise'], data['level'])}, of two answers to the same task"),
    ]
    if workers is None:
        return [*rows, ("workers", "not compared through a channel; workers.csv of infer has them")]
    lines = [("", f"{one['worker']}: {one[name]:.3f} ({number_of(one['pairs'], 'pair')})") for one in workers["items"]]
    return [*rows, ("workers", f"least agreement, {workers['shown']:,} of {workers['of']:,}"), *lines]


def _value_with_interval(found: dict[str, float], level: float) -> str:
    """Return a value with its interval as text."""
    value, low, high = found["value"], found["low"], found["high"]
    if value != value:
        return "not estimable from these reports"
    known = (
        ""
        if low != low
        else f" ({100 * level:g} % interval {number_with_six_digits(low)} to {number_with_six_digits(high)})"
    )
    return f"{number_with_six_digits(value)}{known}"
