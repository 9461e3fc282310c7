"""A sound release for tasks with few claims: a private place for each task, one private shape for many.

A task's own claims say where they gather; how claims scatter around such places is much the same from task to task and
is learned from all of them together, almost without noise. Proof, and what is public:
docs/explanation/synthesis/private.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.guarantee import Unit, require_epsilon
from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis.budgets import Budgets, divide
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.discrete_noise import budget, two_sided_geometric, two_sided_geometric_variance
from crowdveil.synthesis.histogram_density import Densities
from crowdveil.synthesis.private.histogram import Progress, drawn_release, few_claims, require_public
from crowdveil.synthesis.private.location import finest_level, kinds, locate
from crowdveil.synthesis.private.noisy_counts import SENSITIVITY, Positions, positions
from crowdveil.synthesis.private.smoothing import CELLS, smooth
from crowdveil.synthesis.release import SECURE, Release

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SPREAD_SHARE, SHAPE_SHARE = 0.05, 0.15
"""Parts of the budget for the common spread and for the common shapes; places get the rest."""
PLACE_SHARE = 1.0 - SPREAD_SHARE - SHAPE_SHARE
REACH = 4
"""A shape extends this many spreads to either side of its place."""
SHAPE_BINS = 48
LEAST_MASS = 1e-12
"""Keeps a density a density where noise has moved all of a shape out of the bounds."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Release synthetic claims from private places and shared shapes: pure epsilon, whatever the number of records.

    Who claimed what is public; neighbours replace claims.

    Attributes:
        epsilon: privacy loss of one unit over the whole release.
        records: synthetic claims per task; they cost nothing.
        unit: "cell": one claim; "worker": all claims of one worker.
        most_claims: claims of one worker that are used, chosen at random; None for all.
        least_claims: tasks with fewer claims release nothing.
    """

    name: ClassVar[str] = "shared"
    epsilon: float
    records: int = 30
    unit: Unit = "cell"
    most_claims: int | None = None
    least_claims: int = 1

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        if self.records < 1 or self.least_claims < 1:
            raise SettingsError("records and least_claims must be positive", value=(self.records, self.least_claims))
        if self.most_claims is not None and self.most_claims < 1:
            raise SettingsError("most_claims must be positive", value=self.most_claims)

    def release(self, claims: Claims, source: Source = SECURE, *, progress: Progress | None = None) -> Release:
        """Return `records` synthetic claims for every task that has `least_claims` claims.

        Raises:
            SettingsError: bounds that depend on the claims, or claims left out because of their value.
        """
        densities, budgets = self.private_densities(claims, source, progress=progress)
        few = few_claims(self.least_claims)
        return drawn_release(self.name, claims, densities, budgets, self.records, few, source)

    def private_densities(
        self, claims: Claims, source: Source = SECURE, *, progress: Progress | None = None
    ) -> tuple[Densities, Budgets]:
        """Return the densities that records are drawn from, for the same epsilon, and the budget of every task.

        Raises:
            SettingsError: as `release`.
        """
        require_public(claims, "public")
        budgets = divide(
            claims, epsilon=self.epsilon, unit=self.unit, participation="public", most_claims=self.most_claims
        )
        used = budgets.used(claims, source).astype(np.int64)
        rows = np.flatnonzero(claims.per_task >= self.least_claims)
        here = positions(claims, rows, used)
        least = min(budgets.exact.values(), default=budget(self.epsilon))
        for_spread, for_shapes = (budget(float(least) * share) for share in (SPREAD_SHARE, SHAPE_SHARE))
        finest = finest_level(here, for_spread, source)
        kind, level = kinds(np.maximum(here.counted, 1) * budgets.of_tasks[rows] * PLACE_SHARE, finest)
        place, done = np.empty(len(rows)), 0
        for part, fine in np.unique(np.stack((budgets.parts[rows], level), axis=1), axis=0):
            mine = np.flatnonzero((budgets.parts[rows] == part) & (level == fine))
            rest = float(budgets.exact[int(part)] - for_spread - for_shapes)
            place[mine] = locate(positions(claims, rows[mine], used), int(fine), rest, source)
            done += len(mine)
            if progress is not None:
                progress(done, len(rows))
        spread = np.ldexp(np.ones(len(rows)), -level)
        shapes = _shapes(here, place, spread, kind, for_shapes, source)
        return _around(claims, rows, place, spread, shapes[kind]), budgets


def _shapes(
    claims: Positions, place: Floats, spread: Floats, kind: Integers, epsilon: Fraction, source: Source
) -> Floats:
    """Return, for every kind of task, the masses around a place: CELLS within its reach and, last, the rest."""
    exact = shape_counts(claims, place, spread, kind)
    kinds = len(exact)
    scale = SENSITIVITY / epsilon
    noise = two_sided_geometric(scale, exact.size, source).reshape(exact.shape)
    counts = (exact + noise).astype(np.float64)
    total = np.maximum(np.bincount(kind, weights=claims.counted, minlength=kinds), 1.0)
    held = np.clip(counts[:, :-1].sum(axis=1) / total, 1.0 / (1.0 + total), 1.0)
    variance = np.full(kinds, two_sided_geometric_variance(scale))
    shape = smooth(counts[:, :-1], variance, total * held, total * held)
    return np.column_stack((held[:, None] * shape, 1.0 - held))


def shape_counts(claims: Positions, place: Floats, spread: Floats, kind: Integers) -> Integers:
    """Return how many claims of every kind of task lie so far from its place, shape (kinds, SHAPE_BINS + 1).

    A claim is in one bin of one kind, so that replacing it changes two counts by 1; the last bin is beyond the reach.
    """
    kinds = int(kind.max(initial=-1)) + 1
    offset = (claims.place - place[claims.task]) / spread[claims.task]
    bin_ = np.floor((offset + REACH) / (2 * REACH) * SHAPE_BINS)
    column = np.where((bin_ >= 0) & (bin_ < SHAPE_BINS), bin_, SHAPE_BINS).astype(np.int64)
    flat = kind[claims.task] * (SHAPE_BINS + 1) + column
    counted = np.bincount(flat[claims.weight > 0], minlength=kinds * (SHAPE_BINS + 1))
    return counted.reshape(kinds, SHAPE_BINS + 1)


def _around(claims: Claims, rows: Integers, place: Floats, spread: Floats, shape: Floats) -> Densities:
    """Put shapes around places; what would leave the bounds is left out, the rest of the mass lies evenly outside."""
    ends = np.clip(np.stack((place - REACH * spread, place + REACH * spread), axis=1), 0.0, 1.0)
    inner = ends[:, :1] + (ends[:, 1:] - ends[:, :1]) * (np.arange(CELLS + 1) / CELLS)
    # Position of every cell's end among the cells of the shape, where its distribution function is linear.
    position = np.clip(((inner - place[:, None]) / spread[:, None] + REACH) / (2 * REACH), 0.0, 1.0) * CELLS
    below = np.concatenate((np.zeros((len(rows), 1)), np.cumsum(shape[:, :-1], axis=1)), axis=1)
    cell = np.minimum(position.astype(np.int64), CELLS - 1)
    left, right = (np.take_along_axis(below, cell + shift, axis=1) for shift in (0, 1))
    mass = np.diff(left + (position - cell) * (right - left), axis=1) + LEAST_MASS
    before, after = ends[:, 0], 1.0 - ends[:, 1]
    # What is not around the place lies anywhere outside; where there is no outside, the inside is everything.
    apart = before + after
    rest = np.divide(shape[:, -1], apart, out=np.zeros(len(rows)), where=apart > 0)
    whole = np.column_stack((rest * before, mass, rest * after))
    low, high = claims.low[rows], claims.high[rows]
    window = low[:, None] + (high - low)[:, None] * ends
    return Densities(
        task=rows,
        low=low,
        high=high,
        window_low=window[:, 0],
        window_high=window[:, 1],
        mass=whole / whole.sum(axis=1, keepdims=True),
    )
