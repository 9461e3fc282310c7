"""The demo's pictures, as SVG text that stands inside the page: errors by epsilon, workers, claims."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.rounding import format_bound
from crowdveil.demo.devices import EPSILONS
from crowdveil.demo.scenes import Scene
from crowdveil.demo.trials import (
    ASSIGNED,
    PROTECTED,
    QUALITY_EPSILON,
    THROUGH,
    Result,
    Row,
    has_enough_answers,
    pearson,
)
from crowdveil.plotting import file_bytes, styled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAIVE = ("#b45309", "#d97706", "#f0a848", "#9a3412")
KNOWING = ("#0f766e", "#14b8a6", "#1d4ed8", "#7c3aed", "#0891b2", "#4f46e5")
ASSIGNED_COLOR = "#be185d"
INFINITE_BAR = 1.12


def error_picture(scene: Scene, results: Sequence[Result]) -> str:
    """Draw error against epsilon for every method, participation protected, beside the constant and the unprotected.

    Where cells were assigned, a broken line shows what the method that the page speaks of makes of that.
    """
    rows = [row for result in results for row in result.rows if row.scene == scene.name]
    private = [row for row in rows if row.participation == PROTECTED and row.mechanism in _curves(scene)]
    with styled_figure(6.6, 5.2) as figure:
        axes = figure.add_subplot()
        for label, color, points in _lines(private):
            axes.plot(*zip(*points, strict=True), marker="o", ms=4.5, lw=1.8, color=color, label=label)
        assigned = [
            row for row in rows if row.participation == ASSIGNED and row.method == reported_method(scene) + THROUGH
        ]
        if assigned:
            points = [(row.asked or 0.0, row.error) for row in assigned]
            name = f"{reported_method(scene)}{THROUGH}, assigned cells"
            axes.plot(*zip(*points, strict=True), marker="s", ms=4, lw=1.8, ls="--", color=ASSIGNED_COLOR, label=name)
        best = min((row for row in rows if row.asked is None), key=lambda row: row.error)
        constant = rows[0].constant_error
        axes.axhline(constant, color="#475569", ls="--", lw=1.2, label=f"best constant ({rows[0].constant})")
        axes.axhline(best.error, color="#16a34a", ls=":", lw=1.6, label=f"unprotected ({best.method})")
        axes.set_ylim(bottom=0)
        axes.set_xticks(EPSILONS)
        axes.set_xlabel("epsilon per cell, participation protected")
        axes.set_ylabel("share of wrong truths" if rows[0].error_name == "error_rate" else "mean absolute error")
        axes.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
        return _svg(figure, f"Error by epsilon on {scene.title}")


def reported_method(scene: Scene) -> str:
    """Return the method through the channel that the page speaks of."""
    return "dawid-skene" if scene.error == "error_rate" else "gaussian"


def _curves(scene: Scene) -> tuple[str, ...]:
    """Return the mechanisms whose lines stand in a scene's picture."""
    if scene.error == "error_rate":
        return ("randomized-response",)
    return ("randomized-response", "laplace", "matrix-factorization", "matrix-factorization-published", "designed")


def _lines(rows: Sequence[Row]) -> list[tuple[str, str, list[tuple[float, float]]]]:
    """Return label, color and (epsilon, error) points of each mechanism and method; naive readings in warm colors."""
    several = len({row.mechanism for row in rows}) > 1
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    warm: dict[tuple[str, str], bool] = {}
    for row in rows:
        key = (row.mechanism, row.method)
        found.setdefault(key, []).append((row.asked or 0.0, row.error))
        warm[key] = not row.through_channel
    colors = {False: iter(KNOWING * 2), True: iter(NAIVE * 2)}
    return [
        (f"{key[0]}, {key[1]}" if several else key[1], next(colors[warm[key]]), sorted(points))
        for key, points in found.items()
    ]


def worker_picture(scene: Scene, results: Sequence[Result]) -> str:
    """Draw each worker's quality as found through the channel against the one found in the unprotected answers."""
    method = "dawid-skene"
    clean, private = _qualities(scene, results, method)
    shown = has_enough_answers(scene.answers, clean, private)
    with styled_figure(4.2, 4.2) as figure:
        axes = figure.add_subplot()
        sizes = 6 + 24 * np.sqrt(scene.answers.per_worker[shown] / max(scene.answers.per_worker.max(), 1))
        axes.scatter(clean[shown], private[shown], s=sizes, color="#0f766e", alpha=0.45, lw=0)
        axes.axline((0.5, 0.5), slope=1, color="#8a94a3", lw=0.8)
        axes.set_xlim(0, 1.02)
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("ability, from unprotected answers")
        axes.set_ylabel(f"ability, from reports at epsilon {QUALITY_EPSILON:g}")
        axes.set_title(
            f"{int(shown.sum())} workers, correlation {pearson(clean[shown], private[shown]):.2f}", fontsize=10
        )
        return _svg(figure, f"Worker ability on {scene.title}")


def _qualities(scene: Scene, results: Sequence[Result], method: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    clean = private = np.full(len(scene.answers.workers), np.nan)
    for result in results:
        mechanism = result.trial.mechanism
        if result.trial.scene.name != scene.name:
            continue
        if mechanism is None:
            clean = result.qualities.get(method, clean)
        elif (mechanism.name, mechanism.epsilon, mechanism.participation) == (
            "randomized-response",
            QUALITY_EPSILON,
            PROTECTED,
        ) and result.trial.assignment is None:
            private = result.qualities.get(method + THROUGH, private)
    return clean, private


def claims_picture(rows: Sequence[Row], epsilon: float) -> str:
    """Draw, for everything that was asked for one epsilon per cell, the epsilon it really has."""
    asked = {
        (row.mechanism, row.participation, row.scene): row for row in rows if row.asked and _is(row.claimed, epsilon)
    }
    shown = sorted(asked.values(), key=lambda row: (row.exact or 0.0, row.mechanism, row.scene))
    finite = [row.exact for row in shown if row.exact is not None and math.isfinite(row.exact)]
    widest = max(finite, default=epsilon)
    with styled_figure(8.4, 0.9 + 0.27 * len(shown)) as figure:
        axes = figure.add_subplot()
        for place, row in enumerate(shown):
            _claim_bar(axes, place, row, epsilon, widest)
        axes.set_yticks(
            range(len(shown)), [f"{r.mechanism}, {r.participation}  ({r.scene})" for r in shown], fontsize=8.5
        )
        axes.axvline(epsilon, color="#475569", ls="--", lw=1.2)
        axes.set_xlim(0, widest * 1.25)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(f"exact epsilon per cell where {epsilon:g} is claimed (dashed)")
        return _svg(figure, "Claimed and exact epsilon")


def _claim_bar(axes: Axes, place: int, row: Row, epsilon: float, widest: float) -> None:
    exact = row.exact if row.exact is not None else math.inf
    honest = exact <= epsilon * (1 + 1e-9)
    length = exact if math.isfinite(exact) else widest * INFINITE_BAR
    axes.barh(place, length, height=0.62, color="#14b8a6" if honest else "#dc2626", alpha=0.85)
    text = f" {format_bound(exact, 3)}" if math.isfinite(exact) else " infinite: promises nothing"
    inside = not math.isfinite(exact)
    axes.text(
        length * (0.02 if inside else 1.0), place, text, va="center", fontsize=8.5, color="white" if inside else "#111"
    )


def _is(claimed: float | None, epsilon: float) -> bool:
    return claimed is not None and math.isclose(claimed, epsilon, rel_tol=1e-6)


def _svg(figure: Figure, title: str) -> str:
    """Return the drawing as an SVG element with a title, without prolog and without fixed size."""
    svg = file_bytes(figure, "svg").decode("utf-8")
    svg = svg[svg.index("<svg") :]
    # Ids repeat from picture to picture, and a page has one name space for them.
    prefix = re.sub(r"[^a-z0-9]+", "-", title.lower())
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    return re.sub(
        r'(<svg[^>]*?) width="[^"]*"', r"\1", re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1), count=1
    )
