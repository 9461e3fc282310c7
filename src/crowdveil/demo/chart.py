"""Chart of the demo: error by epsilon, with at most `MAX_LINES` lines."""

import math
from collections.abc import Sequence

from crowdveil.comparison.trials import ASSIGNED, CHANNEL_SUFFIX, PROTECTED, Row
from crowdveil.demo.crowds import DemoCrowd
from crowdveil.presentation.html import Html
from crowdveil.presentation.svg_pictures import line_chart

MAX_LINES = 6
"""Largest number of lines in a chart, with those of the constant and of unprotected answers."""
HEADROOM = 1.6
"""Height of a chart, as a multiple of the constant's error; lines are cut there."""
QUALITY_EPSILON = 3.0
"""Epsilon at which methods are compared."""
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
    ranked = sorted(filter(is_at_quality_epsilon, shown), key=lambda row: row.error)
    response = [row for row in ranked if row.mechanism == RESPONSE]
    naive = [(RESPONSE, row.method) for row in response if not row.channel_used][:1]
    assigned = [row for row in rows if row.participation == ASSIGNED and row.method == method]
    others = {row.mechanism: (row.mechanism, row.method) for row in reversed(ranked) if row.mechanism != RESPONSE}
    further = [others[row.mechanism] for row in ranked if row.mechanism in others]
    further += [(RESPONSE, row.method) for row in response if row.channel_used]
    chosen = list(dict.fromkeys([(RESPONSE, method), *naive, *further]))[: MAX_LINES - 2 - bool(assigned)]
    found = [(_line_name(key, naive), _points([row for row in shown if _line_key(row) == key])) for key in chosen]
    return found + ([("assigned cells", _points(assigned))] if assigned else [])


def is_at_quality_epsilon(row: Row) -> bool:
    """Return whether a row has the epsilon of the short tables; that of a designed channel is rounded."""
    return row.requested is not None and math.isclose(row.requested, QUALITY_EPSILON, rel_tol=1e-6)


def _line_key(row: Row) -> tuple[str, str]:
    return row.mechanism, row.method


def _points(rows: Sequence[Row]) -> list[tuple[float, float]]:
    return sorted((round(row.requested or 0.0, 6), row.error) for row in rows)


def _line_name(key: tuple[str, str], naive: Sequence[tuple[str, str]]) -> str:
    """Return the mechanism of a line; on randomized response the method, without the suffix."""
    if key in naive:
        return IGNORED
    return key[1].removesuffix(CHANNEL_SUFFIX) if key[0] == RESPONSE else key[0]


def error_picture(crowd: DemoCrowd, rows: Sequence[Row]) -> Html:
    """Draw error by epsilon from the rows of a crowd, with the name of each line at its end."""
    constant, best = rows[0].constant_error, min(row.error for row in rows if row.requested is None)
    return line_chart(
        f"Error by epsilon on {crowd.title}",
        "epsilon per cell",
        chart_lines(crowd, rows),
        [("best constant", constant), ("unprotected", best)],
        name=f"error-{crowd.name}".replace("_", "-"),
        top=HEADROOM * max(constant, best),
    )
