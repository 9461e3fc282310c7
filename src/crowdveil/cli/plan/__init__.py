"""`crowdveil plan`: expected error of a campaign; mechanism, epsilon and number of workers for a target error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

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
)
from crowdveil.cli.plan.budget import BudgetView
from crowdveil.cli.plan.request import PlanRequest, carry_out
from crowdveil.cli.plan.target import TargetView
from crowdveil.cli.verb import Verb
from crowdveil.registry import PLAN_METHODS

if TYPE_CHECKING:
    from crowdveil.channels.guarantee import Participation
    from crowdveil.workflow.mechanism_settings import Expectation

HELP = """Predict the error of a campaign before it starts, and recommend mechanism, epsilon and number of workers.

The error is the share of wrong labels, or the mean absolute error on a scale. Epsilon is the privacy loss of one cell:
one worker's answer to one task. With protected participation it also hides whether a worker answered."""
EXAMPLE = """crowdveil plan --labels no,yes --tasks 500 --workers 100
          --participation-rate 0.3 --target-error 0.05"""
DETAILS = """Campaigns are simulated with assumed workers and truths, and inferred as infer does. Each expected error
has an interval for real crowds. The commands that carry out the plan are printed.

--out writes plan.json, plan.svg and plan.png, and prior.csv if a long scale was merged."""


def _expectation(given: Given) -> Expectation:
    from crowdveil.workflow.mechanism_settings import Expectation

    sigmas = () if given["sigmas"] is None else numbers(given["sigmas"], "--sigmas")
    rate = given["participation_rate"]
    return Expectation(prior=given["prior"], participation_rate=rate, ability=given["ability"], sigmas=sigmas)


expectation_options = options(
    click.option(
        "--participation-rate", type=float, required=True, metavar="S", help="Share of all tasks a worker answers."
    ),
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
    heading="Expected workers and answers",
)


@click.command(
    cls=Verb,
    help=HELP,
    example=EXAMPLE,
    details=DETAILS,
    main_options=("labels", "scale", "epsilon", "out"),
    short_help="Choose mechanism, epsilon and workers; predict the error.",
)
@alphabet_options
@click.option("--tasks", type=COUNT, required=True, metavar="N", help="Number of tasks.")
@click.option("--workers", type=COUNT, required=True, metavar="M", help="Number of workers.")
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
    tasks: int,
    workers: int,
    target: float | None,
    budget: tuple[str, ...],
    delta: float | None,
    epsilon: tuple[str, ...],
    participation: Participation,
    assigned_per_task: int | None,
    method: str | None,
    out: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Plan a campaign; see `HELP`."""
    _check_usage(target, budget, epsilon, assigned_per_task)
    if delta is not None and not budget:
        raise click.UsageError("--delta goes with --budget.")
    alphabet, expected = required_alphabet(given), _expectation(given)
    from crowdveil.channels.alphabet import Scale
    from crowdveil.workflow.planning import expected_campaign

    if isinstance(alphabet, Scale) and expected.ability is not None:
        raise click.UsageError("On a scale workers are described by --sigmas, not by --ability.")
    source = click.get_current_context().get_parameter_source("participation")
    request = PlanRequest(
        campaign=expected_campaign(
            alphabet,
            expected,
            participation,
            tasks=tasks,
            workers=workers,
            assigned_per_task=assigned_per_task,
            method=method,
        ),
        expected=expected,
        alphabet=alphabet,
        target=target,
        values=tuple(value for text in budget or epsilon for value in numbers(text, "--budget or --epsilon")),
        participation_given=source is not ParameterSource.DEFAULT,
        out=out,
        delta=delta,
    )
    carry_out(request, BudgetView(request) if budget else TargetView(request), as_json=as_json)


def _check_usage(
    target: float | None, budget: tuple[str, ...], epsilon: tuple[str, ...], assigned_per_task: int | None
) -> None:
    """Refuse a plan without an aim, and options that a plan by budgets chooses itself."""
    if target is None and not budget:
        raise click.UsageError("Missing option '--target-error' (or '--budget', the epsilon of a worker).")
    if budget and (epsilon or assigned_per_task is not None):
        raise click.UsageError(
            "--budget chooses epsilon per answer and assignment: leave out --epsilon and --assigned-per-task."
        )
