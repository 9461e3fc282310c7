"""Pictures of a comparison: errors by epsilon or, at a single epsilon, by mechanism or method; the legend is below."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crowdveil.comparison.trials import UNPROTECTED, Row, name_mechanisms
from crowdveil.display.html import Html, paragraph
from crowdveil.display.svg_pictures import line_chart
from crowdveil.em.plots import INK, axes_or_new, legend_below, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = (
    *("#0f766e", "#b45309", "#1d4ed8", "#be185d", "#65a30d", "#7c3aed"),
    *("#111827", "#0891b2", "#dc2626", "#78350f", "#c026d3", "#64748b"),
)
"""Colors of methods, or of mechanisms with a single method: contrast of 3:1 on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*", "h")
DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
"""Lines of mechanisms, if there are several methods."""
CONSTANT, UNPROTECTED_SAME = "best constant", "unprotected, same method"
MAX_LINES, MAX_PICTURES = 4, 3
"""Lines of a picture in a notebook: as many as have colors there; and pictures."""
Cells = Mapping[tuple[str, str], Sequence[tuple[float, float]]]
"""Points (exact epsilon, error) by mechanism and method."""
NEAR = 1e-3
"""Relative difference up to which an exact epsilon is the requested one."""


def error_plot(ax: Axes | None, rows: Sequence[Row], axis: str) -> Axes:
    """Draw errors by exact epsilon; of a single requested epsilon by mechanism, or by method of a single mechanism.

    A mechanism whose exact epsilon is infinite has no line; the legend says so.

    Args:
        ax: axes to draw on; None for those of a new figure.
        rows: of one crowd.
        axis: name of the error.
    """
    cells = points_by_line(rows)
    plain = {row.estimator: row.unprotected for row in rows}
    requested = {row.epsilon for row in rows if row.epsilon is not None}
    if len(requested) > 1:
        return _errors_by_epsilon(ax, cells, plain, rows[0].constant_error, axis)
    found = {}
    for epsilon in requested:
        axis = f"{axis}, epsilon {epsilon:g} per cell"
        for (mechanism, method), ((exact, error), *_) in cells.items():
            differs = abs(exact - epsilon) > NEAR * epsilon
            found[f"{mechanism}, exact {exact:.3g}" if differs else mechanism, method] = error
    return _errors_at_one_epsilon(ax, found, plain, rows[0].constant_error, axis)


def points_by_line(rows: Iterable[Row]) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Return the points (exact epsilon, error) of each mechanism and method."""
    found = dict[tuple[str, str], list[tuple[float, float]]]()
    for mechanism, row in name_mechanisms(rows):
        assert row.exact is not None
        found.setdefault((mechanism, row.estimator), []).append((row.exact, row.error))
    return found


def _finite(cells: Cells) -> Cells:
    """Return the lines with points at finite epsilons, with these points."""
    finite = {cell: [point for point in points if math.isfinite(point[0])] for cell, points in cells.items()}
    return {cell: points for cell, points in finite.items() if points}


def _names(cells: Iterable[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Return the mechanisms and the methods in their order."""
    return list(dict.fromkeys(one for one, _ in cells)), list(dict.fromkeys(one for _, one in cells))


def _errors_by_epsilon(ax: Axes | None, cells: Cells, plain: Mapping[str, float], constant: float, axis: str) -> Axes:
    """Draw a line for each mechanism and method; in a new figure, several of both have a panel for each mechanism."""
    from matplotlib.lines import Line2D

    every, _ = _names(cells)
    cells = _finite(cells)
    mechanisms, methods = _names(cells)
    parts: list[Cells] = [cells]
    if ax is None and len(mechanisms) > 1 and len(methods) > 1:
        parts = [{cell: points for cell, points in cells.items() if cell[0] == one} for one in mechanisms]
    axes = [axes_or_new(ax)] if len(parts) == 1 else panels(len(parts))
    styles = _line_styles(mechanisms if len(parts) == 1 else mechanisms[:1], methods)
    for place, part in zip(axes, parts, strict=True):
        _draw_lines(place, part, styles)
        for method in methods if len(methods) > 1 else ():
            place.axhline(plain[method], color=styles[method]["color"], ls=":", lw=1.2, zorder=1.5)
        if len(methods) == 1:
            place.axhline(plain[methods[0]], color=INK, ls=":", lw=1.2, zorder=1.5)
        place.axhline(constant, color=INK, ls="--", lw=1.2, zorder=1.5)
        if len(parts) > 1:
            place.set_title(next(iter(part))[0], fontsize="medium")
    axes[0].set_ylim(bottom=0)
    axes[0].set_ylabel(axis)
    marks = [Line2D([], [], label=name, **({"color": INK} | style)) for name, style in styles.items() if style]
    unprotected = UNPROTECTED_SAME if len(methods) > 1 else UNPROTECTED
    limits = [
        Line2D([], [], color=INK, ls=ls, lw=1.2, label=label) for ls, label in (("--", CONSTANT), (":", unprotected))
    ]
    left_out = [name for name in every if name not in mechanisms]
    none = [Line2D([], [], ls="", label=f"not drawn, exact epsilon is infinite: {name}") for name in left_out]
    legend_below(axes, [*marks, *limits, *none])
    return axes[0]


def _draw_lines(ax: Axes, cells: Cells, styles: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw the lines of errors by epsilon: of equal lines, the first ones are wider, so that all are seen."""
    equal = Counter(tuple(sorted(points)) for points in cells.values())
    for (mechanism, method), points in cells.items():
        ordered = tuple(sorted(points))
        equal[ordered] -= 1
        style = {**styles.get(mechanism, {}), **styles[method]}
        ax.plot(*zip(*ordered, strict=True), **style, lw=1.6 + 2.6 * equal[ordered], ms=5 + 3 * equal[ordered])
    ax.set_xlabel("exact epsilon per cell")


def _line_styles(mechanisms: Sequence[str], methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the style of each mechanism and method: color and marker of what varies.

    If both vary, methods have colors, and mechanisms markers and dashes. A name without a style is not in the legend.
    """
    if len(mechanisms) > 1 and len(methods) > 1:
        colors = {name: {"color": COLORS[place % len(COLORS)]} for place, name in enumerate(methods)}
        marks = {
            name: {"marker": MARKERS[place % len(MARKERS)], "ls": DASHES[place % len(DASHES)]}
            for place, name in enumerate(mechanisms)
        }
        return colors | marks
    varying, single = (methods, mechanisms) if len(methods) > 1 else (mechanisms, methods)
    both = {name: _mark(place) for place, name in enumerate(varying)}
    return {name: dict[str, Any]() for name in single} | both


def _mark(place: int) -> dict[str, Any]:
    """Return color and marker of a method; from the thirteenth on, colors have other markers."""
    turn, color = divmod(place, len(COLORS))
    return {"color": COLORS[color], "marker": MARKERS[(color + turn) % len(MARKERS)]}


def _errors_at_one_epsilon(
    ax: Axes | None, found: Mapping[tuple[str, str], float], plain: Mapping[str, float], constant: float, axis: str
) -> Axes:
    """Draw a mark for each error: rows are mechanisms, or the methods of a single mechanism."""
    unprotected = {(UNPROTECTED, method): error for method, error in plain.items()}
    cells = unprotected | dict(found)
    mechanisms, methods = _names(cells)
    if len(mechanisms) == 2 and len(methods) > 1:
        marks = {(method, mechanism): error for (mechanism, method), error in cells.items()}
        rows, series = methods, mechanisms
    else:
        marks, rows, series = cells, mechanisms, methods
    step = 0.8 / max(len(series), 3)
    ax = axes_or_new(ax, height=1.0 + len(rows) * max(0.3, 0.13 * len(series)))
    for place, name in enumerate(series):
        shift = (place - (len(series) - 1) / 2) * step
        points = [(marks[row, name], at + shift) for at, row in enumerate(rows) if (row, name) in marks]
        ax.plot(*zip(*points, strict=True), ls="", ms=6, label=name, **_mark(place))
    ax.axvline(constant, color=INK, ls="--", lw=1.2, label=CONSTANT, zorder=1.5)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(left=0)
    ax.set_xlabel(axis)
    legend_below([ax], ax.get_legend_handles_labels()[0])
    return ax


def error_cards(rows: Sequence[Row], axis: str) -> list[Html]:
    """Return pictures of errors by epsilon for a notebook: one for each mechanism, or of a single method one for all.

    Lines with the smallest errors are drawn; a sentence says how many are left out.
    """
    cells = _finite(points_by_line(rows))
    if not cells:
        return []
    mechanisms, methods = _names(cells)
    if len(methods) == 1:
        pictures = {axis: {mechanism: points for (mechanism, _), points in cells.items()}}
    else:
        pictures = {
            f"{axis}, {one}": {method: points for (mechanism, method), points in cells.items() if mechanism == one}
            for one in mechanisms[:MAX_PICTURES]
        }
    limits = [(CONSTANT, rows[0].constant_error), (UNPROTECTED, min(row.unprotected for row in rows))]
    parts, left = list[Html](), len(cells)
    for title, lines in pictures.items():
        best = sorted(lines.items(), key=lambda line: sum(error for _, error in line[1]))[:MAX_LINES]
        parts += [paragraph(title), line_chart(title, "exact epsilon per cell", best, limits)]
        left -= len(best)
    return [*parts, paragraph(f"Not in a picture: {left} of {len(cells)} lines; plot() draws all.")] if left else parts
