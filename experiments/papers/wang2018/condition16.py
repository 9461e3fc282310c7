"""Condition (16): the crowds for which the range of lambda holds a number, and those that refute Theorem 2."""

import math
from decimal import ROUND_FLOOR, Context

from experiments.papers.exhibit import Configuration, Row, Verdict
from experiments.theory.published_bounds import (
    failure_probability,
    projection_range,
    refuting_workers,
    smallest_tasks,
    smallest_workers,
    truth_error_bound,
)

CROWDS = {
    "Web": 177, "Duchenne": 2134, "AdultContent": 11_040, "1e6 tasks": 10**6, "1e8 tasks": 10**8, "1e12 tasks": 10**12,
    "1e16 tasks": 10**16, "1e20 tasks": 10**20,
}  # fmt: skip
"""Tasks of the sets of Sun et al. and Li et al., and larger numbers."""
WISDOMS = (1.0, 0.3)
"""All workers perfect, the best case, and a crowd of ordinary abilities."""


def measure(configuration: Configuration) -> list[Row]:
    """Return both ends of the range, the smallest crowd that fits, and the one that refutes Theorem 2."""
    epsilon, before = configuration["epsilon"], configuration["before"]
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
            "workers": (workers := refuting_workers(tasks, wisdom)),
            "bound_17": truth_error_bound(workers, wisdom),
            "failure_probability": (failure := failure_probability(workers, tasks, wisdom)),
            "smallest_constant": tasks * failure,
        }
        for crowd, tasks in CROWDS.items()
    ]


def at_least(value: float) -> str:
    """Return a positive number with two digits, rounded down."""
    return f"{float(Context(prec=2, rounding=ROUND_FLOOR).create_decimal_from_float(value)):.1e}"


def verdict(rows: list[Row]) -> Verdict:
    """Return that no crowd of the papers has a lambda in the range, and that the theorem fails in others."""
    published = [row for row in rows if row["crowd"] in ("Web", "Duchenne", "AdultContent")]
    empty = all(row["range_16"] == "empty" for row in published)
    lowest = min(row["smallest_tasks"] for row in rows)
    at_one = {row["crowd"]: row for row in rows if (row["claimed_epsilon"], row["wisdom_before_privacy"]) == (1.0, 1.0)}
    floor = all(row["smallest_tasks"] > CROWDS["AdultContent"] for row in rows)
    small, large = at_one["1e8 tasks"], at_one["1e12 tasks"]
    ordinary = [row for row in rows if row["wisdom_before_privacy"] == WISDOMS[1]]
    least = [
        min(row["smallest_constant"] for row in ordinary if row["crowd"] == f"1e{digits} tasks") for digits in (16, 20)
    ]
    sentence = (
        "range (16) is empty for every crowd of the papers at every epsilon, even if all workers are perfect: it takes "
        f"at least {lowest:,} tasks, at epsilon 1 {small['smallest_tasks']:,}. Where it is not empty Theorem 2 is "
        f"false: with 1e8 tasks, {small['workers']} perfect workers, epsilon 1 and the truths as start all its "
        f"conditions hold and (17) allows no wrong truth, but one occurs with probability at least "
        f"{at_least(small['failure_probability'])}, so that C' exceeds "
        f"{at_least(small['smallest_constant'])}; with 1e12 tasks it exceeds "
        f"{at_least(large['smallest_constant'])}. With wisdom {WISDOMS[1]} before privacy, at every epsilon "
        f"here, it exceeds {at_least(least[0])} with 1e16 tasks and {at_least(least[1])} with 1e20. The "
        f"condition of the step from (30) to (31), with which the theorem holds, takes {small['smallest_workers']:,} "
        "workers at epsilon 1."
    )
    false = all(row["bound_17"] * row["tasks"] < 1 for row in rows) and least[1] > 1000 * least[0] > 0
    return Verdict("not reproduced", sentence, empty and floor and false)
