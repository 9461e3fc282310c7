"""Figures of experiments and benchmarks as SVG files, in one style; the same numbers give the same bytes."""

import io
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from crowdveil.em.plots import AXES_STYLE, INK, INSTALL_HINT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NO_PICTURES = f"No pictures: matplotlib is not installed. Install it with {INSTALL_HINT}."

STYLE: Any = AXES_STYLE | {
    "font.family": "sans-serif",
    "font.size": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "crowdveil",
}
"""Matplotlib settings of all figures."""
ON_ANY_PAGE: Any = STYLE | {
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "grid.alpha": 0.22,
    "savefig.transparent": True,
}
"""Matplotlib settings of figures on light and dark pages."""


def has_matplotlib() -> bool:
    """Return whether figures can be drawn."""
    try:
        return find_spec("matplotlib") is not None
    except ValueError:
        return False


def drawn_svg(
    draw: "Callable[[Figure], object]", *, style: Any = STYLE, size: tuple[float, float] | None = None
) -> bytes:
    """Return the SVG file of a figure, without date and program name.

    Args:
        draw: draws on the empty figure.
        style: matplotlib settings.
        size: width and height in inches; None for the usual ones.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(style):
        figure, stream = Figure(figsize=size, layout="constrained"), io.BytesIO()
        draw(figure)
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return stream.getvalue()
