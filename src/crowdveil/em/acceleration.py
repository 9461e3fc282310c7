"""Accelerated EM: squared extrapolation of EM steps, with a safeguard that keeps the objective from falling.

SQUAREM, scheme S3 (Varadhan and Roland 2008, Scand. J. Statist. 35, section 6). Three parameters of consecutive plain
steps, x0, x1, x2, in unbounded coordinates give r = x1 - x0, v = (x2 - x1) - r and the point
    x0 + 2 a r + a^2 v,   a = |r| / |v|.
If the objective there is below the last one, the fit goes on from x2 instead, so that every optimum of the plain steps
is one of the accelerated fit. Near an optimum that plain steps approach at the rate q, a is about 1 / (1 - q): a last
change c of the posteriors is then followed by a c in all.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.kernels.dispatch import use_compiled
from crowdveil.em.kernels.reductions import CHUNK_NUMBERS
from crowdveil.em.model import Coordinates, Model, P

Points = NDArray[np.float64]

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
        self._model, self._longest, self._compiled = model, MAX_LENGTH, use_compiled(reports)
        # A refused step is followed by another one.
        self._allowed = range(PLAIN_STEPS, model.max_steps - 1 if reports >= MIN_REPORTS else 0)
        self._points: list[Coordinates] = []
        self._fallback: P | None = None
        self._lengths = deque[float](maxlen=RECENT)
        self.remaining = np.inf

    def last_extrapolation_lost(self, objectives: Sequence[float]) -> bool:
        """Return whether the last step was extrapolated and lost; the last objective is that of this step."""
        return self._fallback is not None and not objectives[-1] >= objectives[-2]

    def undo_refused_step(self, objectives: list[float]) -> P:
        """Return the parameters to go on from after a refused step, whose objective is removed."""
        assert self._fallback is not None
        objectives.pop()
        back, self._fallback = self._fallback, None
        self._longest = max(self._longest / GROWTH, 1.0)
        return back

    def next_or_extrapolated_parameters(self, number: int, before: P, after: P, change: float) -> P:
        """Return the parameters of the next step: those after the M-step, or extrapolated ones.

        Args:
            number: of the step.
            before, after: parameters of the E-step, with their cached values, and those after the M-step.
            change: largest change of a posterior in the E-step.
        """
        self._fallback = None
        own = self._model.coordinates(before) if number in self._allowed else None
        self._points = [*self._points, own] if own is not None else []
        if len(self._points) < 2:
            return after
        latest = self._model.coordinates(after)
        assert latest is not None
        return self._extrapolated(after, latest, change)

    def _extrapolated(self, after: P, latest: Coordinates, change: float) -> P:
        points = list(zip(*self._points, latest, strict=True))
        self._points = []
        length = _extrapolation_step_length(points, compiled=self._compiled)
        self._lengths.append(length)
        self.remaining = change * max(self._lengths)
        if not 1 < length < np.inf:
            return after
        if length > self._longest:
            length, self._longest = self._longest, self._longest * GROWTH
        self._fallback = after
        found = tuple(_extrapolate(three, length, compiled=self._compiled) for three in points)
        return self._model.from_coordinates(after, found)


def _extrapolation_step_length(points: Iterable[tuple[Points, ...]], *, compiled: bool = False) -> float:
    """Return |r| / |v|; infinite if the steps do not shrink."""
    squares = [_squared_changes(three, compiled=compiled) for three in points]
    first, second = map(sum, zip(*squares, strict=True))
    return float(np.sqrt(first / second)) if second > 0 else np.inf


def _squared_changes(points: tuple[Points, ...], *, compiled: bool) -> tuple[float, float]:
    """Return |r|^2 and |v|^2 for one array of coordinates."""
    if compiled:
        from crowdveil.em.kernels.numba_loops.extrapolation import squared_changes

        found: tuple[float, float] = squared_changes(*(array.reshape(-1) for array in points))
        return found
    first = second = 0.0
    for a, b, c in _flat_cache_sized_chunks(*points):
        r = b - a
        first += float(np.einsum("i,i->", r, r))
        r += b
        r -= c
        second += float(np.einsum("i,i->", r, r))
    return first, second


def _extrapolate(points: tuple[Points, ...], length: float, *, compiled: bool = False) -> Points:
    """Return a + 2 length r + length^2 v for one array of coordinates."""
    square, found = length * length, np.empty(points[0].shape)
    if compiled:
        from crowdveil.em.kernels.numba_loops.extrapolation import extrapolate

        extrapolate(*(array.reshape(-1) for array in points), length, found.reshape(-1))
        return found
    for some, one, two, three in _flat_cache_sized_chunks(found, *points):
        np.multiply(one, 1 - 2 * length + square, out=some)
        some += (2 * length - 2 * square) * two
        some += square * three
    return found


def _flat_cache_sized_chunks(*arrays: Points) -> Iterator[tuple[Points, ...]]:
    """Yield flat parts of equally large C-contiguous arrays, all of which fit into a core's own cache."""
    flat = [array.reshape(-1) for array in arrays]
    for start in range(0, len(flat[0]), CHUNK_NUMBERS):
        yield tuple(array[start : start + CHUNK_NUMBERS] for array in flat)
