"""Figures of error by epsilon, drawn from stored results, in colours for light and dark pages.

Run `python experiments/utility/figures.py`; it reads `results/*.csv` and the table on `gaussian` in
`results/estimators.md`.
"""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from real_report import Point, read, series

from crowdveil.figures import INK, ON_ANY_PAGE

ROOT = Path(__file__).parents[2]
DOCS_PICTURES = ROOT / "docs" / "pictures"
PICTURES = Path(__file__).parent / "pictures"
RESULTS = Path(__file__).parent / "results"
STYLE: Any = ON_ANY_PAGE | {"legend.frameon": False}
NAIVE, FULL, CUTS, ASSIGNED, PUBLIC = "#d97706", "#0d9488", "#8b5cf6", "#db2777", "#65a30d"
SETS = {
    "adult2": ("AdultContent2", "error_rate", "weighted-vote", ("ordinal-dawid-skene", "learned")),
    "web_zhou": ("Web search relevance", "error_rate", "weighted-vote", ("ordinal-dawid-skene", "public")),
    "n_emotion": ("Emotions, -100 to 100", "mae", "weighted-mean", ("gaussian", "public")),
    "weather_temperature": ("Temperatures, °F", "mae", "weighted-mean", ("gaussian", "public")),
}
LINES = (
    ("k-RR", "k-RR through the channel", FULL, "-", "o"),
    ("cuts dealt", "cuts dealt to workers", CUTS, "-", "o"),
    ("k-RR, assigned", "k-RR, assigned cells", ASSIGNED, "--", "s"),
    ("k-RR, participation public", "k-RR, participation public", PUBLIC, ":", "D"),
)


def line(axes: Axes, found: dict[float, Point], name: str, color: str, style: str = "-", marker: str = "o") -> None:
    """Draw a curve with bars of one standard error."""
    bars = [at.error for at in found.values()]
    means = [at.mean for at in found.values()]
    axes.plot(list(found), means, color=color, ls=style, marker=marker, ms=4, lw=1.8, label=name)
    if not all(map(math.isnan, bars)):
        axes.errorbar(list(found), means, yerr=bars, fmt="none", ecolor=color, elinewidth=1.4)


def level(axes: Axes, height: float, name: str, style: str) -> None:
    """Draw a horizontal line."""
    axes.axhline(height, color=INK, ls=style, lw=1.3, label=name)


def real_sets(rows: Sequence[dict[str, str]]) -> Figure:
    """Return a figure of error against epsilon on the real sets."""
    names = [name for name in SETS if any(row["data"] == name for row in rows)]
    figure = Figure(figsize=(8.6, 3.4 * math.ceil(len(names) / 2) + 0.6), layout="constrained")
    grid = figure.subplots(math.ceil(len(names) / 2), 2, squeeze=False).ravel()
    for axes, name in zip(grid, names, strict=False):
        title, column, naive, (method, prior) = SETS[name]
        mine = [row for row in rows if row["data"] == name]
        constant = float(mine[0][f"constant_{column}"])
        level(axes, constant, "best constant", "--")
        line(axes, series(mine, "naive", naive, "learned", column), "reports read as answers", NAIVE)
        for mechanism, text, color, style, marker in LINES:
            found = series(mine, mechanism, method, prior, column)
            if found:
                line(axes, found, text, color, style, marker)
        level(axes, series(mine, "unprotected", method, prior, column)[math.inf].mean, "unprotected", ":")
        axes.set_title(f"{title}: {method}", fontsize=10)
        axes.set_ylim(0, 1.45 * constant)
        axes.set_xlabel("epsilon per cell")
        axes.set_ylabel("share of wrong truths" if column == "error_rate" else "mean absolute error")
    for axes in grid[len(names) :]:
        axes.set_visible(False)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
    return figure


def sun_crowd(page: str) -> Figure:
    """Return a figure of error against epsilon by sparsity, with the constant and known workers."""
    first = page[page.index("| sparsity |") :].partition("\n\n")[0].splitlines()
    head, body = first[0], first[2:]
    names, *rows = ([cell.strip() for cell in text.strip("| ").split("|")] for text in (head, *body))
    table = [dict(zip(names, cells, strict=True)) for cells in rows]
    figure = Figure(figsize=(8.6, 3.6), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    lines = (
        ("learned prior", "gaussian, learned prior", CUTS, "-", "o"),
        ("error", "gaussian, public prior", FULL, "-", "o"),
        ("known workers", "workers known: the best possible", INK, ":", ""),
    )
    for axes, sparsity in zip(panels, sorted({row["sparsity"] for row in table}), strict=True):
        mine = [row for row in table if row["sparsity"] == sparsity]
        level(axes, float(mine[0]["constant"]), "constant 0", "--")
        for column, text, color, style, marker in lines:
            found = {float(row["epsilon"]): Point(float(row[column]), math.nan) for row in mine}
            line(axes, found, text, color, style, marker)
        axes.set_title(f"{round((1 - float(sparsity)) * 100)} % of the cells answered", fontsize=10)
        axes.set_xlabel("epsilon per cell")
    panels[0].set_ylabel("mean absolute error")
    panels[0].set_ylim(bottom=0)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure as SVG without a date: the same results give the same file."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(text.rstrip() for text in stream.getvalue().splitlines())
    path.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Draw everything."""
    with matplotlib.rc_context(STYLE):
        save(real_sets(read()), DOCS_PICTURES / "truth-per-epsilon-real.svg")
        page = (RESULTS / "estimators.md").read_text("utf-8")
        save(sun_crowd(page), PICTURES / "truth-per-epsilon-sun.svg")


if __name__ == "__main__":
    main()
