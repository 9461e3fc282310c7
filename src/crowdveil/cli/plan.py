"""`crowdveil plan`: which mechanism, which epsilon and how many workers for a wanted error."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from crowdveil.cli.display import progress_bar, replaced_rows, show
from crowdveil.cli.json_output import as_text, result
from crowdveil.cli.options import COUNT, PATH, alphabet_options, as_one, json_option, numbers
from crowdveil.cli.plan_display import next_commands, plan_lines, print_candidates
from crowdveil.registry import PLAN_METHODS

if TYPE_CHECKING:
    from crowdveil.channels.alphabet import Alphabet, Scale
    from crowdveil.channels.guarantee import Participation
    from crowdveil.files.atomic_write import Outputs
    from crowdveil.mechanisms import DesignObjective
    from crowdveil.planning import Campaign, NumberCrowd, Plan, Row, Way
    from crowdveil.planning.simulation import Prediction
    from crowdveil.workflow import Expectation

USUAL_SIGMAS = (0.1, 0.5)
"""Of the range of a scale: what half of the workers, and the other half, err by."""

FILES = ("plan.json", "plan.svg", "plan.png")
PRIOR = "prior.csv"
"""Where the prior of merged labels is written."""

HELP = """Say which mechanism, which epsilon and how many workers a wanted error takes, before anyone is asked.

Simulates campaigns of made-up workers (abilities in a Beta distribution around --ability; or, on a scale, normal errors
of --sigmas in equal shares) with truths from the public prior, infers from them as infer would, and adds a closed form
for everything in between. The first lines say what is assumed, and how such predictions fared on real crowds: mostly
they were too hopeful. Every candidate's expected error stands beside an interval for real crowds, the best public
constant, and the error without protection.

The error is the share of wrong labels, or the mean absolute error on a scale. Epsilon is the privacy loss of one cell:
one worker's answer to one task; what it adds up to for a worker is printed beside it, with participation.

On a scale campaigns in rounds are compared too, and for ordered labels the method that reads their order. The commands
that carry the plan out are printed.

With --out, writes plan.json, plan.svg and plan.png, and prior.csv where a long scale was merged."""


def _expectation(
    *, prior: Path | None, participation_rate: float, ability: float | None, sigmas: str | None
) -> Expectation:
    from crowdveil.workflow import Expectation

    given = () if sigmas is None else numbers(sigmas, "--sigmas")
    return Expectation(prior=prior, participation_rate=participation_rate, ability=ability, sigmas=given)


expectation_options = as_one(
    "expected",
    _expectation,
    click.option(
        "--participation-rate", type=float, required=True, metavar="S", help="Share of all tasks a worker answers."
    ),
    click.option(
        "--prior",
        type=PATH,
        metavar="FILE",
        help="Public label,probability of truths, known to inference too. [default: all alike, and not known to it]",
    ),
    click.option("--ability", type=float, metavar="A", help="Mean probability of a right label. [default: 0.75]"),
    click.option(
        "--sigmas",
        metavar="S,T",
        help="On a scale: workers' standard deviations, in equal shares. [default: a tenth and half of the range]",
    ),
)


@click.command(help=HELP, short_help="Say what error to expect, and what a wanted error takes.")
@alphabet_options
@click.option("--tasks", type=COUNT, required=True, metavar="N", help="Number of tasks.")
@click.option("--workers", type=COUNT, required=True, metavar="M", help="Number of workers.")
@click.option("--target-error", "target", type=float, required=True, metavar="E", help="The error wanted.")
@expectation_options
@click.option(
    "--epsilon", multiple=True, metavar="E,F", help="Epsilons per cell to compare. [default: 0.5,1,2,3,4,5,6,8]"
)
@click.option(
    "--participation",
    type=click.Choice(["protected", "public"]),
    default="protected",
    show_default=True,
    help="protected: epsilon also hides whether a cell was answered; public: who answered what is visible.",
)
@click.option(
    "--assigned-per-task",
    type=COUNT,
    metavar="R",
    help="Workers to whom each task is publicly assigned; only assigned cells are reported. [default: all]",
)
@click.option(
    "--method",
    type=click.Choice(PLAN_METHODS),
    metavar="NAME",
    help=f"How truths will be inferred: {', '.join(PLAN_METHODS)}. [default: for labels dawid-skene, for ordered ones "
    "also ordinal-dawid-skene; else gaussian]",
)
@click.option("--out", type=PATH, metavar="DIR", help="Where files are written.")
@json_option
def plan(
    alphabet: Alphabet | None,
    tasks: int,
    workers: int,
    target: float,
    expected: Expectation,
    epsilon: tuple[str, ...],
    participation: Participation,
    assigned_per_task: int | None,
    method: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Read, plan, write, print; see `HELP`."""
    from crowdveil.planning import EPSILONS
    from crowdveil.planning import plan as make_plan

    if alphabet is None:
        raise click.UsageError("Say what an answer can be: --labels or --scale.")
    campaign = _campaign(
        alphabet, expected, participation, tasks=tasks, workers=workers, assigned=assigned_per_task, method=method
    )
    merged = campaign.crowd.alphabet != alphabet
    outputs = _outputs(out, prior_too=merged and expected.prior is not None)
    replaced = [] if outputs is None else outputs.check(inputs=[expected.prior])
    epsilons = tuple(value for text in epsilon for value in numbers(text, "--epsilon")) or EPSILONS
    with progress_bar("simulating") as bar:
        made = make_plan(campaign, target=target, epsilons=epsilons, progress=bar)
    prior = out / PRIOR if merged and out is not None and expected.prior is not None else expected.prior
    data = {"assumptions": _assumptions(campaign, expected)} | _data(made)
    data["merged_labels"] = alphabet.size if merged else None
    data["commands"] = [] if made.recommended is None else next_commands(made.recommended, expected, prior)
    data["files"] = [] if outputs is None else list(map(str, outputs.paths))
    data["replaced"] = list(map(str, replaced))
    if outputs is not None:
        _write(outputs, made, data)
    show(data, [*plan_lines(made, data), *replaced_rows(data["replaced"])], as_json=as_json)
    if not as_json:
        print_candidates(made)


def _campaign(
    alphabet: Alphabet,
    expected: Expectation,
    participation: Participation,
    *,
    tasks: int,
    workers: int,
    assigned: int | None,
    method: str | None,
) -> Campaign:
    """Return what is planned: the question that channels are chosen for, and the crowd that is made up."""
    from crowdveil.channels.alphabet import Scale
    from crowdveil.planning import Campaign, LabelCrowd, beta_abilities
    from crowdveil.workflow.mechanism_settings import USUAL_ABILITY

    crowd: LabelCrowd | NumberCrowd
    if isinstance(alphabet, Scale):
        objective, crowd = _on_a_scale(alphabet, expected, participation)
    else:
        objective = expected.objective(alphabet, participation)
        abilities = beta_abilities(USUAL_ABILITY if expected.ability is None else expected.ability)
        crowd = LabelCrowd(alphabet=alphabet, prior=objective.prior, abilities=abilities)
    return Campaign(
        objective=objective,
        crowd=crowd,
        tasks=tasks,
        workers=workers,
        assigned_per_task=assigned,
        prior_public=expected.prior is not None,
        method=method,
    )


def _assumptions(campaign: Campaign, expected: Expectation) -> list[dict[str, Any]]:
    """Return what is taken for granted, each with its value and its source: "given" or "default"."""
    from crowdveil.planning import LabelCrowd

    crowd, chosen = campaign.crowd, click.get_current_context().get_parameter_source("participation")
    rate, hidden = campaign.objective.participation_rate, campaign.participation
    if isinstance(crowd, LabelCrowd):
        workers = _assumption("ability", float(crowd.kinds @ crowd.shares), expected.ability is not None)
    else:
        workers = _assumption("sigmas", list(crowd.sigmas), bool(expected.sigmas))
    return [
        workers,
        _assumption("participation_rate", rate, True),
        _assumption("participation", hidden, chosen is not ParameterSource.DEFAULT),
        _assumption("prior", crowd.prior.tolist(), campaign.prior_public),
    ]


def _assumption(name: str, value: object, given: bool) -> dict[str, Any]:
    return {"name": name, "value": value, "source": "given" if given else "default"}


def _on_a_scale(
    scale: Scale, expected: Expectation, participation: Participation
) -> tuple[DesignObjective, NumberCrowd]:
    """Return question and crowd, both on the coarser scale where the one given is long."""
    from dataclasses import replace

    from crowdveil.channel_design import normal_worker_model
    from crowdveil.planning import NumberCrowd, coarser, merged

    if expected.ability is not None:
        raise click.UsageError("On a scale workers are described by --sigmas, not by --ability.")
    sigmas = expected.sigmas or tuple(share * scale.range for share in USUAL_SIGMAS)
    objective = replace(expected, sigmas=sigmas).objective(scale, participation)
    planned_on = coarser(scale, min(sigmas))
    if planned_on != scale:
        prior = merged(objective.prior, scale, planned_on)
        answers = normal_worker_model(planned_on, sigmas)
        objective = replace(objective, alphabet=planned_on, prior=prior, worker_model=answers)
    return objective, NumberCrowd(alphabet=planned_on, prior=objective.prior, sigmas=sigmas)


def _outputs(out: Path | None, *, prior_too: bool) -> Outputs | None:
    """Return the plan and its picture as outputs, and the prior where it was merged."""
    from crowdveil.files.atomic_write import Outputs

    names = (*FILES, *((PRIOR,) if prior_too else ()))
    return None if out is None else Outputs(folder=out, names=names, kind="plan")


def _write(outputs: Outputs, made: Plan, data: dict[str, Any]) -> None:
    """Write the plan and its picture, and the prior where it was merged."""
    from crowdveil.files.atomic_write import write_outputs
    from crowdveil.planning.summary import draw

    crowd = made.campaign.crowd
    rows = [f"{name},{share:.12g}" for name, share in zip(crowd.alphabet.names, crowd.prior, strict=True)]
    contents: dict[str, bytes | str] = {
        "plan.json": as_text(result(data)) + "\n",
        "plan.svg": draw(made, "svg"),
        "plan.png": draw(made, "png"),
        PRIOR: "\n".join(["label,probability", *rows]) + "\n",
    }
    write_outputs(outputs, contents)


def _data(made: Plan) -> dict[str, Any]:
    from crowdveil.planning import experience, verdict

    campaign, crowd = made.campaign, made.campaign.crowd
    return {
        "target_error": made.target,
        "error_name": crowd.error_name,
        "labels": list(crowd.alphabet.names),
        "tasks": campaign.tasks,
        "workers": campaign.workers,
        "participation": campaign.participation,
        "participation_rate": campaign.objective.participation_rate,
        "assigned_per_task": campaign.assigned_per_task,
        "tasks_per_worker": campaign.cells,
        "worker_qualities": crowd.kinds.tolist(),
        "worker_shares": crowd.shares.tolist(),
        "method": campaign.estimator.name,
        "prior_known_to_inference": campaign.prior_public,
        "verdict": verdict(made),
        "real_sets": experience(),
        "recommended": None if made.recommended is None else _row(made.recommended),
        "sure": None if made.sure is None else _row(made.sure),
        "constant_error": made.constant_error,
        "unprotected": _prediction(made.unprotected),
        "unprotected_method": made.unprotected_method,
        "candidates": [_row(row) for row in made.rows],
        "workers_needed": [{"epsilon": epsilon, "way": _way(way)} for epsilon, way in made.workers.items()],
        "workers_needed_unprotected": _way(made.unprotected_workers),
        "ways": [_way(way) for way in made.ways],
    }


def _row(row: Row) -> dict[str, Any]:
    from crowdveil.workflow import parameters

    channel = row.mechanism.channel()
    return {
        "line": row.line,
        "mechanism": row.mechanism.name,
        "epsilon": row.epsilon,
        "method": row.campaign.estimator.name,
        "rounds": row.campaign.rounds,
        "parameters": parameters(row.mechanism),
        "reports": list(channel.outputs),
        "same_as": row.same_as,
        **_prediction(row.prediction),
        "epsilon_per_cell": row.cost.cell_epsilon,
        "epsilon_per_worker": row.cost.worker_epsilon,
        "cells_per_worker": row.cost.cells,
        "bytes_per_worker": row.cost.bytes,
    }


def _prediction(prediction: Prediction) -> dict[str, Any]:
    from crowdveil.planning.summary import expected_error, real_interval

    shown = {"shown": expected_error(prediction), "shown_interval": real_interval(prediction)}
    return asdict(prediction) | shown


def _way(way: Way | None) -> dict[str, Any] | None:
    if way is None:
        return None
    return {
        "change": way.change,
        "line": way.line,
        "epsilon": None if way.mechanism is None else way.mechanism.epsilon,
        "workers": way.campaign.workers,
        "method": way.campaign.estimator.name,
        "rounds": way.campaign.rounds,
        "participation": way.campaign.participation,
        "assigned_per_task": way.campaign.assigned_per_task,
        **_prediction(way.prediction),
    }
