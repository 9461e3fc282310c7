"""HTML page of the demo: one file without external resources."""

import math
from collections.abc import Sequence
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from crowdveil.channels.rounding import format_bound
from crowdveil.demo.conclusion import conclude
from crowdveil.demo.crowds import DemoCrowd
from crowdveil.demo.pictures import claims_picture, error_picture, reported_method, worker_picture
from crowdveil.demo.trials import ASSIGNED, CHANNEL_SUFFIX, MIN_ANSWERS, PROTECTED, QUALITY_EPSILON, Result, Row
from crowdveil.release.page import style_sheet

CLAIMED = 1.0
CLOSE = 0.005
"""Relative difference up to which an error equals that of the constant."""
PARTICIPATION_TEXTS = {ASSIGNED: "participation hidden among assigned cells only"}
"""Participation texts that differ from "participation NAME"."""


def render(crowds: Sequence[DemoCrowd], results: Sequence[Result], seed: int) -> str:
    """Return the page as text.

    Args:
        crowds: crowds in the order of the page.
        results: results of all trials, also of the unprotected ones.
        seed: seed of the simulated devices, which the page states.
    """
    environment = Environment(
        loader=PackageLoader("crowdveil.demo", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {
        "claim": show_claim,
        "constant": show_constant,
        "bound": show_bound,
        "verdict": verdict,
        "participation_text": participation_text,
    }
    rows = [row for result in results for row in result.rows]
    return environment.get_template("demo.html").render(
        seed=seed,
        fewest=MIN_ANSWERS,
        style=Markup(style_sheet()),
        chapters=[_chapter(crowd, results) for crowd in crowds],
        claims=claims_picture(rows, CLAIMED),
        claimed=CLAIMED,
    )


def _chapter(crowd: DemoCrowd, results: Sequence[Result]) -> dict[str, object]:
    rows = [row for result in results for row in result.rows if row.crowd == crowd.name]
    groups = groupby(rows, key=lambda row: (row.mechanism, row.participation, row.requested))
    all_groups = [list(group) for _, group in groups]
    labels = crowd.error == "error_rate"
    return {
        "crowd": crowd,
        "shown_epsilon": QUALITY_EPSILON,
        "summary": summary(rows, reported_method(crowd)) + sampling_error(rows[0]),
        "conclusion": conclude(crowd, rows),
        "errors": error_picture(crowd, results),
        "workers": worker_picture(crowd, results) if labels else None,
        "groups": all_groups,
        "short": [group for group in all_groups if _in_short(group[0].requested)],
        "error_name": "wrong" if labels else "MAE",
        "constant": rows[0].constant,
        "constant_error": rows[0].constant_error,
    }


def participation_text(participation: str) -> str:
    """Return the text of a participation."""
    return PARTICIPATION_TEXTS.get(participation, f"participation {participation}")


def summary(rows: Sequence[Row], method: str) -> str:
    """Return a summary of a method against the constant at epsilon `QUALITY_EPSILON`."""
    response = [row for row in rows if row.mechanism == "randomized-response" and row.requested == QUALITY_EPSILON]
    there = [row for row in response if row.participation == PROTECTED]
    naive = min((row for row in there if not row.channel_used), key=lambda row: row.error)
    channel_aware = next(row for row in there if row.method == method + CHANNEL_SUFFIX)
    best = min((row for row in rows if row.requested is None), key=lambda row: row.error)
    return (
        f"At epsilon {QUALITY_EPSILON:g} per cell with participation protected, the best method without a noise "
        f"model ({naive.method}) has error {naive.error:.3f} on reports of randomized response: {_compared(naive)} the "
        f"constant {show_constant(naive.constant)} ({naive.constant_error:.3f}). With the channel in the likelihood "
        f"{method} has error {channel_aware.error:.3f}: {_compared(channel_aware)} the constant."
        f"{_assigned(response, method)} Unprotected answers give {best.error:.3f} ({best.method})."
    )


def _assigned(rows: Sequence[Row], method: str) -> str:
    """Return a sentence with the error of the method on assigned cells; empty without an assignment."""
    found = [row for row in rows if row.participation == ASSIGNED and row.method == method + CHANNEL_SUFFIX]
    if not found:
        return ""
    return (
        f" If only assigned cells report, the error is {found[0].error:.3f}; the guarantee is weaker, since it hides "
        f"only which assigned tasks a worker skipped."
    )


def sampling_error(row: Row) -> str:
    """Return a sentence with two standard errors of the constant's error rate; empty for numbers, and without any."""
    if row.error_name != "error_rate" or not 0 < row.constant_error < 1:
        return ""
    two_errors = 2 * math.sqrt(row.constant_error * (1 - row.constant_error) / max(row.scored, 1))
    return f" With {row.scored:,} gold tasks, differences below about {two_errors:.2f} are within two standard errors."


def _in_short(requested: float | None) -> bool:
    """Return whether a group is in the short table; the epsilon of a designed channel is rounded."""
    return requested is None or math.isclose(requested, QUALITY_EPSILON, rel_tol=1e-6)


def _compared(row: Row) -> str:
    return {"better": "better than", "equal": "no better than", "worse": "worse than"}[verdict(row)]


def verdict(row: Row) -> str:
    """Return "better", "equal" or "worse": the error of a row compared with that of the best constant."""
    if abs(row.error - row.constant_error) <= CLOSE * max(1.0, row.constant_error):
        return "equal"
    return "better" if row.error < row.constant_error else "worse"


def show_constant(constant: str) -> str:
    """Return a constant; a number with three digits."""
    try:
        return f"{float(constant):.3g}"
    except ValueError:
        return constant


def show_claim(value: float | None) -> str:
    """Return a claimed epsilon, rounded to four digits."""
    return "–" if value is None else f"{value:.4g}"


def show_bound(value: float | None) -> str:
    """Return an exact epsilon, rounded up to four digits, or to a whole number from 1,000."""
    if value is None:
        return "–"
    if math.isinf(value):
        return "infinite"
    return f"{math.ceil(value):,}" if value >= 1000 else format_bound(value, 4)
