"""Plan of a campaign: expected errors of all candidates, a recommendation, and alternatives if the target is missed."""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from crowdveil.answers.frames import ArrowRows
from crowdveil.channels.channel import Channel
from crowdveil.channels.rounding import format_bound
from crowdveil.display.html import Html, notebook_card, table
from crowdveil.display.svg_pictures import line_chart
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import ChannelMechanism
from crowdveil.planning.bayes_error import SEARCH_CROWDS, report_given_truth
from crowdveil.planning.campaign import PlannedCampaign
from crowdveil.planning.candidates import CANDIDATE_NAMES, Candidate, Cost, candidates, worker_cost
from crowdveil.planning.population import LabelCrowd, NumberCrowd
from crowdveil.planning.prediction import (
    MIN_TASKS,
    OnSimulation,
    Prediction,
    default_simulation_count,
    predict_campaign_error,
    predict_from_bayes_errors,
)

WORTH_ASKING = 0.9
"""Share of the error of the best public constant up to which a campaign is asked."""
EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
"""Default epsilons, in nats per cell."""
CONFIRMATION_EFFORT = 3
"""Factor on the simulated tasks when a recommendation is confirmed."""
EXTRA_SIMULATIONS = 8
"""Simulations expected after those of the candidates, for the progress bar."""
MAX_WORKERS = 1_000_000
"""Workers that a search tries at most."""
MAX_RELATIVE_EXCESS = 2.0
"""Upper limit of the relative excess error in searches; more workers bring estimators closer to the Bayes error."""
SEARCHES, SEARCH_GROWTH = 6, 1.2
"""Searches for a number of workers, each corrected by simulation, and growth of that number between them."""
MAX_CHECK_REPORTS_LABELS, MAX_CHECK_REPORTS_NUMBERS = 1_000_000, 200_000
"""Expected reports of a simulation that checks a search, at most."""

MAX_LINES = 5
"""Candidates in a picture."""

Progress = Callable[[int, int], None]
"""Callback with the number of finished simulations, and the expected total."""
Change = Literal["workers", "public", "assignment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """Prediction and cost of a candidate, at an epsilon per cell or within a budget per worker.

    Attributes:
        epsilon: requested, in nats per cell.
        candidate: name, campaign and mechanism.
        prediction: expected error with intervals.
        cost: for a worker.
        budget: epsilon of a worker over the whole campaign, at most; None in a plan by epsilons per cell.
        same_as: name of an earlier candidate with equivalent reports at this epsilon; None if there is none.
    """

    epsilon: float
    candidate: Candidate
    prediction: Prediction
    cost: Cost
    budget: float | None = None
    same_as: str | None = None

    @property
    def budget_or_epsilon(self) -> float:
        """Place on the axis of the plan: the budget, or the epsilon per cell."""
        return self.epsilon if self.budget is None else self.budget

    @property
    def name(self) -> str:
        """Name of the candidate, one of `CANDIDATE_NAMES`."""
        return self.candidate.name

    @property
    def mechanism(self) -> ChannelMechanism:
        """Mechanism of the devices."""
        return self.candidate.mechanism

    @property
    def campaign(self) -> PlannedCampaign:
        """Campaign with the estimator of the candidate."""
        return self.candidate.campaign

    @property
    def error_then_bayes_error(self) -> tuple[float, float]:
        """Order of candidates: by the expected error, and where the best constant errs less, by the Bayes error."""
        return min(self.prediction.error, self.campaign.crowd.constant_error), self.prediction.known_classes


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Changed campaign that meets the target.

    Attributes:
        change: "workers": more workers; "public": participation not protected; "assignment": tasks assigned.
        campaign: the changed campaign.
        candidate: name of the candidate.
        mechanism: of the devices; None for unprotected answers.
        prediction: its error; `simulated` is 0 if only Bayes errors were used.
    """

    change: Change
    campaign: PlannedCampaign
    candidate: str
    mechanism: ChannelMechanism | None
    prediction: Prediction


ROW_HEADER = ("mechanism", "epsilon", "expected error")


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan(ArrowRows):
    """Result of planning: expected errors by epsilon per cell, or by budget per worker.

    Attributes:
        campaign: as planned.
        target: error wanted; None if a plan by budgets has none.
        constant_error: error of the best public constant.
        unprotected: error without protection, by the best estimator.
        unprotected_method: name of that estimator.
        results: candidates by epsilon, then in the order of `CANDIDATE_NAMES`; or the best choice of each budget and
            participation, by budget.
        without_assignment: best choice of each budget if every worker reports on all tasks, participation protected.
        recommended: cheapest candidate at the smallest epsilon, or the choice of the smallest budget, whose expected
            error meets the target; None if none.
        workers_needed: by missed epsilon or budget, the candidate that needs the fewest workers; None if none is
            enough. Those of budgets are not simulated.
        workers_needed_unprotected: the same without protection, if even that misses the target.
        alternatives: other changes that meet the target, each at its smallest epsilon.
    """

    campaign: PlannedCampaign
    target: float | None
    constant_error: float
    unprotected: Prediction
    unprotected_method: str
    results: tuple[PlanRow, ...]
    recommended: PlanRow | None
    workers_needed: dict[float, Alternative | None]
    without_assignment: tuple[PlanRow, ...] = ()
    workers_needed_unprotected: Alternative | None = None
    alternatives: tuple[Alternative, ...] = ()

    @property
    def by_budget(self) -> bool:
        """Whether the axis is the budget per worker, not the epsilon per cell."""
        return self.results[0].budget is not None

    @property
    def target_or_minus_infinity(self) -> float:
        """The target; minus infinity, which no error meets, without one."""
        return -math.inf if self.target is None else self.target

    @property
    def best(self) -> PlanRow:
        """Candidate with the smallest expected error."""
        return min(self.results, key=lambda result: result.error_then_bayes_error)

    @property
    def reference_errors(self) -> list[tuple[str, float]]:
        """Name and error of the best constant, of unprotected answers, and of the target."""
        target = [] if self.target is None else [("target", self.target)]
        return [("best constant", self.constant_error), ("unprotected", self.unprotected.error), *target]

    def grouped_rows(self) -> dict[str, list[PlanRow]]:
        """Return the results by candidate or, of a plan by budgets, by assignment and participation."""
        found: dict[str, list[PlanRow]] = {}
        for one in self.results:
            found.setdefault(f"assigned, {one.campaign.participation}" if self.by_budget else one.name, []).append(one)
        return found | ({"all tasks": list(self.without_assignment)} if self.without_assignment else {})

    def to_arrow(self) -> pa.Table:
        """Return the candidates: mechanism, epsilon, error, low, high (interval for real crowds), and the exact
        losses per cell and per worker."""
        rows = [
            {
                "mechanism": one.name,
                "epsilon": one.epsilon,
                "error": one.prediction.error,
                "low": one.prediction.real_low,
                "high": one.prediction.real_high,
                "epsilon_per_cell": one.cost.cell_epsilon,
                "epsilon_per_worker": one.cost.worker_epsilon,
            }
            for one in self.results
        ]
        return pa.Table.from_pylist(rows)

    def __repr__(self) -> str:
        """Return what to use, and the number of rows."""
        return f"<Plan: {self._recommendation_and_planned_size()[0]} {len(self.results):,} rows>"

    def __str__(self) -> str:
        """Return the recommendation, and a line for each row; `verdict` says more."""
        return "\n".join(
            [
                *self._recommendation_and_planned_size(),
                *("  ".join(cells) for cells in (ROW_HEADER, *self._candidate_value_and_error_texts())),
            ]
        )

    def _repr_html_(self) -> str:
        """Return the recommendation for a notebook, and expected errors on the axis."""
        return notebook_card(
            "Plan",
            self._recommendation_and_planned_size(),
            table(ROW_HEADER, self._candidate_value_and_error_texts()),
            self.picture(),
        )

    def picture(self) -> Html:
        """Return expected errors by epsilon: the best `MAX_LINES` candidates, constant, unprotected and target."""
        axis = "epsilon per worker" if self.by_budget else "epsilon per answer"
        by_name = [
            (name, [(one.budget_or_epsilon, one.prediction.error) for one in rows])
            for name, rows in self.grouped_rows().items()
        ]
        nearest = sorted(by_name, key=lambda item: min(error for _, error in item[1]))[:MAX_LINES]
        return line_chart(f"Expected error by {axis}", "epsilon", nearest, self.reference_errors)

    def _recommendation_and_planned_size(self) -> list[str]:
        """Return what to use, and the size that was planned."""
        best = self.recommended or self.best
        found = f"{best.name} at epsilon {format_bound(best.epsilon)} per answer, expected error"
        found = f"{found} {best.prediction.error:.3g}"
        advice = f"No candidate meets the target; the best is {found}" if self.recommended is None else f"Use {found}"
        advice = f"The best is {found}." if self.target is None else f"{advice}, target {self.target:g}."
        size = f"{self.campaign.workers:,} workers, {self.campaign.tasks:,} tasks, participation "
        return [advice, size + self.campaign.participation]

    def _candidate_value_and_error_texts(self) -> list[tuple[str, str, str]]:
        """Return the rows under `ROW_HEADER`."""
        return [(one.name, format_bound(one.budget_or_epsilon), f"{one.prediction.error:.3g}") for one in self.results]


class _SimulationCounter:
    """Counter of simulations that reports progress."""

    def __init__(self, expected: int, progress: Progress | None) -> None:
        self.done, self.expected, self.progress = 0, expected, progress

    def __call__(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, max(self.done, self.expected))


def plan_campaign(
    campaign: PlannedCampaign, *, target: float, epsilons: Sequence[float] = EPSILONS, progress: Progress | None = None
) -> Plan:
    """Return the expected errors of all candidates, a recommendation, and alternatives where the target is missed.

    Args:
        campaign: to be planned.
        target: error wanted: share of wrong labels, or mean absolute error in units of the answers.
        epsilons: in nats per cell.
        progress: called after every simulation.

    Raises:
        SettingsError: a target that is not positive, no epsilon, or one that is not accepted.
    """
    if not 0 < target < math.inf:
        raise SettingsError("the target error must be positive", value=target, hint="Every inference has some error.")
    if not epsilons:
        raise SettingsError("a plan needs at least one epsilon", value=tuple(epsilons))
    ascending = tuple(sorted(set(epsilons)))
    by_epsilon = {epsilon: candidates(campaign, epsilon) for epsilon in ascending}
    distinct = sum(len({one.equivalence_key for one in group}) for group in by_epsilon.values())
    counter = _SimulationCounter(default_simulation_count(campaign) * (distinct + 1 + EXTRA_SIMULATIONS), progress)
    plain, unprotected = _best_unprotected_method(campaign, by_epsilon[ascending[0]], counter)
    results, recommended = _cheapest_row_after_confirmation(
        campaign, _predict_all_briefly_above_target(campaign, by_epsilon, target, counter), target, counter
    )
    missed = tuple(epsilon for epsilon in ascending if recommended is None or epsilon < recommended.epsilon)
    return Plan(
        campaign=campaign,
        target=target,
        constant_error=campaign.crowd.constant_error,
        unprotected=unprotected,
        unprotected_method=plain.estimator_of_simulated_fits.name,
        results=tuple(results),
        recommended=recommended,
        workers_needed=_workers_needed(campaign, results, missed, target, counter),
        workers_needed_unprotected=None
        if unprotected.error <= target
        else more_workers(plain, "unprotected", None, unprotected.consensus_position, target, check=counter),
        alternatives=tuple(_alternatives(campaign, missed, target, counter)),
    )


def _best_unprotected_method(
    campaign: PlannedCampaign, group: list[Candidate], counter: OnSimulation
) -> tuple[PlannedCampaign, Prediction]:
    """Return the campaign with the best estimator for unprotected answers, and its prediction."""
    methods = {one.campaign.method: replace(campaign, method=one.campaign.method) for one in group}
    found = [(one, predict_campaign_error(one, None, on_simulation=counter)) for one in methods.values()]
    return min(found, key=lambda pair: pair[1].error)


def _predict_all_briefly_above_target(
    campaign: PlannedCampaign, by_epsilon: dict[float, list[Candidate]], target: float, counter: OnSimulation
) -> list[PlanRow]:
    """Return predictions of all candidates; one simulation each above an epsilon whose interval meets the target."""
    results: list[PlanRow] = []
    for epsilon, group in by_epsilon.items():
        interval_met = any(result.prediction.high <= target for result in results)
        results += predict_group(campaign, epsilon, group, 0.0 if interval_met else target, counter)
    return results


def predict_group(
    campaign: PlannedCampaign,
    epsilon: float,
    group: list[Candidate],
    target: float,
    counter: OnSimulation | None = None,
) -> list[PlanRow]:
    """Return predictions of the candidates at one epsilon; equivalent ones are simulated once.

    Args:
        campaign: to be planned.
        epsilon: in nats per cell.
        group: from `candidates`.
        target: error wanted; see `predict_campaign_error`.
        counter: called for each simulation.
    """
    results: list[PlanRow] = []
    for one in group:
        twin = next((result for result in results if result.candidate.equivalence_key == one.equivalence_key), None)
        results.append(
            PlanRow(
                epsilon=epsilon,
                candidate=one,
                prediction=predict_campaign_error(one.campaign, one.mechanism, target=target, on_simulation=counter)
                if twin is None
                else twin.prediction,
                cost=worker_cost(campaign, one.mechanism),
                same_as=None if twin is None else twin.name,
            )
        )
    return results


def _cost_order(one: PlanRow) -> tuple[float, ...]:
    """Return the order of results: smallest epsilon, then smallest error, and fewest bytes."""
    return one.epsilon, one.prediction.error, one.cost.bytes, CANDIDATE_NAMES.index(one.name)


def _cheapest_row_after_confirmation(
    campaign: PlannedCampaign, results: list[PlanRow], target: float, counter: OnSimulation
) -> tuple[list[PlanRow], PlanRow | None]:
    """Return the cheapest result that meets the target, after it was confirmed by a larger simulation.

    A result that was not simulated in full is simulated again, and the choice is repeated until it stands.
    """
    confirmed: set[tuple[float, str]] = set()
    while True:
        chosen = min((one for one in results if one.prediction.error <= target), key=_cost_order, default=None)
        if chosen is None or (chosen.epsilon, chosen.name) in confirmed:
            return results, chosen
        whole = chosen.prediction.simulated_tasks in (campaign.tasks, campaign.cells_per_worker)
        seeds = default_simulation_count(campaign)
        if whole and chosen.prediction.simulated >= seeds:
            return results, chosen
        found = predict_campaign_error(
            chosen.campaign, chosen.mechanism, seeds=seeds, effort=CONFIRMATION_EFFORT, on_simulation=counter
        )
        key = chosen.epsilon, chosen.candidate.equivalence_key
        twins = [result for result in results if (result.epsilon, result.candidate.equivalence_key) == key]
        confirmed |= {(result.epsilon, result.name) for result in twins}
        results = [replace(result, prediction=found) if result in twins else result for result in results]


def _workers_needed(
    campaign: PlannedCampaign,
    results: list[PlanRow],
    missed: tuple[float, ...],
    target: float,
    counter: OnSimulation,
) -> dict[float, Alternative | None]:
    """Return, for every missed epsilon, the candidate that needs the fewest workers.

    It is checked by simulation; for numbers, which take longer, at the largest epsilon only.
    """
    needed: dict[float, Alternative | None] = {}
    for epsilon in missed:
        check = epsilon == missed[-1] or isinstance(campaign.crowd, LabelCrowd)
        distinct = [result for result in results if result.epsilon == epsilon and result.same_as is None]
        best: Alternative | None = None
        for one in distinct:
            fewer = more_workers(
                *_arguments_of_worker_search(one),
                target,
                below=MAX_WORKERS + 1 if best is None else best.campaign.workers,
            )
            if fewer is not None:
                result, best = one, fewer
        needed[epsilon] = (
            more_workers(*_arguments_of_worker_search(result), target, check=counter) if best and check else best
        )
    return needed


def _arguments_of_worker_search(result: PlanRow) -> tuple[PlannedCampaign, str, ChannelMechanism, float]:
    return result.campaign, result.name, result.mechanism, result.prediction.consensus_position


def _alternatives(
    campaign: PlannedCampaign, missed_epsilons: tuple[float, ...], target: float, counter: OnSimulation
) -> list[Alternative]:
    """Return public participation and assignment, if they meet the target at a missed epsilon."""
    changes: dict[Change, PlannedCampaign | None] = {
        "public": campaign.public_unassigned_campaign(),
        "assignment": campaign.with_assigned_as_answered(),
    }
    found = [
        smallest_epsilon(name, one, target, missed_epsilons, counter)
        for name, one in changes.items()
        if one is not None
    ]
    return [one for one in found if one is not None]


def more_workers(
    campaign: PlannedCampaign,
    candidate: str,
    mechanism: ChannelMechanism | None,
    relative_excess: float,
    target: float,
    *,
    below: int = MAX_WORKERS + 1,
    check: OnSimulation | None = None,
) -> Alternative | None:
    """Return the campaign with the fewest workers that meets the target; None if it needs `below` or more.

    Args:
        campaign: one that misses the target; assigned workers per task grow in proportion.
        candidate: name of the candidate.
        mechanism: of the devices; None for unprotected answers.
        relative_excess: position of the estimator between the Bayes errors, see `Prediction`.
        target: error wanted.
        below: upper limit, exclusive, of the workers.
        check: simulate the result, search again if it misses the target, and call this after each simulation.
    """
    channel = None if mechanism is None else mechanism.channel()
    fewest, excess = campaign.workers, min(max(relative_excess, 0.0), MAX_RELATIVE_EXCESS)
    for _ in range(SEARCHES):
        workers = _fewest_workers_by_bayes_errors(campaign, channel, target, excess, fewest, below)
        if workers is None:
            return None
        changed = campaign.with_worker_count(workers)
        simulate = check is not None and _is_simulation_affordable(changed, channel)
        found = (
            predict_campaign_error(changed, mechanism, seeds=2, on_simulation=check)
            if simulate
            else predict_from_bayes_errors(changed, channel, excess)
        )
        if not simulate or found.error <= target:
            return Alternative(
                change="workers", campaign=changed, candidate=candidate, mechanism=mechanism, prediction=found
            )
        fewest, excess = (
            int(SEARCH_GROWTH * workers),
            max(found.consensus_position, excess * 1.25, 0.1),
        )
    return None


def smallest_epsilon(
    change: Change,
    campaign: PlannedCampaign,
    target: float,
    epsilons: tuple[float, ...],
    on_simulation: OnSimulation | None = None,
) -> Alternative | None:
    """Return the smallest epsilon at which a changed campaign meets the target, by simulation; None if none does.

    Candidates whose Bayes error with known classes misses the target are not simulated.
    """
    for epsilon in epsilons:
        tried = []
        for one in candidates(campaign, epsilon, without_designed=True):
            if one.equivalence_key in tried:
                continue
            bayes = predict_from_bayes_errors(one.campaign, one.mechanism.channel(), 0.0, crowds=SEARCH_CROWDS)
            if bayes.known_classes > target:
                continue
            tried.append(one.equivalence_key)
            found = predict_campaign_error(one.campaign, one.mechanism, on_simulation=on_simulation)
            if found.error <= target:
                return Alternative(
                    change=change, campaign=one.campaign, candidate=one.name, mechanism=one.mechanism, prediction=found
                )
    return None


def _fewest_workers_by_bayes_errors(
    campaign: PlannedCampaign, channel: Channel | None, target: float, relative_excess: float, fewest: int, below: int
) -> int | None:
    """Return the smallest round number between the limits that meets the target by Bayes errors, by bisection."""
    sizes = [workers for workers in _numbers_of_two_significant_digits() if fewest < workers < below]

    def meets(workers: int) -> bool:
        changed = campaign.with_worker_count(workers)
        return predict_from_bayes_errors(changed, channel, relative_excess, crowds=SEARCH_CROWDS).error <= target

    if not (sizes and meets(sizes[-1])):
        return None
    return sizes[bisect_left(sizes, True, key=meets)]


def _numbers_of_two_significant_digits() -> list[int]:
    """Return numbers with two significant digits, up to `MAX_WORKERS`."""
    digits = range(10, 100)
    return [*range(1, 10), *(d * 10**n for n in range(6) for d in digits if d * 10**n <= MAX_WORKERS)]


def _is_simulation_affordable(campaign: PlannedCampaign, channel: Channel | None) -> bool:
    """Return whether a simulation of `MIN_TASKS` tasks has few enough reports."""
    most = MAX_CHECK_REPORTS_NUMBERS if isinstance(campaign.crowd, NumberCrowd) else MAX_CHECK_REPORTS_LABELS
    table = report_given_truth(campaign.crowd.answer_probabilities(), campaign.answered_cell_share, channel)
    report_rate = 1 - float(np.tensordot(campaign.crowd.worker_shares, table[:, :, -1], axes=1).mean())
    return MIN_TASKS * campaign.reporters_per_task * report_rate <= most
