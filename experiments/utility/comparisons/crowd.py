"""Simulated crowds that compare pairs of items."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.comparisons.values import Comparisons
from crowdveil.estimators.ranking.likelihood import report_probabilities

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Settings of a simulated crowd.

    Attributes:
        items, per_item, workers: items, comparisons of each item, and workers, who answer equally many.
        sigma: standard deviation of the scores.
        nu: odds of a tie between equal items; `tie_spread` is the deviation of its logarithm over workers.
        side, side_spread: mean and deviation of the bias towards the left.
        slope_spread: deviation of the logarithm of the slopes.
        spam, adversaries: shares of workers with slope 0, and with a negative slope.
        lapse: parameters (a, b) of the beta distribution of lapses, in which a worker answers by a fixed habit.
        lapsing: share of workers who lapse with probability .9, all others with .05; None for no such crowd.
        flips: parameters of the beta distribution of the probability that a worker says left for right.
    """

    name: str
    items: int = 100
    per_item: int = 20
    workers: int = 40
    sigma: float = 1.5
    nu: float = 0.6
    tie_spread: float = 0.5
    side: float = 0.3
    side_spread: float = 0.3
    slope_spread: float = 0.3
    spam: float = 0.2
    adversaries: float = 0.0
    lapse: tuple[float, float] | None = None
    lapsing: float | None = None
    flips: tuple[float, float] | None = None

    def named(self, name: str, **changes: object) -> "Kind":
        """Return the settings with changes, under another name."""
        return replace(self, name=name, **changes)  # type: ignore[arg-type]


BASE = Kind(name="spam 20 %")
KINDS = (
    BASE,
    BASE.named("no spam", spam=0.0),
    BASE.named("spam 40 %", spam=0.4),
    BASE.named("spam 60 %", spam=0.6),
    BASE.named("adversaries 30 %, spam 10 %", spam=0.1, adversaries=0.3),
    BASE.named("side bias 1.5", side=1.5, side_spread=0.6),
    BASE.named("many ties", nu=3.0),
    BASE.named("5 an item", per_item=5),
    BASE.named("100 an item", per_item=100),
    BASE.named("20 items", items=20),
    BASE.named("400 workers", workers=400),
    BASE.named("equal workers", spam=0.0, slope_spread=0.0, tie_spread=0.0, side_spread=0.0),
    BASE.named("lapses", spam=0.0, lapse=(1.0, 3.0)),
    BASE.named("30 % lapse", spam=0.0, lapsing=0.3),
    BASE.named("flips", spam=0.0, flips=(1.0, 3.0)),
)
"""Crowds, the first with the base settings."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """Truth and answers of a simulated crowd."""

    kind: Kind
    scores: Floats
    slope: Floats
    side: Floats
    tie: Floats
    lapse: Floats
    habit: Floats
    flip: Floats
    comparisons: Comparisons

    @cached_property
    def honest(self) -> NDArray[np.bool_]:
        """Whether each worker knows the direction."""
        return self.slope > 0

    def probabilities(
        self, left: NDArray[np.integer], right: NDArray[np.integer], worker: NDArray[np.integer]
    ) -> Floats:
        """Return the probabilities of the answers of rows, shape (rows, 3)."""
        eta = (self.slope[worker] * (self.scores[left] - self.scores[right]) + self.side[worker]) / 2
        known = report_probabilities(eta, self.tie[worker], None)
        known = known + self.flip[worker, None] * (known[:, ::-1] - known)
        return (1 - self.lapse[worker, None]) * known + self.lapse[worker, None] * self.habit[worker]


def pairs_of_items(random: np.random.Generator, items: int, rows: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return uniform pairs of two different items."""
    left = random.integers(0, items, rows)
    right = (left + random.integers(1, items, rows)) % items
    return left.astype(np.int32), right.astype(np.int32)


def drawn_answers(random: np.random.Generator, probabilities: Floats) -> NDArray[np.int32]:
    """Return a draw from each row of probabilities."""
    return (random.random((len(probabilities), 1)) > probabilities.cumsum(axis=1)[:, :-1]).sum(axis=1).astype(np.int32)


def draw_crowd(kind: Kind, seed: int) -> Crowd:
    """Return a crowd of a kind."""
    random, workers = np.random.default_rng([seed, 46]), kind.workers
    rows = kind.items * kind.per_item // 2
    scores = kind.sigma * random.standard_normal(kind.items)
    slope = np.exp(kind.slope_spread * random.standard_normal(workers))
    order = random.permutation(workers)
    spam, adversaries = round(kind.spam * workers), round(kind.adversaries * workers)
    slope[order[:spam]] = 0
    slope[order[spam : spam + adversaries]] *= -1
    tie = np.log(kind.nu) + kind.tie_spread * random.standard_normal(workers)
    side = kind.side + kind.side_spread * random.standard_normal(workers)
    lapse = np.zeros(workers) if kind.lapse is None else random.beta(*kind.lapse, workers)
    if kind.lapsing is not None:
        lapse = np.where(order < kind.lapsing * workers, 0.9, 0.05)
    flip = np.zeros(workers) if kind.flips is None else random.beta(*kind.flips, workers)
    habit = random.dirichlet(np.ones(3), workers)
    left, right = pairs_of_items(random, kind.items, rows)
    worker = random.permutation(np.arange(rows) % workers).astype(np.int32)
    names = np.arange(kind.items), np.arange(workers)
    empty = Comparisons(
        left=left,
        right=right,
        worker=worker,
        answer=np.zeros(rows, dtype=np.int32),
        items=names[0],
        workers=names[1],
        list_of_item=np.zeros(kind.items, dtype=np.int32),
    )
    crowd = Crowd(kind, scores, slope, side, tie, lapse, habit, flip, empty)
    answers = drawn_answers(random, crowd.probabilities(left, right, worker))
    return replace(crowd, comparisons=empty.with_answers(answers))
