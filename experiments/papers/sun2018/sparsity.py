"""MAE change against sparsity at epsilon 0.1 and 1: what Figures 3 and 4 share."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from experiments.papers.exhibit import Configuration, Row, Size
from experiments.papers.sun2018.accuracy import OURS, at, ours_is_best, points, step
from experiments.papers.sun2018.published import setting_text, settings

CLAIMS = (0.1, 1.0)
SPARSITIES: dict[Size, tuple[float, ...]] = {
    "quick": (0.5, 0.9),
    "default": (0.5, 0.7, 0.9),
    "full": (0.5, 0.6, 0.7, 0.8, 0.9),
}
Crowds = dict[Size, tuple[int, int]]
"""Workers and tasks of a size."""
Repeats = dict[Size, int]
"""Crowds of a point, the same for every mechanism."""


class Summary(NamedTuple):
    """Largest MAE change of MF of rank 5 and ridge 0.1 at epsilon 0.1 and 1; whether RR and LP grow at epsilon 1, the
    constant 0 is better than MF and crowdveil best everywhere; and a clause on crowdveil, empty if it was left out."""

    at_tenth: float
    at_one: float
    holds: bool
    better: str


def steps(size: Size, crowds: Crowds, repeats: Repeats, mechanisms: Sequence[str]) -> list[Configuration]:
    """Return the steps of one of the two figures."""
    workers, tasks = crowds[size]
    return [
        step(one, epsilon, workers=workers, tasks=tasks, sparsity=sparsity, repeats=repeats[size])
        for epsilon in CLAIMS
        for sparsity in SPARSITIES[size]
        for one in mechanisms
    ]


def is_main(row: Row) -> bool:
    """Return whether a row is one of the figure: of MF those with the parameters of all figures."""
    return row["mechanism"] != "MF" or row["setting"] == setting_text({"mechanism": "MF"} | settings("MF"))


def summary(rows: list[Row]) -> Summary:
    """Return what both verdicts rest on."""
    places = points(rows, "sparsity", "claimed_epsilon")
    most = {
        epsilon: max(float(at(rows, "MF", **p)["change"]) for p in places if p["claimed_epsilon"] == epsilon)
        for epsilon in CLAIMS
    }
    trivial = all(at(rows, "MF", **p)["constant"] < at(rows, "MF", **p)["error"] for p in places)
    changes = [
        [
            at(rows, name, sparsity=sparsity, claimed_epsilon=1.0)["change"]
            for sparsity in sorted({p["sparsity"] for p in places})
        ]
        for name in ("RR", "LP")
    ]
    grows = all(low < high for line in changes for low, high in pairwise(line))
    ours = [p for p in places if any(row["mechanism"] == OURS for row in rows)]
    better = "; crowdveil at the exact epsilon of RR has the smallest change at every point" if ours else ""
    return Summary(most[0.1], most[1.0], trivial and grows and all(ours_is_best(rows, p) for p in ours), better)
