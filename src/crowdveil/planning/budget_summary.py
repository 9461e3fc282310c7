"""Text and figure of a plan by budgets per worker: findings in sentences, and expected error against the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from crowdveil.channels.rounding import format_bound, format_delta
from crowdveil.planning.plan import MAX_WORKERS
from crowdveil.planning.summary import HEADROOM, error_with_interval, expected_error
from crowdveil.planning.worker_budget import BudgetChoice, BudgetPlan
from crowdveil.plotting import file_bytes, styled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WHOLE = "every worker reports on all tasks"
_COLORS = {"protected": "#1d4ed8", "public": "#0f766e", WHOLE: "#d97706"}


def budget_verdict(plan: BudgetPlan) -> list[str]:
    """Return the findings of a plan by budgets in sentences, the most important first."""
    if plan.target is None:
        best = min(plan.chosen, key=lambda one: one.prediction.error)
        return [f"The least error of this plan: {_described(best)}.", *_comparison(best, plan)]
    if plan.constant_error <= plan.target:
        return [
            f"No answers are needed: the best public constant has an error of {plan.constant_error:.3g}, "
            f"no more than the target {plan.target:g}."
        ]
    least = plan.least_budget
    if least is None:
        budgets = ", ".join(f"{budget:g}" for budget in sorted({one.budget for one in plan.chosen}))
        first = [f"No budget of this plan ({budgets} per worker) meets the target {plan.target:g}."]
    else:
        first = [f"Use {_described(least)}, target {plan.target:g}.", *_comparison(least, plan)]
    return [*first, *_more_workers(plan)]


def privacy_promise(choice: BudgetChoice) -> str:
    """Return epsilon per worker first, then per answer, with the worker's cells and participation."""
    tasks, slack = "task" if choice.cells == 1 else "tasks", _slack(choice.delta)
    return (
        f"epsilon {format_bound(choice.worker_epsilon, 4)}{slack} per worker ({choice.cells:,} assigned {tasks}, "
        f"epsilon {format_bound(choice.cell_epsilon, 4)} per answer, participation {choice.campaign.participation})"
    )


def _slack(delta: float | None) -> str:
    return "" if delta is None else f" at delta {format_delta(delta)}"


def draw_budgets(plan: BudgetPlan, file_format: Literal["svg", "png"]) -> bytes:
    """Return the figure of error against budget as the bytes of an SVG or PNG file."""
    with styled_figure(8.2, 4.4) as figure:
        axes = figure.add_subplot()
        budgets = sorted({one.budget for one in plan.chosen})
        axes.set_xscale("log")
        axes.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
        axes.minorticks_off()
        for participation in dict.fromkeys(one.campaign.participation for one in plan.chosen):
            chosen = [one for one in plan.chosen if one.campaign.participation == participation]
            _draw_line(axes, chosen, f"assigned, {participation}", _COLORS[participation])
        _draw_line(axes, plan.without_assignment, "all tasks", _COLORS[WHOLE])
        axes.axhline(plan.constant_error, color="#475569", ls="--", lw=1.2, label="best public constant")
        axes.axhline(plan.unprotected.error, color="#15803d", ls=":", lw=1.8, label="unprotected")
        if plan.target is not None:
            axes.axhline(plan.target, color="#dc2626", ls="-.", lw=1.2, label="target")
        highest = max(plan.constant_error, *(one.prediction.error for one in plan.without_assignment))
        axes.set_ylim(0, HEADROOM * highest)
        number = plan.campaign.crowd.error_name == "mae"
        axes.set_ylabel("mean absolute error" if number else "share of wrong truths")
        axes.set_xlabel(f"epsilon per worker{_slack(plan.chosen[0].delta)}, whole campaign")
        axes.set_title(f"{plan.campaign.workers:,} workers, {plan.campaign.tasks:,} tasks", fontsize=10)
        axes.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return file_bytes(figure, file_format)


def _draw_line(axes: Axes, choices: tuple[BudgetChoice, ...] | list[BudgetChoice], name: str, color: str) -> None:
    budgets, errors = [one.budget for one in choices], [one.prediction.error for one in choices]
    axes.plot(budgets, errors, marker="o", ms=4, lw=1.8, color=color, label=name)


def _described(choice: BudgetChoice) -> str:
    return (
        f"{choice.name} at {privacy_promise(choice)} with {choice.campaign.workers:,} workers: expected error "
        f"{error_with_interval(choice.prediction)}"
    )


def _comparison(choice: BudgetChoice, plan: BudgetPlan) -> list[str]:
    """Return a sentence on the same budget without assignment."""
    other = next(one for one in plan.without_assignment if one.budget == choice.budget)
    if other.cells == choice.cells:
        return []
    return [
        f"Without assignment the same budget, divided over all {other.cells:,} tasks, has an expected error of "
        f"{expected_error(other.prediction)}."
    ]


def _more_workers(plan: BudgetPlan) -> list[str]:
    """Return the workers needed at each budget that misses the target."""
    return [
        f"More workers: at epsilon {budget:g} per worker "
        + (
            f"even {MAX_WORKERS:,} are not enough."
            if found is None
            else f"about {found.campaign.workers:,}, with {found.candidate} (not simulated)."
        )
        for budget, found in plan.workers_needed.items()
    ]
