"""How wide a task's kernels are: Silverman's rule, Scott's rule, or a width known beforehand.

A rule reads the claims, so its width tells of them; no finite epsilon holds for a release that uses one.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.synthesis.claims import Claims

Rule = Literal["silverman", "scott", "given", "share"]

QUARTILE_RANGE = 1.34
"""Interquartile range of a standard normal, as Silverman rounds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """A rule for every task's bandwidth h, from its n claims with standard deviation sd.

    silverman: 0.9 min(sd, interquartile range / 1.34) n^(-1/5); where the range is 0 and sd is not, sd alone
    (Silverman 1986, equation 3.31). scott: sd n^(-1/5) (Scott 1992). given: `width`. share: `width` times the width of
    the task's bounds.

    A rule gives 0 for a single claim and for equal ones. Then, as for anything smaller, h is `least` times the task's
    scale: the width of its bounds if those are public, else the median size of its claims (1 if that is 0).

    Attributes:
        rule: which of the four.
        width: bandwidth in units of the task ("given"), or its share of the bounds ("share"); else None.
        least: smallest bandwidth of a rule, as a share of the task's scale.
    """

    rule: Rule = "silverman"
    width: float | None = None
    least: float = 1e-9

    def __post_init__(self) -> None:
        if self.rule not in ("silverman", "scott", "given", "share"):
            raise SettingsError("rule must be 'silverman', 'scott', 'given' or 'share'", value=self.rule)
        if (self.rule in ("given", "share")) != (self.width is not None):
            raise SettingsError("a width goes with the rules 'given' and 'share'", value=(self.rule, self.width))
        for number in (self.width, self.least):
            if number is not None and not (math.isfinite(number) and number > 0):
                raise SettingsError("a bandwidth must be a positive number", value=number)

    def public(self, claims: Claims) -> bool:
        """Return whether the bandwidths are known without looking at the claims."""
        return self.rule == "given" or (self.rule == "share" and claims.public_bounds)

    def of(self, claims: Claims) -> NDArray[np.float64]:
        """Return each task's bandwidth, shape (tasks,); NaN where a rule meets a task without claims.

        Raises:
            SettingsError: "share" with bounds that were derived from the claims.
        """
        if self.rule == "given" and self.width is not None:
            return np.full(len(claims.tasks), self.width)
        if self.rule == "share" and self.width is not None:
            if not claims.public_bounds:
                raise SettingsError("a share of the bounds needs given bounds", value=self.rule, hint="Give bounds.")
            return self.width * (claims.high - claims.low)
        return self._by_rule(claims)

    def _by_rule(self, claims: Claims) -> NDArray[np.float64]:
        count = claims.per_task
        some = count > 0
        ordered = claims.value[np.lexsort((claims.value, claims.task))]
        spread = standard_deviations(claims)
        if self.rule == "silverman":
            quartiles = segment_quantile(ordered, claims.pointers, 0.75) - segment_quantile(
                ordered, claims.pointers, 0.25
            )
            spread = 0.9 * np.where(quartiles > 0, np.minimum(spread, quartiles / QUARTILE_RANGE), spread)
        if claims.public_bounds:
            scale = claims.high - claims.low
        else:
            sizes = np.abs(claims.value)
            sizes = sizes[np.lexsort((sizes, claims.task))]
            median = segment_quantile(sizes, claims.pointers, 0.5)
            scale = np.where(median == 0, 1.0, median)
        width = np.maximum(spread * np.maximum(count, 1) ** -0.2, self.least * scale)
        return np.where(some, width, np.nan)


def standard_deviations(claims: Claims) -> NDArray[np.float64]:
    """Return each task's sample standard deviation, shape (tasks,); 0 for fewer than two claims."""
    count = np.maximum(claims.per_task, 1)
    tasks = len(claims.tasks)
    mean = np.bincount(claims.task, weights=claims.value, minlength=tasks) / count
    squares = np.bincount(claims.task, weights=(claims.value - mean[claims.task]) ** 2, minlength=tasks)
    return np.sqrt(squares / np.maximum(count - 1, 1))


def segment_quantile(ordered: NDArray[np.float64], pointers: NDArray[np.int64], share: float) -> NDArray[np.float64]:
    """Return a quantile of every segment, interpolated linearly; NaN for an empty one.

    Args:
        ordered: ascending within every segment, shape (rows,).
        pointers: ends of the segments, shape (segments + 1,).
        share: of the segment that lies below, in [0, 1].
    """
    count = np.diff(pointers)
    some = count > 0
    found = np.full(len(count), np.nan)
    place = share * (count[some] - 1)
    below = np.floor(place).astype(np.int64)
    first = pointers[:-1][some]
    left, right = ordered[first + below], ordered[first + np.minimum(below + 1, count[some] - 1)]
    found[some] = left + (place - below) * (right - left)
    return found
