"""Exponential mechanism in integers: private selection of a common spread and of a location of each task's claims.

A candidate v with integer score q_v is drawn with probability proportional to
round(max(TOP exp(-rate (max q - q_v)), BOTTOM)).
The proof covers these integers: docs/explanation/synthesis/private.md, Lemma 3.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crowdveil.randomness import Source
from crowdveil.synthesis.discrete_noise import Integers, sample_discrete_laplace_array, uniform_below
from crowdveil.synthesis.original_claims import ScaledClaims

Floats = NDArray[np.float64]

TOP, BOTTOM = 1 << 46, 1 << 20
"""Largest and smallest probability weight of a candidate."""
ROUNDING = 2.0**-17
"""Epsilon reserved for rounding: four factors, each within 1 +- 2**-21, times 4. Doubled once because an added or
removed claim costs half of epsilon, and once for the floating-point exponential."""
ENTRIES_AT_ONCE = 1 << 21
"""Scores per block of tasks, to bound memory."""


def exponential_weights(score: Integers, *, epsilon: float, score_sensitivity: int) -> Integers:
    """Return round(max(TOP exp(-rate gap), BOTTOM)), gap to the row's best score, rate = epsilon / (2 largest).

    `ROUNDING` is subtracted from epsilon. Selection in proportion to these integers is epsilon-private if no score
    changes by more than `score_sensitivity` between neighbours, and epsilon / 2 private if all changes have one sign.

    Args:
        score: shape (rows, candidates).
        epsilon: privacy loss of one selection; at most `ROUNDING` gives equal weights.
        largest: sensitivity of a score.
    """
    rate = max(epsilon - ROUNDING, 0.0) / (2.0 * score_sensitivity)
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
"""Finest level of spreads: 1/256 of the bounds."""
CELLS_PER_SPREAD = 8
"""Candidate locations per spread, and the largest contribution of one claim to a location's score."""
SPREAD_COVERAGE = 0.9
"""Share of all claims that the fullest ranges must hold at the selected spread. Tuned, with `pooled_shape.REACH`, on
weather_temperature and population_tf (experiments/synthesis/README.md)."""


def fullest_range_counts(claims: ScaledClaims) -> Integers:
    """Return, per level 1 .. `LEVELS`, the claims in the fullest range of each task, summed over tasks; (LEVELS,).

    Ranges of level k are 2**-k wide, at all multiples of half their width. A replaced, added or removed claim changes
    each of these numbers by at most 1.
    """
    total, steps = np.zeros(LEVELS, dtype=np.int64), 2 << LEVELS
    for block in _claims_in_task_blocks(claims, max(1, ENTRIES_AT_ONCE // steps)):
        halves = _cell_counts(block, steps)
        for level in range(LEVELS, 0, -1):
            total[level - 1] += (halves[:, :-1] + halves[:, 1:]).max(axis=1).sum()
            halves = halves[:, ::2] + halves[:, 1::2]
    return total


def _cell_counts(claims: ScaledClaims, cells: int) -> Integers:
    """Return the number of claims in each of so many equal parts of the unit interval, shape (tasks, cells)."""
    cell = np.minimum((claims.position * cells).astype(np.int64), cells - 1)
    return np.bincount(claims.task * cells + cell, minlength=claims.tasks * cells).reshape(claims.tasks, cells)


def select_common_spread(claims: ScaledClaims, epsilon: Fraction, source: Source) -> int:
    """Return the level of the common spread, epsilon-private: each level's count changes by at most 1 per claim."""
    noise = sample_discrete_laplace_array(LEVELS / epsilon, LEVELS, source)
    covered = fullest_range_counts(claims) + noise >= SPREAD_COVERAGE * claims.claims_per_task.sum()
    return int(np.flatnonzero(covered).max(initial=-1)) + 1


def task_spread_levels(information: Floats, finest: int) -> tuple[Integers, Integers]:
    """Return the group and the spread level of every task; tasks of one group have similar information.

    A score raised by n claims gains n epsilon / 2 nats, enough to select among 2**level times as many locations.

    Args:
        information: number of claims times the epsilon of the location, both public, shape (tasks,).
        finest: level of the common spread, an upper bound.
    """
    group = np.rint(2.0 * np.log2(information)).astype(np.int64)
    affordable = np.floor(2.0 ** (group / 2.0) / (2.0 * math.log(2.0))).astype(np.int64)
    return group - (group.min() if len(group) else 0), np.clip(affordable, 0, finest)


def select_private_locations(claims: ScaledClaims, level: int, epsilon: float, source: Source) -> Floats:
    """Return a location in the unit interval for every task, epsilon-private for one claim; shape (tasks,).

    Args:
        claims: of the tasks.
        level: the spread is 2**-level.
        epsilon: above `ROUNDING`.
        source: of randomness.
    """
    cells = CELLS_PER_SPREAD << level
    selected = [np.zeros(0, dtype=np.int64)]
    for block in _claims_in_task_blocks(claims, max(1, ENTRIES_AT_ONCE // cells)):
        weight = exponential_weights(
            triangular_kernel_scores(block, cells), epsilon=epsilon, score_sensitivity=CELLS_PER_SPREAD
        )
        selected.append(sample_proportional(weight, source))
    return (np.concatenate(selected) + 0.5) / cells


def triangular_kernel_scores(claims: ScaledClaims, cells: int) -> Integers:
    """Return the score of every location, shape (tasks, cells): the sum of a triangular kernel over the claims.

    A claim adds `CELLS_PER_SPREAD` to its own cell and one less per cell of distance. A changed claim changes no score
    by more than `CELLS_PER_SPREAD`.
    """
    width = CELLS_PER_SPREAD
    padded = np.pad(_cell_counts(claims, cells), ((0, 0), (width, width)))
    # A triangle is the convolution of two boxes; each box is a difference of cumulative sums.
    for _ in range(2):
        total = np.cumsum(padded, axis=1)
        padded = total
        padded[:, width:] -= total[:, :-width].copy()
    return padded[:, 2 * width - 1 : 2 * width - 1 + cells]


def _claims_in_task_blocks(claims: ScaledClaims, size: int) -> list[ScaledClaims]:
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
