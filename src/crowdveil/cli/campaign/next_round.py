"""`crowdveil campaign next-round`: the next round of a campaign, for the same workers."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.display import print_result
from crowdveil.cli.options import CAMPAIGN_FOLDER, COUNT, EPSILON, FOLDER_PATH
from crowdveil.cli.verb import Verb
from crowdveil.errors import ReportsError

if TYPE_CHECKING:
    from crowdveil.planning.settings.next_round import NextRound

USEFULNESS = (
    "measured on four sets, a second round with as many reports changed accuracy by -0.004 to +0.023, on average by "
    "+0.01. With a fifth fewer reports it was no worse on all four at epsilon 0.5, on two at 1, and on one at 2. "
    "Grades gained nothing. It is worth most with unequal classes, five labels or more, and a small epsilon"
)
"""Figures of docs/decisions/0019-rounds.md."""


@click.command(
    "next-round",
    cls=Verb,
    example="crowdveil campaign next-round essays found --until 2027-02-01 --out essays-2",
    short_help="Ask the same workers again, by what is known so far.",
)
@click.argument("folder", type=CAMPAIGN_FOLDER)
@click.argument("results", type=FOLDER_PATH)
@click.option("--out", type=FOLDER_PATH, required=True, help="New folder of the round.")
@click.option("--until", type=click.DateTime(["%Y-%m-%d"]), required=True, metavar="DAY", help="Last day (UTC).")
@click.option("--from", "since", type=click.DateTime(["%Y-%m-%d"]), metavar="DAY", help="First day. [default: today]")
@click.option("--ask", type=COUNT, help="Ask the N tasks with the largest expected error. [default: half]")
@click.option("--per-worker", type=COUNT, help="Tasks of each worker. [default: as before]")
@click.option("--epsilon", type=EPSILON, help="Epsilon of a single answer. [default: as before]")
def next_round(
    folder: Path,
    results: Path,
    out: Path,
    until: datetime,
    since: datetime | None,
    ask: int | None,
    per_worker: int | None,
    epsilon: float | None,
) -> None:
    """Make the next round of a closed campaign, for the same workers, from its results.

    FOLDER is that of the campaign; RESULTS is the folder that infer wrote from its reports. Tasks are put into at most
    12 groups by their posterior, and each group has a channel that is designed for its mean; every label keeps a tenth
    of an even share. A worker is asked tasks that are new to this worker, of those with the largest expected error.
    Epsilon of a single answer (cell) and participation are as before, and the epsilons of a worker's rounds add up. The
    truths after this round come from the reports of all rounds: close, export or collect it, and infer, as usual.

    \f
    Prints the promise of this round and of all rounds. Of a campaign with levels, several questions or a relay there is
    no later round. It ends before the day on which the reports so far are deleted: the new folder holds a copy of them,
    which is deleted that day, too. Nothing else is written.
    """
    from crowdveil.campaign.folder import CampaignFolder
    from crowdveil.planning.settings.next_round import create_next_round
    from crowdveil.release.result_files import read_results

    found = read_results(results)
    made = create_next_round(
        CampaignFolder(folder),
        _folder_of_inferred_reports(results),
        found.estimate,
        out,
        inferred_from=found.reports_sha256,
        closes=until.date(),
        opens=None if since is None else since.date(),
        ask=ask,
        per_worker=per_worker,
        epsilon=epsilon,
    )
    print_result(_data_to_print_as_json(made), _rows_to_print(made))


def _folder_of_inferred_reports(results: Path) -> Path:
    """Return the folder of the reports from which results were inferred."""
    from crowdveil.folder.crowd import report_directory
    from crowdveil.folder.estimate_files import INFER_AGAIN
    from crowdveil.folder.recorded_reading_options import recorded_reports

    recorded = recorded_reports(results)
    if recorded is None or len(recorded.sources) > 1:
        raise ReportsError("the results must name their reports, one file", source=str(results), hint=INFER_AGAIN)
    return report_directory(recorded.sources[0])


def _data_to_print_as_json(made: NextRound) -> dict[str, Any]:
    campaign, whole = made.campaign, made.campaign.worker_guarantee_over_rounds
    return {
        "campaign": campaign.name,
        "round": len(campaign.earlier) + 1,
        "tasks": made.asked,
        "groups": list(made.sizes),
        "workers": campaign.slots,
        "fewest": made.loads[0],
        "most": made.loads[1],
        "participation": campaign.participation,
        "epsilon_per_answer": campaign.epsilon,
        "epsilon_per_worker": campaign.worker_epsilon,
        "epsilon_over_rounds": whole.epsilon,
        "answers_over_rounds": campaign.largest_worker_cells_over_rounds,
        "opens": campaign.opens.isoformat(),
        "closes": campaign.closes.isoformat(),
        "information": made.gain,
        "files": list(map(str, made.files)),
    }


def _rows_to_print(made: NextRound) -> list[tuple[str, str]]:
    from crowdveil.campaign.document import spaced_name_to_compare
    from crowdveil.channels.rounding import format_three_decimals

    campaign, scope = made.campaign, f"participation {made.campaign.participation}"
    return [
        ("campaign", campaign.name),
        ("to compare", spaced_name_to_compare(campaign.name)),
        ("round", f"{len(campaign.earlier) + 1}, after {campaign.earlier[-1].campaign}"),
        ("asked", f"{campaign.slots:,} workers, {made.asked:,} tasks, {made.loads[1]} to a worker"),
        ("groups", f"{len(made.sizes)} by posterior, of {min(made.sizes):,} to {max(made.sizes):,} tasks"),
        ("open", f"{campaign.opens.isoformat()} to {campaign.closes.isoformat()} (UTC), both days included"),
        ("promise", f"epsilon {format_three_decimals(campaign.epsilon)} for a single answer ({scope})"),
        (
            "in all",
            f"epsilon {format_three_decimals(campaign.worker_epsilon)} for all answers of one worker in this round "
            f"({scope})",
        ),
        (
            "all rounds",
            f"epsilon {format_three_decimals(campaign.worker_guarantee_over_rounds.epsilon)} "
            f"for all {campaign.largest_worker_cells_over_rounds} "
            f"answers of one worker ({scope})",
        ),
        ("information", f"of a report, {made.gain:.2f} times that through the channel before"),
        ("usefulness", USEFULNESS),
        ("written", f"{made.folder}"),
    ]
