"""`crowdveil plan --comparisons`: expected share of wrongly ordered pairs of a ranking."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from crowdveil.channels.rounding import format_bound
from crowdveil.cli.display import (
    checked_stdout,
    document_of_running_command,
    json_text,
    print_result,
    row_of_replaced_files,
)
from crowdveil.cli.options import COUNT, NUMBERS, flag_of, option_group, stated_options
from crowdveil.cli.verb import wants_json

if TYPE_CHECKING:
    from pathlib import Path

    from crowdveil.campaign.settings.settings_file import CampaignSettings
    from crowdveil.channels.guarantee import Participation
    from crowdveil.mechanisms import ChannelMechanism
    from crowdveil.planning.ranking_plan import RankingPlan

FILE, PICTURE = "plan.json", "plan.svg"
OWN = ("items", "ties", "spread", "guessing", "wrong_pairs")
"""Options that require --comparisons."""
OF_A_RANKING = frozenset((*OWN, "comparisons", "workers", "epsilon", "participation", "participation_rate", "out"))
"""Options that go with --comparisons."""


@dataclass(frozen=True, kw_only=True)
class RankingPlanOptions:
    """Numbers of comparisons of an item, number of items, and what is expected; None where nothing is given."""

    comparisons: tuple[int, ...]
    items: int | None
    ties: float | None
    spread: float | None
    guessing: float | None
    wrong_pairs: float | None


def ranking_plan_options(
    comparisons: tuple[float, ...] | None, items: int | None, ties: float | None, spread: float | None,
    guessing: float | None, wrong_pairs: float | None,
) -> RankingPlanOptions | None:  # fmt: skip
    """Return the options of a plan of a ranking; None without --comparisons."""
    stated = stated_options()
    if comparisons is None:
        own = sorted(stated & set(OWN))
        if own:
            raise click.UsageError(f"{flag_of(own[0])} requires --comparisons.")
        return None
    parameters = click.get_current_context().command.params
    other = [max(one.opts, key=len) for one in parameters if one.name in stated - OF_A_RANKING - {"as_json"}]
    if other:
        raise click.UsageError(f"--comparisons plans a ranking: leave out {other[0]}.")
    if any(number != int(number) for number in comparisons):
        raise click.UsageError("--comparisons are whole numbers.")
    return RankingPlanOptions(
        comparisons=tuple(map(int, comparisons)), items=items, ties=ties, spread=spread, guessing=guessing,
        wrong_pairs=wrong_pairs,
    )  # fmt: skip


ranking_options = option_group(
    click.option("--comparisons", type=NUMBERS, help="Numbers of comparisons in which each item is."),
    click.option("--items", type=COUNT, help="Items; with --workers, for the epsilon of a worker."),
    click.option("--ties", type=float, metavar="T", help="Expected share of ties. [default: 0.175]"),
    click.option("--spread", type=float, metavar="S", help="Expected standard deviation of scores. [default: 1.5]"),
    click.option("--guessing", type=float, metavar="G", help="Expected share of workers who guess. [default: 0.2]"),
    click.option("--wrong-pairs", type=float, metavar="W", help="Wanted share of wrongly ordered pairs, such as 0.2."),
    heading="A ranking instead of truths",
)


def print_ranking_plan(
    ranking: RankingPlanOptions,
    *,
    workers: int | None,
    epsilon: tuple[float, ...],
    participation: Participation,
    participation_rate: float | None,
    out: Path | None,
    null_apart: bool = False,
) -> None:
    """Make the plan of a ranking, write its files, print it."""
    from crowdveil.display.svg_pictures import svg_file
    from crowdveil.files.atomic_write import Outputs, write_outputs
    from crowdveil.planning.ranking_plan import EPSILONS, plan_ranking

    outputs = None if out is None else Outputs(folder=out, names=(FILE, PICTURE), kind="plan", remove_stale=True)
    replaced = [] if outputs is None else outputs.check_replaced_files()
    stated = {**asdict(ranking), "answered": participation_rate, "workers": workers}
    given = {name: value for name, value in stated.items() if value is not None}
    made = plan_ranking(**given, epsilons=epsilon or EPSILONS, participation=participation, null_apart=null_apart)
    files = [] if outputs is None else list(map(str, outputs.paths))
    data = made.to_json() | {"files": files, "replaced": list(map(str, replaced))}
    if outputs is not None:
        document = json_text(document_of_running_command(data)) + "\n"
        write_outputs(outputs, {FILE: document, PICTURE: svg_file(made.picture())})
    written = [("written", path) for path in files]
    print_result(data, [*_ranking_plan_rows(made), *written, *row_of_replaced_files(replaced)])
    if not wants_json():
        _print_expected(made)


def print_settings_ranking_plan(
    source: CampaignSettings,
    mechanism: ChannelMechanism,
    *,
    workers: int | None,
    epsilon: tuple[float, ...],
    out: Path | None,
) -> None:
    """Print the plan of a campaign of comparisons; given workers and epsilons replace those of the settings."""
    from crowdveil.campaign.planning.expected_ranking import expected_order

    order = expected_order(source, mechanism)
    assert order is not None
    people = workers or source.slots
    number = max(round(order.comparisons * people / source.slots), 1)
    print_ranking_plan(
        RankingPlanOptions(
            comparisons=(number,), items=order.items, ties=order.expected.ties, spread=None, guessing=None,
            wrong_pairs=None,
        ),
        workers=people,
        epsilon=epsilon or (mechanism.guarantee.epsilon,),
        participation=source.participation,
        participation_rate=order.expected.answered,
        out=out,
        null_apart=True,
    )  # fmt: skip


def _ranking_plan_rows(made: RankingPlan) -> list[tuple[str, str]]:
    """Return assumptions, sentences and guarantee as rows."""
    expected = made.expected
    assumed = (
        f"{100 * expected.ties:g} % ties, scores with a deviation of {expected.spread:g}, "
        f"{100 * expected.answered:g} % of the comparisons asked are answered, {100 * made.guessing:g} % of the "
        "workers guess"
    )
    hidden = "also hides who answered" if made.participation == "protected" else "does not hide who answered"
    return [
        ("assumed", assumed),
        *[("plan", sentence) for sentence in made.sentences()],
        ("reports", f"of one comparison; epsilon {hidden}"),
        ("table", "expected share of wrongly ordered pairs in %, by comparisons of an item and epsilon; 50 if drawn"),
    ]


@checked_stdout()
def _print_expected(made: RankingPlan) -> None:
    """Print the expected shares: a row for each number of comparisons, a column for each epsilon."""
    from rich.console import Console
    from rich.table import Table

    from crowdveil.planning.ranking_plan import wrong_text

    shown = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    shown.add_column("comparisons", justify="right")
    for one in made.reports:
        shown.add_column("none" if one.epsilon == float("inf") else format_bound(one.epsilon), justify="right")
    by_number: dict[int, list[str]] = {}
    for row in made.rows:
        by_number.setdefault(row.comparisons, []).append(wrong_text(row).removesuffix(" %").replace(" to ", "-"))
    for number, texts in by_number.items():
        shown.add_row(f"{number:,}", *texts)
    console = Console(highlight=False)
    console.print()
    console.print(shown)
