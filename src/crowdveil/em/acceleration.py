"""Accelerated EM: squared extrapolation of EM steps, with a safeguard that keeps the objective from falling.

SQUAREM, scheme S3 (Varadhan and Roland 2008, Scand. J. Statist. 35, section 6). Three parameters of consecutive plain
steps, x0, x1, x2, in unbounded coordinates give r = x1 - x0, v = (x2 - x1) - r and the point
    x0 + 2 a r + a^2 v,   a = |r| / |v|.
If the objective there is below the last one, the fit goes on from x2 instead, so that every optimum of the plain steps
is one of the accelerated fit. Near an optimum that plain steps approach at the rate q, a is about 1 / (1 - q): a last
change c of the posteriors is then followed by a c in all.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.model import Coordinates, Model, P

MIN_REPORTS = 10_000
"""Reports below which steps stay plain: a thousand of them take less than a second."""
PLAIN_STEPS = 12
"""Plain steps before the first extrapolation: early steps choose the optimum, and short fits need no acceleration."""
MAX_LENGTH, GROWTH = 4.0, 4.0
"""Upper bound of the first a, and its growth when it is reached and the step succeeds; a failure shrinks it alike."""
RECENT = 5
"""Extrapolations whose largest a estimates the rate of convergence."""
REMAINING_CHANGE = 5e-5
"""Total change of a posterior from which on a fit counts as settled.

A truth can only change if its two best labels are less than twice this apart: fewer than one task in ten thousand, if
such differences are spread over [0, 1].
"""


class Acceleration(Generic[P]):
    """State of the acceleration of one fit; of small data, or without coordinates of the model, all steps are plain.

    Args:
        model: the model, whose `max_steps` is the largest number of steps.
        reports: number of reports.

    Attributes:
        remaining: estimated total change of a posterior by further plain steps; infinite before the first estimate.
    """

    def __init__(self, model: Model[P, Any], reports: int) -> None:
        self._model, self._longest = model, MAX_LENGTH
        # A refused step is followed by another one.
        self._allowed = range(PLAIN_STEPS, model.max_steps - 1 if reports >= MIN_REPORTS else 0)
        self._points: list[tuple[P, Coordinates]] = []
        self._fallback: P | None = None
        self._lengths = deque[float](maxlen=RECENT)
        self.remaining = np.inf

    def refuses(self, objectives: Sequence[float]) -> bool:
        """Return whether the last step was extrapolated and lost; the last objective is that of this step."""
        return self._fallback is not None and not objectives[-1] >= objectives[-2]

    def fall_back(self, objectives: list[float]) -> P:
        """Return the parameters to go on from after a refused step, whose objective is removed."""
        assert self._fallback is not None
        objectives.pop()
        back, self._fallback = self._fallback, None
        self._longest = max(self._longest / GROWTH, 1.0)
        return back

    def next(self, number: int, before: P, after: P, change: float) -> P:
        """Return the parameters of the next step: those after the M-step, or extrapolated ones.

        Args:
            number: of the step.
            before, after: parameters of the E-step, and those after the M-step.
            change: largest change of a posterior in the E-step.
        """
        self._fallback = None
        coordinates = self._model.coordinates(after) if number in self._allowed else None
        if coordinates is None:
            self._points.clear()
            return after
        if not self._points:
            own = self._model.coordinates(before)
            self._points = [] if own is None else [(before, own)]
        self._points.append((after, coordinates))
        return self._extrapolated(change) if len(self._points) == 3 else after

    def _extrapolated(self, change: float) -> P:
        (_, x0), (_, x1), (latest, x2) = self._points
        self._points = []
        length = _length(x0, x1, x2)
        self._lengths.append(length)
        self.remaining = change * max(self._lengths)
        if not 1 < length < np.inf:
            return latest
        if length > self._longest:
            length, self._longest = self._longest, self._longest * GROWTH
        self._fallback = latest
        return self._model.from_coordinates(
            latest, tuple(_along(*parts, length) for parts in zip(x0, x1, x2, strict=True))
        )


def _length(x0: Coordinates, x1: Coordinates, x2: Coordinates) -> float:
    """Return |r| / |v|; infinite if the steps do not shrink."""
    first = second = 0.0
    for a, b, c in zip(x0, x1, x2, strict=True):
        r = b - a
        first += float(np.vdot(r, r))
        r -= c
        r += b
        second += float(np.vdot(r, r))
    return float(np.sqrt(first / second)) if second > 0 else np.inf


def _along(
    a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64], length: float
) -> NDArray[np.float64]:
    """Return a + 2 length r + length^2 v for one array of coordinates."""
    square = length * length
    return np.asarray((1 - 2 * length + square) * a + (2 * length - 2 * square) * b + square * c)
