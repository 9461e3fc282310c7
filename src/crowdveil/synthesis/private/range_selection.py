"""Where the claims of a task lie, found privately: one of many windows, by an exponential mechanism in integers.

Windows are dyadic parts of the bounds and the same parts moved by half a width. A window's score is the weight of the
claims inside it, less a public price for its width; scores, prices and probabilities are integers, so that what is
proved is what is drawn (docs/explanation/synthesis/private.md).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdveil.randomness import Source
from crowdveil.synthesis.discrete_noise import Integers, uniform_below

STEPS = 16
"""Score units per unit of claim weight: prices are rounded to them."""
TOP, BOTTOM = 1 << 46, 1 << 20
"""Largest and smallest probability weight of a window before its level's share."""
ROUNDING = 2.0**-17
"""Four times what rounding adds to the privacy loss (four factors, each within 1 +- 2**-21): twice, as a claim that
comes or goes may cost half of epsilon only, and twice for the exponential."""
LEVELS = 8
LEAST_PRICE, MOST_PRICE = 0.02, 0.1
"""Score a window pays for every doubling of its width, as a share of the weight expected on the task."""
DECISIVE = 4.0
"""Price of one level over the noise of a score, where the shares above allow it."""


@dataclass(frozen=True)
class Windows:
    """The windows of the unit interval, level by level: level k has width 2**-k.

    Attributes:
        levels: the last level.
    """

    levels: int = LEVELS

    @cached_property
    def level(self) -> Integers:
        """Level of every window, shape (windows,)."""
        return np.repeat(np.arange(self.levels + 1), [2 ** (k + 1) - 1 for k in range(self.levels + 1)])

    @cached_property
    def first(self) -> Integers:
        """First of the `2**(levels + 1)` finest half-width steps that a window covers, shape (windows,)."""
        return np.concatenate([np.arange(2 ** (k + 1) - 1) << (self.levels - k) for k in range(self.levels + 1)])

    @cached_property
    def last(self) -> Integers:
        """The step after the last that a window covers, shape (windows,)."""
        return self.first + (2 << (self.levels - self.level))

    @cached_property
    def share(self) -> Integers:
        """Probability weight of a window before any claim is seen, about equal by level, positive; shape (windows,)."""
        return (2 << self.levels) // ((2 << self.level) - 1)

    @property
    def steps(self) -> int:
        """Steps of the finest grid."""
        return 2 << self.levels

    def weight_inside(self, step: Integers, task: Integers, weight: Integers, tasks: int) -> Integers:
        """Return the weight of the claims in every window of every task, shape (tasks, windows).

        Args:
            step: position of every claim on the finest grid, 0 .. steps - 1, shape (claims,).
            task: its task, shape (claims,).
            weight: its weight, shape (claims,).
            tasks: how many tasks there are.
        """
        cells = np.bincount(task * self.steps + step, weights=weight, minlength=tasks * self.steps)
        below = np.zeros((tasks, self.steps + 1), dtype=np.int64)
        np.cumsum(cells.reshape(tasks, self.steps).astype(np.int64), axis=1, out=below[:, 1:])
        return below[:, self.last] - below[:, self.first]


def choose(
    inside: Integers, price: Integers, *, epsilon: float, largest: int, windows: Windows, source: Source
) -> Integers:
    """Choose one window per task; epsilon-private when a claim moves, epsilon / 2 when one comes or goes.

    A window's probability is proportional to share * max(TOP * exp(-rate * gap), BOTTOM), rounded, where gap is what
    its score lacks of the best and rate = (epsilon - ROUNDING) / (2 * STEPS * largest).

    Args:
        inside: weight of the claims in each window, shape (tasks, windows).
        price: public price of one level, in score units, shape (tasks,); wider windows pay more.
        epsilon: above `ROUNDING`.
        largest: largest weight of one claim.
        windows: the windows.
        source: of randomness.

    Returns:
        Window numbers, shape (tasks,).
    """
    score = STEPS * inside - price[:, None] * (windows.levels - windows.level)
    weight = probability_weights(score, epsilon=epsilon, largest=largest, windows=windows)
    below = np.cumsum(weight, axis=1)
    drawn = uniform_below(below[:, -1], source)
    return (below <= drawn[:, None]).sum(axis=1)


def probability_weights(score: Integers, *, epsilon: float, largest: int, windows: Windows) -> Integers:
    """Return the integers that the windows' probabilities are proportional to, shape as `score`."""
    return decayed(score, epsilon=epsilon, largest=STEPS * largest) * windows.share


def decayed(score: Integers, *, epsilon: float, largest: int) -> Integers:
    """Return round(max(TOP * exp(-rate * gap), BOTTOM)) with gap to the row's best and 2 * rate * largest = epsilon.

    Drawing in proportion to these integers, times public ones, is epsilon-private if no score changes by more than
    `largest` between neighbours, and epsilon / 2 if all changes have one sign; `ROUNDING` is taken off epsilon
    beforehand.
    """
    rate = max(epsilon - ROUNDING, 0.0) / (2.0 * largest)
    if rate == 0.0:  # a budget below the rounding buys nothing
        return np.full(score.shape, TOP)
    gap = np.minimum(score.max(axis=1, keepdims=True) - score, math.ceil(math.log(TOP / BOTTOM) / rate))
    # A table: gaps are few, and equal gaps get equal weights to the last bit.
    table = np.maximum(TOP * np.exp(-rate * np.arange(int(gap.max(initial=0)) + 1)), BOTTOM)
    return np.rint(table).astype(np.int64)[gap]


def level_price(expected: NDArray[np.float64], *, epsilon: float, largest: int) -> Integers:
    """Return the public price of one level, in score units, shape (tasks,).

    Args:
        expected: weight that the claims of a task are publicly expected to have, shape (tasks,).
        epsilon: what the choice may spend.
        largest: largest weight of one claim.
    """
    share = np.clip(DECISIVE * largest / (expected * epsilon), LEAST_PRICE, MOST_PRICE)
    return np.ceil(STEPS * share * expected).astype(np.int64)
