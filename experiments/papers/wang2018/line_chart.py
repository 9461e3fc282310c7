"""Line charts of measured rows: one line per column, drawn against one column."""

from collections.abc import Mapping, Sequence

from experiments.papers.exhibit import Axes, Figure, Row

SMALLEST = 1e-6
"""Values below, zeros included, are drawn here on a logarithmic axis."""


def panels(figure: Figure, count: int, *, across: int = 4) -> list[Axes]:
    """Return the panels of a figure, at most `across` of them beside each other; unused places stay empty."""
    down = -(-count // across)
    across = min(across, count)
    figure.set_size_inches(3 * across + 0.8, 2.9 * down + 0.3)
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for unused in axes[count:]:
        unused.set_axis_off()
    return axes


def draw_lines(
    axes: Axes, rows: Sequence[Row], x: str, columns: Mapping[str, str], *, log_x: bool = True, log_y: bool = True
) -> None:
    """Draw the columns (name: label) against column `x`; a dashed line is a bound."""
    for column, label in columns.items():
        points = sorted((row[x], row[column]) for row in rows if row[column] is not None)
        if points:
            at, value = zip(*points, strict=True)
            shown = [max(number, SMALLEST) for number in value] if log_y else value
            axes.plot(at, shown, marker="o", markersize=3, label=label, linestyle="--" if "bound" in column else "-")
    axes.set(xlabel=x, xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
    axes.minorticks_off()
    axes.grid(alpha=0.25)


def legend_below(figure: Figure, axes: Axes) -> None:
    """Put the legend of one panel below all panels."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)


def draw_panels(
    figure: Figure,
    parts: Sequence[tuple[str, Sequence[Row], str]],
    columns: Mapping[str, str],
    label: str,
    *,
    across: int = 4,
    limits: tuple[float, float] | None = None,
) -> None:
    """Draw one panel per part: title, rows, and the column of the horizontal axis; `label` is of the vertical one."""
    axes = panels(figure, len(parts), across=across)
    for (title, rows, x), axis in zip(parts, axes, strict=False):
        draw_lines(axis, rows, x, columns)
        axis.set(ylim=limits, title=title)
    axes[0].set_ylabel(label)
    legend_below(figure, axes[0])
