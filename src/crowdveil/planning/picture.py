"""A plan as a picture: error against epsilon, one line with a band for each kind of candidate, and what to compare."""

from typing import Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crowdveil.drawing import STYLE, file_bytes
from crowdveil.planning.candidates import LINES, READ_IN_ORDER
from crowdveil.planning.plan import Plan

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
