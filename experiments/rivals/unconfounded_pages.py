"""Tables of docs/explanation/related-work.md and the picture of README, from the results of `unconfounded`.

python -m experiments.rivals.unconfounded_pages
"""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.figure_files import ON_ANY_PAGE, drawn_svg
from experiments.rivals.unconfounded import (
    ANSWERS,
    DEFAULT,
    EPSILONS,
    FACTORS,
    HALVES,
    LABEL_INFERENCES,
    LABELS,
    NUMBER_INFERENCES,
    NUMBERS,
    PAIRS,
    RESULTS,
    THROUGH,
    Half,
    Row,
)
from experiments.rows import read_rows

from crowdveil.em.plots import INK
from crowdveil.estimators.factorization_mean import FactorizationMean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Axes = Figure = Any  # matplotlib is needed to draw only

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "related-work.md"
PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "mechanisms-on-real-answers.svg"
PANELS = {
    "dog": ("Breeds of dogs: 4 labels, 10 answers to a picture", "share of wrong labels"),
    "web_zhou": ("Web search: 5 grades, 6 answers to a page", "share of wrong grades"),
    "n_emotion": ("Emotions in headlines: -100 to 100, 10 answers", "mean error of a number"),
    "weather_temperature": ("Temperatures of cities: 0 to 120 °F, 11 answers", "mean error in °F"),
}
"""Title and vertical axis of each panel."""
COLORS = {
    "randomized-response": "#0d9488",
    "quantized-response": "#8b5cf6",
    "designed": "#3b82f6",
    "two-layer": "#db2777",
    "subset-selection": "#65a30d",
    "optimized-unary-encoding": "#a16207",
    "laplace": "#dc2626",
    "staircase": "#a16207",
    "piecewise": "#db2777",
    "ogpm": "#65a30d",
    "square-wave": "#0891b2",
    FACTORS: "#64748b",
}
PAPERS_COLOR, CONSTANT = "#ea580c", "always the same answer"
"""Colors of lines, readable on light and dark pages."""
Points = list[tuple[float, float]]
"""Epsilon and error, by epsilon."""
PLACES = {"labels": (LABELS, LABEL_INFERENCES), "numbers": (NUMBERS, (*NUMBER_INFERENCES, FactorizationMean.name))}
"""Sets and inferences of a table."""


def digits(value: float) -> str:
    """Return a number with three significant digits."""
    return f"{value:.3g}"


def errors_table(rows: Sequence[Row], kind: str) -> str:
    """Return errors by set and mechanism, at two epsilons; mechanisms with equal errors share a line."""
    names, inferences = PLACES[kind]
    known = {(row.data, row.mechanism, row.inference, row.epsilon): row for row in rows}
    lines: list[tuple[str, ...]] = [(f"set, {kind}", "sent", *inferences, "±"), ("---",) * (len(inferences) + 3)]
    for data in names:
        ways: dict[tuple[str, ...], list[str]] = {}
        for mechanism in dict.fromkeys(row.mechanism for row in rows if row.data == data):
            found = [[known.get((data, mechanism, one, epsilon)) for epsilon in EPSILONS] for one in inferences]
            if mechanism == ANSWERS:
                found = [[known.get((data, mechanism, one, None))] for one in inferences]
            cells = ["/".join(digits(row.error) for row in pair if row) or "-" for pair in found]
            wide = max((row.high - row.low) / 2 for pair in found for row in pair if row)
            ways.setdefault((*cells, f"{wide:.2g}"), []).append(mechanism)
        lines += [(data, ", ".join(names), *cells) for cells, names in merged(ways)]
        constant = next(row.constant for row in rows if row.data == data)
        lines.append((data, "nothing: best constant", digits(constant), *("",) * len(inferences)))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def merged(ways: dict[tuple[str, ...], list[str]]) -> list[tuple[tuple[str, ...], list[str]]]:
    """Return lines of cells with their mechanisms; a line that only lacks cells of another one joins it."""
    found: list[tuple[tuple[str, ...], list[str]]] = []
    for cells, names in ways.items():
        for other, already in found:
            if all(own in ("-", shown) for own, shown in zip(cells[:-1], other[:-1], strict=True)):
                already.extend(names)
                break
        else:
            found.append((cells, list(names)))
    return found


def halves_table(rows: Sequence[Half]) -> str:
    """Return the errors after one half or both were replaced, and what each half takes off."""
    heads = (
        "set, epsilon",
        "papers' both",
        "our inference",
        "our mechanism",
        "our both",
        "by inference",
        "by mechanism",
    )
    lines: list[tuple[str, ...]] = [heads, ("---",) * len(heads)]
    for row in rows:
        errors = (row.papers, row.inference_only, row.mechanism_only, row.both)
        first = f"{row.by_inference:.3g} ({row.inference_low:.3g} to {row.inference_high:.3g})"
        second = f"{row.by_mechanism:.3g} ({row.mechanism_low:.3g} to {row.mechanism_high:.3g})"
        lines.append((f"{row.data}, {row.epsilon:g}", *map(digits, errors), first, second))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def shares(halves: Sequence[Half], constants: dict[str, float]) -> tuple[float, float]:
    """Return the fall of the error by inference and by mechanism, in shares of the constant's error, mean over rows.

    An error above the constant's counts as that of the constant, which everyone can give.
    """
    found = []
    for row in halves:
        errors = (row.papers, row.inference_only, row.mechanism_only, row.both)
        papers, inference, mechanism, both = (min(one / constants[row.data], 1.0) for one in errors)
        found.append(((papers - inference + mechanism - both) / 2, (papers - mechanism + inference - both) / 2))
    first, second = np.mean(found, axis=0)
    return float(first), float(second)


def sentence(rows: Sequence[Row], halves: Sequence[Half]) -> str:
    """Return the sentence that says what comes from which half."""
    constants = {row.data: row.constant for row in rows}
    parts = []
    for kind, (names, _) in PLACES.items():
        for epsilon in EPSILONS:
            chosen = [one for one in halves if one.data in names and one.epsilon == epsilon]
            first, second = (f"{100 * share:.0f}" for share in shares(chosen, constants))
            parts.append(f"{first} and {second} for {kind} at epsilon {epsilon:g}")
    (labels, numbers) = (PAIRS[kind] for kind in PLACES)
    return (
        f"**Which half.** In percent of the best constant's error, the inference ({labels[1][1]} in place of "
        f"{labels[0][1]}, {numbers[1][1]} in place of {numbers[0][1]}) and the mechanism ({labels[1][0]} in place of "
        f"{labels[0][0]}, {numbers[1][0]} in place of {numbers[0][0]}) take off the error: {', '.join(parts)}; "
        "errors above the constant's count as the constant's.\n"
    )


def page(text: str, rows: Sequence[Row], halves: Sequence[Half]) -> str:
    """Return the text of the page with its generated parts."""
    made = {r"\| set, labels \|": errors_table(rows, "labels"), r"\| set, numbers \|": errors_table(rows, "numbers")}
    made |= {r"\| set, epsilon \|": halves_table(halves)}
    made |= {r"\*\*Which half\.\*\*": sentence(rows, halves)}
    for start, part in made.items():
        block = re.compile(rf"^{start}[^\n]*\n(\|[^\n]*\n)*", re.MULTILINE)
        text = block.sub(part.replace("\\", r"\\"), text)
    return text


def lines_of(rows: Sequence[Row], data: str, near: float) -> list[tuple[list[str], Points]]:
    """Return names and points of the lines of a panel; lines that are nowhere further apart than `near` are one."""
    kind = "labels" if data in LABELS else "numbers"
    papers, (_, own) = PAIRS[kind]
    points: dict[tuple[str, str], Points] = {}
    for row in sorted((row for row in rows if row.data == data and row.epsilon), key=lambda row: row.epsilon or 0):
        if row.inference in (own, FactorizationMean.name) or (row.mechanism, row.inference) == papers:
            points.setdefault((row.mechanism, row.inference), []).append((row.epsilon or 0.0, row.error))
    found: list[tuple[list[str], Points]] = []
    for (mechanism, inference), line in points.items():
        simple = (mechanism, inference) == papers
        beside = [names for names, other in found if not simple and np.abs(np.subtract(line, other)).max() <= near]
        if beside:
            beside[0].append(mechanism)
        else:
            found.append(([f"{mechanism} + {inference}" if simple else mechanism], line))
    return found


def spread(heights: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Return the middles of texts of these sizes, near the heights, without overlap and within limits."""
    order = np.argsort(heights, kind="stable")
    half = np.array(sizes)[order] / 2
    placed = np.clip(np.array(heights)[order], low + half, high - half)
    for at in range(1, len(placed)):
        placed[at] = max(placed[at], placed[at - 1] + half[at - 1] + half[at])
    placed[-1] = min(placed[-1], high - half[-1])
    for at in range(len(placed) - 2, -1, -1):
        placed[at] = min(placed[at], placed[at + 1] - half[at + 1] - half[at])
    found = np.empty(len(placed))
    found[order] = placed
    return [float(one) for one in found]


def draw_panel(axes: Axes, rows: Sequence[Row], data: str) -> None:
    """Draw the lines of a set with their names at the right, beside constant and unprotected answers."""
    title, vertical = PANELS[data]
    _, (_, own) = PAIRS["labels" if data in LABELS else "numbers"]
    mine = [row for row in rows if row.data == data]
    constant = mine[0].constant
    unprotected = next(row.error for row in mine if row.mechanism == ANSWERS and row.inference == own)
    gap = constant - unprotected
    low, high = max(0.0, unprotected - 0.3 * gap), constant + 0.3 * gap
    unit = 0.055 * (high - low)
    lines = lines_of(rows, data, near=0.012 * (high - low))
    right = max(point for _, line in lines for point, _ in line)
    lines.append(([CONSTANT], [(0.0, constant), (right, constant)]))
    ends = [min(line[-1][1], high) for _, line in lines]
    heights = spread(ends, [unit * (len(names) + 0.3) for names, _ in lines], low, high)
    for (names, line), end, height in zip(lines, ends, heights, strict=True):
        color = INK if names[0] == CONSTANT else COLORS.get(names[0], PAPERS_COLOR)
        style = ":" if names[0] == CONSTANT else "--" if "+" in names[0] or FACTORS in names else "-"
        text = ",\n".join(names) + (" (above)" if line[-1][1] > high else "")
        axes.plot(*zip(*line, strict=True), style, color=color, marker="" if style == ":" else ".", lw=1.5)
        axes.plot([right, 1.06 * right], [end, height], color=color, lw=0.6, clip_on=False)
        axes.text(1.07 * right, height, text, color=color, fontsize=8, va="center", linespacing=1.1)
    axes.axhline(unprotected, color=INK, linestyle=":", lw=1.8)
    axes.text(0.02 * right, unprotected - 0.012 * (high - low), "without protection", color=INK, fontsize=8, va="top")
    axes.set(xlabel="epsilon of an answer: smaller hides more", ylabel=vertical, xlim=(0, right), ylim=(low, high))
    axes.set_title(title, fontsize=10, loc="left")


def draw(rows: Sequence[Row], figure: Figure) -> None:
    """Draw the picture on an empty figure."""
    for axes, data in zip(figure.subplots(2, 2).flat, PANELS, strict=True):
        draw_panel(axes, rows, data)
    figure.suptitle(
        "Errors of truths inferred from randomized answers of real people: lower is better\n"
        f"Every mechanism has the same exact epsilon. Solid: read by the default ({DEFAULT}, {THROUGH}). "
        "Dashed: as in the papers",
        fontsize=10,
    )


def picture(rows: Sequence[Row]) -> bytes:
    """Return the picture, for light and dark pages."""
    return drawn_svg(partial(draw, rows), style=ON_ANY_PAGE, size=(11.5, 8.5))


if __name__ == "__main__":
    rows, halves = read_rows(RESULTS, Row), read_rows(HALVES, Half)
    PAGE.write_text(page(PAGE.read_text("utf-8"), rows, halves), encoding="utf-8")
    PICTURE.write_bytes(picture(rows))
