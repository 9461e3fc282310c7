"""`crowdveil campaign init` and `new`: a settings file, and the campaign folder that is made from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.channels.rounding import format_three_decimals
from crowdveil.cli.display import next_row, print_result
from crowdveil.cli.options import FILE_PATH, FOLDER_PATH
from crowdveil.cli.progress import progress_bar
from crowdveil.cli.verb import Verb

if TYPE_CHECKING:
    from crowdveil.campaign.planning.creation import CreatedCampaign, CreatedQuestion
    from crowdveil.campaign.rules.document import Campaign


PURPOSES = (
    "If each task has one right answer, crowdveil infer finds it. If answers differ from person to "
    "person, as opinions do, crowdveil share estimates their shares; for their expected intervals add "
    "expected = { share = 0.5 } to the settings."
)
OF_SURVEY = "crowdveil share estimates what share gave each answer, with an interval; nobody learns who."
OF_COMPARISONS = "crowdveil rank orders the items."


@click.command(
    cls=Verb, example="crowdveil campaign init --out campaign.toml", short_help="Write a commented settings file."
)
@click.option("--out", type=FILE_PATH, default="campaign.toml", help="New settings file.")
def init(out: Path) -> None:
    """Write a settings file with comments, for you to edit. It never replaces a file."""
    from crowdveil.campaign.planning.creation import write_template

    write_template(out)
    rows = [("written", str(out)), ("next", f"edit it, then run crowdveil campaign new {out} --out FOLDER")]
    print_result({"files": [str(out)]}, rows)


@click.command(
    cls=Verb,
    example="crowdveil campaign new campaign.toml --out essays",
    short_help="Make a campaign from a settings file.",
)
@click.argument("settings", type=FILE_PATH, metavar="SETTINGS")
@click.option("--out", type=FOLDER_PATH, required=True, help="New folder of the campaign.")
@click.option(
    "--anyway", is_flag=True, help="Create it even if its expected error is barely below that of the best constant."
)
def new(settings: Path, out: Path, anyway: bool) -> None:
    """Make a campaign: check the settings, draw the assignment, write the files.

    The SHA-256 of campaign.json names the campaign. Every device checks it, so a changed file is another campaign. The
    command prints what each worker is promised: epsilon of a single answer (cell) and of all answers, with
    participation.

    \f
    The page "Campaign files" describes the settings. The folder must be new. Other users of this computer cannot open
    it (mode 0700).

    The expected error is simulated as in `crowdveil plan`, under the assumptions that are printed. The real error may
    differ. A campaign is refused if its expected error is above 0.9 of that of the best public constant; the message
    names the nearest campaigns that would be accepted. --anyway creates it.

    A survey has shares instead of truths: the expected half-width of their intervals is printed, and nothing is
    refused. Settings are those of a survey if they have expected.share, or at most three questions with labels, each to
    30 people or more.

    Comparisons of two items have an order: the expected share of wrongly ordered pairs is printed.
    """
    from crowdveil.campaign.planning.creation import create_campaign

    with progress_bar("simulating") as bar:
        created = create_campaign(settings, out, anyway=anyway, on_simulation=bar)
    print_result(_created_campaign_json_members(created), _rows_to_print(created))


def _created_campaign_json_members(created: CreatedCampaign) -> dict[str, Any]:
    from crowdveil.campaign.service.one_file_page import odds_sentences_by_language
    from crowdveil.campaign.statement.sentences import level_guarantees

    campaign, first = created.campaign, created.questions[0]
    return {
        "campaign": campaign.name,
        "tasks": len(campaign.tasks),
        "workers": campaign.slots,
        "fewest": created.loads[0],
        "most": created.loads[1],
        "mechanism": first.mechanism.name,
        "planned": first.planned,
        "reports": list(campaign.channels[0].outputs),
        "participation": campaign.participation,
        "epsilon_per_answer": campaign.epsilon,
        "epsilon_per_worker": campaign.worker_epsilon,
        "epsilon_per_level": [one.epsilon for one in level_guarantees(campaign)],
        "opens": campaign.opens.isoformat(),
        "closes": campaign.closes.isoformat(),
        "min_reports": campaign.min_reports,
        "odds": odds_sentences_by_language(campaign, created.loads[1]),
        "expected": None if first.expected is None else first.expected.to_json(),
        "survey": None if first.survey is None else first.survey.to_json(),
        "order": None if first.order is None else first.order.to_json(),
        "questions": [_question_data(one) for one in created.questions] if campaign.questions else [],
        "warnings": list(created.warnings),
        "curator_key": None if created.key is None else str(created.key),
        "files": list(map(str, created.files)),
    }


def _rows_to_print(created: CreatedCampaign) -> list[tuple[str, str]]:
    from crowdveil.campaign.rules.document import spaced_name_to_compare
    from crowdveil.campaign.service.one_file_page import odds_sentences_by_language
    from crowdveil.campaign.statement.sentences import level_sentences, question_sentences, relay_sentences
    from crowdveil.display.counts import number_of

    campaign, (fewest, most) = created.campaign, created.loads
    each = number_of(most, "task") if fewest == most else f"{fewest} to {most} tasks"
    scope = f"participation {campaign.participation}"
    cells = f"all {most} answers of one worker" if most > 1 else "the one answer of a worker"
    odds = odds_sentences_by_language(campaign, most)
    return [
        *(("warning", text) for text in created.warnings),
        ("campaign", campaign.name),
        ("to compare", spaced_name_to_compare(campaign.name)),
        ("asked", f"{number_of(campaign.slots, 'worker')}, {_tasks_text(created)}, {each} to a worker"),
        ("open", f"{campaign.opens.isoformat()} to {campaign.closes.isoformat()} (UTC), both days included"),
        *([("service", campaign.url)] if campaign.url else []),
        ("promise", f"epsilon {format_three_decimals(campaign.epsilon)} for a single answer ({scope})"),
        ("in all", f"epsilon {format_three_decimals(campaign.worker_epsilon)} for {cells} ({scope})"),
        ("odds", odds.get(campaign.language.partition("-")[0], odds["en"])),
        *(("relay", sentence) for sentence in relay_sentences(campaign)),
        *(("levels", sentence) for sentence in level_sentences(campaign)),
        *(("questions", sentence) for sentence in question_sentences(campaign)),
        *(
            row
            for one in created.questions
            for row in _mechanism_and_error_rows(one, several=len(created.questions) > 1)
        ),
        ("results", _text_of_results(created.questions[0])),
        ("written", f"{created.folder}"),
        *([("curator's key", f"{created.key}: keep it, and give the relay the folder only")] if created.key else []),
        next_row("campaign", "invite", created.folder),
    ]


def _tasks_text(created: CreatedCampaign) -> str:
    """Return the number of tasks, of comparisons that of pairs with their two orders."""
    from crowdveil.display.counts import number_of

    tasks, pairs = len(created.campaign.tasks), len(created.questions[0].source.pairs)
    return f"{number_of(pairs, 'pair')} in two orders" if pairs else number_of(tasks, "task")


def _question_data(asked: CreatedQuestion) -> dict[str, Any]:
    """Return one of several questions as JSON values."""
    campaign = asked.campaign
    return {
        "question": campaign.question,
        "tasks": len(campaign.tasks),
        "most": campaign.cells,
        "mechanism": asked.mechanism.name,
        "planned": asked.planned,
        "reports": list(campaign.channels[0].outputs),
        "epsilon_per_answer": campaign.epsilon,
        "epsilon_per_worker": campaign.worker_epsilon,
        "expected": None if asked.expected is None else asked.expected.to_json(),
        "survey": None if asked.survey is None else asked.survey.to_json(),
    }


def _mechanism_and_error_rows(asked: CreatedQuestion, *, several: bool) -> list[tuple[str, str]]:
    """Return the mechanism and the expected error of a question."""
    from crowdveil.cli.display import printable
    from crowdveil.planning.plan_sentences import error_with_interval_text

    error, campaign = asked.expected, asked.campaign
    named = [
        *([("question", printable(campaign.question))] if several else []),
        ("mechanism", f"{asked.mechanism.name}{', recommended by the plan' if asked.planned else ''}"),
        *_report_symbol_rows_if_not_answers(campaign),
    ]
    if asked.order is not None:
        return [*named, ("expected", asked.order.text), ("assumed", asked.order.assumptions_text)]
    if asked.survey is not None:
        worst = _clause_on_worst_channel(campaign)
        return [*named, ("expected", asked.survey.text), ("assumed", f"{asked.survey.assumptions_text}{worst}")]
    assert error is not None
    return [
        *named,
        ("expected", f"{error.error_name} {error_with_interval_text(error.protected)}"),
        ("constant", f"{error.constant:.3g}, the same answer for every task"),
        ("unprotected", error_with_interval_text(error.unprotected)),
        (
            "assumed",
            f"{error.crowd_assumptions_text}; method {error.plan.estimator_of_simulated_fits.name}"
            f"{_clause_on_worst_channel(campaign)}",
        ),
    ]


def _clause_on_worst_channel(campaign: Campaign) -> str:
    """Return which of several channels the expected error counts for every worker; empty with one channel."""
    if campaign.levels:
        return "; every worker at level 1"
    return f"; the worst of {len(campaign.channels)} groups of cuts" if campaign.groups else ""


def _report_symbol_rows_if_not_answers(campaign: Campaign) -> list[tuple[str, str]]:
    """Return the report symbols, if they are not the answers."""
    from crowdveil.channels.alphabet import NULL

    symbols = dict.fromkeys(tuple(name for name in one.outputs if name != NULL) for one in campaign.channels)
    return [("reports", f"name one of: {', '.join(outputs)}") for outputs in symbols if outputs != campaign.labels]


def _text_of_results(asked: CreatedQuestion) -> str:
    """Return what the results of a campaign will be."""
    if asked.order is not None:
        return OF_COMPARISONS
    return PURPOSES if asked.survey is None else OF_SURVEY
