"""HTML page of the demo: one file without external resources."""

import math
from collections.abc import Sequence
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from crowdveil.channels.rounding import format_bound
from crowdveil.comparison.demo.crowds import DemoCrowd
from crowdveil.comparison.trials import NotRun, Row, sampling_error_sentence, sentences_not_run
from crowdveil.display.html import Html
from crowdveil.display.svg_pictures import line_chart
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.pages.results_page import style_sheet

CLOSE = 0.005
"""Relative difference up to which an error equals that of the constant."""
CHANNEL_LINES = 3
"""Largest number of lines of methods with a noise model in a chart."""
HEADROOM = 1.6
"""Height of a chart, as a multiple of the constant's error; lines are cut there."""


def page_html(crowds: Sequence[DemoCrowd], rows: Sequence[Row], seed: int, not_run: Sequence[NotRun] = ()) -> str:
    """Return the page as text.

    Args:
        crowds: crowds in the order of the page.
        rows: of all trials, also of the unprotected ones.
        seed: seed of the simulated devices, which the page states.
        not_run: pairs of mechanism and method without a row.
    """
    environment = Environment(
        loader=PackageLoader("crowdveil.comparison.demo", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {
        "claim": claimed_epsilon_text,
        "constant": constant_with_three_digits,
        "bound": exact_epsilon_text,
        "verdict": comparison_with_constant,
    }
    return environment.get_template("demo.html").render(
        seed=seed,
        style=Markup(style_sheet()),
        chapters=[
            _page_values_of_crowd(crowd, [row for row in rows if row.crowd == crowd.name])
            | {"not_run": sentences_not_run([pair for pair in not_run if pair.crowd == crowd.name], rows)}
            for crowd in crowds
        ],
    )


def _page_values_of_crowd(crowd: DemoCrowd, rows: Sequence[Row]) -> dict[str, object]:
    groups = groupby(rows, key=lambda row: (row.mechanism, row.participation, row.requested))
    return {
        "crowd": crowd,
        "spread": sampling_error_sentence(rows[0]),
        "errors": error_picture(crowd, rows),
        "groups": [list(group) for _, group in groups],
        "error_name": "wrong" if crowd.error == "error_rate" else "MAE",
        "constant": rows[0].constant,
        "constant_error": rows[0].constant_error,
    }


def chart_lines(rows: Sequence[Row]) -> list[tuple[str, list[tuple[float, float]]]]:
    """Return name and points (epsilon, error) of the lines of a chart, all on randomized response.

    The methods with the channel in the likelihood that have the smallest errors, then the best one without.
    """
    points: dict[tuple[bool, str], list[tuple[float, float]]] = {}
    for row in rows:
        if row.mechanism == RandomizedResponse.name and row.requested is not None:
            points.setdefault((row.channel_used, row.estimator), []).append((row.requested, row.error))
    ranked = sorted(points, key=lambda line: sum(error for _, error in points[line]))
    aware = [(name, points[True, name]) for used, name in ranked if used][:CHANNEL_LINES]
    return aware + [("noise ignored", points[False, name]) for used, name in ranked if not used][:1]


def error_picture(crowd: DemoCrowd, rows: Sequence[Row]) -> Html:
    """Draw error by epsilon from the rows of a crowd, with the name of each line at its end."""
    constant, best = rows[0].constant_error, min(row.error for row in rows if row.requested is None)
    return line_chart(
        f"Error by epsilon on {crowd.title}",
        "epsilon per cell",
        chart_lines(rows),
        [("best constant", constant), ("unprotected", best)],
        name=f"error-{crowd.name}".replace("_", "-"),
        top=HEADROOM * max(constant, best),
    )


def comparison_with_constant(row: Row) -> str:
    """Return "better", "equal" or "worse": the error of a row compared with that of the best constant."""
    if abs(row.error - row.constant_error) <= CLOSE * max(1.0, row.constant_error):
        return "equal"
    return "better" if row.error < row.constant_error else "worse"


def constant_with_three_digits(constant: str) -> str:
    """Return a constant; a number with three digits."""
    try:
        return f"{float(constant):.3g}"
    except ValueError:
        return constant


def claimed_epsilon_text(value: float | None) -> str:
    """Return a claimed epsilon, rounded to four digits."""
    return "–" if value is None else f"{value:.4g}"


def exact_epsilon_text(value: float | None) -> str:
    """Return an exact epsilon, rounded up to four digits, or to a whole number from 1,000."""
    if value is None:
        return "–"
    if math.isinf(value):
        return "infinite"
    return f"{math.ceil(value):,}" if value >= 1000 else format_bound(value, 4)
