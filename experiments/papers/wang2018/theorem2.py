"""Theorem 2: the bound (17) on the share of wrong truths beside measured errors, over m, n, epsilon and lambda."""

import math

import numpy as np
from experiments.papers.exhibit import Configuration, Row, Verdict
from experiments.papers.wang2018.condition16 import at_least
from experiments.papers.wang2018.dense_crowd import (
    channel_projection,
    draw_crowd,
    error_from_15,
    errors_of,
    mean_row,
)
from experiments.theory.published_bounds import (
    failure_probability,
    private_wisdom,
    projection_range,
    refuting_workers,
    truth_error_bound,
)
from numpy.typing import NDArray

LARGEST_FIT = 300_000
"""Cells from which the default inference is not run."""


def abilities_of(crowd: str, workers: int) -> NDArray[np.float64]:
    """Return the abilities of a crowd of `CROWDS`, shape (workers,)."""
    if crowd == "uniform":
        return np.linspace(0.5, 1, workers)
    return np.where(np.arange(workers) % 10 == 0, 1.0, 0.5)


def measure(step: Configuration) -> list[Row]:
    """Return the mean errors of one crowd size, epsilon and lambda; lambda None is that of the channel."""
    workers, tasks, epsilon, iterations = (step[name] for name in ("workers", "tasks", "epsilon", "iterations"))
    given = step.get("projection")
    projection = channel_projection(epsilon) if given is None else given
    generator = np.random.default_rng([step["seed"], workers, tasks, round(1000 * epsilon)])
    abilities = abilities_of(step["crowd"], workers)
    wisdom = private_wisdom(abilities, epsilon)
    runs = []
    for _ in range(step["repeats"]):
        crowd = draw_crowd(abilities, tasks, epsilon, generator)
        runs.append(errors_of(crowd, projection, LARGEST_FIT, iterations))
        runs[-1]["error_from_15"] = error_from_15(crowd, projection, generator, iterations)
    range_16 = projection_range(tasks, wisdom)
    return [
        mean_row(runs)
        | {
            "sweep": step["sweep"],
            "crowd": step["crowd"],
            "mechanism": "randomized-response, public participation",
            "workers": workers,
            "tasks": tasks,
            "claimed_epsilon": epsilon,
            "exact_epsilon": epsilon,
            "exact_epsilon_worker": tasks * epsilon,
            "projection": projection,
            "iterations": iterations,
            "wisdom": wisdom,
            "size_conditions": size_conditions(workers, tasks, wisdom),
            "range_16": "empty" if range_16 is None else f"{range_16[0]:.3g} to {range_16[1]:.3g}",
            "bound_17": truth_error_bound(workers, wisdom),
            "sound_bound": truth_error_bound(workers, wisdom) / 4,
        }
    ]


def size_conditions(workers: int, tasks: int, wisdom: float) -> str:
    """Return whether n <= m <= e^n and log m / n <= v hold."""
    holds = workers <= tasks and math.log(tasks) <= workers * min(1.0, wisdom)
    return "hold" if holds else "fail"


def verdict(rows: list[Row]) -> Verdict:
    """Return that the theorem is false, that no crowd here has a lambda in (16), and where the bound is met."""
    wisdom, tasks = private_wisdom([1.0], 1.0), 10**8
    workers = refuting_workers(tasks, wisdom)
    failure = failure_probability(workers, tasks, wisdom)
    empty = all(row["range_16"] == "empty" for row in rows)
    inside = [row for row in rows if row["size_conditions"] == "hold"]
    beyond = [row for row in rows if row["workers"] > row["tasks"]]
    met = all(max(row["error"], row["error_from_15"]) <= row["bound_17"] for row in inside)
    one_error = [row for row in inside if row["bound_17"] * row["tasks"] * row["repeats"] < 1]
    known = all(row["known_abilities"] <= row["sound_bound"] for row in rows)
    above = [row for row in beyond if row["error_from_15"] > row["bound_17"]]
    worst = max(beyond, key=lambda row: row["error_from_15"] - row["bound_17"])
    refuted = worst["error_from_15"] > worst["bound_17"] + 0.05
    sentence = (
        f"the theorem is false: with 1e8 tasks, {workers} perfect workers and epsilon 1 all conditions hold, (17) "
        f"allows no wrong truth, and one occurs with probability at least {at_least(failure)}, where C' / m is claimed "
        "(exact; wang2018/condition16 has larger m, for which no C' is large enough). No crowd here has a lambda in "
        "range (16), so the theorem applies to none of them. The mean error stays below the bound in all "
        f"{len(inside)} rows that satisfy n <= m <= e^n and log m / n <= v; in {len(one_error)} of them the bound is "
        f"below one error in all runs. In {len(above)} of {len(beyond)} rows with more workers than tasks a start that "
        f"(15) allows confirms itself: error {worst['error_from_15']:.2g} > "
        f"{worst['bound_17']:.1g} with {worst['workers']} workers and {worst['tasks']} tasks."
    )
    false = truth_error_bound(workers, wisdom) * tasks < 1 and failure * tasks > 1e5
    return Verdict("not reproduced", sentence, empty and met and known and refuted and false)
