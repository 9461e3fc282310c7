"""HTML page of the demo: one file without external resources."""

import math
from collections.abc import Sequence
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from crowdveil.channels.rounding import format_bound
from crowdveil.comparison.trials import ASSIGNED, Row, sampling_error_sentence
from crowdveil.demo.chart import QUALITY_EPSILON, error_picture, is_at_quality_epsilon
from crowdveil.demo.conclusion import conclusion_text
from crowdveil.demo.crowds import DemoCrowd
from crowdveil.release.results_page import style_sheet

CLOSE = 0.005
"""Relative difference up to which an error equals that of the constant."""
PARTICIPATION_TEXTS = {ASSIGNED: "participation hidden among assigned cells only"}
"""Participation texts that differ from "participation NAME"."""


def page_html(crowds: Sequence[DemoCrowd], rows: Sequence[Row], seed: int) -> str:
    """Return the page as text.

    Args:
        crowds: crowds in the order of the page.
        rows: of all trials, also of the unprotected ones.
        seed: seed of the simulated devices, which the page states.
    """
    environment = Environment(
        loader=PackageLoader("crowdveil.demo", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {
        "claim": claim_text,
        "constant": constant_text,
        "bound": bound_text,
        "verdict": comparison_with_constant,
        "participation_text": participation_text,
    }
    return environment.get_template("demo.html").render(
        seed=seed,
        style=Markup(style_sheet()),
        chapters=[_chapter(crowd, [row for row in rows if row.crowd == crowd.name]) for crowd in crowds],
    )


def _chapter(crowd: DemoCrowd, rows: Sequence[Row]) -> dict[str, object]:
    groups = groupby(rows, key=lambda row: (row.mechanism, row.participation, row.requested))
    all_groups = [list(group) for _, group in groups]
    return {
        "crowd": crowd,
        "shown_epsilon": QUALITY_EPSILON,
        "conclusion": conclusion_text(crowd, rows) + sampling_error_sentence(rows[0]),
        "errors": error_picture(crowd, rows),
        "groups": all_groups,
        "short": [group for group in all_groups if group[0].requested is None or is_at_quality_epsilon(group[0])],
        "error_name": "wrong" if crowd.error == "error_rate" else "MAE",
        "constant": rows[0].constant,
        "constant_error": rows[0].constant_error,
    }


def participation_text(participation: str) -> str:
    """Return the text of a participation."""
    return PARTICIPATION_TEXTS.get(participation, f"participation {participation}")


def comparison_with_constant(row: Row) -> str:
    """Return "better", "equal" or "worse": the error of a row compared with that of the best constant."""
    if abs(row.error - row.constant_error) <= CLOSE * max(1.0, row.constant_error):
        return "equal"
    return "better" if row.error < row.constant_error else "worse"


def constant_text(constant: str) -> str:
    """Return a constant; a number with three digits."""
    try:
        return f"{float(constant):.3g}"
    except ValueError:
        return constant


def claim_text(value: float | None) -> str:
    """Return a claimed epsilon, rounded to four digits."""
    return "–" if value is None else f"{value:.4g}"


def bound_text(value: float | None) -> str:
    """Return an exact epsilon, rounded up to four digits, or to a whole number from 1,000."""
    if value is None:
        return "–"
    if math.isinf(value):
        return "infinite"
    return f"{math.ceil(value):,}" if value >= 1000 else format_bound(value, 4)
