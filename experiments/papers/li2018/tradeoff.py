"""Utility against privacy, Figures 3 and 4: one form of exhibit for both crowds, and what both verdicts rest on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from experiments.papers.exhibit import Row
from experiments.papers.li2018.comparison import (
    FEWER_ANSWERS,
    ONE_PER_ANSWER,
    ONE_PER_WORKER,
    TRUTH,
    TWO,
    Arm,
    claims,
    value,
)
from experiments.papers.li2018.seeds import holds_for_every_seed, pooled


@dataclass(frozen=True, slots=True)
class Order:
    """Claims at which two-layer's change is lower, or higher, by more than two standard errors of the difference.

    Attributes:
        lower, higher: such claims, largest first.
        all: all claims.
    """

    lower: tuple[float, ...]
    higher: tuple[float, ...]
    all: tuple[float, ...]

    @classmethod
    def of(cls, rows: list[Row], other: Arm) -> Order:
        """Return the order of two-layer and another arm on pooled rows."""
        lower, higher = clearly_lower(rows, TWO, other), clearly_lower(rows, other, TWO)
        return cls(tuple(lower), tuple(higher), tuple(claims(rows)))

    @property
    def has_one_crossing(self) -> bool:
        """Whether two-layer is lower from some claim up and higher up to some claim, and nowhere else."""
        above = tuple(claim for claim in self.all if claim >= min(self.lower, default=math.inf))
        below = tuple(claim for claim in self.all if claim <= max(self.higher, default=-math.inf))
        return (above, below) == (self.lower, self.higher)

    def text(self, other: str) -> str:
        """Return in words where two-layer is better, and where the other arm is."""
        lower = f"at claims from {min(self.lower):g} up" if self.lower else "at no claim"
        higher = f"at claims up to {max(self.higher):g}" if self.higher else "at none"
        return f"two-layer is better {lower}, {other} {higher}"

    def holds_on(self, rows: list[Row], other: Arm) -> bool:
        """Return whether the changes of some rows have the same order at these claims."""

        def gap(claimed: float) -> float:
            return value(rows, "change", TWO, TRUTH, claimed) - value(rows, "change", other, TRUTH, claimed)

        return all(gap(claim) < 0 for claim in self.lower) and all(gap(claim) > 0 for claim in self.higher)


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """What both verdicts say: the order of two-layer and one-layer over all answers, and over fewer."""

    rows: list[Row]
    worker: Order
    fewer: Order

    @classmethod
    def of(cls, rows: list[Row]) -> Tradeoff:
        """Return the orders on the rows of all seeds."""
        own = pooled(rows)
        return cls(own, Order.of(own, ONE_PER_WORKER), Order.of(own, FEWER_ANSWERS))

    def change(self, arm: Arm, claimed: float) -> float:
        """Return the change of truth discovery's error of an arm."""
        return float(value(self.rows, "change", arm, TRUTH, claimed))

    @property
    def repeats(self) -> str:
        """Number of trials in words."""
        return f"{value(self.rows, 'repeats', TWO, TRUTH, 1.0):,}"

    @property
    def noise(self) -> float:
        """Largest standard error of a change."""
        return max(
            float(value(self.rows, "standard_error", arm, TRUTH, claimed))
            for arm in (TWO, ONE_PER_WORKER, FEWER_ANSWERS)
            for claimed in claims(self.rows)
        )

    def holds(self, rows: list[Row]) -> bool:
        """Return whether one-layer is better per answer at every claim, and the orders hold under every seed."""

        def on(own: list[Row]) -> bool:
            better = all(
                value(own, "change", ONE_PER_ANSWER, TRUTH, claimed) < value(own, "change", TWO, TRUTH, claimed)
                for claimed in claims(own)
            )
            grows = _grows_as_claims_fall(own)
            orders = self.worker.holds_on(own, ONE_PER_WORKER) and self.fewer.holds_on(own, FEWER_ANSWERS)
            return better and grows and orders

        crossing = self.worker.has_one_crossing and self.fewer.has_one_crossing
        return crossing and holds_for_every_seed(rows, on) and costs_no_more(self.rows)


def _grows_as_claims_fall(rows: list[Row]) -> bool:
    """Return whether two-layer's change grows from claim 1 to .1, with no step down that is more than noise."""
    found = [
        [value(rows, name, TWO, TRUTH, claimed) for claimed in claims(rows) if claimed > 0.05]
        for name in ("change", "standard_error")
    ]
    steps = zip(pairwise(found[0]), pairwise(found[1]), strict=True)
    return found[0][0] < found[0][-1] and all(low - high < 3 * math.hypot(*noise) for (low, high), noise in steps)


def clearly_lower(rows: list[Row], first: Arm, second: Arm) -> list[float]:
    """Return the claims at which the change of `first` is lower by more than two standard errors of the difference."""

    def number(name: str, arm: Arm, claimed: float) -> float:
        return value(rows, name, arm, TRUTH, claimed)

    def noise(claimed: float) -> float:
        return math.hypot(*(number("standard_error", arm, claimed) for arm in (first, second)))

    return [c for c in claims(rows) if number("change", second, c) - number("change", first, c) > 2 * noise(c)]


def costs_no_more(rows: list[Row]) -> bool:
    """Return whether one-layer has at most the exact epsilon of two-layer, to the digits of a table, wherever both are
    said to be equal: of an answer or of a worker."""
    names = {"exact, answer": "exact_epsilon", "exact, worker": "exact_worker_epsilon"}
    names["exact, worker, fewer answers"] = "exact_worker_epsilon"
    return all(
        row[name] <= value(rows, name, TWO, TRUTH, row["claimed_epsilon"]) * (1 + 1e-4)
        for row in rows
        if (name := names.get(str(row["equal"])))
    )
