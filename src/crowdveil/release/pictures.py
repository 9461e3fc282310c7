"""Pictures of a result as inline SVG, with title and description for screen readers; colors are in the style sheet.

Sizes are SVG attributes and colors are classes, never style attributes, so that a strict Content-Security-Policy holds.
Every drawing is 360 units wide: its text is readable on a narrow telephone and on paper.
"""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from crowdveil.channels.channel import Channel

WIDTH = 360
ROW = 26
MAX_BARS = 12
MAX_INTERVALS = 24
MAX_SYMBOLS = 12
BINS = 10
TEXT = 15
"""Longest name in a picture, in characters."""


def shorten(name: str, length: int = TEXT) -> str:
    """Return a name, cut with an ellipsis if it is longer than `length`."""
    return name if len(name) <= length else f"{name[: length - 1]}…"


def bars(name: str, title: str, rows: Sequence[tuple[str, float, str]], *, strong: int | None = None) -> Markup:
    """Return horizontal bars.

    Args:
        name: prefix of the ids, unique on the page.
        title: title.
        rows: label, value (at least 0) and the value's text.
        strong: row in the accent color, the others muted; None for all in the accent color.
    """
    most = max((value for _, value, _ in rows), default=0.0) or 1.0
    drawn = [
        Markup(
            '<text class="name" x="112" y="{y}" text-anchor="end">{label}</text>'
            '<rect class="{style}" x="120" y="{top}" width="{width:.1f}" height="16" rx="3"/>'
            '<text class="value" x="{end:.1f}" y="{y}">{text}</text>'
        ).format(
            y=ROW * place + 17,
            top=ROW * place + 5,
            label=shorten(label),
            style="bar" if strong in (None, place) else "bar muted",
            width=max(170 * value / most, 1.5),
            end=126 + max(170 * value / most, 1.5),
            text=text,
        )
        for place, (label, value, text) in enumerate(rows)
    ]
    told = "; ".join(f"{label}: {text}" for label, _, text in rows)
    return _svg(name, title, told, ROW * len(rows) + 6, drawn)


def label_counts(name: str, labels: Sequence[str], truth: NDArray[np.int64]) -> Markup:
    """Return the number of tasks by inferred label: the largest `MAX_BARS` - 1 in the order of labels, and the rest."""
    counts = np.bincount(truth, minlength=len(labels))
    shown = sorted(np.argsort(-counts, kind="stable")[:MAX_BARS]) if len(labels) <= MAX_BARS else None
    if shown is None:
        shown = sorted(np.argsort(-counts, kind="stable")[: MAX_BARS - 1])
    rows = [(labels[code], float(counts[code]), f"{counts[code]:,}") for code in shown]
    rest = int(counts.sum() - counts[shown].sum())
    rows += [("other labels", float(rest), f"{rest:,}")] if rest else []
    return bars(name, "Tasks by inferred truth", rows)


def histogram(name: str, title: str, shares: NDArray[np.float64], unit: str) -> Markup:
    """Return a histogram of shares in ten classes from 0 to 100 %.

    Args:
        name, title: as for `bars`.
        shares: in [0, 1]; others are left out.
        unit: noun of what is counted, plural.
    """
    counts, _ = np.histogram(shares[np.isfinite(shares)], bins=BINS, range=(0, 1))
    most = max(int(counts.max(initial=0)), 1)
    drawn = []
    for place, count in enumerate(counts.tolist()):
        height = 96 * count / most
        x = 8 + 34.4 * place
        drawn.append(
            Markup('<rect class="bar" x="{x:.1f}" y="{y:.1f}" width="30" height="{height:.1f}" rx="2"/>').format(
                x=x, y=118 - height, height=max(height, 1)
            )
        )
        if count:
            drawn.append(
                Markup('<text class="value" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{count}</text>').format(
                    x=x + 15, y=112 - height, count=f"{count:,}" if count < 10_000 else f"{count / 1000:,.0f}k"
                )
            )
    for share in (0, 50, 100):
        drawn.append(
            Markup('<text class="name" x="{x:.1f}" y="136" text-anchor="{anchor}">{share} %</text>').format(
                x=6 + 3.46 * share, anchor={0: "start", 50: "middle", 100: "end"}[share], share=share
            )
        )
    classes = [
        f"{10 * place} to {10 * place + 10} %: {count:,}" for place, count in enumerate(counts.tolist()) if count
    ]
    return _svg(name, title, f"Number of {unit} by class. {'; '.join(classes)}", 144, drawn)


def intervals(
    name: str,
    tasks: Sequence[str],
    truth: NDArray[np.float64],
    low: NDArray[np.float64] | None,
    high: NDArray[np.float64] | None,
) -> Markup:
    """Return numeric truths with their 90 % intervals, in ascending order; evenly chosen ones of more than 24."""
    order = [int(task) for task in np.argsort(truth, kind="stable") if np.isfinite(truth[task])]
    chosen = [
        order[i] for i in np.unique(np.linspace(0, max(len(order) - 1, 0), MAX_INTERVALS).astype(int))[: len(order)]
    ]
    lows, highs = (truth if low is None else low), (truth if high is None else high)
    first, last = (float(lows[chosen].min()), float(highs[chosen].max())) if chosen else (0.0, 1.0)
    span = (last - first) or 1.0

    def at(value: float) -> float:
        return 112 + 236 * (float(value) - first) / span

    drawn = [
        Markup(
            '<text class="name" x="98" y="{y}" text-anchor="end">{task}</text>'
            '<line class="whisker" x1="{low:.1f}" x2="{high:.1f}" y1="{mid}" y2="{mid}"/>'
            '<circle class="bar" cx="{x:.1f}" cy="{mid}" r="4"/>'
        ).format(
            y=18 * place + 16,
            mid=18 * place + 12,
            task=shorten(tasks[task], 13),
            low=at(lows[task]),
            high=at(highs[task]),
            x=at(truth[task]),
        )
        for place, task in enumerate(chosen)
    ]
    bottom = 18 * len(chosen) + 20
    for value, anchor in ((first, "start"), (last, "end")):
        drawn.append(
            Markup('<text class="name" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{value:.4g}</text>').format(
                x=at(value), y=bottom, anchor=anchor, value=value
            )
        )
    told = "; ".join(f"{tasks[task]}: {truth[task]:.4g}" for task in chosen)
    title = "Inferred numbers with 90 % intervals" if low is not None else "Inferred numbers"
    return _svg(name, title, told, bottom + 8, drawn)


def channel_table(name: str, channel: Channel) -> Markup | None:
    """Return P(report | answer) as a table of shaded cells; None for more than 12 symbols."""
    inputs, outputs = channel.inputs, channel.outputs
    if max(len(inputs), len(outputs)) > MAX_SYMBOLS:
        return None
    cell = min(52.0, 264 / len(outputs))
    drawn = []
    for row, (answer, chances) in enumerate(zip(inputs, channel.probabilities, strict=True)):
        drawn.append(
            Markup('<text class="name" x="84" y="{y}" text-anchor="end">{answer}</text>').format(
                y=ROW * row + 39, answer=shorten(_symbol(answer), 11)
            )
        )
        for column, chance in enumerate(chances.tolist()):
            drawn.append(
                Markup(
                    '<rect class="cell" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" rx="3" '
                    'fill-opacity="{shade:.3f}"/>'
                ).format(
                    x=90 + cell * column, y=ROW * row + 22, width=cell - 2, height=ROW - 2, shade=0.06 + 0.6 * chance
                )
            )
            if cell >= 28:
                drawn.append(
                    Markup('<text class="value" x="{x:.1f}" y="{y}" text-anchor="middle">{chance:.0f}</text>').format(
                        x=89 + cell * (column + 0.5), y=ROW * row + 39, chance=100 * chance
                    )
                )
    for column, report in enumerate(outputs):
        drawn.append(
            Markup('<text class="name" x="{x:.1f}" y="14" text-anchor="middle">{report}</text>').format(
                x=89 + cell * (column + 0.5), report=shorten(_symbol(report), max(int((cell - 4) / 7), 2))
            )
        )
    diagonal = "; ".join(
        f"the answer {_symbol(answer)} is reported as {_symbol(answer)} with {100 * row[outputs.index(answer)]:.1f} %"
        for answer, row in zip(inputs, channel.probabilities, strict=True)
        if answer in outputs
    )
    return _svg(
        name, "Percentage of each report (column) for each answer (row)", diagonal, ROW * len(inputs) + 26, drawn
    )


def _symbol(name: str) -> str:
    return "no answer" if name == "NULL" else name


def _svg(name: str, title: str, described: str, height: float, drawn: Sequence[Markup]) -> Markup:
    """Return an SVG image with title and description."""
    return Markup(
        '<svg role="img" aria-labelledby="{name}-title {name}-text" viewBox="0 0 {width} {height:.0f}">'
        '<title id="{name}-title">{title}</title><desc id="{name}-text">{described}</desc>{drawn}</svg>'
    ).format(name=name, width=WIDTH, height=height, title=title, described=described, drawn=Markup("").join(drawn))
