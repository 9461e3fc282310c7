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
COLORS = ("#0f766e", "#c2410c", "#7c3aed", "#b45309", "#2563eb", "#be185d", "#4d7c0f", "#0891b2", "#a16207", "#64748b")
"""Colors of lines, readable on light and dark pages."""
PLACES = {"labels": (LABELS, LABEL_INFERENCES), "numbers": (NUMBERS, (*NUMBER_INFERENCES, "factorization-mean"))}
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


def lines_of(rows: Sequence[Row], data: str) -> list[tuple[str, list[tuple[float, float]]]]:
    """Return the lines of a panel, name and points; mechanisms with the same points share a line."""
    kind = "labels" if data in LABELS else "numbers"
    papers, (_, own) = PAIRS[kind]
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in sorted((row for row in rows if row.data == data and row.epsilon), key=lambda row: row.epsilon or 0):
        points.setdefault((row.mechanism, row.inference), []).append((row.epsilon or 0.0, row.error))
    found: list[tuple[list[str], list[tuple[float, float]]]] = []
    for (mechanism, inference), line in points.items():
        if inference not in (own, "factorization-mean") and (mechanism, inference) != papers:
            continue
        shown = f"{mechanism} + {inference}" if (mechanism, inference) == papers else mechanism
        for names, other in found:
            if line == other:
                names.append(shown)
                break
        else:
            found.append(([shown], line))
    return [(" = ".join(names), line) for names, line in found]


def spread(heights: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Return heights at least so far apart and within limits, in the same order."""
    order = np.argsort(heights, kind="stable")
    placed = np.clip(np.array(heights)[order], low, high)
    for at in range(1, len(placed)):
        placed[at] = max(placed[at], placed[at - 1] + least)
    placed[-1] = min(placed[-1], high)
    for at in range(len(placed) - 2, -1, -1):
        placed[at] = min(placed[at], placed[at + 1] - least)
    found = np.empty(len(placed))
    found[order] = placed
    return found.tolist()


def draw_panel(axes: Axes, rows: Sequence[Row], data: str) -> None:
    """Draw the lines of a set with their names at the right, beside constant and unprotected answers."""
    title, vertical = PANELS[data]
    _, (_, own) = PAIRS["labels" if data in LABELS else "numbers"]
    mine = [row for row in rows if row.data == data]
    constant = mine[0].constant
    unprotected = next(row.error for row in mine if row.mechanism == ANSWERS and row.inference == own)
    lines, top = lines_of(rows, data), 1.3 * constant
    ends = [line[-1][1] for _, line in lines]
    heights = spread(ends, 0.068 * top, 0.0, top)
    right = max(point for _, line in lines for point, _ in line)
    for place, ((name, line), end, height) in enumerate(zip(lines, ends, heights, strict=True)):
        color, dashed = COLORS[place % len(COLORS)], "--" if "+" in name or name == FACTORS else "-"
        axes.plot(*zip(*line, strict=True), dashed, color=color, marker=".", lw=1.4)
        axes.plot([right, right + 0.45], [min(end, top), height], color=color, lw=0.6, clip_on=False)
        axes.text(right + 0.5, height, name.replace(" = ", "\n= "), color=color, fontsize=8, va="center")
    for level, text in ((constant, "always the same answer"), (unprotected, "without protection")):
        axes.axhline(level, color=INK, linestyle=":", lw=1.6)
        axes.text(0.05, level + 0.012 * top, text, color=INK, fontsize=8, va="bottom")
    axes.set(title=title, xlabel="epsilon of an answer: smaller hides more", ylabel=vertical)
    axes.set(xlim=(0, right), ylim=(0, top))
    axes.title.set_fontsize(10)


def draw(rows: Sequence[Row], figure: Figure) -> None:
    """Draw the picture on an empty figure."""
    for axes, data in zip(figure.subplots(2, 2).flat, PANELS, strict=True):
        draw_panel(axes, rows, data)
    figure.suptitle(
        "Wrong truths from randomized answers of real people, by mechanism\n"
        f"read by {DEFAULT} or {THROUGH}; dashed: methods of the papers",
        fontsize=11,
    )


def picture(rows: Sequence[Row]) -> bytes:
    """Return the picture, for light and dark pages."""
    return drawn_svg(partial(draw, rows), style=ON_ANY_PAGE, size=(11.5, 8.5))


if __name__ == "__main__":
    rows, halves = read_rows(RESULTS, Row), read_rows(HALVES, Half)
    PAGE.write_text(page(PAGE.read_text("utf-8"), rows, halves), encoding="utf-8")
    PICTURE.write_bytes(picture(rows))
