"""Text of a plan: findings in sentences, and rounded errors."""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context

from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import CERTAIN, format_bound, format_delta, percent_rounded_up
from crowdveil.hints import advice
from crowdveil.planning.campaign import PlannedCampaign
from crowdveil.planning.candidates import Cost
from crowdveil.planning.plan import MAX_WORKERS, Alternative, Plan, PlanRow
from crowdveil.planning.population import NumberCrowd
from crowdveil.planning.prediction import Prediction
from crowdveil.privacy.largest_posterior import sentences_on_adversary_certainty

DIGITS = 2
"""Significant digits of a predicted error."""


def two_digits(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a number with at most `DIGITS` significant digits, without an exponent.

    Args:
        value: finite.
        rounding: mode of `decimal`: to nearest, up or down.
    """
    rounded = Context(prec=DIGITS, rounding=rounding).create_decimal(f"{value:.12g}")
    digits = max(0, DIGITS - 1 - rounded.adjusted())
    return f"{rounded:,.{digits}f}" if rounded else "0"


def expected_error_text(prediction: Prediction, below: str = "less than") -> str:
    """Return the predicted error; if the simulation cannot resolve it, `below` and an upper bound."""
    if prediction.less_than is not None:
        return f"{below} {two_digits(prediction.less_than, ROUND_CEILING)}"
    return two_digits(prediction.error)


def real_crowd_interval(prediction: Prediction) -> str:
    """Return the interval for real crowds, its ends rounded outwards."""
    return f"{two_digits(prediction.real_low, ROUND_FLOOR)} to {two_digits(prediction.real_high, ROUND_CEILING)}"


def error_with_interval_text(prediction: Prediction) -> str:
    """Return the predicted error with its interval for real crowds."""
    return f"{expected_error_text(prediction)} (real crowds {real_crowd_interval(prediction)})"


def finding_sentences(plan: Plan) -> list[str]:
    """Return the findings of a plan in sentences, the most important first."""
    if plan.constant_error <= plan.target_or_minus_infinity:
        return [
            f"No answers are needed: the same answer for every task has an error of {plan.constant_error:.3g}, "
            f"no more than the target {plan.target_or_minus_infinity:g}."
        ]
    if plan.by_budget:
        return [
            *_chosen_budget_sentences(plan),
            *_warning_of_weak_guarantee(plan),
            *_prior_advice(plan),
            *_more_workers_sentences(plan),
        ]
    return [
        *_recommendation_sentences(plan),
        *_warning_of_weak_guarantee(plan),
        *_prior_advice(plan),
        *_pilot_advice(plan),
        *_more_workers_sentences(plan),
        *map(_alternative_sentence, plan.alternatives),
    ]


def _warning_of_weak_guarantee(plan: Plan) -> list[str]:
    """Return what the recommended epsilon of a worker means where it promises nothing, and what lowers it."""
    if plan.recommended is None:
        return []
    cost = plan.recommended.cost
    worker = Guarantee(epsilon=cost.worker_epsilon, delta=cost.delta or 0.0, unit="worker")
    if percent_rounded_up(worker.largest_guess_probability) != CERTAIN:
        return []
    meaning = sentences_on_adversary_certainty(Guarantee(epsilon=cost.cell_epsilon), worker)[0]
    named = advice(" ({assigned_per_task})")
    return [
        f"Warning: {meaning} Fewer tasks for each of more workers{named}, a smaller epsilon, or a "
        "larger target error lower it."
    ]


def _chosen_budget_sentences(plan: Plan) -> list[str]:
    """Return the choice of the smallest budget that meets the target, or that with the least error without one."""
    best = plan.best if plan.target is None else plan.recommended
    if best is None:
        budgets = ", ".join(f"{budget:g}" for budget in sorted({one.budget_or_epsilon for one in plan.results}))
        return [f"No budget of this plan ({budgets} per worker) meets the target {plan.target_or_minus_infinity:g}."]
    choice = _candidate_privacy_and_error_text(best, f"{best.campaign.workers:,} workers")
    first = (
        f"The least error of this plan: {choice}." if plan.target is None else f"Use {choice}, target {plan.target:g}."
    )
    whole = next(one for one in plan.without_assignment if one.budget == best.budget)
    if whole.cost.cells == best.cost.cells:
        return [first]
    return [
        first,
        f"Without assignment the same budget, divided over all {whole.cost.cells:,} tasks, has an expected error of "
        f"{expected_error_text(whole.prediction)}.",
    ]


def _candidate_privacy_and_error_text(row: PlanRow, crowd: str) -> str:
    error = error_with_interval_text(row.prediction)
    return f"{row.name} at {row_epsilon_text(row)} with {crowd}: expected error {error}"


def _delta_clause(cost: Cost) -> str:
    return "" if cost.delta is None else f" at delta {format_delta(cost.delta)}"


def row_epsilon_text(row: PlanRow) -> str:
    """Return epsilon per answer and per worker, the worker's first within a budget, with cells and participation."""
    cost, campaign = row.cost, row.campaign
    if row.budget is not None:
        tasks = f"{cost.cells:,} assigned task{'s' * (cost.cells != 1)}"
        return (
            f"epsilon {format_bound(cost.worker_epsilon, 4)}{_delta_clause(cost)} per worker ({tasks}, "
            f"epsilon {format_bound(cost.cell_epsilon, 4)} per answer, participation {campaign.participation})"
        )
    if campaign.participation == "public":
        which = f"about {cost.cells:,} answers"
    else:
        which = f"{cost.cells:,} {'assigned ' * (campaign.assigned_per_task is not None)}cells"
    return (
        f"epsilon {format_bound(cost.cell_epsilon)} per answer and {format_bound(cost.worker_epsilon)} per worker "
        f"({which}, participation {campaign.participation})"
    )


def _recommendation_sentences(plan: Plan) -> list[str]:
    crowd, result = f"{plan.campaign.workers:,} workers", plan.recommended
    if result is not None:
        smaller = "; a smaller epsilon of this plan needs more workers" if plan.workers_needed else ""
        use = _candidate_privacy_and_error_text(result, crowd)
        return [f"Use {use}, target {plan.target_or_minus_infinity:g}{smaller}."]
    best = plan.best
    impossible = (
        f"The target cannot be met: with {crowd} no mechanism of this plan reaches "
        f"{plan.target_or_minus_infinity:g} at any of its epsilons. "
        f"The best is {best.name} at {row_epsilon_text(best)}: expected error "
        f"{error_with_interval_text(best.prediction)}."
    )
    return [impossible, _more_epsilon_sentence(plan), *_insufficient_changes(plan)]


def _insufficient_changes(plan: Plan) -> list[str]:
    """Return a sentence on the changes of the campaign that miss the target too, if any."""
    tried = {
        "public": (plan.campaign.public_unassigned_campaign(), "public participation"),
        "assignment": (plan.campaign.with_assigned_as_answered(), "assigning tasks"),
    }
    found = {alternative.change for alternative in plan.alternatives}
    missed = [name for change, (campaign, name) in tried.items() if campaign is not None and change not in found]
    return [f"Not enough by itself at these epsilons: {', '.join(missed)}."] if missed else []


def _more_epsilon_sentence(plan: Plan) -> str:
    error = (
        f"the unprotected answers of {plan.campaign.workers:,} workers have an error of "
        f"{expected_error_text(plan.unprotected)}"
    )
    if plan.unprotected.error <= plan.target_or_minus_infinity:
        return f"A larger epsilon may be enough: {error}."
    if plan.workers_needed_unprotected is None:
        return f"No epsilon is enough: {error}, and even {MAX_WORKERS:,} such workers would miss the target."
    return (
        f"No epsilon is enough: {error}. Without protection it needs about "
        f"{plan.workers_needed_unprotected.campaign.workers:,} workers, with protection more."
    )


def _prior_advice(plan: Plan) -> list[str]:
    """Return the advice to give a prior of numbers: without one no table is chosen for them."""
    campaign = plan.best.campaign
    if campaign.prior_public or not isinstance(campaign.crowd, NumberCrowd):
        return []
    return [
        "If you know how truths are spread, such as the shares of last term's grades, "
        f"give them{advice(' by {prior}')}: a table that is chosen for them often errs less."
    ]


def _pilot_advice(plan: Plan) -> list[str]:
    """Return the advice to run a pilot, if real crowds may miss the target."""
    if plan.recommended is None or plan.recommended.prediction.real_high <= plan.target_or_minus_infinity:
        return []
    mistakes, miss = plan.campaign.shared_mistakes, "Real crowds may miss the target"
    if mistakes is None:
        return [f"{miss}: ask for answers to about 50 random tasks with known truths, and plan again with this pilot."]
    return [
        f"{miss}." if mistakes.pilot.known else (f"{miss}: have experts label the tasks of the pilot, and plan again.")
    ]


def _more_workers_sentences(plan: Plan) -> list[str]:
    """Return the number of workers needed at every missed epsilon or budget."""
    sentences = []
    for position, found in plan.workers_needed.items():
        unit = "worker" if plan.by_budget else "answer"
        at = f"More workers: at epsilon {format_bound(position)} per {unit}"
        if found is None:
            sentences.append(f"{at}, even {MAX_WORKERS:,} are not enough.")
        else:
            checked = "" if found.prediction.simulated else " (not simulated)"
            sentences.append(
                f"{at} about {found.campaign.workers:,}, with {found.candidate}, "
                f"expected error {error_with_interval_text(found.prediction)}{checked}."
            )
    return sentences


def _alternative_sentence(found: Alternative) -> str:
    assert found.mechanism is not None
    at = f"{found.candidate} at epsilon {format_bound(found.mechanism.epsilon)} per answer"
    meets = f"{at} meets the target, {error_with_interval_text(found.prediction)}"
    if found.change == "public":
        return f"Public participation: if everyone may know who answers which task, {meets}."
    return f"Assignment: {_assignment_clause(found.campaign)}, {meets}."


def _assignment_clause(campaign: PlannedCampaign) -> str:
    each = (
        f"{campaign.reporters_per_task:,} workers, {campaign.cells_per_worker:,} tasks to each, who answer "
        f"{campaign.answered_cell_share:.0%} of them"
    )
    if not campaign.fits_worker_groups_separately:
        return f"if every task is publicly assigned to {each}"
    needs = f"each fitted alone as {campaign.estimator_of_simulated_fits.name} needs"
    return f"if the tasks are split among groups of {each}, {needs}"
