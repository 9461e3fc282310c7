"""`crowdveil plan --share`: expected intervals of a share, and the number of people for a half-width."""

from __future__ import annotations

from dataclasses import dataclass
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
from crowdveil.cli.options import flag_of, option_group, stated_options
from crowdveil.cli.ranking_plan import FILE, PICTURE, print_settings_ranking_plan
from crowdveil.cli.verb import wants_json

if TYPE_CHECKING:
    from pathlib import Path

    from crowdveil.campaign.settings.settings_file import CampaignSettings
    from crowdveil.channels.alphabet import Alphabet
    from crowdveil.channels.guarantee import Participation
    from crowdveil.mechanisms import ChannelMechanism
    from crowdveil.planning.share_plan import SharePlan, SurveyMechanism

OF_A_SHARE = frozenset(
    ("share", "response", "level", "half_width", "labels", "ordered", "workers", "epsilon", "participation", "out")
)
"""Options that go with --share."""


@dataclass(frozen=True, kw_only=True)
class SharePlanOptions:
    """Guessed share, response rate, level, and wanted half-width or None."""

    share: float
    response: float
    level: float
    half_width: float | None


def share_plan_options(
    share: float | None, response: float, level: float, half_width: float | None
) -> SharePlanOptions | None:
    """Return the options of a plan of a share; None without --share."""
    stated = stated_options()
    if share is None:
        own = sorted(stated & {"response", "level", "half_width"})
        if own:
            raise click.UsageError(f"{flag_of(own[0])} requires --share.")
        return None
    options = click.get_current_context().command.params
    other = [max(one.opts, key=len) for one in options if one.name in stated - OF_A_SHARE - {"as_json"}]
    if other:
        raise click.UsageError(f"--share plans a share, not truths: leave out {other[0]}.")
    return SharePlanOptions(share=share, response=response, level=level, half_width=half_width)


share_options = option_group(
    click.option("--share", type=float, metavar="G", help="Guessed share of a label among the answers."),
    click.option(
        "--response", type=float, default=1.0, show_default=True, metavar="S", help="Share of those asked who answer."
    ),
    click.option(
        "--level", type=float, default=0.95, show_default=True, metavar="P", help="Level of the intervals of a share."
    ),
    click.option("--half-width", type=float, metavar="W", help="Wanted half-width of the interval, such as 0.05."),
    heading="A share instead of truths",
)


def print_share_plan(
    survey: SharePlanOptions,
    *,
    alphabet: Alphabet | None,
    workers: int | None,
    epsilon: tuple[float, ...],
    participation: Participation,
    out: Path | None,
    tasks: int = 1,
    mechanism: SurveyMechanism | None = None,
) -> None:
    """Make the plan of a share, write its files, print it.

    `tasks` is the number of answers of each person, and `mechanism` the one that is planned; by default the better one.
    """
    from crowdveil.display.svg_pictures import svg_file
    from crowdveil.files.atomic_write import Outputs, write_outputs
    from crowdveil.planning.share_plan import EPSILONS, PEOPLE, plan_share

    names = (FILE, PICTURE)
    outputs = None if out is None else Outputs(folder=out, names=names, kind="plan", remove_stale=True)
    replaced = [] if outputs is None else outputs.check_replaced_files()
    made = plan_share(
        survey.share,
        people=PEOPLE if workers is None else (workers,),
        epsilons=epsilon or EPSILONS,
        response=survey.response,
        labels=2 if alphabet is None else alphabet.size,
        participation=participation,
        level=survey.level,
        half_width=survey.half_width,
        mechanism=mechanism,
    )
    files = [] if outputs is None else list(map(str, outputs.paths))
    data = made.to_json() | {"files": files, "replaced": list(map(str, replaced))}
    if outputs is not None:
        document = json_text(document_of_running_command(data)) + "\n"
        write_outputs(outputs, {FILE: document, PICTURE: svg_file(made.picture())})
    written = [("written", path) for path in files]
    print_result(data, [*_share_plan_rows(made, tasks), *written, *row_of_replaced_files(replaced)])
    if not wants_json():
        _print_expected(made)


def is_survey(source: CampaignSettings) -> bool:
    """Return whether a campaign has a plan of its own: a survey with a mechanism for shares, or comparisons."""
    from crowdveil.campaign.planning.chosen_mechanism import mechanism_of_campaign_settings
    from crowdveil.campaign.planning.expected_share import people_of_survey
    from crowdveil.mechanisms import RandomizedResponse, SubsetSelection

    if source.pairs:
        return True
    if people_of_survey(source) is None:
        return False
    return isinstance(mechanism_of_campaign_settings(source).device_mechanism, RandomizedResponse | SubsetSelection)


def print_plan_of_settings(
    source: CampaignSettings, *, workers: int | None, epsilon: tuple[float, ...], out: Path | None
) -> None:
    """Print the plan of a survey by its settings, for its guessed share or the one with the widest interval.

    Numbers of people and epsilons that are given replace those of the settings.
    """
    from crowdveil.campaign.planning.chosen_mechanism import mechanism_of_campaign_settings
    from crowdveil.campaign.planning.expected_share import people_of_survey
    from crowdveil.quality.shares.share_function import LEVEL

    chosen = mechanism_of_campaign_settings(source)
    if source.pairs:
        print_settings_ranking_plan(source, chosen.device_mechanism, workers=workers, epsilon=epsilon, out=out)
        return
    print_share_plan(
        SharePlanOptions(
            share=source.expected.share or 0.5, response=source.expected.answered, level=LEVEL, half_width=None
        ),
        alphabet=source.alphabet,
        workers=workers or people_of_survey(source),
        epsilon=epsilon or (chosen.device_mechanism.guarantee.epsilon,),
        participation=source.participation,
        out=out,
        tasks=chosen.most_tasks,
        mechanism=_planned_mechanism(source, chosen.device_mechanism, other_epsilon=bool(epsilon)),
    )


def _planned_mechanism(
    source: CampaignSettings, chosen: ChannelMechanism, *, other_epsilon: bool
) -> SurveyMechanism | None:
    """Return the campaign's own mechanism; None if its settings choose one, and the epsilon is not that of theirs."""
    from crowdveil.campaign.settings.privacy_request import PLAN
    from crowdveil.mechanisms import SubsetSelection

    if other_epsilon and source.privacy.mechanism == PLAN:
        return None
    return "subset-selection" if isinstance(chosen, SubsetSelection) else "randomized-response"


def _share_plan_rows(made: SharePlan, tasks: int) -> list[tuple[str, str]]:
    """Return assumptions, sentences and guarantee as rows."""
    labels = "two labels" if made.labels == 2 else f"{made.labels} labels, the others equally frequent"
    assumed = f"share {100 * made.share:g} % of the answers, {100 * made.response:g} % of those asked answer; {labels}"
    number = "one answer per person" if tasks == 1 else f"{tasks} answers per person, whose epsilons add up"
    hidden = "also hides who answered" if made.participation == "protected" else "does not hide who answered"
    mechanisms = " or ".join(dict.fromkeys(one.mechanism for one in made.needed if one.mechanism))
    return [
        ("assumed", assumed),
        *[("plan", sentence) for sentence in made.sentences()],
        ("reports", f"{mechanisms}, {number}; epsilon {hidden}"),
        ("table", f"expected {100 * made.level:g} % interval of the share in %, by people asked and epsilon"),
    ]


@checked_stdout()
def _print_expected(made: SharePlan) -> None:
    """Print the expected intervals: a row for each number of people, a column for each epsilon."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    shown = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    shown.add_column("people", justify="right")
    for one in made.needed:
        shown.add_column("none" if one.epsilon == float("inf") else format_bound(one.epsilon), justify="right")
    by_people: dict[int, list[str]] = {}
    for row in made.rows:
        by_people.setdefault(row.people, []).append(f"{100 * row.low:.0f}-{100 * row.high:.0f}")
    for people, texts in by_people.items():
        shown.add_row(f"{people:,}", *texts)
    console.print()
    console.print(shown)
