"""Plan as JSON data, see `docs/reference/json-output.md`."""

from dataclasses import asdict
from typing import Any

from crowdveil.design.mechanism_from_settings import Expectation, mechanism_parameters_by_name
from crowdveil.planning.campaign import PlannedCampaign
from crowdveil.planning.plan import Alternative, Plan, PlanRow
from crowdveil.planning.plan_sentences import (
    expected_error_text,
    finding_sentences,
    real_crowd_interval,
)
from crowdveil.planning.population import LabelCrowd, NumberCrowd
from crowdveil.planning.prediction import Prediction, real_sets_sentence


def plan_data(plan: Plan, expected: Expectation, *, participation_given: bool, rate_given: bool) -> dict[str, Any]:
    """Return a plan as JSON data, see `docs/reference/json-output.md`.

    Args:
        plan: the plan.
        expected: public expectation.
        participation_given, rate_given: whether somebody stated the participation, and its rate.
    """
    campaign, crowd = plan.campaign, plan.campaign.crowd
    compared = " and ".join(dict.fromkeys(one.campaign.participation for one in plan.results))
    return {
        "assumptions": _assumptions_with_value_and_source(
            campaign, expected, compared, participation_given, rate_given
        ),
        "error_name": crowd.error_name,
        "labels": list(crowd.alphabet.names),
        "tasks": campaign.tasks,
        "workers": campaign.workers,
        "participation_rate": campaign.objective.participation_rate,
        "worker_qualities": crowd.qualities.tolist(),
        "worker_shares": crowd.worker_shares.tolist(),
        "prior_known_to_inference": campaign.prior_public,
        "target_error": plan.target,
        "participation": campaign.participation,
        "assigned_per_task": campaign.assigned_per_task,
        "tasks_per_worker": campaign.cells_per_worker,
        "method": campaign.estimator_of_simulated_fits.name,
        "verdict": finding_sentences(plan),
        "real_sets": real_sets_sentence()
        if campaign.shared_mistakes is None
        else campaign.shared_mistakes.pilot_summary_sentence,
        "recommended": None if plan.recommended is None else _row_data(plan.recommended),
        "constant_error": plan.constant_error,
        "unprotected": prediction_data(plan.unprotected),
        "unprotected_method": plan.unprotected_method,
        "candidates": [_row_data(one) for one in plan.results],
        "without_assignment": [_row_data(one) for one in plan.without_assignment],
        "workers_needed": [
            {"epsilon": position, "alternative": alternative_data(found)}
            for position, found in plan.workers_needed.items()
        ],
        "workers_needed_unprotected": alternative_data(plan.workers_needed_unprotected),
        "alternatives": [alternative_data(found) for found in plan.alternatives],
    }


def prior_csv(crowd: LabelCrowd | NumberCrowd) -> str:
    """Return the prior of a crowd as a CSV table."""
    rows = [f"{name},{share:.12g}" for name, share in zip(crowd.alphabet.names, crowd.prior, strict=True)]
    return "\n".join(["label,probability", *rows]) + "\n"


def _assumptions_with_value_and_source(
    campaign: PlannedCampaign, expected: Expectation, participation: str, participation_given: bool, rate_given: bool
) -> list[dict[str, Any]]:
    """Return the assumptions, each with its value and its source: "given" or "default"."""
    crowd, piloted = campaign.crowd, campaign.shared_mistakes is not None
    if isinstance(crowd, LabelCrowd):
        ability = float(crowd.qualities @ crowd.worker_shares)
        workers = _assumption("ability", ability, expected.ability is not None, piloted=piloted)
    else:
        workers = _assumption("sigmas", list(crowd.sigmas), bool(expected.sigmas))
    return [
        workers,
        _assumption("participation_rate", campaign.objective.participation_rate, rate_given),
        _assumption("participation", participation, participation_given),
        _assumption("prior", crowd.prior.tolist(), campaign.prior_public, piloted=piloted),
    ]


def _assumption(name: str, value: object, given: bool, *, piloted: bool = False) -> dict[str, Any]:
    return {"name": name, "value": value, "source": "given" if given else "pilot" if piloted else "default"}


def _row_data(row: PlanRow) -> dict[str, Any]:
    return {
        "candidate": row.name,
        "mechanism": row.mechanism.name,
        "epsilon": row.epsilon,
        "budget": row.budget,
        "delta": row.cost.delta,
        "method": row.campaign.estimator_of_simulated_fits.name,
        "participation": row.campaign.participation,
        "assigned_per_task": row.campaign.assigned_per_task,
        "parameters": mechanism_parameters_by_name(row.mechanism),
        "reports": list(row.mechanism.channel().outputs),
        "same_as": row.same_as,
        **prediction_data(row.prediction),
        "epsilon_per_cell": row.cost.cell_epsilon,
        "epsilon_per_worker": row.cost.worker_epsilon,
        "cells_per_worker": row.cost.cells,
        "bytes_per_worker": row.cost.bytes,
    }


def prediction_data(prediction: Prediction) -> dict[str, Any]:
    """Return a prediction as JSON data, with the error and the interval for real crowds as they are printed."""
    shown = {
        "shown": expected_error_text(prediction),
        "shown_interval": real_crowd_interval(prediction),
    }
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
        "method": found.campaign.estimator_of_simulated_fits.name,
        "participation": found.campaign.participation,
        "assigned_per_task": found.campaign.assigned_per_task,
        **prediction_data(found.prediction),
    }
