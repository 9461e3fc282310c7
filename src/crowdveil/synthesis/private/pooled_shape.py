"""Private release for tasks with few claims: one location per task, and one pooled distribution of claims around it.

The location of a task is selected from its own claims. The distribution of distances from the location is estimated
from all tasks of similar information together, with little noise. Proof: docs/explanation/synthesis/private.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np

from crowdveil.randomness import Source
from crowdveil.synthesis.budgets import TaskBudgets
from crowdveil.synthesis.discrete_noise import Integers, noisy_counts, round_epsilon_down
from crowdveil.synthesis.original_claims import Claims, Floats, ScaledClaims, scaled_claims
from crowdveil.synthesis.private.exponential_mechanism import (
    select_common_spread,
    select_private_locations,
    task_spread_levels,
)
from crowdveil.synthesis.private.histogram_density import CELLS, HistogramDensities, cosine_density
from crowdveil.synthesis.private.private_method import PrivateMethod, Progress
from crowdveil.synthesis.release import SECURE

SPREAD_SHARE, SHAPE_SHARE = 0.05, 0.15
"""Shares of the budget for the common spread and for the pooled shapes; locations get the rest."""
LOCATION_SHARE = 1.0 - SPREAD_SHARE - SHAPE_SHARE
REACH = 4
"""Half-width of a shape, in spreads."""
SHAPE_BINS = 48
LEAST_MASS = 1e-12
"""Mass added to every cell, so that a density stays one where noise moves all of a shape outside the bounds."""


@final
@dataclass(frozen=True, kw_only=True)
class PooledShape(PrivateMethod):
    """Private release from one location per task and pooled shapes.

    Participation is public; neighbours replace claims.
    """

    name: ClassVar[str] = "pooled-shape"

    def private_densities(
        self, claims: Claims, source: Source = SECURE, *, progress: Progress | None = None
    ) -> tuple[HistogramDensities, TaskBudgets]:
        """Return the densities of the records, covered by the same epsilon, and the budgets; errors as `release`."""
        budgets, used = self._prepared(claims, source, "public")
        rows = np.flatnonzero(claims.per_task >= self.least_claims)
        scaled = scaled_claims(claims, rows, used)
        least = min(
            budgets.exact_task_epsilon.values(),
            default=round_epsilon_down(self.epsilon),
        )
        spread_epsilon, shape_epsilon = (
            round_epsilon_down(float(least) * share) for share in (SPREAD_SHARE, SHAPE_SHARE)
        )
        finest = select_common_spread(scaled, spread_epsilon, source)
        information = np.maximum(scaled.claims_per_task, 1) * budgets.task_epsilon[rows] * LOCATION_SHARE
        group, level = task_spread_levels(information, finest)
        location, done = np.empty(len(rows)), 0
        for divisor, one in np.unique(np.stack((budgets.divisor[rows], level), axis=1), axis=0):
            members = np.flatnonzero((budgets.divisor[rows] == divisor) & (level == one))
            epsilon = float(budgets.exact_task_epsilon[int(divisor)] - spread_epsilon - shape_epsilon)
            location[members] = select_private_locations(
                scaled_claims(claims, rows[members], used), int(one), epsilon, source
            )
            done += len(members)
            if progress is not None:
                progress(done, len(rows))
        spread = np.ldexp(np.ones(len(rows)), -level)
        shapes = _noisy_shape_per_group(scaled, location, spread, group, shape_epsilon, source)
        return _located_densities(claims, rows, location, spread, shapes[group]), budgets


def _noisy_shape_per_group(
    claims: ScaledClaims, location: Floats, spread: Floats, group: Integers, epsilon: Fraction, source: Source
) -> Floats:
    """Return the masses around a location per group, shape (groups, CELLS + 1); the last is beyond the reach."""
    counts, variance = noisy_counts(shape_counts(claims, location, spread, group), epsilon, source)
    total = np.maximum(np.bincount(group, weights=claims.claims_per_task, minlength=len(counts)), 1.0)
    within = np.clip(counts[:, :-1].sum(axis=1) / total, 1.0 / (1.0 + total), 1.0)
    shape = cosine_density(counts[:, :-1], variance, total * within)
    return np.column_stack((within[:, None] * shape, 1.0 - within))


def shape_counts(claims: ScaledClaims, location: Floats, spread: Floats, group: Integers) -> Integers:
    """Return the number of claims per group and bin of distance from the location, shape (groups, SHAPE_BINS + 1).

    The last bin is beyond the reach. A claim is in one bin of one group, so a replaced claim changes two counts by 1.
    """
    groups = int(group.max(initial=-1)) + 1
    offset = (claims.position - location[claims.task]) / spread[claims.task]
    bin_ = np.floor((offset + REACH) / (2 * REACH) * SHAPE_BINS)
    column = np.where((bin_ >= 0) & (bin_ < SHAPE_BINS), bin_, SHAPE_BINS).astype(np.int64)
    flat = group[claims.task] * (SHAPE_BINS + 1) + column
    return np.bincount(flat, minlength=groups * (SHAPE_BINS + 1)).reshape(groups, SHAPE_BINS + 1)


def _located_densities(
    claims: Claims, rows: Integers, location: Floats, spread: Floats, shape: Floats
) -> HistogramDensities:
    """Return densities with the shapes placed at the locations and cut at the bounds; the rest is uniform outside."""
    ends = np.clip(np.stack((location - REACH * spread, location + REACH * spread), axis=1), 0.0, 1.0)
    inner = ends[:, :1] + (ends[:, 1:] - ends[:, :1]) * (np.arange(CELLS + 1) / CELLS)
    # Cell edges in units of the cells of the shape, whose distribution function is linear within each cell.
    position = np.clip(((inner - location[:, None]) / spread[:, None] + REACH) / (2 * REACH), 0.0, 1.0) * CELLS
    cumulative = np.concatenate((np.zeros((len(rows), 1)), np.cumsum(shape[:, :-1], axis=1)), axis=1)
    cell = np.minimum(position.astype(np.int64), CELLS - 1)
    left, right = (np.take_along_axis(cumulative, cell + shift, axis=1) for shift in (0, 1))
    mass = np.diff(left + (position - cell) * (right - left), axis=1) + LEAST_MASS
    before, after = ends[:, 0], 1.0 - ends[:, 1]
    # If the range fills the bounds, it has all of the mass.
    room = before + after
    rest = np.divide(shape[:, -1], room, out=np.zeros(len(rows)), where=room > 0)
    whole = np.column_stack((rest * before, mass, rest * after))
    low, high = claims.low[rows], claims.high[rows]
    interval = low[:, None] + (high - low)[:, None] * ends
    return HistogramDensities(
        task=rows,
        low=low,
        high=high,
        range_low=interval[:, 0],
        range_high=interval[:, 1],
        mass=whole / whole.sum(axis=1, keepdims=True),
    )
