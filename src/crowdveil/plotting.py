"""How all line pictures look, and how a figure becomes a file: the same numbers give the same bytes."""

import io
from typing import Any, Literal

from matplotlib.figure import Figure

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
"""For `matplotlib.rc_context`, around drawing and `file_bytes`."""
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
"""The same, for pictures that stand on light and on dark pages."""
RESOLUTION = 144
"""Dots per inch of a PNG."""


def file_bytes(figure: Figure, kind: Literal["svg", "png"]) -> bytes:
    """Return a figure as the bytes of an SVG or PNG file, without a date or the name of a program."""
    stream = io.BytesIO()
    nothing = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    figure.savefig(stream, format=kind, dpi=RESOLUTION, metadata=nothing)
    return stream.getvalue()
