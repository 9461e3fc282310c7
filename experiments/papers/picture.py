"""Picture of an exhibit, drawn from its `picture` in `exhibits.toml`.

`x` and `y` name columns of the rows; `y` may be a table of columns with their labels, and `x` a table of columns by
panel. There is one panel per value of the columns `panels`, and one line per value of the columns `lines`. `rows`
keeps the rows whose columns have one of the given values, "" for an empty cell. `levels` are horizontal lines at means
of a column, or of the first column less the second. `categories` are columns whose values stand on the vertical axis,
with the numbers `y` of their rows as dots. `points` draws no lines, `equal` the line x = y; `log` is "x", "y" or "xy";
`limits` are those of the numbers `y`, `scale` their axis beside categories, `across` the most panels beside each other.
"""

import math
from collections.abc import Iterable
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdveil.em.plots import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Axes = Figure = Any  # matplotlib is needed to draw only

Row = dict[str, Any]
"""One line of the tidy CSV file."""
ACROSS = 3
"""Most panels beside each other."""
STYLES = ("-", "--", ":", "-.")
"""Styles of the columns of one line."""
FEW = 15
"""Most points of a line that are marked."""
SMALLEST = 1e-6
"""Numbers up to 0 are drawn here on a logarithmic axis."""


def draw(picture: dict[str, Any], rows: Iterable[Row], figure: Figure) -> None:
    """Draw the picture on an empty figure."""
    kept = [row for row in rows if all(_has(row, *pair) for pair in picture.get("rows", {}).items())]
    panels = _grouped(kept, picture.get("panels", []))
    picture = picture | {"names": list(_grouped(kept, picture.get("lines", [])))}
    across = min(picture.get("across", ACROSS), len(panels))
    down = -(-len(panels) // across)
    height = 3 if "categories" not in picture else 1.2 + 0.17 * len(_grouped(kept, picture["categories"]))
    figure.set_size_inches(max(3.4 * across, 6.5), height * down + 0.9)
    for axes, title in zip_longest(figure.subplots(down, across, squeeze=False).flat, panels):
        if title is None:
            axes.set_axis_off()
        else:
            (_draw_categories if "categories" in picture else _draw_lines)(axes, picture, title, panels[title])
    labelled = [pair for axes in figure.axes for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    handles = {label: handle for handle, label in labelled if label}
    if handles:
        beside = max(1, int(45 * max(across, 2) / max(map(len, handles))))
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=min(beside, 4), fontsize="small")


def _draw_lines(axes: Axes, picture: dict[str, Any], title: str, rows: list[Row]) -> None:
    """Draw one panel; each line has one colour, and one style per column `y`."""
    x, y, log = picture["x"], _columns(picture), picture.get("log", "")
    x = x if isinstance(x, str) else x[title]
    for name, mine in _grouped(rows, picture.get("lines", [])).items():
        for place, (column, label) in enumerate(y.items()):
            points = [(row[x], row[column]) for row in mine if _is_number(row[x]) and _is_number(row[column])]
            shown = [[max(value, SMALLEST) if axis in log else value for axis, value in zip("xy", point, strict=True)]
                     for point in sorted(points)]  # fmt: skip
            text = ", ".join(filter(None, (name, label)))
            style = "none" if picture.get("points") else STYLES[place % 4]
            marker = "ox+."[place % 4] if picture.get("points") else "." if len(points) <= FEW else ""
            colour = f"C{picture['names'].index(name) if name else place}"
            both: Any = np.array(shown).T if shown else ([], [])
            axes.plot(*both, linestyle=style, marker=marker, color=colour, label=text, ms=4)
    for place, (label, (column, *less)) in enumerate(picture.get("levels", {}).items(), start=1):
        level = np.mean([row[column] - sum(row[one] for one in less) for row in rows])
        axes.axhline(float(level), color=INK, linestyle=STYLES[place], label=label)
    if picture.get("equal"):
        at = next(row[x] for row in rows if _is_number(row[x]) and row[x])
        axes.axline((at, at), (2 * at, 2 * at), color=INK, linestyle="--", label="equal")
    axes.set(title=title, xlabel=picture.get("xlabel", x), ylabel=picture.get("ylabel", next(iter(y))))
    axes.set(xscale="log" if "x" in log else "linear", yscale="log" if "y" in log else "linear")
    axes.minorticks_off()
    axes.set_ylim(picture.get("limits"))


def _draw_categories(axes: Axes, picture: dict[str, Any], title: str, rows: list[Row]) -> None:
    """Draw one panel of dots, one colour per line and column `y`."""
    least = SMALLEST if picture.get("scale") == "log" else -math.inf
    places = {name: place for place, name in enumerate(_grouped(rows, picture["categories"]))}
    for name, mine in _grouped(rows, picture.get("lines", [])).items():
        for column, label in _columns(picture).items():
            numbers = [max(row[column], least) if _is_number(row[column]) else math.nan for row in mine]
            at = [places[_text(row, picture["categories"])] for row in mine]
            axes.plot(numbers, at, "o", ms=4, label=", ".join(filter(None, (name, label))))
    axes.set(title=title, xlabel=picture.get("xlabel", next(iter(_columns(picture)))))
    axes.set(xscale=picture.get("scale", "linear"), xlim=picture.get("limits"), yticks=list(places.values()))
    axes.set_yticklabels(places, fontsize=7)
    axes.invert_yaxis()


def _has(row: Row, column: str, values: Any) -> bool:
    """Return whether a cell has one of the values."""
    return ("" if row[column] is None else row[column]) in (values if isinstance(values, list) else [values])


def _grouped(rows: Iterable[Row], columns: list[str]) -> dict[str, list[Row]]:
    """Return the rows by the text of some columns, in order of occurrence."""
    groups: dict[str, list[Row]] = {} if columns else {"": []}
    for row in rows:
        groups.setdefault(_text(row, columns), []).append(row)
    return groups


def _text(row: Row, columns: list[str]) -> str:
    """Return the cells of some columns as one text, numbers with the name of their column."""
    cells = [(column.removeprefix("claimed_"), row[column]) for column in columns if row[column] is not None]
    return ", ".join(cell if isinstance(cell, str) else f"{column} {cell:g}" for column, cell in cells)


def _columns(picture: dict[str, Any]) -> dict[str, str]:
    """Return the columns `y` with their labels."""
    y: str | dict[str, str] = picture["y"]
    return {y: ""} if isinstance(y, str) else y


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
