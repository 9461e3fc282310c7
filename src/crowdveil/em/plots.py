"""Plots on matplotlib axes, in a common style; matplotlib is optional, and imported on first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
LEGEND_POINTS, LEGEND_DISTANCE, LEGEND_MARGIN, MAX_COLUMNS = 8.5, 4.6, 0.05, 4
"""Of a legend below axes: points of letters, distance to axes in letters, inches below it, most columns."""
MAX_PANELS = 3
"""Panels beside one another."""
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


def panels(count: int) -> list[Axes]:
    """Return axes with one vertical scale in a new figure, `MAX_PANELS` beside one another.

    Raises:
        SettingsError: matplotlib is not installed.
    """
    first = axes_or_new(None)
    figure = first.get_figure(root=True)
    assert figure is not None
    first.remove()
    columns = min(count, MAX_PANELS)
    rows = -(-count // columns)
    figure.set_size_inches(0.8 + 3.2 * columns, 0.6 + 3.0 * rows)
    grid = figure.add_gridspec(rows, columns)
    found: list[Axes] = []
    from matplotlib import pyplot

    with pyplot.rc_context(AXES_STYLE):
        for place in range(count):
            shared = found[0] if found else None
            found.append(figure.add_subplot(grid[divmod(place, columns)], sharex=shared, sharey=shared))
    return found


def legend_below(axes: Sequence[Axes], handles: Sequence[Any]) -> None:
    """Draw a legend below axes, in as many columns as fit into the width of their figure, or of axes beside others.

    A figure that has no other axes grows by the height of the legend, so that the axes keep their size.
    """
    from matplotlib.transforms import blended_transform_factory

    ax, figure = axes[0], axes[0].get_figure(root=True)
    assert figure is not None
    alone = list(figure.axes) == list(axes)
    width, height = figure.get_size_inches()
    across = figure.transFigure if alone else ax.transAxes
    room = (width - 0.2) * figure.dpi if alone else ax.get_window_extent().width
    anchor: dict[str, Any] = {
        "loc": "upper center",
        "bbox_to_anchor": (0.5, 0.0),
        "bbox_transform": blended_transform_factory(across, ax.transAxes),
        "borderaxespad": LEGEND_DISTANCE,
    }
    draw, place = (ax.legend, anchor) if len(axes) == 1 else (figure.legend, {"loc": "outside lower center"})
    for columns in range(min(MAX_COLUMNS * len(axes), len(handles)), 0, -1):
        if len(axes) > 1:
            figure.legends.clear()
        legend = draw(handles=handles, ncols=columns, fontsize=LEGEND_POINTS, frameon=False, **place)
        size = legend.get_window_extent()
        if size.width <= room:
            break
    if not alone:
        return
    before, more = ax.get_position(), size.height / figure.dpi + LEGEND_MARGIN
    grown = height + more
    figure.set_size_inches(width, grown)
    if figure.get_layout_engine() is None:
        bottom, kept = (before.y0 * height + more) / grown, before.height * height / grown
        ax.set_position((before.x0, bottom, before.width, kept))
