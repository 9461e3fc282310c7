"""Least error at a budget per worker: tasks of a worker, epsilon per answer, participation and mechanism together.

Each worker is publicly assigned k tasks and reports on these alone, so that the budget E gives E / k to each cell. All
k cells are charged, answered or not, under protected and under public participation: the promise per worker holds
whatever the worker does. Choices are ranked by their Bayes errors; the best are simulated.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from crowdveil.channels.guarantee import Participation
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.budget_per_cell import SHRINK
from crowdveil.planning.bayes_error import SEARCH_CROWDS
from crowdveil.planning.campaign import PlannedCampaign
from crowdveil.planning.candidates import Candidate, candidates, worker_cost
from crowdveil.planning.plan import Alternative, Plan, PlanRow, Progress, more_workers
from crowdveil.planning.prediction import predict_campaign_error, predict_from_bayes_errors
from crowdveil.privacy.composition import cell_epsilon

BUDGETS = (1.0, 2.0, 5.0, 10.0)
"""Default budgets, in nats per worker and campaign."""
LARGEST_CELL_EPSILON = 8.0
"""Epsilon per cell beyond which more hardly changes a report; the rest of a budget is then not spent."""
SIMULATED_CHOICES = 3
"""Choices per budget that are simulated."""
RANKING_EXCESS = 0.5
"""Position between the Bayes errors (known and unknown worker classes) by which choices are ranked."""


def plan_of_worker_budgets(
    campaign: PlannedCampaign,
    budgets: Sequence[float] = BUDGETS,
    *,
    target: float | None = None,
    participations: Sequence[Participation] = ("protected",),
    delta: float | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Return the least expected error for each budget per worker.

    Args:
        campaign: to be planned, without an assignment.
        budgets: epsilons of a worker over the whole campaign, in nats.
        target: error wanted.
        participations: those compared.
        delta: at which the budgets hold, for all cells of a worker together; None for the sum of epsilons.
        progress: called with the number of finished choices, and their total.

    Raises:
        SettingsError: a budget or target that is not positive and finite, or a campaign with an assignment.
    """
    _require_positive_budgets(campaign, budgets, target)
    ascending = sorted(set(budgets))
    variants = {p: replace(campaign, objective=replace(campaign.objective, participation=p)) for p in participations}
    protected = replace(campaign, objective=replace(campaign.objective, participation="protected"))
    requests = [(variant, budget, False) for variant in variants.values() for budget in ascending]
    requests += [(protected, budget, True) for budget in ascending]
    found = list[PlanRow]()
    for done, (variant, budget, whole) in enumerate(requests):
        if progress is not None:
            progress(done, len(requests))
        assigned = [variant] if whole else [with_task_load(variant, load) for load in compared_task_loads(variant)]
        found.append(best_plan_row(assigned, budget, delta))
    count = len(ascending)
    by_participation = [
        _with_smaller_better_budgets(found[at : at + count]) for at in range(0, len(found) - count, count)
    ]
    chosen = tuple(choice for same_budget in zip(*by_participation, strict=True) for choice in same_budget)
    return Plan(
        campaign=campaign,
        target=target,
        constant_error=campaign.crowd.constant_error,
        unprotected=predict_campaign_error(campaign, None),
        unprotected_method=campaign.estimator_of_simulated_fits.name,
        results=chosen,
        without_assignment=tuple(found[-count:]),
        recommended=next((one for one in chosen if target is not None and one.prediction.error <= target), None),
        workers_needed={} if target is None else _more_workers_where_target_missed(by_participation[0], target),
    )


def _require_positive_budgets(campaign: PlannedCampaign, budgets: Sequence[float], target: float | None) -> None:
    if not budgets or not all(0 < budget < math.inf for budget in budgets):
        raise SettingsError("budgets per worker must be positive", value=tuple(budgets), hint="Such as 1, 2, 5 and 10.")
    if target is not None and not 0 < target < math.inf:
        raise SettingsError("the target error must be positive", value=target, hint="Every inference has some error.")
    if campaign.assigned_per_task is not None:
        raise SettingsError(
            "budgets are planned over all assignments",
            value=campaign.assigned_per_task,
            hint="Leave out the assigned workers per task.",
        )


def _more_workers_where_target_missed(chosen: Sequence[PlanRow], target: float) -> dict[float, Alternative | None]:
    """Return more workers for each budget that misses the target; each keeps its tasks and its epsilon."""
    return {
        one.budget_or_epsilon: more_workers(
            one.campaign, one.name, one.mechanism, one.prediction.consensus_position, target
        )
        for one in chosen
        if one.prediction.error > target
    }


def compared_task_loads(campaign: PlannedCampaign) -> tuple[int, ...]:
    """Return numbers of assigned tasks per worker to be compared: 1, 2, 3, 5, 7, 10, 15, ... and all tasks.

    Each task has at least one worker, and each worker at least one task.
    """
    tasks, workers = campaign.tasks, campaign.workers
    steps = sorted({round(size * 10**power) for power in range(7) for size in (1, 1.5, 2, 3, 5, 7)})
    # Loads that give a task the same number of workers are one assignment.
    assigned = {workers * load // tasks: load for load in reversed(steps) if load < tasks}
    return (*sorted(load for count, load in assigned.items() if count * tasks >= workers), tasks)


def with_task_load(campaign: PlannedCampaign, load: int) -> PlannedCampaign:
    """Return the campaign with at most `load` tasks assigned to each worker, all tasks equally often."""
    if load >= campaign.tasks:
        return campaign
    return replace(campaign, assigned_per_task=campaign.workers * load // campaign.tasks)


def largest_cell_count(campaign: PlannedCampaign) -> int:
    """Return the cells of the worker with the most: all tasks, or the assigned ones dealt out evenly."""
    if campaign.assigned_per_task is None:
        return campaign.tasks
    return -(-campaign.tasks * campaign.assigned_per_task // campaign.workers)


def best_plan_row(variants: Sequence[PlannedCampaign], budget: float, delta: float | None = None) -> PlanRow:
    """Return the choice with the least expected error among the simulated ones.

    Args:
        variants: the campaign with each assignment to be compared.
        budget: epsilon of a worker over the whole campaign, in nats.
        delta: at which the budget holds; None for the sum of epsilons.

    Raises:
        SettingsError: the epsilon of a cell is not accepted.
    """
    ranked = sorted(_candidates_with_rough_errors(variants, budget, delta), key=lambda pair: pair[0])
    simulated = ranked[: SIMULATED_CHOICES if len(variants) > 1 else 1]
    found = [
        (predict_campaign_error(one.campaign, one.mechanism), largest_cell_count(one.campaign), one)
        for _, one in simulated
    ]
    prediction, cells, best = min(found, key=lambda choice: (choice[0].error, choice[1]))
    return PlanRow(
        epsilon=best.mechanism.epsilon,
        candidate=best,
        prediction=prediction,
        cost=worker_cost(best.campaign, best.mechanism, cells=cells, delta=delta),
        budget=budget,
    )


def _candidates_with_rough_errors(
    variants: Sequence[PlannedCampaign], budget: float, delta: float | None
) -> Iterator[tuple[float, Candidate]]:
    """Yield candidates with a rough error from Bayes errors, equivalent ones once."""
    for variant in variants:
        seen, cells = set[object](), largest_cell_count(variant)
        if delta is None:
            epsilon = min(budget / cells * SHRINK, LARGEST_CELL_EPSILON)
        else:
            epsilon = cell_epsilon(budget, cells, delta, LARGEST_CELL_EPSILON)
        for one in candidates(variant, epsilon, without_designed=True):
            if one.equivalence_key not in seen:
                seen.add(one.equivalence_key)
                channel = one.mechanism.channel()
                bayes = predict_from_bayes_errors(one.campaign, channel, RANKING_EXCESS, crowds=SEARCH_CROWDS)
                yield bayes.error, one


def _with_smaller_better_budgets(chosen: Sequence[PlanRow]) -> tuple[PlanRow, ...]:
    """Return the choices, each replaced by that of a smaller budget whose error is less: the rest is not spent."""
    best = list[PlanRow]()
    for one in chosen:
        keep = best and best[-1].prediction.error < one.prediction.error
        best.append(replace(best[-1], budget=one.budget) if keep else one)
    return tuple(best)
