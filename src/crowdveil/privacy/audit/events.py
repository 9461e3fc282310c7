"""Search for the event that tells the outputs of two inputs apart best.

An event is a set of values of one column. The column is fitted, and values are ordered by their likelihood ratio, on
one quarter of the draws; the event is selected on another quarter. The half that gives the bound is not used here.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.privacy.audit.columns import Column, distinguishing_columns
from crowdveil.privacy.audit.confidence import wilson_limits
from crowdveil.privacy.audit.outputs import DrawnOutputs, Values

MOST_VALUES = 4096
"""Most values of a column that are ordered by likelihood ratio, and most thresholds."""
SHOWN_VALUES = 4

Objective = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
"""Bound, up to a monotone function, from lower limits under the first input and upper limits under the second."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Nested events of a column: the n-th contains the values with rank below n.

    Attributes:
        known: values in ascending order.
        rank: rank of each known value; empty for thresholds, where the rank is the number of smaller known values.
        sign: -1 if thresholds are lower ends.
    """

    known: Values
    rank: NDArray[np.int64]
    sign: int = 1

    def __call__(self, values: Values) -> NDArray[np.int64]:
        """Return ranks, shape (draws,); a value that is in no event has the largest rank."""
        place = np.searchsorted(self.known, self.sign * values)
        if not len(self.rank):
            return np.asarray(place)
        at = np.minimum(place, len(self.known) - 1)
        return np.where(self.known[at] == values, self.rank[at], len(self.known))


@dataclass(frozen=True, eq=False)
class Event:
    """Set of outputs.

    Attributes:
        column: column that decides.
        ranking: nested events of this column.
        size: number of ranks in the event.
    """

    column: Column[DrawnOutputs]
    ranking: Ranking
    size: int

    def draws_in_event(self, outputs: DrawnOutputs) -> int:
        """Return the number of draws in the event."""
        return int((self.ranking(_column_values(self.column, outputs)) < self.size).sum())

    def __str__(self) -> str:
        """Return the event as text, such as "number 3 is at most 1.5"."""
        known, rank = self.ranking.known, self.ranking.rank
        if not len(rank):
            side = "at most" if self.ranking.sign > 0 else "at least"
            return f"{self.column.name} is {side} {self.ranking.sign * known[self.size - 1]:.6g}"
        members = known[rank < self.size]
        if self.column.hashed:
            return f"{self.column.name} is one of {len(members)} that were seen"
        shown = ", ".join(f"{value:.6g}" for value in members[:SHOWN_VALUES])
        more = f", ... ({len(members)} values)" if len(members) > SHOWN_VALUES else ""
        return f"{self.column.name} is one of {shown}{more}" if len(members) > 1 else f"{self.column.name} is {shown}"


def event_with_largest_objective(
    learn: tuple[DrawnOutputs, DrawnOutputs],
    select: tuple[DrawnOutputs, DrawnOutputs],
    objective: Objective,
    alpha: float,
) -> Event | None:
    """Return the event with the largest objective on `select`; None if no column differs.

    Args:
        learn: outputs of the first and the second input, on which columns and orders are fitted.
        select: further outputs, on which the event is selected.
        objective: what is maximized.
        alpha: error probability of the limits.
    """
    best: tuple[float, Event] | None = None
    for column in distinguishing_columns(*learn):
        first, second = (_column_values(column, outputs) for outputs in learn)
        for ranking in _rankings_by_value_and_ratio(first, second, ordered=column.ordered):
            value, size = _best_nested_event_size(ranking, column, select, objective, alpha)
            if best is None or value > best[0]:
                best = value, Event(column, ranking, size)
    return None if best is None else best[1]


def _column_values(column: Column[DrawnOutputs], outputs: DrawnOutputs) -> NDArray[np.float64]:
    return np.asarray(column.read(outputs), dtype=np.float64)


def _rankings_by_value_and_ratio(first: Values, second: Values, *, ordered: bool) -> Iterator[Ranking]:
    known, counts = _value_counts(first, second)
    if len(known) < 2:
        return
    if ordered and len(known) > 2:
        cuts = known if len(known) <= MOST_VALUES else np.unique(np.quantile(known, np.linspace(0, 1, MOST_VALUES)))
        yield Ranking(cuts, np.zeros(0, dtype=np.int64))
        yield Ranking(-cuts[::-1], np.zeros(0, dtype=np.int64), sign=-1)
    frequent = np.sort(np.argsort(-counts.sum(axis=0), kind="stable")[:MOST_VALUES])
    known, counts = known[frequent], counts[:, frequent]
    ratio = (counts[0] - np.sqrt(counts[0]) + 0.5) / (counts[1] + np.sqrt(counts[1]) + 1)
    order = np.argsort(-ratio, kind="stable")
    rank = np.empty(len(known), dtype=np.int64)
    rank[order] = np.arange(len(known))
    yield Ranking(known, rank)


def _value_counts(first: Values, second: Values) -> tuple[Values, NDArray[np.int64]]:
    """Return the different values, ascending, and their counts, indexed [input, value]."""
    known, place = np.unique(np.concatenate((first, second)), return_inverse=True)
    return known, np.array(
        [np.bincount(own, minlength=len(known)) for own in (place[: len(first)], place[len(first) :])], dtype=np.int64
    )


def _best_nested_event_size(
    ranking: Ranking,
    column: Column[DrawnOutputs],
    select: tuple[DrawnOutputs, DrawnOutputs],
    objective: Objective,
    alpha: float,
) -> tuple[float, int]:
    """Return the largest objective of the nested events, and the size of that event."""
    size = len(ranking.known)
    first, second = (_column_values(column, outputs) for outputs in select)
    counts: list[NDArray[Any]] = [
        np.cumsum(np.bincount(ranking(values), minlength=size + 1)[:size]) for values in (first, second)
    ]
    low, high = wilson_limits(counts[0], counts[1], (len(first), len(second)), alpha)
    values = objective(low, high)
    at = int(values.argmax())
    return float(values[at]), at + 1
