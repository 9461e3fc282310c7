"""A plan in sentences: what to use, and where the target cannot be met, what would make it possible."""

from crowdveil.planning.campaign import Campaign
from crowdveil.planning.plan import Plan, Row
from crowdveil.planning.search import MOST_WORKERS, Way, full_assignment, public_participation
from crowdveil.planning.trials import LEVEL, Prediction
from crowdveil.rounding import bound_text


def verdict(plan: Plan) -> list[str]:
    """Return the plan's findings, the most important first."""
    if plan.constant_error <= plan.target:
        return [
            f"Nobody need be asked: the best public constant has an error of {plan.constant_error:.3g}, "
            f"no more than the target {plan.target:g}."
        ]
    return [*_main(plan), *_surely(plan), *_workers(plan), *map(_way, plan.ways)]


def interval(prediction: Prediction) -> str:
    """Return the error with its interval."""
    return f"{prediction.error:.3g} ({prediction.low:.3g} to {prediction.high:.3g})"


def _main(plan: Plan) -> list[str]:
    crowd, row = f"{plan.campaign.workers:,} workers", plan.recommended
    if row is not None:
        below = f"; at a smaller epsilon of those asked for, {crowd} are too few" if plan.workers else ""
        return [
            f"Use {row.line} at epsilon {row.epsilon:g} with {crowd}: expected error {interval(row.prediction)}, "
            f"target {plan.target:g}{below}."
        ]
    best = plan.best
    ways = "no mechanism, in rounds or not," if any(row.campaign.rounds > 1 for row in plan.rows) else "no mechanism"
    said = [
        f"Impossible as asked: with {crowd} {ways} reaches {plan.target:g} at any epsilon asked for. "
        f"The best is {best.line} at epsilon {best.epsilon:g}, expected error {interval(best.prediction)}."
    ]
    return [*said, _unprotected(plan), *_of_no_use(plan)]


def _of_no_use(plan: Plan) -> list[str]:
    """Say which changes of the campaign were tried in vain."""
    tried = {
        "public": (public_participation(plan.campaign), "public participation"),
        "assignment": (full_assignment(plan.campaign), "assigning tasks"),
    }
    found = {way.change for way in plan.ways}
    vain = [name for change, (campaign, name) in tried.items() if campaign is not None and change not in found]
    return [f"Not enough by itself at these epsilons: {', '.join(vain)}."] if vain else []


def _unprotected(plan: Plan) -> str:
    error = (
        f"the unprotected answers of {plan.campaign.workers:,} workers have an error of {plan.unprotected.error:.3g}"
    )
    if plan.unprotected.error <= plan.target:
        return f"A larger epsilon may do: {error}."
    if plan.unprotected_workers is None:
        return f"No epsilon will do: {error}, and even {MOST_WORKERS:,} such workers would not reach the target."
    return (
        f"No epsilon will do: {error}. Without protection it takes about "
        f"{plan.unprotected_workers.campaign.workers:,} workers, with protection more."
    )


def _surely(plan: Plan) -> list[str]:
    if plan.recommended is None or plan.recommended.prediction.high <= plan.target:
        return []
    of_hundred = round(50 * (1 + LEVEL))
    if plan.sure is None:
        return [f"The expected error meets the target; no candidate does so in {of_hundred} of 100 runs."]
    return [f"To meet it in {of_hundred} of 100 runs: {_named(plan.sure)}, {interval(plan.sure.prediction)}."]


def _named(row: Row) -> str:
    return f"{row.line} at epsilon {row.epsilon:g}"


def _workers(plan: Plan) -> list[str]:
    """Say how many workers each missed epsilon takes."""
    said = []
    for epsilon, way in plan.workers.items():
        if way is None:
            said.append(f"More workers: at epsilon {epsilon:g}, none up to {MOST_WORKERS:,} were found to be enough.")
        else:
            said.append(
                f"More workers: at epsilon {epsilon:g} about {way.campaign.workers:,}, with {way.line}, "
                f"expected error {interval(way.prediction)}{_checked(way)}."
            )
    return said


def _way(way: Way) -> str:
    assert way.mechanism is not None
    error = f"{way.line} at epsilon {bound_text(way.mechanism.epsilon)} meets the target, {interval(way.prediction)}"
    if way.change == "public":
        return f"Public participation: if everyone may see who answers what, {error}."
    return f"Assignment: {_assigned(way.campaign)}, {error}."


def _assigned(campaign: Campaign) -> str:
    each = f"{campaign.reporters:,} workers, {campaign.cells:,} tasks to each, who answer {campaign.rate:.0%} of them"
    if not campaign.grouped:
        return f"if every task is publicly assigned to {each}"
    return f"if the tasks are split among groups of {each}, inferred from one by one as {campaign.estimator.name} must"


def _checked(way: Way) -> str:
    return "" if way.prediction.simulated else " (not simulated)"
