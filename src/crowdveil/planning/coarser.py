"""Long scales are planned on a coarser one, which takes a minute where the scale itself took more than ten.

The coarser scale is public and depends on nothing but the scale and the workers' expected errors.
"""

import numpy as np
from numpy.typing import NDArray

from crowdveil.labels import Scale

MOST_STEPS = 20
"""A scale of more steps than these is planned on a coarser one."""
STEP_OF_SIGMA = 2.0
"""Largest step of the coarser scale in the smallest standard deviation: rounding then adds a third to that variance."""


def coarser(scale: Scale, smallest_sigma: float) -> Scale:
    """Return the scale to plan on: with the same ends and `MOST_STEPS` at most, more where workers err by little.

    Steps are made of whole ones where at least half as many can be, and are a fraction of the range otherwise.

    Args:
        scale: of the answers.
        smallest_sigma: the smallest standard deviation of the workers, in units of the answers.
    """
    most, steps = MOST_STEPS, scale.size - 1
    finest = scale.range / (STEP_OF_SIGMA * smallest_sigma) if smallest_sigma > 0 else float(steps)
    while most < finest and most < steps:
        most *= 2
    if steps <= most:
        return scale
    whole = [count for count in range(most, most // 2 - 1, -1) if steps % count == 0 and count >= finest]
    return Scale(scale.low, scale.high, _step(scale, steps, whole[0] if whole else most))


def merged(prior: NDArray[np.float64], scale: Scale, onto: Scale) -> NDArray[np.float64]:
    """Return the prior of the coarser labels, shape (labels of `onto`,); `prior` has one entry per label of `scale`.

    A label stands for the numbers that round to it, evenly; each coarser one gets what rounds to it.
    """
    centres = scale.values[:, np.newaxis]
    low, high = centres - scale.step / 2, centres + scale.step / 2
    borders = np.concatenate(([-np.inf], (onto.values[:-1] + onto.values[1:]) / 2, [np.inf]))
    shared = np.minimum(high, borders[1:]) - np.maximum(low, borders[:-1])
    part = prior @ np.maximum(shared, 0.0)
    return np.asarray(part / part.sum())


def _step(scale: Scale, steps: int, count: int) -> float:
    """Return the step of `count` ones, as a decimal that a person would write."""
    return float(f"{scale.step * steps / count:.15g}")
