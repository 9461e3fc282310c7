"""Pictures as inline SVG, with title and description for screen readers; colors are in the style sheet.

Sizes are SVG attributes and colors are classes, never style attributes, so that a strict Content-Security-Policy holds.
Every drawing is 360 units wide: its text is readable on a narrow telephone and on paper.
"""

from collections.abc import Iterator, Sequence
from math import inf
from textwrap import wrap
from zlib import crc32

from crowdveil.display.html import STYLE, Html, filled, joined_html

WIDTH = 360
ROW, LINE = 26, 18
"""Heights of a row and of a line of text."""
LINE_LENGTH = 46
"""Characters of a line of text across the picture."""
MAX_BARS = 12
TEXT = 15
"""Longest name beside its row, in characters; longer ones stand above it."""
SAME = " = "
"""Between the names of lines through the same points."""
TOP, BOTTOM, LEFT, RIGHT = 14, 150, 40, 196
"""Edges of the area of a line chart; names of lines are to its right."""
APART = 16.0
"""Least distance of the names of lines."""


def shorten(name: str, length: int = TEXT) -> str:
    """Return a name, cut with an ellipsis if it is longer than `length`."""
    return name if len(name) <= length else f"{name[: length - 1]}…"


def _row_tops_and_label_places(labels: Sequence[str], height: int, length: int) -> Iterator[tuple[int, list[str], str]]:
    """Yield the top of each row, the lines of text above it and the text beside it.

    All names stand beside their rows, or, if one is longer than `length`, all stand above.
    """
    above = any(len(label) > length for label in labels)
    top = 0
    for label in labels:
        lines = wrap(label, LINE_LENGTH) or [label] if above else []
        top += LINE * len(lines)
        yield top, lines, "" if above else label
        top += height


def _row_name(top: int, lines: Sequence[str], beside: str, x: int, y: int) -> Html:
    """Return the name of a row: `beside` ends at (x, top + y), `lines` stand above."""
    if not lines:
        text = '<text class="name" x="{x}" y="{y}" text-anchor="end">{label}</text>'
        return filled(text, x=x, y=top + y, label=beside)
    return joined_html(
        [
            filled(
                '<text class="name" x="4" y="{y}">{line}</text>', y=top - LINE * (len(lines) - place) + 14, line=line
            )
            for place, line in enumerate(lines)
        ]
    )


def bar_chart(
    name: str | None, title: str, rows: Sequence[tuple[str, float, str]], *, strong: int | None = None
) -> Html:
    """Return horizontal bars.

    Args:
        name: prefix of the ids, unique on the page; None for one that follows from the contents.
        title: title.
        rows: label, value (at least 0) and the value's text.
        strong: row in the accent color, the others muted; None for all in the accent color.
    """
    most = max((value for _, value, _ in rows), default=0.0) or 1.0
    drawn, bottom = [], 0
    named = _row_tops_and_label_places([label for label, _, _ in rows], ROW, TEXT)
    for place, ((top, above, beside), (_, value, text)) in enumerate(zip(named, rows, strict=True)):
        start, width = 4 if above else 120, max(170 * value / most, 1.5)
        drawn.append(_row_name(top, above, beside, 112, 17))
        drawn.append(
            filled(
                '<rect class="{style}" x="{start}" y="{top}" width="{width:.1f}" height="16" rx="3"/>'
                '<text class="value" x="{end:.1f}" y="{y}">{text}</text>',
                y=top + 17,
                top=top + 5,
                start=start,
                style="bar" if strong in (None, place) else "bar muted",
                width=width,
                end=start + 6 + width,
                text=text,
            )
        )
        bottom = top + ROW
    described = "; ".join(f"{label}: {text}" for label, _, text in rows)
    return svg(name, title, described, bottom + 6, drawn)


def count_bars(name: str | None, title: str, labels: Sequence[str], counts: Sequence[int]) -> Html:
    """Return counts by label: the largest `MAX_BARS` - 1 in the order of labels, and the rest; all if few."""
    order = sorted(range(len(labels)), key=lambda code: (-counts[code], code))
    shown = sorted(order if len(order) <= MAX_BARS else order[: MAX_BARS - 1])
    rows = [(labels[code], float(counts[code]), f"{counts[code]:,}") for code in shown]
    rest = sum(counts) - sum(counts[code] for code in shown)
    return bar_chart(name, title, rows + ([("other labels", float(rest), f"{rest:,}")] if rest else []))


def share_histogram(name: str | None, title: str, counts: Sequence[int], unit: str) -> Html:
    """Return a histogram of shares from 0 to 100 %.

    Args:
        name, title: as for `bar_chart`.
        counts: of ten classes of equal width.
        unit: noun of what is counted, plural.
    """
    most = max([*counts, 1])
    drawn = []
    for place, count in enumerate(counts):
        height, x = 96 * count / most, 8 + 34.4 * place
        drawn.append(
            filled(
                '<rect class="bar" x="{x:.1f}" y="{y:.1f}" width="30" height="{height:.1f}" rx="2"/>',
                x=x,
                y=118 - height,
                height=max(height, 1),
            )
        )
        if count:
            drawn.append(
                filled(
                    '<text class="value" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{count}</text>',
                    x=x + 15,
                    y=112 - height,
                    count=f"{count:,}" if count < 10_000 else f"{count / 1000:,.0f}k",
                )
            )
    for share, anchor in ((0, "start"), (50, "middle"), (100, "end")):
        text = '<text class="name" x="{x:.1f}" y="136" text-anchor="{anchor}">{share} %</text>'
        drawn.append(filled(text, x=6 + 3.46 * share, anchor=anchor, share=share))
    classes = [f"{10 * place} to {10 * place + 10} %: {count:,}" for place, count in enumerate(counts) if count]
    return svg(name, title, f"Number of {unit} by class. {'; '.join(classes)}", 144, drawn)


def interval_chart(
    name: str | None,
    title: str,
    rows: Sequence[tuple[str, float, float, float]],
    *,
    ends: tuple[float, float] | None = None,
) -> Html:
    """Return numbers with their intervals.

    Args:
        name, title: as for `bar_chart`.
        rows: name, number, and both ends of its interval.
        ends: both ends of the axis, at which intervals are cut; by default those of the intervals.
    """
    first, last = min((row[2] for row in rows), default=0.0), max((row[3] for row in rows), default=1.0)
    first, last = ends or (first, last)
    names = list(_row_tops_and_label_places([row[0] for row in rows], LINE, 13))
    left = 12 if any(above for _, above, _ in names) else 112

    def at(value: float) -> float:
        return left + (348 - left) * (min(max(value, first), last) - first) / ((last - first) or 1.0)

    drawn, bottom = [], 20
    for (top, above, beside), (_, value, low, high) in zip(names, rows, strict=True):
        drawn.append(_row_name(top, above, beside, 98, 16))
        drawn.append(
            filled(
                '<line class="whisker" x1="{low:.1f}" x2="{high:.1f}" y1="{mid}" y2="{mid}"/>'
                '<circle class="bar" cx="{x:.1f}" cy="{mid}" r="4"/>',
                mid=top + 12,
                low=at(low),
                high=at(high),
                x=at(value),
            )
        )
        bottom = top + LINE + 20
    for end, anchor in ((first, "start"), (last, "end")):
        text = '<text class="name" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{end:.4g}</text>'
        drawn.append(filled(text, x=at(end), y=bottom, anchor=anchor, end=end))
    described = "; ".join(f"{label}: {value:.4g}" for label, value, _, _ in rows)
    return svg(name, title, described, bottom + 8, drawn)


def table_shaded_by_probability(
    name: str | None,
    title: str,
    described: str,
    rows: Sequence[tuple[str, Sequence[float]]],
    columns: Sequence[str],
) -> Html:
    """Return a table of shaded probabilities, in per cent.

    Args:
        name, title: as for `bar_chart`.
        described: text for screen readers.
        rows: name and probabilities of each row.
        columns: names of the columns.
    """
    width = min(52.0, 264 / len(columns))
    numbered = any(len(label) > max(int((width - 4) / 7), 2) for label in columns)
    number = {label: f"{place}" for place, label in enumerate(columns, start=1)} if numbered else {}
    names = [f"{number[label]}: {label}" if label in number else label for label, _ in rows]
    drawn, bottom = [], 0
    for (top, above, beside), (_, chances) in zip(_row_tops_and_label_places(names, ROW, 11), rows, strict=True):
        drawn.append(_row_name(top + 22, above, beside, 84, 17))
        drawn += [_cell(top + 22, column, chance, width) for column, chance in enumerate(chances)]
        bottom = top + ROW
    for column, label in enumerate(columns):
        text = '<text class="name" x="{x:.1f}" y="14" text-anchor="middle">{label}</text>'
        drawn.append(filled(text, x=89 + width * (column + 0.5), label=number.get(label, label)))
    return svg(name, title, described, bottom + 26, drawn)


def _cell(top: int, column: int, chance: float, width: float) -> Html:
    """Return a shaded cell, with its number if there is room for it."""
    shade = filled(
        '<rect class="cell" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" rx="3" '
        'fill-opacity="{shade:.3f}"/>',
        x=90 + width * column,
        y=top,
        width=width - 2,
        height=ROW - 2,
        shade=0.06 + 0.4 * chance,
    )
    if width < 28:
        return shade
    text = '<text class="value" x="{x:.1f}" y="{y}" text-anchor="middle">{chance:.0f}</text>'
    return joined_html([shade, filled(text, x=89 + width * (column + 0.5), y=top + 17, chance=100 * chance)])


def line_chart(
    title: str,
    across: str,
    series: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    limits: Sequence[tuple[str, float]] = (),
    *,
    name: str | None = None,
    top: float = inf,
) -> Html:
    """Return lines of errors from 0, each named at its end, and horizontal limits.

    The line and the name of series k, from 1, have the class `line-k`.

    Args:
        title: title.
        across: name of the horizontal axis.
        series: name and points (x, y) of each line, y not negative; six lines at most are readable.
        limits: name and height of dashed lines.
        name: as for `bar_chart`.
        top: largest height; a line is cut there, and one that ends above it has its last value after its name.
    """
    points = [point for _, line in series for point in line]
    most = min(max([y for _, y in points] + [y for _, y in limits], default=1.0), top) or 1.0
    first, last = min(x for x, _ in points), max(x for x, _ in points)

    def at(x: float, y: float) -> tuple[float, float]:
        share = (x - first) / (last - first) if last > first else 0.5
        return LEFT + share * (RIGHT - LEFT), BOTTOM - min(y / most, 1.0) * (BOTTOM - TOP)

    drawn = [_axes_with_end_numbers(across, first, last, most)]
    ends = []
    for place, (label, line) in enumerate(merge_equal_lines(series), start=1):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in sorted(line)))
        drawn.append(filled('<polyline class="line line-{place}" points="{path}"/>', place=place, path=path))
        drawn += [
            filled('<circle class="bar line-{place}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>', place=place, x=x, y=y)
            for x, y in map(at, *zip(*line, strict=True))
        ]
        x, y = max(line)
        texts = [shorten(one, 20) for one in label.split(SAME)] if y <= most else [f"{shorten(label, 13)} ↑{y:.2g}"]
        ends += [(at(x, y)[1], text, f"name line-{place}") for text in texts]
    for label, height in limits:
        y = at(first, height)[1]
        drawn.append(filled('<line class="limit" x1="{a}" x2="{b}" y1="{y:.1f}" y2="{y:.1f}"/>', a=LEFT, b=RIGHT, y=y))
        ends.append((y, shorten(label, 20), "name"))
    drawn += [
        filled('<text class="{style}" x="{x}" y="{y:.1f}">{text}</text>', style=style, x=RIGHT + 6, y=y + 4, text=text)
        for y, text, style in _label_heights_kept_apart(ends)
    ]
    listed = ((label, ", ".join(f"{y:.3g} at {x:g}" for x, y in sorted(line))) for label, line in series)
    described = "; ".join(f"{label}: {values}" for label, values in listed)
    described += "".join(f"; {label}: {y:.3g}" for label, y in limits)
    return svg(name, title, described, BOTTOM + 34, drawn)


def merge_equal_lines(
    series: Sequence[tuple[str, Sequence[tuple[float, float]]]],
) -> list[tuple[str, Sequence[tuple[float, float]]]]:
    """Return the lines, those through the same points as one line with all of their names."""
    names: dict[tuple[tuple[float, float], ...], list[str]] = {}
    for name, points in series:
        names.setdefault(tuple(sorted(points)), []).append(name)
    return [(SAME.join(same), points) for points, same in names.items()]


def _axes_with_end_numbers(across: str, first: float, last: float, most: float) -> Html:
    """Return both axes with the numbers at their ends."""
    return filled(
        '<line class="axis" x1="{left}" x2="{right}" y1="{bottom}" y2="{bottom}"/>'
        '<text class="name" x="{edge}" y="{bottom}" text-anchor="end">0</text>'
        '<text class="name" x="{edge}" y="{top}" text-anchor="end">{most:.2g}</text>'
        '<text class="name" x="{left}" y="{under}">{first:g}</text>'
        '<text class="name" x="{right}" y="{under}" text-anchor="end">{last:g}</text>'
        '<text class="name" x="{middle}" y="{under}" text-anchor="middle">{across}</text>',
        left=LEFT, right=RIGHT, bottom=BOTTOM, top=TOP + 4, edge=LEFT - 6, under=BOTTOM + 18,
        middle=(LEFT + RIGHT) / 2, most=most, first=first, last=last, across=across,
    )  # fmt: skip


def _label_heights_kept_apart(ends: Sequence[tuple[float, str, str]]) -> list[tuple[float, str, str]]:
    """Return heights of names, with text and class, in ascending order and at least `APART`.

    The heights are nearest to the given ones in least squares: isotonic regression, by pooling adjacent violators.
    """
    ordered = sorted(ends)
    pools: list[tuple[float, int]] = []
    for place, end in enumerate(ordered):
        total, count = end[0] - APART * place, 1
        while pools and pools[-1][0] * count >= total * pools[-1][1]:
            total, count = total + pools[-1][0], count + pools.pop()[1]
        pools.append((total, count))
    highest = BOTTOM - APART * (len(ordered) - 1)
    means = [min(max(total / count, TOP), highest) for total, count in pools for _ in range(count)]
    return [(mean + APART * place, *end[1:]) for place, (mean, end) in enumerate(zip(means, ordered, strict=True))]


def svg(name: str | None, title: str, described: str, height: float, drawn: Sequence[Html]) -> Html:
    """Return an SVG image with title and description; a name of None follows from the contents."""
    body = joined_html(drawn)
    return filled(
        '<svg role="img" aria-labelledby="{name}-title {name}-text" viewBox="0 0 {width} {height:.0f}">'
        '<title id="{name}-title">{title}</title><desc id="{name}-text">{described}</desc>{body}</svg>',
        name=f"picture-{crc32(f'{title}{body}'.encode()):08x}" if name is None else name,
        width=WIDTH,
        height=height,
        title=title,
        described=described,
        body=body,
    )


def svg_file(picture: Html) -> str:
    """Return a picture as an SVG file with the style of a card."""
    style = f"{STYLE}.crowdveil text{{fill:var(--ink);font:12px system-ui,sans-serif}}"
    opened = picture.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" class="crowdveil" ', 1)
    return opened.replace("<title", f"<style>{style}</style><title", 1) + "\n"
