"""Planning from options of a request: the campaign, the plan as JSON data, and the commands that carry it out."""

import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from crowdveil.channel_design import normal_worker_model
from crowdveil.channels.alphabet import Alphabet, Scale
from crowdveil.channels.guarantee import Participation
from crowdveil.data.ingest.csv_files import csv_row
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import Designed, DesignObjective, QuantizedResponse
from crowdveil.planning import (
    Alternative,
    Campaign,
    CandidateResult,
    LabelCrowd,
    NumberCrowd,
    Pilot,
    Plan,
    Prediction,
    beta_abilities,
    coarsen_prior,
    coarsen_scale,
    real_set_summary,
    verdict,
    with_pilot,
)
from crowdveil.planning.candidates import OTHER_BLOCKS
from crowdveil.planning.summary import expected_error, real_interval
from crowdveil.privacy.mechanism_settings import USUAL_ABILITY, Expectation, parameters

DEFAULT_SIGMAS = (0.1, 0.5)
"""Default standard deviations of two halves of the workers, as shares of the range of a scale."""
NO_COMMAND = "perturb has no option for blocks of unordered labels: use QuantizedResponse(blocks=...) in Python"
TASK_OPTION = ("--tasks", "tasks.csv")


def expected_campaign(
    alphabet: Alphabet,
    expected: Expectation,
    participation: Participation,
    *,
    tasks: int,
    workers: int,
    assigned_per_task: int | None = None,
    method: str | None = None,
    pilot: Pilot | None = None,
) -> Campaign:
    """Return the campaign to be planned; a long scale is replaced by a coarser one.

    With a pilot, workers have its ability, and truths its labels unless a prior is expected.

    Raises:
        SettingsError: an ability on a scale or beside a pilot, or a value out of range.
        ReportsError: the file of the prior is damaged.
    """
    if pilot is not None:
        if expected.ability is not None:
            raise SettingsError("the ability is that of the pilot", value=expected.ability, hint="Leave it out.")
        expected = replace(expected, ability=pilot.ability)
    objective, crowd = _expected_crowd(alphabet, expected, participation)
    campaign = Campaign(
        objective=objective,
        crowd=crowd,
        tasks=tasks,
        workers=workers,
        assigned_per_task=assigned_per_task,
        prior_public=expected.prior is not None,
        method=method,
    )
    return campaign if pilot is None else with_pilot(campaign, pilot)


def expected_objective(alphabet: Alphabet, expected: Expectation, participation: Participation) -> DesignObjective:
    """Return the design objective of a plan, on the scale of the answers however long; errors as `expected_campaign`.

    On a scale, workers without stated sigmas have those of `DEFAULT_SIGMAS`.
    """
    if isinstance(alphabet, Scale):
        expected = replace(expected, sigmas=_sigmas(alphabet, expected))
    return expected.objective(alphabet, participation)


def _sigmas(scale: Scale, expected: Expectation) -> tuple[float, ...]:
    return expected.sigmas or tuple(share * scale.range for share in DEFAULT_SIGMAS)


def _expected_crowd(
    alphabet: Alphabet, expected: Expectation, participation: Participation
) -> tuple[DesignObjective, LabelCrowd | NumberCrowd]:
    objective = expected_objective(alphabet, expected, participation)
    if not isinstance(alphabet, Scale):
        abilities = beta_abilities(USUAL_ABILITY if expected.ability is None else expected.ability)
        return objective, LabelCrowd(alphabet=alphabet, prior=objective.prior, abilities=abilities)
    sigmas = _sigmas(alphabet, expected)
    coarse = coarsen_scale(alphabet, min(sigmas))
    if coarse != alphabet:
        prior = coarsen_prior(objective.prior, alphabet, coarse)
        worker_model = normal_worker_model(coarse, sigmas)
        objective = replace(objective, alphabet=coarse, prior=prior, worker_model=worker_model)
    return objective, NumberCrowd(alphabet=coarse, prior=objective.prior, sigmas=sigmas)


def plan_data(plan: Plan, expected: Expectation, *, participation_given: bool) -> dict[str, Any]:
    """Return a plan as JSON data, see `docs/reference/json-output.md`."""
    campaign = plan.campaign
    return {
        **campaign_data(campaign, expected, participation_given=participation_given),
        "target_error": plan.target,
        "participation": campaign.participation,
        "assigned_per_task": campaign.assigned_per_task,
        "tasks_per_worker": campaign.cells_per_worker,
        "method": campaign.estimator.name,
        "verdict": verdict(plan),
        "real_sets": real_set_summary() if campaign.shared_mistakes is None else campaign.shared_mistakes.summary,
        "recommended": None if plan.recommended is None else _result_data(plan.recommended),
        "conservative": None if plan.conservative is None else _result_data(plan.conservative),
        "constant_error": plan.constant_error,
        "unprotected": prediction_data(plan.unprotected),
        "unprotected_method": plan.unprotected_method,
        "candidates": [_result_data(result) for result in plan.results],
        "workers_needed": [
            {"epsilon": epsilon, "alternative": alternative_data(found)}
            for epsilon, found in plan.workers_needed.items()
        ],
        "workers_needed_unprotected": alternative_data(plan.workers_needed_unprotected),
        "alternatives": [alternative_data(found) for found in plan.alternatives],
    }


def campaign_data(campaign: Campaign, expected: Expectation, *, participation_given: bool) -> dict[str, Any]:
    """Return what every plan of a campaign states: its size, its assumptions, and the measure of error."""
    crowd = campaign.crowd
    return {
        "assumptions": _assumptions(campaign, expected, participation_given),
        "error_name": crowd.error_name,
        "labels": list(crowd.alphabet.names),
        "tasks": campaign.tasks,
        "workers": campaign.workers,
        "participation_rate": campaign.objective.participation_rate,
        "worker_qualities": crowd.qualities.tolist(),
        "worker_shares": crowd.shares.tolist(),
        "prior_known_to_inference": campaign.prior_public,
    }


def prior_table(crowd: LabelCrowd | NumberCrowd) -> str:
    """Return the prior of a crowd as a CSV table."""
    rows = [f"{name},{share:.12g}" for name, share in zip(crowd.alphabet.names, crowd.prior, strict=True)]
    return "\n".join(["label,probability", *rows]) + "\n"


def _assumptions(campaign: Campaign, expected: Expectation, participation_given: bool) -> list[dict[str, Any]]:
    """Return the assumptions, each with its value and its source: "given" or "default"."""
    crowd, piloted = campaign.crowd, campaign.shared_mistakes is not None
    if isinstance(crowd, LabelCrowd):
        ability = float(crowd.qualities @ crowd.shares)
        workers = _assumption("ability", ability, expected.ability is not None, piloted=piloted)
    else:
        workers = _assumption("sigmas", list(crowd.sigmas), bool(expected.sigmas))
    return [
        workers,
        _assumption("participation_rate", campaign.objective.participation_rate, True),
        _assumption("participation", campaign.participation, participation_given),
        _assumption("prior", crowd.prior.tolist(), campaign.prior_public, piloted=piloted),
    ]


def _assumption(name: str, value: object, given: bool, *, piloted: bool = False) -> dict[str, Any]:
    return {"name": name, "value": value, "source": "given" if given else "pilot" if piloted else "default"}


def _result_data(result: CandidateResult) -> dict[str, Any]:
    return {
        "candidate": result.name,
        "mechanism": result.mechanism.name,
        "epsilon": result.epsilon,
        "method": result.campaign.estimator.name,
        "parameters": parameters(result.mechanism),
        "reports": list(result.mechanism.channel().outputs),
        "same_as": result.same_as,
        **prediction_data(result.prediction),
        "epsilon_per_cell": result.cost.cell_epsilon,
        "epsilon_per_worker": result.cost.worker_epsilon,
        "cells_per_worker": result.cost.cells,
        "bytes_per_worker": result.cost.bytes,
    }


def prediction_data(prediction: Prediction) -> dict[str, Any]:
    """Return a prediction as JSON data, with the error and the interval for real crowds as they are printed."""
    shown = {"shown": expected_error(prediction), "shown_interval": real_interval(prediction)}
    return asdict(prediction) | shown


def alternative_data(found: Alternative | None) -> dict[str, Any] | None:
    """Return a changed campaign as JSON data; None if there is none."""
    if found is None:
        return None
    return {
        "change": found.change,
        "candidate": found.candidate,
        "epsilon": None if found.mechanism is None else found.mechanism.epsilon,
        "workers": found.campaign.workers,
        "method": found.campaign.estimator.name,
        "participation": found.campaign.participation,
        "assigned_per_task": found.campaign.assigned_per_task,
        **prediction_data(found.prediction),
    }


def next_commands(result: CandidateResult, expected: Expectation, prior: Path | None) -> list[str]:
    """Return the command lines that carry out a campaign with a candidate.

    Args:
        result: the candidate.
        expected: public expectation; without sigmas, those of the campaign are used.
        prior: file with the prior of the planned labels; None if inference learns it.
    """
    mechanism = _mechanism_options(result, expected, prior)
    if mechanism is None:
        return [NO_COMMAND]
    infer = ["--method", result.campaign.estimator.name, *([] if prior is None else ["--prior", str(prior)])]
    lines = _lines(result.campaign, mechanism, infer)
    return [shlex.join(["crowdveil", *line]) for line in lines]


def _lines(campaign: Campaign, mechanism: list[str], infer: list[str]) -> list[list[str]]:
    lists = [*TASK_OPTION, "--workers", "workers.csv"]
    assign, assignment = list[list[str]](), list[str]()
    if campaign.assigned_per_task is not None:
        assign = [["data", "assign", *lists, "--per-task", str(campaign.assigned_per_task), "--out", "asked.csv"]]
        assignment = ["--assignment", "asked.csv"]
    perturb = ["perturb", "answers.csv", *lists, *assignment, *mechanism, "--out", "sent"]
    return [*assign, perturb, ["infer", "sent/reports.csv", *infer, "--out", "found"]]


def _mechanism_options(result: CandidateResult, expected: Expectation, prior: Path | None) -> list[str] | None:
    """Return the options of a candidate's mechanism; None if there are none."""
    mechanism, chosen = result.mechanism, list[str]()
    if isinstance(mechanism, QuantizedResponse) and mechanism.cuts:
        chosen = ["--cuts", csv_row(mechanism.alphabet.names[cut] for cut in mechanism.cuts)]
    elif isinstance(mechanism, QuantizedResponse | Designed):
        if result.name.startswith(OTHER_BLOCKS):
            return None
        chosen = _expectation_options(result.campaign, expected, prior)
    return ["--mechanism", mechanism.name, *chosen, *_guarantee_options(result)]


def _expectation_options(campaign: Campaign, expected: Expectation, prior: Path | None) -> list[str]:
    options = ["--participation-rate", f"{campaign.answer_rate:.12g}"]
    if prior is not None:
        options += ["--prior", str(prior)]
    if isinstance(campaign.crowd, NumberCrowd):
        return [*options, "--sigmas", ",".join(f"{sigma:.12g}" for sigma in campaign.crowd.sigmas)]
    mistakes = campaign.shared_mistakes
    ability = expected.ability if mistakes is None else mistakes.pilot.ability
    return options if ability is None else [*options, "--ability", f"{ability:.12g}"]


def _guarantee_options(result: CandidateResult) -> list[str]:
    """Return the options of epsilon, alphabet, and public participation."""
    public = ["--participation", "public"] if result.campaign.participation == "public" else []
    return ["--epsilon", f"{result.epsilon:.12g}", *_alphabet_options(result.campaign.crowd.alphabet), *public]


def _alphabet_options(alphabet: Alphabet) -> list[str]:
    if isinstance(alphabet, Scale):
        step = "" if alphabet.step == 1 else f":{alphabet.step:.12g}"
        return ["--scale", f"{alphabet.low:.12g}:{alphabet.high:.12g}{step}"]
    return ["--labels", csv_row(alphabet.names), *(["--ordered"] if alphabet.ordered else [])]
