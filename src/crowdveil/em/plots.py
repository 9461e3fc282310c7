"""Plots on matplotlib axes, in a common style; matplotlib is optional, and imported on first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crowdveil.display.svg_pictures import merge_equal_lines
from crowdveil.errors import SettingsError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INSTALL_HINT = "pip install 'crowdveil[plots]'"
AXES_STYLE: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e9ee",
    "axes.edgecolor": "#8a94a3",
    "axes.axisbelow": True,
}
"""Matplotlib settings of the axes of all figures."""
INK = "#7a8594"
COLOR, BINS = "#0f766e", 10
"""Color of marks: contrast of 3:1 on light and dark pages. Classes of shares."""


def axes_or_new(ax: Axes | None, height: float = 3.6) -> Axes:
    """Return the axes, or those of a new figure of this height in inches.

    Raises:
        SettingsError: matplotlib is not installed.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise SettingsError("plots need matplotlib", value="no such package", hint=INSTALL_HINT) from error
    figure = pyplot.figure(figsize=(6.0, height), layout="constrained")  # loads the backend, which a context undoes
    with pyplot.rc_context(AXES_STYLE):
        return figure.add_subplot()


def bar_plot(ax: Axes | None, names: Sequence[str], values: Sequence[float], axis: str) -> Axes:
    """Draw horizontal bars with their values."""
    ax = axes_or_new(ax, height=1.2 + 0.3 * len(names))
    drawn = ax.barh(range(len(names)), values, color=COLOR)
    ax.bar_label(drawn, [f"{value:,.6g}" for value in values], padding=3)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_xlabel(axis)
    return ax


def histogram_of_shares(ax: Axes | None, shares: Sequence[float], axis: str, counted: str) -> Axes:
    """Draw a histogram of shares in ten classes from 0 to 1."""
    ax = axes_or_new(ax)
    ax.hist(shares, bins=BINS, range=(0, 1), color=COLOR, rwidth=0.9)
    ax.set_xlabel(axis)
    ax.set_ylabel(counted)
    return ax


def interval_plot(ax: Axes | None, names: Sequence[str], rows: Sequence[Sequence[float]], axis: str) -> Axes:
    """Draw numbers with both ends of their intervals: rows of number, low, high."""
    ax = axes_or_new(ax, height=1.2 + 0.15 * len(names))
    for place, (value, low, high) in enumerate(rows):
        ax.plot([low, high], [place, place], color=COLOR, lw=1.6)
        ax.plot([value], [place], "o", color=COLOR, ms=4)
    ax.set_yticks(range(len(names)), names, fontsize=8)
    ax.set_xlabel(axis)
    return ax


def confusion_plot(ax: Axes | None, labels: Sequence[str], rows: Sequence[Sequence[float]]) -> Axes:
    """Draw P(answer | truth), one row per truth, with its numbers if there are at most ten labels."""
    ax = axes_or_new(ax, height=1.2 + 0.4 * len(labels))
    ax.imshow(rows, cmap="Greens", vmin=0, vmax=1, aspect="auto")
    for truth, row in enumerate(rows if len(labels) <= BINS else ()):
        for answer, share in enumerate(row):
            color = "white" if share > 0.6 else "black"
            ax.text(answer, truth, f"{share:.2f}", ha="center", va="center", color=color)
    ax.set_xticks(range(len(labels)), labels)
    ax.set_yticks(range(len(labels)), labels)
    ax.grid(visible=False)
    ax.set_xlabel("answer")
    ax.set_ylabel("truth")
    return ax


def line_plot(
    ax: Axes | None,
    series: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    limits: Sequence[tuple[str, float]],
    axes_names: tuple[str, str],
) -> Axes:
    """Draw lines through points (x, y), with a legend of several, and horizontal limits with their names."""
    ax = axes_or_new(ax)
    for name, points in merge_equal_lines(series):
        across, heights = zip(*sorted(points), strict=True)
        ax.plot(across, heights, marker="o", ms=4, label=name)
    for name, height in limits:
        ax.axhline(height, color=INK, ls="--", lw=1.2)
        ax.annotate(name, (0.01, height), xycoords=("axes fraction", "data"), va="bottom", color=INK)
    if len(series) > 1:
        ax.legend(frameon=False)
    ax.set_ylim(bottom=0)
    ax.set_xlabel(axes_names[0])
    ax.set_ylabel(axes_names[1])
    return ax
