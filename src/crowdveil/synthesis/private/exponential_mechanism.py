"""Exponential mechanism in integers: private selection of a range, a spread and a location of each task's claims.

A candidate v with integer score q_v is drawn with probability proportional to
b_v round(max(TOP exp(-rate (max q - q_v)), BOTTOM)) with public integers b_v.
The proof covers these integers: docs/explanation/synthesis/private.md, Lemma 3.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdveil.randomness import Source
from crowdveil.synthesis.claims import ScaledClaims
from crowdveil.synthesis.discrete_noise import Integers, sample_discrete_laplace_array, uniform_below

Floats = NDArray[np.float64]

TOP, BOTTOM = 1 << 46, 1 << 20
"""Largest and smallest probability weight of a candidate before the factor b_v."""
ROUNDING = 2.0**-17
"""Epsilon reserved for rounding: four factors, each within 1 +- 2**-21, times 4. Doubled once because an added or
removed claim costs half of epsilon, and once for the floating-point exponential."""
ENTRIES_AT_ONCE = 1 << 21
"""Scores per block of tasks, to bound memory."""


def exponential_weights(score: Integers, *, epsilon: float, largest: int) -> Integers:
    """Return round(max(TOP exp(-rate gap), BOTTOM)), gap to the row's best score, rate = epsilon / (2 largest).

    `ROUNDING` is subtracted from epsilon. Selection in proportion to these integers, times public ones, is
    epsilon-private if no score changes by more than `largest` between neighbours, and epsilon / 2 private if all
    changes have one sign.

    Args:
        score: shape (rows, candidates).
        epsilon: privacy loss of one selection; at most `ROUNDING` gives equal weights.
        largest: sensitivity of a score.
    """
    rate = max(epsilon - ROUNDING, 0.0) / (2.0 * largest)
    if rate == 0.0:
        return np.full(score.shape, TOP)
    gap = np.minimum(score.max(axis=1, keepdims=True) - score, math.ceil(math.log(TOP / BOTTOM) / rate))
    # One table for all rows: gaps take few values, and equal gaps get equal weights to the last bit.
    table = np.maximum(TOP * np.exp(-rate * np.arange(int(gap.max(initial=0)) + 1)), BOTTOM)
    return np.rint(table).astype(np.int64)[gap]


def sample_proportional(weight: Integers, source: Source) -> Integers:
    """Return one column per row, drawn in proportion to the row's integer weights, exactly; shape (rows,)."""
    cumulative = np.cumsum(weight, axis=1)
    drawn = uniform_below(cumulative[:, -1], source)
    return (cumulative <= drawn[:, None]).sum(axis=1)


LEVELS = 8
"""Finest level of ranges: width 1/256 of the bounds."""
SCORE_UNITS = 16
"""Score units per claim; penalties are multiples of one unit."""
LEAST_PENALTY, LARGEST_PENALTY = 0.02, 0.1
"""Penalty of a doubled width, as a share of the claims expected on the task."""
DECISIVE = 4.0
"""Penalty of a doubled width over the noise of a score, within the limits above."""


@dataclass(frozen=True)
class DyadicRanges:
    """Candidate ranges of the unit interval: 2**-k wide at level k, at all multiples of half their width.

    Attributes:
        levels: the finest level.
    """

    levels: int = LEVELS

    @cached_property
    def level(self) -> Integers:
        """Level of every range, ascending, shape (ranges,)."""
        return np.repeat(np.arange(self.levels + 1), [2 ** (k + 1) - 1 for k in range(self.levels + 1)])

    @cached_property
    def first(self) -> Integers:
        """First of the `steps` equal parts of the unit interval inside each range, shape (ranges,)."""
        return np.concatenate([np.arange(2 ** (k + 1) - 1) << (self.levels - k) for k in range(self.levels + 1)])

    @cached_property
    def last(self) -> Integers:
        """Exclusive end of the parts inside each range, shape (ranges,)."""
        return self.first + (2 << (self.levels - self.level))

    @cached_property
    def prior(self) -> Integers:
        """Public probability weight of every range, about equal in total per level, positive; shape (ranges,)."""
        return (2 << self.levels) // ((2 << self.level) - 1)

    @property
    def steps(self) -> int:
        """Number of equal parts of the unit interval: half the width of the finest ranges each."""
        return 2 << self.levels

    def step_of(self, position: Floats) -> Integers:
        """Return the part, 0 .. steps - 1, of positions in the unit interval; shape as `position`."""
        return np.minimum((position * self.steps).astype(np.int64), self.steps - 1)

    def claims_inside(self, claims: ScaledClaims) -> Integers:
        """Return the number of claims in every range of every task, shape (tasks, ranges)."""
        flat = claims.task * self.steps + self.step_of(claims.position)
        counts = np.bincount(flat, minlength=claims.tasks * self.steps).reshape(claims.tasks, self.steps)
        below = np.zeros((claims.tasks, self.steps + 1), dtype=np.int64)
        np.cumsum(counts, axis=1, out=below[:, 1:])
        return below[:, self.last] - below[:, self.first]


def select_ranges(
    inside: Integers, penalty: Integers, *, epsilon: float, ranges: DyadicRanges, source: Source
) -> Integers:
    """Return one range per task, epsilon-private for a replaced claim, epsilon / 2 for an added or removed one.

    Args:
        inside: number of claims in each range, shape (tasks, ranges).
        penalty: public penalty of a doubled width, in score units, shape (tasks,).
        epsilon: above `ROUNDING`.
        ranges: the candidates.
        source: of randomness.
    """
    score = SCORE_UNITS * inside - penalty[:, None] * (ranges.levels - ranges.level)
    return sample_proportional(range_weights(score, epsilon=epsilon, ranges=ranges), source)


def range_weights(score: Integers, *, epsilon: float, ranges: DyadicRanges) -> Integers:
    """Return the integers proportional to the probabilities of the ranges, shape as `score`."""
    return exponential_weights(score, epsilon=epsilon, largest=SCORE_UNITS) * ranges.prior


def width_penalty(expected: Floats, *, epsilon: float) -> Integers:
    """Return the public penalty of a doubled width, in score units, shape (tasks,).

    Args:
        expected: publicly expected number of claims of a task, shape (tasks,).
        epsilon: privacy loss of the selection.
    """
    share = np.clip(DECISIVE / (expected * epsilon), LEAST_PENALTY, LARGEST_PENALTY)
    return np.ceil(SCORE_UNITS * share * expected).astype(np.int64)


CELLS_PER_SPREAD = 8
"""Candidate locations per spread, and the largest contribution of one claim to a location's score."""
SPREAD_COVERAGE = 0.9
"""Share of all claims that the fullest ranges must hold at the selected spread. Tuned, with `pooled_shape.REACH`, on
weather_temperature and population_tf (experiments/synthesis/README.md)."""


def largest_range_counts(claims: ScaledClaims, ranges: DyadicRanges) -> Integers:
    """Return, per level, the number of claims in the fullest range of each task, summed over tasks; (levels + 1,).

    A replaced, added or removed claim changes each of these numbers by at most 1.
    """
    total = np.zeros(ranges.levels + 1, dtype=np.int64)
    level_starts = np.flatnonzero(np.diff(ranges.level, prepend=-1))
    for block in _blocks(claims, max(1, ENTRIES_AT_ONCE // ranges.steps)):
        total += np.maximum.reduceat(ranges.claims_inside(block), level_starts, axis=1).sum(axis=0)
    return total


def select_finest_level(claims: ScaledClaims, epsilon: Fraction, source: Source) -> int:
    """Return the level of the common spread, epsilon-private: each level's count changes by at most 1 per claim."""
    exact = largest_range_counts(claims, DyadicRanges())[1:]
    noise = sample_discrete_laplace_array(len(exact) / epsilon, len(exact), source)
    covered = exact + noise >= SPREAD_COVERAGE * claims.claims_per_task.sum()
    return int(np.flatnonzero(covered).max(initial=-1)) + 1


def information_groups(information: Floats, finest: int) -> tuple[Integers, Integers]:
    """Return the group and the spread level of every task; tasks of one group have similar information.

    A score raised by n claims gains n epsilon / 2 nats, enough to select among 2**level times as many locations.

    Args:
        information: number of claims times the epsilon of the location, both public, shape (tasks,).
        finest: level of the common spread, an upper bound.
    """
    group = np.rint(2.0 * np.log2(information)).astype(np.int64)
    affordable = np.floor(2.0 ** (group / 2.0) / (2.0 * math.log(2.0))).astype(np.int64)
    return group - (group.min() if len(group) else 0), np.clip(affordable, 0, finest)


def select_locations(claims: ScaledClaims, level: int, epsilon: float, source: Source) -> Floats:
    """Return a location in the unit interval for every task, epsilon-private for one claim; shape (tasks,).

    Args:
        claims: of the tasks.
        level: the spread is 2**-level.
        epsilon: above `ROUNDING`.
        source: of randomness.
    """
    cells = CELLS_PER_SPREAD << level
    selected = [np.zeros(0, dtype=np.int64)]
    for block in _blocks(claims, max(1, ENTRIES_AT_ONCE // cells)):
        weight = exponential_weights(location_scores(block, cells), epsilon=epsilon, largest=CELLS_PER_SPREAD)
        selected.append(sample_proportional(weight, source))
    return (np.concatenate(selected) + 0.5) / cells


def location_scores(claims: ScaledClaims, cells: int) -> Integers:
    """Return the score of every location, shape (tasks, cells): the sum of a triangular kernel over the claims.

    A claim adds `CELLS_PER_SPREAD` to its own cell and one less per cell of distance. A changed claim changes no score
    by more than `CELLS_PER_SPREAD`.
    """
    width = CELLS_PER_SPREAD
    cell = np.minimum((claims.position * cells).astype(np.int64), cells - 1)
    flat = np.bincount(claims.task * cells + cell, minlength=claims.tasks * cells)
    padded = np.zeros((claims.tasks, cells + 2 * width), dtype=np.int64)
    padded[:, width:-width] = flat.reshape(claims.tasks, cells)
    # A triangle is the convolution of two boxes; each box is a difference of cumulative sums.
    for _ in range(2):
        total = np.cumsum(padded, axis=1)
        padded = total
        padded[:, width:] -= total[:, :-width].copy()
    return padded[:, 2 * width - 1 : 2 * width - 1 + cells]


def _blocks(claims: ScaledClaims, size: int) -> list[ScaledClaims]:
    """Return the claims of consecutive blocks of at most `size` tasks."""
    firsts = np.arange(0, claims.tasks, size)
    ends = np.searchsorted(claims.task, np.append(firsts, claims.tasks))
    return [
        ScaledClaims(
            min(size, claims.tasks - int(first)),
            claims.task[start:stop] - first,
            claims.position[start:stop],
        )
        for first, start, stop in zip(firsts, ends[:-1], ends[1:], strict=True)
    ]
