"""Condition (16): the crowds for which the range of lambda holds a number, and what Theorem 2 needs besides."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from experiments.papers.exhibit import Configuration, Exhibit, OpenParameter, Row, Size, Verdict
from experiments.papers.wang2018.line_chart import draw_lines, legend_below, numbers, panels
from experiments.theory.published_bounds import projection_range, smallest_tasks, smallest_workers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = (
    "mechanism", "claimed_epsilon", "exact_epsilon", "wisdom_before_privacy", "wisdom", "crowd", "tasks", "range_low",
    "range_high", "range_16", "smallest_tasks", "smallest_workers",
)  # fmt: skip
CROWDS = {"Web": 177, "Duchenne": 2134, "AdultContent": 11_040, "one million tasks": 1_000_000, "1e8 tasks": 10**8}
"""Tasks of the sets of Sun et al. and Li et al., and two larger numbers."""
EPSILONS: dict[Size, tuple[float, ...]] = {
    "quick": (1.0, 5.0),
    "default": (0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0),
    "full": (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0),
}
WISDOMS = (1.0, 0.3)
"""All workers perfect, the best case, and a crowd of ordinary abilities."""


def configurations(size: Size) -> list[Configuration]:
    """Return one step per epsilon and wisdom before privacy."""
    return [{"epsilon": epsilon, "before": before} for before in WISDOMS for epsilon in EPSILONS[size]]


def measure(configuration: Configuration) -> list[Row]:
    """Return both ends of the range for each crowd, and the smallest crowd that fits."""
    epsilon, before = numbers(configuration, "epsilon"), numbers(configuration, "before")
    wisdom = before * math.tanh(epsilon / 2) ** 2
    smallest = smallest_tasks(wisdom)
    return [
        {
            "mechanism": "randomized-response, public participation",
            "claimed_epsilon": epsilon,
            "exact_epsilon": epsilon,
            "wisdom_before_privacy": before,
            "wisdom": wisdom,
            "crowd": crowd,
            "tasks": tasks,
            "range_low": 16 / wisdom * math.sqrt(math.log(tasks) / tasks),
            "range_high": 1 / 8 - math.sqrt(math.log(tasks) / tasks) / 2,
            "range_16": "empty" if projection_range(tasks, wisdom) is None else "not empty",
            "smallest_tasks": smallest,
            "smallest_workers": smallest_workers(smallest, wisdom),
        }
        for crowd, tasks in CROWDS.items()
    ]


def draw(rows: list[Row]) -> Figure:
    """Draw the smallest crowd against epsilon."""
    figure, axes = panels(len(WISDOMS))
    for wisdom, axis in zip(WISDOMS, axes, strict=True):
        mine = [row for row in rows if row["wisdom_before_privacy"] == wisdom and row["crowd"] == "Web"]
        draw_lines(axis, mine, "claimed_epsilon", {"smallest_tasks": "tasks m", "smallest_workers": "workers n"})
        axis.axhline(CROWDS["AdultContent"], color="#7a8594", linestyle="--", label="tasks of AdultContent")
        axis.set(title=f"wisdom {wisdom:g} before privacy", xlabel="epsilon", ylabel="smallest number")
    legend_below(figure, axes[0])
    return figure


def verdict(rows: list[Row]) -> Verdict:
    """Return that no crowd of the papers has a lambda in the range, at any epsilon."""
    published = [row for row in rows if row["crowd"] in ("Web", "Duchenne", "AdultContent")]
    empty = all(row["range_16"] == "empty" for row in published)
    lowest = min(int(numbers(row, "smallest_tasks")) for row in rows)
    at_one = next(row for row in rows if row["claimed_epsilon"] == 1.0 and row["wisdom_before_privacy"] == 1.0)
    floor = all(numbers(row, "smallest_tasks") > CROWDS["AdultContent"] for row in rows)
    sentence = (
        "range (16) is empty for every crowd of the papers at every epsilon, even if all workers are perfect: it takes "
        f"at least {lowest:,} tasks, at epsilon 1 {at_one['smallest_tasks']:,}, and the step from (30) to (31) then "
        f"needs {at_one['smallest_workers']:,} workers, which the theorem does not say."
    )
    return Verdict("not reproduced", sentence, empty and floor)


EXHIBIT = Exhibit(
    name="wang2018/condition16",
    title="Crowds that satisfy condition (16)",
    source="Wang and Xu, Theorem 2, equation 16 and the step from equation 30 to 31",
    columns=COLUMNS,
    configurations=configurations,
    measure=measure,
    paper=({"quantity": "sizes", "value": "n and m are sufficiently large, m much larger than n such as in Web and "
            "AdultContent", "read_off": "printed"},),
    draw=draw,
    verdict=verdict,
    open_parameters=(
        OpenParameter("wisdom before privacy", "1, the largest possible", "1 and 0.3",
                      "A smaller wisdom needs more tasks and more workers."),
    ),
    notes=("Epsilon in nats, of one answer, participation public. Exact arithmetic: no crowd is simulated. "
           "`smallest_workers` is at the largest lambda that the smallest number of tasks admits.",),
)  # fmt: skip
