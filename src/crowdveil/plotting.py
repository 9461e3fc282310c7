"""Figures: common style, export as SVG or PNG, and the optional import of matplotlib.

The same numbers give the same bytes. Matplotlib is imported on first use.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from crowdveil.errors import SettingsError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INSTALL_HINT = "pip install 'crowdveil[plots]'"
NO_PICTURES = f"No pictures: matplotlib is not installed. Install it with {INSTALL_HINT}."

STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "crowdveil",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e9ee",
    "axes.edgecolor": "#8a94a3",
    "axes.axisbelow": True,
}
"""Matplotlib settings of all figures."""
INK = "#7a8594"
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
RESOLUTION = 144
"""Resolution of a PNG in dots per inch."""


def has_matplotlib() -> bool:
    """Return whether figures can be drawn."""
    try:
        return find_spec("matplotlib") is not None
    except ValueError:
        return False


@contextmanager
def styled_figure(width: float, height: float, style: Any = STYLE) -> Iterator[Figure]:
    """Context with a new figure, in inches; draw and export it inside.

    Raises:
        SettingsError: matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SettingsError("pictures need matplotlib", value="no such package", hint=INSTALL_HINT) from error
    with matplotlib.rc_context(style):
        yield Figure(figsize=(width, height), layout="constrained")


def file_bytes(figure: Figure, kind: Literal["svg", "png"]) -> bytes:
    """Return a figure as the bytes of an SVG or PNG file, without date and program name."""
    stream = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    figure.savefig(stream, format=kind, dpi=RESOLUTION, metadata=metadata)
    return stream.getvalue()
