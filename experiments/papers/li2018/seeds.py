"""Rows of several seeds: their means, and verdicts that must hold under every seed by itself."""

import math
from collections.abc import Callable

import numpy as np
from experiments.papers.exhibit import Row

POINT = ("crowd", "equal", "mechanism", "inference", "weight", "claimed_epsilon", "distribution")
"""Columns that name a point; the rows of a point differ in seed and in what is measured."""
MEASURED = ("error", "change", "unprotected", "change_at_exact_answer", "change_at_exact_worker")


def pooled(rows: list[Row]) -> list[Row]:
    """Return one row per point: means over the seeds, with standard errors of these means and all repeats.

    Every seed has as many trials; other columns are the same for all seeds, or those of the first.
    """
    points: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        points.setdefault(tuple(row.get(name) for name in POINT), []).append(row)
    return [_mean(found) for found in points.values()]


def _mean(rows: list[Row]) -> Row:
    """Return the row of all trials of one point."""
    found: Row = rows[0] | {"repeats": sum(int(row["repeats"]) for row in rows)}
    for name in rows[0]:
        if not (name in MEASURED or name == "deviation" or "standard_error" in name):
            continue
        column = np.array([row[name] for row in rows], dtype=float)
        if name in MEASURED:
            found[name] = float(column.mean())
        elif name == "deviation":
            found[name] = float(math.sqrt((column**2).mean()))
        else:
            found[name] = float(math.sqrt((column**2).sum()) / len(column))
    return found


def holds_for_every_seed(rows: list[Row], holds: Callable[[list[Row]], bool]) -> bool:
    """Return whether something holds on the rows of every seed by itself."""
    return all(holds([row for row in rows if row["seed"] == seed]) for seed in dict.fromkeys(r["seed"] for r in rows))
