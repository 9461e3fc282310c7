"""Utility against privacy, Figures 3 and 4: one form of exhibit for both crowds, and what both verdicts rest on."""

from __future__ import annotations

import math
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of the error rate of truth discovery, by claimed epsilon.

    Attributes:
        two: two-layer.
        answer, worker, fewer: one-layer at the same exact epsilon of an answer, of a worker, and of a worker on
            fewer answers.
    """

    two: dict[float, float]
    answer: dict[float, float]
    worker: dict[float, float]
    fewer: dict[float, float]

    @classmethod
    def of(cls, rows: list[Row]) -> Changes:
        """Return the changes that the rows hold."""
        arms: tuple[Arm, ...] = (TWO, ONE_PER_ANSWER, ONE_PER_WORKER, FEWER_ANSWERS)
        return cls(*({claimed: value(rows, "change", arm, TRUTH, claimed) for claimed in claims(rows)} for arm in arms))

    @property
    def wins(self) -> list[float]:
        """Claims at which two-layer is better than one-layer at the same exact epsilon of a worker."""
        return [claimed for claimed in self.two if self.two[claimed] < self.worker[claimed]]

    @property
    def fewer_wins(self) -> list[float]:
        """Claims at which one-layer on fewer answers is better than two-layer at the same exact epsilon of a worker."""
        return [claimed for claimed in self.two if self.fewer[claimed] < self.two[claimed]]

    @property
    def fewer_wins_below(self) -> bool:
        """Whether one-layer on fewer answers is better from claim 0 up to some claim, and nowhere else."""
        return self.fewer_wins == [claimed for claimed in self.two if claimed <= max(self.fewer_wins, default=-1.0)]

    @property
    def order_follows_the_unit(self) -> bool:
        """Whether one-layer is better per answer at every claim, and two-layer per worker from some claim up to 1."""
        wins = self.wins
        ordered = wins == [claimed for claimed in self.two if claimed >= min(wins, default=0.0)]
        better = all(self.answer[claimed] < self.two[claimed] for claimed in self.two)
        return better and ordered and 1.0 in wins and 0.0 not in wins and self.two[1.0] < self.two[0.0]


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
