"""Rows of several seeds: their means, and verdicts that must hold under every seed by itself."""

import math
from collections.abc import Callable

import numpy as np
from experiments.papers.exhibit import Row

POINT = ("crowd", "equal", "mechanism", "inference", "weight", "claimed_epsilon", "distribution")
"""Columns that name a point; the rows of a point differ in seed and in what is measured."""
MEASURED = ("error", "change", "unprotected", "change_at_exact_answer", "change_at_exact_worker")


def pooled(rows: list[Row]) -> list[Row]:
    """Return one row per point: means over the trials of all seeds, with the standard errors of these means.

    Columns that are not measured are the same for all seeds, or those of the first.
    """
    points: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        points.setdefault(tuple(row.get(name) for name in POINT), []).append(row)
    return [_mean(found) for found in points.values()]


def _mean(rows: list[Row]) -> Row:
    """Return the row of all trials of one point."""
    repeats = np.array([row["repeats"] for row in rows])
    found: Row = rows[0] | {"repeats": int(repeats.sum())}
    share = repeats / repeats.sum()
    for name in rows[0]:
        if not (name in MEASURED or name == "deviation" or "standard_error" in name):
            continue
        column = np.array([row[name] for row in rows], dtype=float)
        if name in MEASURED:
            found[name] = float(share @ column)
        elif name == "deviation":
            found[name] = math.sqrt(share @ column**2)
        else:
            found[name] = math.sqrt(share**2 @ column**2)
    return found


def holds_for_every_seed(rows: list[Row], holds: Callable[[list[Row]], bool]) -> bool:
    """Return whether something holds on the rows of every seed by itself."""
    return all(holds([row for row in rows if row["seed"] == seed]) for seed in dict.fromkeys(r["seed"] for r in rows))
