"""A plan in sentences: what to use, and where the target cannot be met, what would make it possible.

A plan as a picture: error against epsilon, one line with a band for each kind of candidate, and what to compare.

Figures of a plan as text, with no more digits than a simulation resolves.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from typing import Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crowdveil.channels.rounding import format_bound
from crowdveil.planning.campaign import Campaign
from crowdveil.planning.candidates import LINES, READ_IN_ORDER
from crowdveil.planning.plan import Plan, Row
from crowdveil.planning.search import MOST_WORKERS, Way, full_assignment, public_participation
from crowdveil.planning.simulation import LEVEL, Prediction
from crowdveil.plotting import STYLE, file_bytes

HEADROOM = 1.15
_USUAL = ("#1d4ed8", "#0f766e", "#d97706", "#c084fc")
COLORS = dict(zip(LINES, (*_USUAL, *_USUAL, "#be185d"), strict=True))
WIDTHS = dict(zip(LINES, (1.4, 1.8, 1.4, 5.0, 1.4, 1.8, 1.4, 5.0, 2.2), strict=True))
"""The designed channel often is one of the others: its line is wide and lies below them."""
STYLES = {line: "--" if line.endswith(READ_IN_ORDER) else "-" for line in LINES}
"""The same reports have one color, and a style for each way to read them."""


def draw(plan: Plan, kind: Literal["svg", "png"]) -> bytes:
    """Return the picture as the bytes of an SVG or PNG file; the same plan gives the same bytes."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.2, 4.4), layout="constrained")
        axes = figure.add_subplot()
        for line in reversed(LINES):
            _line(axes, plan, line)
        _levels(axes, plan)
        number = plan.campaign.crowd.error_name == "mae"
        axes.set_ylabel("mean absolute error" if number else "share of wrong truths")
        axes.set_xlabel(f"epsilon per cell, participation {plan.campaign.participation}")
        size = f"{plan.campaign.workers:,} workers, {plan.campaign.tasks:,} tasks"
        axes.set_title(f"{size}; bands: nine of ten runs, if the crowd is as assumed", fontsize=10)
        epsilons = sorted({row.epsilon for row in plan.rows})
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        # Bands of what was simulated once may be wide; lines and levels say how high the picture is.
        highest = max(plan.constant_error, plan.target, *(row.prediction.error for row in plan.rows))
        axes.set_ylim(0, HEADROOM * highest)
        axes.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return file_bytes(figure, kind)


def _line(axes: Axes, plan: Plan, line: str) -> None:
    rows = [row for row in plan.rows if row.line == line]
    if not rows:
        return
    epsilons, found = [row.epsilon for row in rows], [row.prediction for row in rows]
    (drawn,) = axes.plot(epsilons, [one.error for one in found], marker="o", ms=4, color=COLORS[line], label=line)
    drawn.set(linewidth=WIDTHS[line], linestyle=STYLES[line])
    axes.fill_between(
        epsilons, [one.low for one in found], [one.high for one in found], color=COLORS[line], alpha=0.09, lw=0
    )


def _levels(axes: Axes, plan: Plan) -> None:
    """Draw what does not depend on epsilon, and a ring around the recommendation."""
    axes.axhline(plan.constant_error, color="#475569", ls="--", lw=1.2, label="best public constant")
    axes.axhline(plan.unprotected.error, color="#16a34a", ls=":", lw=1.8, label="unprotected")
    axes.axhline(plan.target, color="#dc2626", ls="-.", lw=1.2, label="target")
    if plan.recommended is not None:
        at = plan.recommended.epsilon, plan.recommended.prediction.error
        axes.plot(*at, "o", ms=13, mfc="none", mec="#dc2626", mew=1.6, ls="none", label="recommended")


DIGITS = 2
"""Significant digits of a predicted error."""


def two_digits(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a number with at most `DIGITS` significant digits, without an exponent.

    Args:
        value: finite.
        rounding: a mode of `decimal`: to nearest, up or down.
    """
    rounded = Context(prec=DIGITS, rounding=rounding).create_decimal(f"{value:.12g}")
    digits = max(0, DIGITS - 1 - rounded.adjusted())
    return f"{rounded:,.{digits}f}" if rounded else "0"


def expected_error(prediction: Prediction, below: str = "less than") -> str:
    """Return the predicted error; where the simulation cannot resolve it, `below` and a bound."""
    if prediction.less_than is not None:
        return f"{below} {two_digits(prediction.less_than, ROUND_CEILING)}"
    return two_digits(prediction.error)


def real_interval(prediction: Prediction) -> str:
    """Return the interval with the model error of real sets, its ends rounded outwards."""
    return f"{two_digits(prediction.real_low, ROUND_FLOOR)} to {two_digits(prediction.real_high, ROUND_CEILING)}"


def assumed_interval(prediction: Prediction) -> str:
    """Return the interval for a crowd as assumed, its ends rounded outwards."""
    return f"{two_digits(prediction.low, ROUND_FLOOR)} to {two_digits(prediction.high, ROUND_CEILING)}"


def verdict(plan: Plan) -> list[str]:
    """Return the plan's findings, the most important first."""
    if plan.constant_error <= plan.target:
        return [
            f"Nobody need be asked: the best public constant has an error of {plan.constant_error:.3g}, "
            f"no more than the target {plan.target:g}."
        ]
    return [*_main(plan), *_surely(plan), *_pilot(plan), *_workers(plan), *map(_way, plan.ways)]


def interval(prediction: Prediction) -> str:
    """Return the predicted error with its interval for real crowds."""
    return f"{expected_error(prediction)} (real crowds {real_interval(prediction)})"


def losses(row: Row) -> str:
    """Return what a candidate costs: epsilon per answer and per worker, with the worker's cells and participation."""
    cells, campaign = f"{row.cost.cells:,}", row.campaign
    if campaign.participation == "public":
        which = f"about {cells} answers"
    else:
        which = f"{cells} assigned cells" if campaign.assigned_per_task is not None else f"{cells} cells"
    return (
        f"epsilon {format_bound(row.cost.cell_epsilon)} per answer and "
        f"{format_bound(row.cost.worker_epsilon)} per worker "
        f"({which}, participation {campaign.participation})"
    )


def _main(plan: Plan) -> list[str]:
    crowd, row = f"{plan.campaign.workers:,} workers", plan.recommended
    if row is not None:
        below = f"; at a smaller epsilon of those asked for, {crowd} are too few" if plan.workers else ""
        return [
            f"Use {row.line} at {losses(row)} with {crowd}: expected error {interval(row.prediction)}, "
            f"target {plan.target:g}{below}."
        ]
    best = plan.best
    ways = "no mechanism, in rounds or not," if any(row.campaign.rounds > 1 for row in plan.rows) else "no mechanism"
    said = [
        f"Impossible as asked: with {crowd} {ways} reaches {plan.target:g} at any epsilon asked for. "
        f"The best is {best.line} at {losses(best)}: expected error {interval(best.prediction)}."
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
        f"the unprotected answers of {plan.campaign.workers:,} workers have an error of "
        f"{expected_error(plan.unprotected)}"
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
    of_hundred, expectation = round(50 * (1 + LEVEL)), "If the crowd is as assumed, the expected error meets the target"
    if plan.sure is None:
        return [f"{expectation}; no candidate does so in {of_hundred} of 100 runs."]
    found = f"{expected_error(plan.sure.prediction)} ({assumed_interval(plan.sure.prediction)})"
    return [f"{expectation}. To meet it in {of_hundred} of 100 runs: {_named(plan.sure)}, {found}."]


def _pilot(plan: Plan) -> list[str]:
    """Advise a pilot where real crowds may miss the target."""
    if plan.recommended is None or plan.recommended.prediction.real_high <= plan.target:
        return []
    return ["Real crowds may miss the target: learn ability and prior from a pilot with known truths, and plan again."]


def _named(row: Row) -> str:
    return f"{row.line} at epsilon {format_bound(row.epsilon)} per answer"


def _workers(plan: Plan) -> list[str]:
    """Say how many workers each missed epsilon takes."""
    said = []
    for epsilon, way in plan.workers.items():
        at = f"More workers: at epsilon {format_bound(epsilon)} per answer"
        if way is None:
            said.append(f"{at}, none up to {MOST_WORKERS:,} were found to be enough.")
        else:
            said.append(
                f"{at} about {way.campaign.workers:,}, with {way.line}, "
                f"expected error {interval(way.prediction)}{_checked(way)}."
            )
    return said


def _way(way: Way) -> str:
    assert way.mechanism is not None
    at = f"{way.line} at epsilon {format_bound(way.mechanism.epsilon)} per answer"
    error = f"{at} meets the target, {interval(way.prediction)}"
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
