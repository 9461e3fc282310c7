"""Pictures of the demo as inline SVG: error by epsilon, worker abilities, claimed and exact epsilon.

Colors are classes of the style sheet, so that the pictures follow the color scheme. A chart has at most `MAX_LINES`
lines, each with its name at its end.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.rounding import format_bound
from crowdveil.demo.crowds import DemoCrowd
from crowdveil.demo.trials import (
    ASSIGNED,
    CHANNEL_SUFFIX,
    PROTECTED,
    QUALITY_EPSILON,
    Result,
    Row,
    has_enough_answers,
    pearson,
)
from crowdveil.presentation.html import Html, filled
from crowdveil.presentation.pictures import lines, svg

MAX_LINES = 6
"""Largest number of lines in a chart, with those of the constant and of unprotected answers."""
HEADROOM = 1.6
"""Height of a chart, as a multiple of the constant's error; lines are cut there."""
RESPONSE = "randomized-response"
IGNORED = "noise ignored"
"""Name of the line of the best method without a noise model."""
Line = tuple[str, list[tuple[float, float]]]
"""Name, and points (epsilon, error)."""


def reported_method(crowd: DemoCrowd) -> str:
    """Return the channel-aware method of summary and conclusion, which is fixed in advance."""
    return "dawid-skene" if crowd.error == "error_rate" else "gaussian"


def claim_holds(row: Row) -> bool:
    """Return whether the exact epsilon of a row is at most the claimed one."""
    return row.exact is not None and row.claimed is not None and row.exact <= row.claimed * (1 + 1e-9)


def chart_lines(crowd: DemoCrowd, rows: Sequence[Row]) -> list[Line]:
    """Return the lines of the chart of a crowd besides both references, at most `MAX_LINES` - 2.

    With protected participation and a claim that holds: the reported method and the best method without a noise model,
    both on randomized response; the reported method on assigned cells; then the best method on each other mechanism,
    and further methods. "Best" is the smallest error at epsilon `QUALITY_EPSILON`.
    """
    method = reported_method(crowd) + CHANNEL_SUFFIX
    shown = [row for row in rows if row.participation == PROTECTED and claim_holds(row)]
    ranked = sorted(filter(_is_compared, shown), key=lambda row: row.error)
    response = [row for row in ranked if row.mechanism == RESPONSE]
    naive = [(RESPONSE, row.method) for row in response if not row.channel_used][:1]
    assigned = [row for row in rows if row.participation == ASSIGNED and row.method == method]
    others = {row.mechanism: (row.mechanism, row.method) for row in reversed(ranked) if row.mechanism != RESPONSE}
    further = [others[row.mechanism] for row in ranked if row.mechanism in others]
    further += [(RESPONSE, row.method) for row in response if row.channel_used]
    chosen = list(dict.fromkeys([(RESPONSE, method), *naive, *further]))[: MAX_LINES - 2 - bool(assigned)]
    found = [(_line_name(key, naive), _points([row for row in shown if _key(row) == key])) for key in chosen]
    return found + ([("assigned cells", _points(assigned))] if assigned else [])


def _is_compared(row: Row) -> bool:
    return row.requested is not None and math.isclose(row.requested, QUALITY_EPSILON, rel_tol=1e-6)


def _key(row: Row) -> tuple[str, str]:
    return row.mechanism, row.method


def _points(rows: Sequence[Row]) -> list[tuple[float, float]]:
    return sorted((round(row.requested or 0.0, 6), row.error) for row in rows)


def _line_name(key: tuple[str, str], naive: Sequence[tuple[str, str]]) -> str:
    """Return the mechanism of a line; on randomized response the method, without the suffix."""
    if key in naive:
        return IGNORED
    return key[1].removesuffix(CHANNEL_SUFFIX) if key[0] == RESPONSE else key[0]


def error_picture(crowd: DemoCrowd, results: Sequence[Result]) -> Html:
    """Draw error by epsilon, with the name of each line at its end."""
    rows = [row for result in results for row in result.rows if row.crowd == crowd.name]
    constant, best = rows[0].constant_error, min(row.error for row in rows if row.requested is None)
    return lines(
        f"Error by epsilon on {crowd.title}",
        "epsilon per cell",
        chart_lines(crowd, rows),
        [("best constant", constant), ("unprotected", best)],
        name=picture_name("error", crowd),
        top=HEADROOM * max(constant, best),
    )


def picture_name(kind: str, crowd: DemoCrowd) -> str:
    """Return the prefix of the ids of a picture."""
    return f"{kind}-{crowd.name}".replace("_", "-")


def worker_picture(crowd: DemoCrowd, results: Sequence[Result]) -> Html:
    """Draw each worker's ability inferred from reports against the one inferred from unprotected answers."""
    clean, private = _qualities(crowd, results, reported_method(crowd))
    shown = has_enough_answers(crowd.answers, clean, private)
    summary = f"{int(shown.sum())} workers, correlation {pearson(clean[shown], private[shown]):.2f}"
    frame = (
        '<text class="value" x="60" y="14">{summary}</text>'
        '<rect class="frame" x="60" y="26" width="220" height="220"/><path class="limit" d="M60 246 280 26"/>'
        '<text class="name" x="54" y="251" text-anchor="end">0</text>'
        '<text class="name" x="54" y="31" text-anchor="end">1</text>'
        '<text class="name" x="60" y="263" text-anchor="middle">0</text>'
        '<text class="name" x="280" y="263" text-anchor="middle">1</text>'
        '<text class="name" x="60" y="282">across: from unprotected answers</text>'
        '<text class="name" x="60" y="300">up: from reports at epsilon {epsilon:g}</text>'
    )
    dots = [
        filled('<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>', x=x, y=y, radius=radius)
        for x, y, radius in zip(60 + 220 * clean[shown], 246 - 220 * private[shown], _radii(crowd, shown), strict=True)
    ]
    described = f"{summary}. Each dot is a worker with the ability from unprotected answers and from reports."
    drawn = [filled(frame, summary=summary, epsilon=QUALITY_EPSILON), *dots]
    return svg(picture_name("workers", crowd), f"Worker ability on {crowd.title}", described, 306, drawn)


def _radii(crowd: DemoCrowd, shown: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the radius of each dot; its area grows with the number of answers."""
    share = crowd.answers.per_worker[shown] / max(crowd.answers.per_worker.max(), 1)
    return np.asarray(2 + 3 * np.sqrt(share))


def _qualities(
    crowd: DemoCrowd, results: Sequence[Result], method: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    clean = private = np.full(len(crowd.answers.workers), np.nan)
    for result in results:
        mechanism = result.trial.mechanism
        if result.trial.crowd.name != crowd.name:
            continue
        if mechanism is None:
            clean = result.qualities.get(method, clean)
        elif (mechanism.name, mechanism.epsilon, mechanism.participation) == (
            RESPONSE,
            QUALITY_EPSILON,
            PROTECTED,
        ) and result.trial.assignment is None:
            private = result.qualities.get(method + CHANNEL_SUFFIX, private)
    return clean, private


def claims_picture(rows: Sequence[Row], epsilon: float) -> Html:
    """Draw the exact epsilon of every mechanism with the same claimed epsilon per cell, the largest of all crowds."""
    worst: dict[tuple[str, str], float] = {}
    for row in rows:
        if row.requested and row.claimed is not None and math.isclose(row.claimed, epsilon, rel_tol=1e-6):
            key = (row.mechanism, row.participation)
            worst[key] = max(worst.get(key, 0.0), math.inf if row.exact is None else row.exact)
    shown = sorted(worst.items(), key=lambda item: (item[1], item[0]))
    widest = max((exact for _, exact in shown if math.isfinite(exact)), default=epsilon)
    drawn, texts = [], []
    for place, ((mechanism, participation), exact) in enumerate(shown):
        holds = exact <= epsilon * (1 + 1e-9)
        length = max(240.0 * min(exact, widest) / widest, 1.5)
        value = format_bound(exact, 3) if math.isfinite(exact) else "infinite"
        verdict = value if holds else f"{value}: false"
        texts.append(f"{mechanism}, participation {participation}: {verdict}")
        template = (
            '<text class="name" x="8" y="{y}">{name}</text><rect class="{style}" x="8" y="{top}" width="{width:.1f}" '
            'height="12" rx="3"/><text class="value" x="{end:.1f}" y="{low}">{verdict}</text>'
        )
        places = {"y": 40 * place + 15, "top": 40 * place + 21, "low": 40 * place + 32, "end": 14 + length}
        style, name = "bar" if holds else "bar false", f"{mechanism}, {participation}"
        drawn.append(filled(template, width=length, style=style, name=name, verdict=verdict, **places))
    title = f"Exact epsilon per cell where {epsilon:g} is claimed"
    return svg("claims", title, "; ".join(texts), 40 * len(shown) + 4, drawn)
