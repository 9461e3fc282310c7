"""`crowdveil plan`: expected error of a campaign; mechanism, epsilon and number of workers for a target error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.options import (
    COUNT,
    PATH,
    Given,
    alphabet_options,
    json_option,
    numbers,
    options,
    participation_option,
    required_alphabet,
    stated_options,
)
from crowdveil.cli.plan.request import PlanRequest, carry_out
from crowdveil.cli.verb import Verb
from crowdveil.registry import PLAN_METHODS

if TYPE_CHECKING:
    from crowdveil.campaign.source.settings_file import CampaignSource
    from crowdveil.channels.alphabet import Alphabet
    from crowdveil.planning import Pilot
    from crowdveil.privacy.mechanism_settings import Expectation

HELP = """Predict the error of a campaign before it starts, and recommend mechanism, epsilon and number of workers.

The error is the share of wrong labels, or the mean absolute error on a scale. Epsilon is the privacy loss of one cell:
one worker's answer to one task. With protected participation it also hides whether a worker answered."""
EXAMPLE = """crowdveil plan --labels no,yes --tasks 500 --workers 100
          --participation-rate 0.3 --target-error 0.05"""
DETAILS = """--campaign reads what `crowdveil campaign new` reads: answers, tasks, workers, participation, epsilon or
budget, and what is expected, and says what it would expect. Options that are given replace its settings in the plan;
without a target or budget the target is .9 of the error of the best public constant, which a campaign must meet.

Campaigns are simulated with assumed workers and truths, and inferred as infer does. Each expected error
has an interval for real crowds. The commands that carry out the plan are printed.

--out writes plan.json, plan.svg and plan.png, and prior.csv if a long scale was merged."""


def _expectation(given: Given) -> Expectation:
    from crowdveil.privacy.mechanism_settings import Expectation

    sigmas = () if given["sigmas"] is None else numbers(given["sigmas"], "--sigmas")
    rate = given["participation_rate"]
    return Expectation(prior=given["prior"], participation_rate=rate, ability=given["ability"], sigmas=sigmas)


def _with_settings(source: CampaignSource, given: Given) -> dict[str, Any]:
    """Return the options with those that are not given from the settings of a campaign; its alphabet is `alphabet`."""
    from crowdveil.planning.settings.expected_error import expectation_of

    assigned, expected = expectation_of(source)
    stated: dict[str, Any] = {
        "tasks": len(source.rows),
        "workers": source.slots,
        "participation": source.participation,
        "participation_rate": expected.participation_rate,
    }
    if given["labels"] is None and given["scale"] is None:
        stated |= {"alphabet": source.alphabet, "ability": expected.ability, "prior": expected.prior_file}
        stated["sigmas"] = ",".join(map(repr, expected.sigmas)) or None
    if not (given["epsilon"] or given["budget"]):
        own = source.privacy
        budgets, epsilon = own.levels or (own.budget_per_worker,), own.epsilon_per_answer
        stated["budget"] = (",".join(map(repr, budgets)),) if epsilon is None else ()
        stated["epsilon"] = () if epsilon is None else (repr(epsilon),)
    if not (given["budget"] or stated.get("budget")):
        stated["assigned_per_task"] = assigned
    return {**given} | {name: value for name, value in stated.items() if given.get(name) in (None, ())}


expectation_options = options(
    click.option("--participation-rate", type=float, metavar="S", help="Share of all tasks a worker answers."),
    click.option(
        "--prior",
        type=PATH,
        metavar="FILE",
        help="Public prior (columns label, probability), also used by inference. [default: uniform, and learned]",
    ),
    click.option("--ability", type=float, metavar="A", help="Mean probability of a correct label. [default: 0.75]"),
    click.option(
        "--sigmas",
        metavar="S,T",
        help="Scale: workers' standard deviations, in equal shares. [default: 0.1 and 0.5 of the range]",
    ),
    click.option("--pilot", type=PATH, metavar="FILE", help="Answers to about 50 random tasks, in place of --ability."),
    click.option("--gold", type=PATH, metavar="FILE", help="Truths of tasks of the pilot (task,truth)."),
    heading="Expected workers and answers",
)


@click.command(
    cls=Verb,
    help=HELP,
    example=EXAMPLE,
    details=DETAILS,
    main_options=("labels", "scale", "workers", "tasks", "participation_rate", "target", "epsilon", "out"),
    short_help="Choose mechanism, epsilon and workers; predict the error.",
)
@click.option(
    "--campaign", "settings", type=PATH, metavar="FILE", help="Settings file of a campaign, instead of options."
)
@alphabet_options
@click.option("--tasks", type=COUNT, metavar="N", help="Number of tasks.")
@click.option("--workers", type=COUNT, metavar="M", help="Number of workers.")
@click.option("--target-error", "target", type=float, metavar="E", help="Target error; not needed with --budget.")
@click.option(
    "--budget",
    multiple=True,
    metavar="E,F",
    help="Epsilons per worker, whole campaign: choose tasks per worker and epsilon per answer for each.",
)
@click.option("--delta", type=float, metavar="D", help="The budgets hold at this delta, such as 1e-6.")
@expectation_options
@click.option("--epsilon", multiple=True, metavar="E,F", help="Epsilons per cell. [default: 0.5,1,2,3,4,5,6,8]")
@participation_option
@click.option(
    "--assigned-per-task",
    type=COUNT,
    metavar="R",
    help="Workers publicly assigned to each task; only assigned cells report. [default: all]",
)
@click.option(
    "--method",
    type=click.Choice(PLAN_METHODS),
    metavar="NAME",
    help=f"Estimator: {', '.join(PLAN_METHODS)}. [default: by type of answers]",
)
@click.option("--out", type=PATH, metavar="DIR", help="Folder of the files.")
@json_option
def plan(
    settings: Path | None,
    target: float | None,
    delta: float | None,
    method: str | None,
    out: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Plan a campaign; see `HELP`."""
    own = given["participation"] if "participation" in stated_options() else None
    campaign = None if settings is None else _settings(settings)
    if campaign is not None:
        given = _with_settings(campaign, given | {"participation": own})
    _check_usage(target, delta, given, for_campaign=campaign is not None)
    alphabet, expected = given.get("alphabet") or required_alphabet(given), _expectation(given)
    from crowdveil.channels.alphabet import Scale
    from crowdveil.planning.expected_campaign import expected_campaign

    if isinstance(alphabet, Scale) and expected.ability is not None:
        raise click.UsageError("On a scale workers are described by --sigmas, not by --ability.")
    sizes = {name: given[name] for name in ("tasks", "workers", "assigned_per_task")}
    if campaign is not None and method is None:
        from crowdveil.inference.methods import channel_method

        method = channel_method(alphabet)
    pilot = _pilot(given["pilot"], given["gold"], alphabet)
    planned = expected_campaign(alphabet, expected, given["participation"], method=method, pilot=pilot, **sizes)
    request = PlanRequest(
        campaign=planned,
        expected=expected,
        alphabet=alphabet,
        target=target,
        by_budget=bool(given["budget"]),
        values=tuple(
            value for text in given["budget"] or given["epsilon"] for value in numbers(text, "--budget or --epsilon")
        ),
        participation_given=settings is not None or own is not None,
        out=out,
        delta=delta,
        settings=campaign,
    )
    carry_out(request, as_json=as_json)


def _pilot(answers: Path | None, gold: Path | None, alphabet: Alphabet) -> Pilot | None:
    """Return the estimates of a pilot from its files; None without one."""
    from crowdveil.data.ingest.gold_files import load_gold
    from crowdveil.data.reports import Reports
    from crowdveil.planning import Pilot

    if answers is None:
        if gold is not None:
            raise click.UsageError("--gold goes with --pilot, the answers to these tasks.")
        return None
    read = Reports.from_csv(answers, alphabet=alphabet)
    return Pilot.of(read, None if gold is None else load_gold(gold, kind="categorical"))


def _settings(path: Path) -> CampaignSource:
    from crowdveil.campaign.source.settings_file import read_source

    source = read_source(path)
    if source.others:
        raise click.UsageError("A plan is of one question: give a settings file of each, with its part of the budget.")
    return source


def _check_usage(target: float | None, delta: float | None, given: Given, *, for_campaign: bool) -> None:
    """Refuse a plan without a size or an aim, and options that a plan by budgets chooses itself."""
    for name in ("tasks", "workers", "participation_rate"):
        if given[name] is None:
            raise click.UsageError(f"Missing option '--{name.replace('_', '-')}' (or '--campaign', a settings file).")
    if target is None and not given["budget"] and not for_campaign:
        raise click.UsageError("Missing option '--target-error' (or '--budget', the epsilon of a worker).")
    if given["budget"] and (given["epsilon"] or given["assigned_per_task"] is not None):
        raise click.UsageError(
            "--budget chooses epsilon per answer and assignment: leave out --epsilon and --assigned-per-task."
        )
    if delta is not None and not given["budget"]:
        raise click.UsageError("--delta goes with --budget.")
