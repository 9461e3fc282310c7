"""`crowdveil plan`: expected error of a campaign; mechanism, epsilon and number of workers for a target error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from crowdveil.cli.display import as_text, json_document, print_result, progress_bar, replaced_rows
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
from crowdveil.cli.plan.budget import run as run_budgets
from crowdveil.cli.plan.display import plan_lines, print_candidates
from crowdveil.cli.verb import Verb
from crowdveil.registry import PLAN_METHODS

if TYPE_CHECKING:
    from crowdveil.channels.guarantee import Participation
    from crowdveil.planning import Plan
    from crowdveil.workflow.mechanism_settings import Expectation

FILE, PICTURES = "plan.json", ("plan.svg", "plan.png")
PRIOR = "prior.csv"
"""File of the prior of merged labels."""

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
    short_help="Predict the error of a campaign; choose mechanism, epsilon and workers.",
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
    alphabet, expected = required_alphabet(given), _expectation(given)
    from crowdveil import planning
    from crowdveil.channels.alphabet import Scale
    from crowdveil.files.atomic_write import Outputs, write_outputs
    from crowdveil.plotting import NO_PICTURES, has_matplotlib
    from crowdveil.workflow.planning import expected_campaign, next_commands, plan_data, prior_table

    if isinstance(alphabet, Scale) and expected.ability is not None:
        raise click.UsageError("On a scale workers are described by --sigmas, not by --ability.")
    campaign = expected_campaign(
        alphabet,
        expected,
        participation,
        tasks=tasks,
        workers=workers,
        assigned_per_task=assigned_per_task,
        method=method,
    )
    source = click.get_current_context().get_parameter_source("participation")
    given_participation = source is not ParameterSource.DEFAULT
    if budget:
        budgets = tuple(value for text in budget for value in numbers(text, "--budget"))
        run_budgets(
            campaign,
            expected,
            budgets,
            target=target,
            participation_given=given_participation,
            out=out,
            as_json=as_json,
        )
        return
    assert target is not None
    crowd, prior = campaign.crowd, expected.prior
    merged = crowd.alphabet != alphabet
    drawn = PICTURES if has_matplotlib() else ()
    names = (FILE, *drawn, *((PRIOR,) if merged and prior is not None else ()))
    outputs = None if out is None else Outputs(folder=out, names=names, kind="plan")
    replaced = [] if outputs is None else outputs.check(inputs=[prior])
    epsilons = tuple(value for text in epsilon for value in numbers(text, "--epsilon")) or planning.EPSILONS
    with progress_bar("simulating") as bar:
        made = planning.plan(campaign, target=target, epsilons=epsilons, progress=bar)
    data = plan_data(made, expected, participation_given=given_participation)
    if PRIOR in names and out is not None:
        prior = out / PRIOR
    data["merged_labels"] = alphabet.size if merged else None
    data["commands"] = [] if made.recommended is None else next_commands(made.recommended, expected, prior)
    data["files"] = [] if outputs is None else list(map(str, outputs.paths))
    data["replaced"] = list(map(str, replaced))
    data["warnings"] = [] if outputs is None or drawn else [NO_PICTURES]
    if outputs is not None:
        pictures = _pictures(made) if drawn else {}
        write_outputs(outputs, {FILE: as_text(json_document(data)) + "\n", PRIOR: prior_table(crowd), **pictures})
    warnings = [("warning", text) for text in data["warnings"]]
    print_result(data, [*warnings, *plan_lines(made, data), *replaced_rows(data["replaced"])], as_json=as_json)
    if not as_json:
        print_candidates(made)


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


def _pictures(made: Plan) -> dict[str, bytes | str]:
    from crowdveil.planning.summary import draw

    return {"plan.svg": draw(made, "svg"), "plan.png": draw(made, "png")}
