"""Plot of processor time against the number of answers: one panel a method, one line a program, and the roofline."""

from collections.abc import Sequence
from functools import partial

from benchmarks.crowd_kit.results import OURS, PEER, PLAIN, Comparison, Result, reading_seconds
from experiments.figure_files import ON_ANY_PAGE, drawn_svg
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crowdveil.em.plots import INK

LINE_STYLES = {PEER: ("#d97706", "crowd-kit"), PLAIN: ("#3b82f6", "crowdveil on numpy"), OURS: ("#0d9488", "crowdveil")}
"""Colour and name of each program, from above."""
LABEL_OFFSETS = {PEER: 7, OURS: -15}
"""Whose last time is written out, and so many points above it."""
PANEL = (3.5, 3.6)
LEGEND = 0.5


def growth(bench: Comparison) -> bytes:
    """Return the picture as the bytes of an SVG file; the same figures give the same bytes."""
    methods = list(dict.fromkeys(line.method for line in bench.results))
    size = 0.6 + PANEL[0] * len(methods), PANEL[1] + LEGEND
    return drawn_svg(partial(_draw_panels, bench, methods), style=ON_ANY_PAGE, size=size)


def _draw_panels(bench: Comparison, methods: Sequence[str], figure: Figure) -> None:
    row = figure.subplots(1, len(methods), sharey=True, squeeze=False)[0]
    for axes, method in zip(row, methods, strict=True):
        _panel(axes, [line for line in bench.results if line.method == method], bench.bandwidth)
    row[0].set_ylabel("processor seconds of a fit")
    shown: dict[str, Artist] = {}
    for axes in row:
        shown |= {name: line for line, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(list(shown.values()), list(shown), loc="outside lower center", ncols=len(shown), frameon=False)


def _panel(axes: Axes, lines: Sequence[Result], bandwidth: float) -> None:
    steps = lines[0].steps
    for program, (color, name) in LINE_STYLES.items():
        mine = [line for line in lines if line.program == program]
        if mine:
            sizes, seconds = [line.answers for line in mine], [line.processor for line in mine]
            axes.plot(sizes, seconds, marker="o", ms=4.5, lw=1.8, color=color, label=name)
            if program in LABEL_OFFSETS:
                end, place = (sizes[-1], seconds[-1]), (0, LABEL_OFFSETS[program])
                axes.annotate(_time_text(seconds[-1]), end, place, textcoords="offset points", ha="center", fontsize=9)
    sizes = sorted({line.answers for line in lines})
    reading = [reading_seconds(size, steps, bandwidth) for size in sizes]
    label = "reading each answer once" + (" a step" if steps else "")
    axes.plot(sizes, reading, color=INK, ls=":", lw=1.6, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.12, y=0.12)
    axes.set_xlabel("answers")
    axes.set_title(lines[0].method + (f", {steps} steps" if steps else ""), fontsize=10)


def _time_text(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
