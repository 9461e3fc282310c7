"""The only part of the sound release that sees claims: counts of a window's bins, with exact integer noise.

Whatever is computed from `Noisy` and from public numbers is post-processing.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.randomness import Source
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.discrete_noise import budget, two_sided_geometric, two_sided_geometric_variance
from crowdveil.synthesis.private.range_selection import Windows, choose, level_price

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

WINDOW_SHARE = 0.35
"""Part of the budget that finding a window costs; fixed on simulated bimodal tasks
(docs/explanation/synthesis/utility.md)."""
SENSITIVITY = 2
"""Sum of the changes of a task's counts, in claims, when a claim is replaced; it is 1 when one comes or goes."""
ZOOM_FROM = 60.0
"""Least weight times epsilon, both public, at which a window can be told from noise; below it nothing is looked for."""


class Noisy(NamedTuple):
    """What is left of the claims of some tasks.

    Attributes:
        counts: noisy weight in every bin of the window, shape (tasks, bins).
        outside: noisy weight outside the window; 0 where the window is everything, shape (tasks,).
        variance: variance of the noise in each of them.
        window: ends of the window as shares of the bounds, shape (tasks, 2).
    """

    counts: Floats
    outside: Floats
    variance: float
    window: Floats


class Positions(NamedTuple):
    """Claims of some tasks, moved to the unit interval.

    Attributes:
        tasks: how many tasks.
        task: local code of each claim's task, shape (claims,).
        place: (claim - low) / (high - low), shape (claims,).
        weight: its integer weight, 0 if it is not used, shape (claims,).
    """

    tasks: int
    task: Integers
    place: Floats
    weight: Integers

    @property
    def counted(self) -> Integers:
        """Claims of each task that are used, shape (tasks,)."""
        return np.bincount(self.task[self.weight > 0], minlength=self.tasks)


@dataclass(frozen=True, kw_only=True)
class Histogrammer:
    """Counts with noise for tasks that share a budget and a number of bins.

    Attributes:
        epsilon: what a claim of the task loses if it is replaced; half of it if it comes or goes.
        bins: equal bins of a window.
        largest: largest integer weight of a claim.
        zoom: whether a window is looked for.
    """

    epsilon: Fraction
    bins: int
    largest: int
    zoom: bool

    @property
    def for_counts(self) -> Fraction:
        """The part of the budget that counts spend; the rest finds the window."""
        return budget(float(self.epsilon) * (1.0 - WINDOW_SHARE)) if self.zoom else self.epsilon

    @property
    def scale(self) -> Fraction:
        """Scale of the noise in every count."""
        return SENSITIVITY * self.largest / self.for_counts

    def count(self, claims: Positions, expected: Floats, source: Source) -> Noisy:
        """Return noisy counts.

        Args:
            claims: of the tasks.
            expected: weight that each task publicly has, or is expected to have, shape (tasks,).
            source: of randomness.
        """
        windows = Windows()
        chosen = self._chosen(claims, expected, windows, source)
        exact = tally(claims, chosen, self.bins, windows)
        noise = two_sided_geometric(self.scale, exact.size, source).reshape(exact.shape)
        noisy = (exact + noise).astype(np.float64)
        window = np.stack((windows.first[chosen], windows.last[chosen]), axis=1) / windows.steps
        outside = np.where(windows.level[chosen] == 0, 0.0, noisy[:, -1])
        return Noisy(noisy[:, :-1], outside, two_sided_geometric_variance(self.scale), window)

    def _chosen(self, claims: Positions, expected: Floats, windows: Windows, source: Source) -> Integers:
        if not self.zoom:
            return np.zeros(claims.tasks, dtype=np.int64)
        epsilon = float(self.epsilon - self.for_counts)
        inside = windows.weight_inside(steps(claims, windows), claims.task, claims.weight, claims.tasks)
        price = level_price(expected, epsilon=epsilon, largest=self.largest)
        return choose(inside, price, epsilon=epsilon, largest=self.largest, windows=windows, source=source)


def steps(claims: Positions, windows: Windows) -> Integers:
    """Return the position of every claim on the finest grid of the windows, shape (claims,)."""
    return np.minimum((claims.place * windows.steps).astype(np.int64), windows.steps - 1)


def tally(claims: Positions, chosen: Integers, bins: int, windows: Windows) -> Integers:
    """Return the weight of the claims in each bin of the window and, last, outside it; shape (tasks, bins + 1).

    Replacing a claim takes its weight from one of these numbers and adds it to another: the sum of all changes is at
    most twice the weight. A claim that comes or goes changes one of them by its weight.
    """
    step, first, last = steps(claims, windows), windows.first[chosen][claims.task], windows.last[chosen][claims.task]
    share = (claims.place * windows.steps - first) / (last - first)
    column = np.clip((share * bins).astype(np.int64), 0, bins - 1)
    column = np.where((step >= first) & (step < last), column, bins)
    flat = np.bincount(claims.task * (bins + 1) + column, weights=claims.weight, minlength=claims.tasks * (bins + 1))
    return flat.astype(np.int64).reshape(claims.tasks, bins + 1)


def positions(claims: Claims, rows: Integers, weight: Integers) -> Positions:
    """Gather the claims of some tasks.

    Args:
        claims: all of them.
        rows: task codes, shape (tasks,).
        weight: integer weight of every claim, shape (claims,).
    """
    sizes = claims.per_task[rows]
    task = np.repeat(np.arange(len(rows)), sizes)
    before = np.concatenate(([0], np.cumsum(sizes)))[:-1]
    index = (claims.pointers[rows] - before)[task] + np.arange(len(task))
    low, high = claims.low[rows][task], claims.high[rows][task]
    return Positions(len(rows), task, (claims.value[index] - low) / (high - low), weight[index])
