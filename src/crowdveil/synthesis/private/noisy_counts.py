"""Noisy histogram counts: the only part of the histogram method that reads claims.

Everything computed from `NoisyCounts` and public numbers is post-processing.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from crowdveil.randomness import Source
from crowdveil.synthesis.claims import Floats, ScaledClaims
from crowdveil.synthesis.discrete_noise import (
    Integers,
    discrete_laplace_variance,
    epsilon_rounded_down,
    sample_discrete_laplace_array,
)
from crowdveil.synthesis.private.exponential_mechanism import DyadicRanges, select_ranges, width_penalty

RANGE_SELECTION_SHARE = 0.35
"""Share of the budget spent on range selection; tuned on simulated bimodal tasks (experiments/synthesis/README.md)."""
SENSITIVITY = 2
"""L1 sensitivity of a task's counts to a replaced claim; it is 1 for an added or removed claim."""
LEAST_RANGE_INFORMATION = 60.0
"""Least number of claims times epsilon, both public, for range selection; below it noise dominates the selection."""


class NoisyCounts(NamedTuple):
    """Noisy counts of some tasks.

    Attributes:
        counts: noisy number of claims in every bin of the range, shape (tasks, bins).
        outside: noisy number outside the range, 0 where the range is the whole interval; shape (tasks,).
        variance: noise variance of each count.
        interval: ends of the range in the unit interval, shape (tasks, 2).
    """

    counts: Floats
    outside: Floats
    variance: float
    interval: Floats


@dataclass(frozen=True, kw_only=True)
class NoisyCounter:
    """Histogram query for tasks with the same budget and number of bins.

    Attributes:
        epsilon: privacy loss of a replaced claim of the task; an added or removed one loses half of it.
        bins: equal bins of a range.
        select_range: whether a range is selected; otherwise it is the whole interval.
    """

    epsilon: Fraction
    bins: int
    select_range: bool

    @property
    def count_epsilon(self) -> Fraction:
        """Budget of the counts; the rest is spent on range selection."""
        return (
            epsilon_rounded_down(float(self.epsilon) * (1.0 - RANGE_SELECTION_SHARE))
            if self.select_range
            else self.epsilon
        )

    @property
    def scale(self) -> Fraction:
        """Scale of the noise in every count."""
        return SENSITIVITY / self.count_epsilon

    def count(self, claims: ScaledClaims, expected: Floats, source: Source) -> NoisyCounts:
        """Return the noisy counts of some tasks.

        Args:
            claims: of the tasks.
            expected: number of claims that each task publicly has, or is expected to have, shape (tasks,).
            source: of randomness.
        """
        ranges = DyadicRanges()
        selected = self._select(claims, expected, ranges, source)
        exact = bin_counts(claims, selected, self.bins, ranges)
        noise = sample_discrete_laplace_array(self.scale, exact.size, source).reshape(exact.shape)
        noisy = (exact + noise).astype(np.float64)
        interval = np.stack((ranges.first[selected], ranges.last[selected]), axis=1) / ranges.steps
        outside = np.where(ranges.level[selected] == 0, 0.0, noisy[:, -1])
        return NoisyCounts(noisy[:, :-1], outside, discrete_laplace_variance(self.scale), interval)

    def _select(self, claims: ScaledClaims, expected: Floats, ranges: DyadicRanges, source: Source) -> Integers:
        if not self.select_range:
            return np.zeros(claims.tasks, dtype=np.int64)
        epsilon = float(self.epsilon - self.count_epsilon)
        penalty = width_penalty(expected, epsilon=epsilon)
        return select_ranges(ranges.claims_inside(claims), penalty, epsilon=epsilon, ranges=ranges, source=source)


def bin_counts(claims: ScaledClaims, selected: Integers, bins: int, ranges: DyadicRanges) -> Integers:
    """Return the number of claims in each bin of the range and, last, outside it; shape (tasks, bins + 1).

    A replaced claim changes two numbers by 1, an added or removed claim one number.

    Args:
        claims: of some tasks.
        selected: range of each task, shape (tasks,).
        bins: equal bins of a range.
        ranges: the candidates.
    """
    step, first, last = (
        ranges.step_of(claims.position),
        ranges.first[selected][claims.task],
        ranges.last[selected][claims.task],
    )
    share = (claims.position * ranges.steps - first) / (last - first)
    column = np.clip((share * bins).astype(np.int64), 0, bins - 1)
    column = np.where((step >= first) & (step < last), column, bins)
    flat = np.bincount(claims.task * (bins + 1) + column, minlength=claims.tasks * (bins + 1))
    return flat.reshape(claims.tasks, bins + 1)
