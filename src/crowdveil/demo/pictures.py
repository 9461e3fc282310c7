"""Plots of the demo as inline SVG: error by epsilon, worker abilities, claimed and exact epsilon."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.rounding import format_bound
from crowdveil.demo.crowds import EPSILONS, DemoCrowd
from crowdveil.demo.trials import (
    ASSIGNED,
    CHANNEL_SUFFIX,
    PROTECTED,
    QUALITY_EPSILON,
    Result,
    Row,
    has_enough_answers,
    pearson,
)
from crowdveil.plotting import file_bytes, styled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NO_MODEL_COLORS = ("#b45309", "#d97706", "#f0a848", "#9a3412")
CHANNEL_COLORS = ("#0f766e", "#14b8a6", "#1d4ed8", "#7c3aed", "#0891b2", "#4f46e5")
ASSIGNED_COLOR = "#be185d"
INFINITE_WIDTH = 1.12


def error_picture(crowd: DemoCrowd, results: Sequence[Result]) -> str:
    """Plot error by epsilon for every method with protected participation, the constant and unprotected answers.

    A dashed line is the error of the reported method on assigned cells.
    """
    rows = [row for result in results for row in result.rows if row.crowd == crowd.name]
    private = [row for row in rows if row.participation == PROTECTED and row.mechanism in _curves(crowd)]
    with styled_figure(6.6, 5.2) as figure:
        axes = figure.add_subplot()
        for label, color, points in _lines(private):
            axes.plot(*zip(*points, strict=True), marker="o", ms=4.5, lw=1.8, color=color, label=label)
        assigned = [
            row
            for row in rows
            if row.participation == ASSIGNED and row.method == reported_method(crowd) + CHANNEL_SUFFIX
        ]
        if assigned:
            points = [(row.requested or 0.0, row.error) for row in assigned]
            name = f"{reported_method(crowd)}{CHANNEL_SUFFIX}, assigned cells"
            axes.plot(*zip(*points, strict=True), marker="s", ms=4, lw=1.8, ls="--", color=ASSIGNED_COLOR, label=name)
        best = min((row for row in rows if row.requested is None), key=lambda row: row.error)
        constant = rows[0].constant_error
        axes.axhline(constant, color="#475569", ls="--", lw=1.2, label=f"best constant ({rows[0].constant})")
        axes.axhline(best.error, color="#16a34a", ls=":", lw=1.6, label=f"unprotected ({best.method})")
        axes.set_ylim(bottom=0)
        axes.set_xticks(EPSILONS)
        axes.set_xlabel("epsilon per cell, participation protected")
        axes.set_ylabel("share of wrong truths" if rows[0].error_name == "error_rate" else "mean absolute error")
        axes.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
        return _svg(figure, f"Error by epsilon on {crowd.title}")


def reported_method(crowd: DemoCrowd) -> str:
    """Return the channel-aware method of the summary."""
    return "dawid-skene" if crowd.error == "error_rate" else "gaussian"


def _curves(crowd: DemoCrowd) -> tuple[str, ...]:
    """Return the mechanisms in the plot of a crowd."""
    if crowd.error == "error_rate":
        return ("randomized-response",)
    return ("randomized-response", "laplace", "matrix-factorization", "matrix-factorization-published", "designed")


def _lines(rows: Sequence[Row]) -> list[tuple[str, str, list[tuple[float, float]]]]:
    """Return label, color (warm without a noise model) and points (epsilon, error) of each method."""
    several = len({row.mechanism for row in rows}) > 1
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    warm: dict[tuple[str, str], bool] = {}
    for row in rows:
        key = (row.mechanism, row.method)
        found.setdefault(key, []).append((row.requested or 0.0, row.error))
        warm[key] = not row.channel_used
    colors = {False: iter(CHANNEL_COLORS * 2), True: iter(NO_MODEL_COLORS * 2)}
    return [
        (f"{key[0]}, {key[1]}" if several else key[1], next(colors[warm[key]]), sorted(points))
        for key, points in found.items()
    ]


def worker_picture(crowd: DemoCrowd, results: Sequence[Result]) -> str:
    """Plot each worker's ability inferred from reports against the one inferred from unprotected answers."""
    method = "dawid-skene"
    clean, private = _qualities(crowd, results, method)
    shown = has_enough_answers(crowd.answers, clean, private)
    with styled_figure(4.2, 4.2) as figure:
        axes = figure.add_subplot()
        sizes = 6 + 24 * np.sqrt(crowd.answers.per_worker[shown] / max(crowd.answers.per_worker.max(), 1))
        axes.scatter(clean[shown], private[shown], s=sizes, color="#0f766e", alpha=0.45, lw=0)
        axes.axline((0.5, 0.5), slope=1, color="#8a94a3", lw=0.8)
        axes.set_xlim(0, 1.02)
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("ability, from unprotected answers")
        axes.set_ylabel(f"ability, from reports at epsilon {QUALITY_EPSILON:g}")
        axes.set_title(
            f"{int(shown.sum())} workers, correlation {pearson(clean[shown], private[shown]):.2f}", fontsize=10
        )
        return _svg(figure, f"Worker ability on {crowd.title}")


def _qualities(
    crowd: DemoCrowd, results: Sequence[Result], method: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    clean = private = np.full(len(crowd.answers.workers), np.nan)
    for result in results:
        mechanism = result.trial.mechanism
        if result.trial.crowd.name != crowd.name:
            continue
        if mechanism is None:
            clean = result.qualities.get(method, clean)
        elif (mechanism.name, mechanism.epsilon, mechanism.participation) == (
            "randomized-response",
            QUALITY_EPSILON,
            PROTECTED,
        ) and result.trial.assignment is None:
            private = result.qualities.get(method + CHANNEL_SUFFIX, private)
    return clean, private


def claims_picture(rows: Sequence[Row], epsilon: float) -> str:
    """Plot the exact epsilon of every mechanism with the same claimed epsilon per cell."""
    requested = {
        (row.mechanism, row.participation, row.crowd): row
        for row in rows
        if row.requested and _equals(row.claimed, epsilon)
    }
    shown = sorted(requested.values(), key=lambda row: (row.exact or 0.0, row.mechanism, row.crowd))
    finite = [row.exact for row in shown if row.exact is not None and math.isfinite(row.exact)]
    widest = max(finite, default=epsilon)
    with styled_figure(8.4, 0.9 + 0.27 * len(shown)) as figure:
        axes = figure.add_subplot()
        for place, row in enumerate(shown):
            _claim_bar(axes, place, row, epsilon, widest)
        axes.set_yticks(
            range(len(shown)), [f"{r.mechanism}, {r.participation}  ({r.crowd})" for r in shown], fontsize=8.5
        )
        axes.axvline(epsilon, color="#475569", ls="--", lw=1.2)
        axes.set_xlim(0, widest * 1.25)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(f"exact epsilon per cell where {epsilon:g} is claimed (dashed)")
        return _svg(figure, "Claimed and exact epsilon")


def _claim_bar(axes: Axes, place: int, row: Row, epsilon: float, widest: float) -> None:
    exact = row.exact if row.exact is not None else math.inf
    holds = exact <= epsilon * (1 + 1e-9)
    length = exact if math.isfinite(exact) else widest * INFINITE_WIDTH
    axes.barh(place, length, height=0.62, color="#14b8a6" if holds else "#dc2626", alpha=0.85)
    text = f" {format_bound(exact, 3)}" if math.isfinite(exact) else " infinite: no guarantee"
    inside = not math.isfinite(exact)
    axes.text(
        length * (0.02 if inside else 1.0), place, text, va="center", fontsize=8.5, color="white" if inside else "#111"
    )


def _equals(claimed: float | None, epsilon: float) -> bool:
    return claimed is not None and math.isclose(claimed, epsilon, rel_tol=1e-6)


def _svg(figure: Figure, title: str) -> str:
    """Return the plot as an SVG element with a title, without XML declaration and fixed size."""
    svg = file_bytes(figure, "svg").decode("utf-8")
    svg = svg[svg.index("<svg") :]
    # The ids of an HTML page must be unique over all plots.
    prefix = re.sub(r"[^a-z0-9]+", "-", title.lower())
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    return re.sub(
        r'(<svg[^>]*?) width="[^"]*"', r"\1", re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1), count=1
    )
