"""The demo's page: one HTML file with everything inside, nothing fetched."""

import math
from collections.abc import Sequence
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from crowdveil.channels.rounding import format_bound
from crowdveil.demo.pictures import claims_picture, error_picture, reported_method, worker_picture
from crowdveil.demo.scenes import Scene
from crowdveil.demo.trials import ASSIGNED, FEWEST_REPORTS, PROTECTED, QUALITY_EPSILON, THROUGH, Result, Row
from crowdveil.plotting import has_matplotlib

CLAIMED = 1.0
CLOSE = 0.005
"""Errors closer to the constant's than this are called equal to it."""
HIDDEN = {ASSIGNED: "participation hidden among assigned cells only"}
"""What a participation is called where its own word would not say it."""


def render(scenes: Sequence[Scene], results: Sequence[Result], seed: int) -> str:
    """Return the page as text.

    Args:
        scenes: the crowds, in order.
        results: all trials, unprotected ones included.
        seed: of the simulated devices; the page says that it is a simulation.
    """
    environment = Environment(
        loader=PackageLoader("crowdveil.demo", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {"claim": show_claim, "bound": show_bound, "verdict": verdict, "hidden": hidden}
    rows, drawn = [row for result in results for row in result.rows], has_matplotlib()
    return environment.get_template("demo.html").render(
        seed=seed,
        fewest=FEWEST_REPORTS,
        chapters=[_chapter(scene, results, drawn) for scene in scenes],
        drawn=drawn,
        claims=Markup(claims_picture(rows, CLAIMED)) if drawn else None,
        claimed=CLAIMED,
    )


def _chapter(scene: Scene, results: Sequence[Result], drawn: bool) -> dict[str, object]:
    rows = [row for result in results for row in result.rows if row.scene == scene.name]
    groups = groupby(rows, key=lambda row: (row.mechanism, row.participation, row.asked))
    everything = [list(group) for _, group in groups]
    labels = scene.error == "error_rate"
    return {
        "scene": scene,
        "shown_epsilon": QUALITY_EPSILON,
        "summary": summary(rows, reported_method(scene)) + chance(rows[0]),
        "errors": Markup(error_picture(scene, results)) if drawn else None,
        "workers": Markup(worker_picture(scene, results)) if labels and drawn else None,
        "groups": everything,
        "short": [group for group in everything if _in_short(group[0].asked)],
        "error_name": "wrong" if labels else "MAE",
        "constant": rows[0].constant,
        "constant_error": rows[0].constant_error,
    }


def hidden(participation: str) -> str:
    """Say what is hidden of who answered what."""
    return HIDDEN.get(participation, f"participation {participation}")


def summary(rows: Sequence[Row], method: str) -> str:
    """Say in a few sentences what a reader should see of a method, from the numbers at one epsilon."""
    response = [row for row in rows if row.mechanism == "randomized-response" and row.asked == QUALITY_EPSILON]
    there = [row for row in response if row.participation == PROTECTED]
    naive = min((row for row in there if not row.through_channel), key=lambda row: row.error)
    knowing = next(row for row in there if row.method == method + THROUGH)
    best = min((row for row in rows if row.asked is None), key=lambda row: row.error)
    return (
        f"At epsilon {QUALITY_EPSILON:g} per cell with participation protected, the best naive reading of randomized "
        f"response ({naive.method}) errs by {naive.error:.3f}: {_against(naive)} the constant {naive.constant} "
        f"({naive.constant_error:.3f}). The same reports read through the channel ({method}) err by "
        f"{knowing.error:.3f}: {_against(knowing)} the constant.{_assigned(response, method)} "
        f"Unprotected answers give {best.error:.3f} ({best.method})."
    )


def _assigned(rows: Sequence[Row], method: str) -> str:
    """Say what the same method reaches where cells were assigned; nothing where they were not."""
    found = [row for row in rows if row.participation == ASSIGNED and row.method == method + THROUGH]
    if not found:
        return ""
    return (
        f" Where only assigned cells report, and who skipped which of these is what stays hidden, a weaker promise, "
        f"it is {found[0].error:.3f}."
    )


def chance(row: Row) -> str:
    """Say how large a difference of error rates may be chance: two standard errors of the constant's own error."""
    if row.error_name != "error_rate":
        return ""
    wide = 2 * math.sqrt(row.constant_error * (1 - row.constant_error) / max(row.scored, 1))
    return f" With {row.scored:,} gold tasks, differences below about {wide:.2f} may be chance."


def _in_short(asked: float | None) -> bool:
    """Return whether a group belongs into the short table; a designed channel's epsilon is rounded to its integers."""
    return asked is None or math.isclose(asked, QUALITY_EPSILON, rel_tol=1e-6)


def _against(row: Row) -> str:
    return {"better": "better than", "equal": "no better than", "worse": "worse than"}[verdict(row)]


def verdict(row: Row) -> str:
    """Return "better", "equal" or "worse": the row's error against the best constant's."""
    if abs(row.error - row.constant_error) <= CLOSE * max(1.0, row.constant_error):
        return "equal"
    return "better" if row.error < row.constant_error else "worse"


def show_claim(value: float | None) -> str:
    """Return a claimed epsilon for people, to the nearest of four digits."""
    return "–" if value is None else f"{value:.4g}"


def show_bound(value: float | None) -> str:
    """Return an exact epsilon for people, rounded up to four digits, or to a whole number."""
    if value is None:
        return "–"
    if math.isinf(value):
        return "infinite"
    return f"{math.ceil(value):,}" if value >= 1000 else format_bound(value, 4)
