"""Plan by budgets per worker as JSON data, and the commands that carry out its choice."""

from pathlib import Path
from typing import Any

from crowdveil.planning import Candidate, CandidateResult
from crowdveil.planning.budget_summary import budget_verdict
from crowdveil.planning.candidates import worker_cost
from crowdveil.planning.worker_budget import BudgetChoice, BudgetPlan
from crowdveil.privacy.mechanism_settings import Expectation, parameters
from crowdveil.workflow.planning import (
    alternative_data,
    campaign_data,
    next_commands,
    prediction_data,
)


def budget_plan_data(plan: BudgetPlan, expected: Expectation, *, participation_given: bool) -> dict[str, Any]:
    """Return a plan by budgets as JSON data, see `docs/reference/json-output.md`."""
    least = plan.least_budget
    stated = campaign_data(plan.campaign, expected, participation_given=participation_given)
    compared = " and ".join(dict.fromkeys(one.campaign.participation for one in plan.chosen))
    for one in stated["assumptions"]:
        if one["name"] == "participation":
            one["value"] = compared
    return {
        **stated,
        "target_error": plan.target,
        "verdict": budget_verdict(plan),
        "recommended": None if least is None else _choice_data(least),
        "constant_error": plan.constant_error,
        "unprotected": prediction_data(plan.unprotected),
        "budgets": [_choice_data(one) for one in plan.chosen],
        "without_assignment": [_choice_data(one) for one in plan.without_assignment],
        "workers_needed": [
            {"budget": budget, "alternative": alternative_data(found)} for budget, found in plan.workers_needed.items()
        ],
    }


def budget_commands(choice: BudgetChoice, expected: Expectation, prior: Path | None) -> list[str]:
    """Return the command lines that carry out a choice.

    Args:
        choice: of the plan.
        expected: public expectation of the plan.
        prior: file with the prior of the planned labels; None if inference learns it.
    """
    result = CandidateResult(
        epsilon=choice.mechanism.epsilon,
        candidate=Candidate(name=choice.name, campaign=choice.campaign, mechanism=choice.mechanism),
        prediction=choice.prediction,
        cost=worker_cost(choice.campaign, choice.mechanism),
        same_as=None,
    )
    return next_commands(result, expected, prior)


def _choice_data(choice: BudgetChoice) -> dict[str, Any]:
    return {
        "budget": choice.budget,
        "delta": choice.delta,
        "epsilon_per_worker": choice.worker_epsilon,
        "tasks_per_worker": choice.cells,
        "epsilon_per_cell": choice.cell_epsilon,
        "participation": choice.campaign.participation,
        "assigned_per_task": choice.campaign.assigned_per_task,
        "candidate": choice.name,
        "mechanism": choice.mechanism.name,
        "method": choice.campaign.estimator.name,
        "parameters": parameters(choice.mechanism),
        **prediction_data(choice.prediction),
    }
