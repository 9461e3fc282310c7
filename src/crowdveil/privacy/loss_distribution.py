"""Privacy-loss distributions of integer tables and their composition, with every rounding upwards.

The privacy profile of a unit is delta(epsilon) = max over neighbours a, b of max over events E of
P_a(E) - e^epsilon P_b(E). A discrete privacy-loss distribution that connects the dots of the profile on a lattice
(Doroshenko et al. 2022) dominates it; sums of independent losses dominate compositions (Zhu, Dong, Wang 2022, theorem
10). Proof: docs/explanation/composition.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.channel import Channel
from crowdveil.channels.rounding import sum_rounded_up
from crowdveil.errors import SettingsError
from crowdveil.privacy.lattice_convolution import (
    LatticeMeasure,
    TiltedSum,
    bernstein_tail_distance,
    tilted_moments,
    tilted_sum,
)

POINTS = 1024
"""Lattice points between loss 0 and the largest loss of a cell."""
MIN_POINTS = 8
MIN_WINDOW, MAX_WINDOW = 1 << 14, 1 << 18
"""Least and largest number of lattice points of a composed distribution: few cells need points far below the mean."""
SUM_ERROR = 4e-16
"""Bound on the relative rounding error of a sum, per term."""
PROFILE_ERROR = 2e-15
"""Bound on the rounding error of a profile, per report symbol."""
MAX_TILT = 60.0
"""Largest exponent of a tilted mass."""
MIN_REACH = 1e-6
"""Smallest range of losses that a lattice covers, in nats."""
MAX_REACH = 300.0
"""Largest loss of a cell whose distribution is computed, in nats; beyond it the sums of epsilons stand."""
MIN_DELTA, MAX_DELTA = 1e-15, 0.5
Bound = Literal["pure", "exact", "advanced"]
"""Bounds on composed losses: sum of epsilons at delta 0; composed distribution and advanced composition, at a delta."""


@dataclass(frozen=True, slots=True, eq=False)
class PrivacyProfile:
    """Upper bound of delta(epsilon), the same for both orders of every pair of neighbours.

    Attributes:
        epsilon: pure privacy loss in nats; delta is 0 from there on. May be infinite.
        delta: function from values of epsilon >= 0, ascending, shape (points,), to upper bounds, shape (points,).
        reach: loss beyond which all mass is counted as infinite loss; `epsilon` unless it is smaller.
    """

    epsilon: float
    delta: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    reach: float


Cells = Sequence[tuple[PrivacyProfile, int]]
"""Profiles of independent cells, with the number of cells that have each."""


@lru_cache(maxsize=256)
def channel_profile(channel: Channel) -> PrivacyProfile:
    """Return the profile of one cell sent through a channel, over all ordered pairs of inputs.

    Raises:
        SettingsError: the channel has infinite epsilon.
    """
    if channel.ratio is None:
        raise SettingsError("composition needs a channel with finite epsilon", value=channel.epsilon)
    rows = np.unique(channel.probabilities, axis=0)

    def delta(epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        worst = np.zeros(len(epsilons))
        for row in rows:
            for part in np.array_split(np.arange(len(epsilons)), 1 + len(epsilons) * rows.size // 1_000_000):
                excess = row - np.exp(epsilons[part])[:, None, None] * rows
                worst[part] = np.maximum(worst[part], np.maximum(excess, 0.0).sum(axis=2).max(axis=1))
        return np.where(epsilons < channel.epsilon, worst + PROFILE_ERROR * rows.shape[1], 0.0)

    return PrivacyProfile(channel.epsilon, delta, channel.epsilon)


@dataclass(frozen=True, slots=True, eq=False)
class LossDistribution:
    """Discrete privacy-loss distribution that dominates a profile, as positive measures.

    Attributes:
        measure: mass under P at each loss, in units of the lattice's step, ascending.
        infinite: mass at infinite loss.
    """

    measure: LatticeMeasure
    infinite: float


def dominating_distribution(profile: PrivacyProfile, step: float) -> LossDistribution:
    """Return a distribution on multiples of `step` whose profile is at least `profile` everywhere."""
    losses = step * np.arange(math.ceil(profile.reach / step) + 1, dtype=np.float64)
    points, wanted = _lower_hull_vertices(np.exp(losses), np.minimum(profile.delta(losses), 1.0))
    ratios = np.exp(losses[points])
    slopes = np.append(np.diff(wanted) / np.diff(ratios), 0.0)
    second = np.maximum(np.diff(slopes), 0.0)  # mass under Q at the positive losses
    first = second * ratios[1:]
    tail_first, tail_second = (np.append(np.cumsum(part[::-1])[::-1], 0.0) for part in (first, second))
    missing = wanted - (tail_first - ratios * tail_second) + len(points) * SUM_ERROR * tail_first
    infinite = max(0.0, float(missing.max()))
    masses = np.zeros(2 * len(losses) - 1)
    masses[len(losses) - 1 + points[1:]] = first
    masses[len(losses) - 1 - points[1:]] = second
    masses[len(losses) - 1] = max(0.0, 1 - infinite - float(masses.sum())) + len(points) * SUM_ERROR
    return LossDistribution(LatticeMeasure(1 - len(losses), masses), infinite)


def _lower_hull_vertices(
    x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the vertices of the greatest convex function below the points: their indices and values."""
    kept: list[int] = []
    for k in range(len(x)):
        while len(kept) > 1:
            a, b = kept[-2:]
            if (y[b] - y[a]) * (x[k] - x[a]) < (y[k] - y[a]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(k)
    return np.array(kept), y[kept]


@dataclass(frozen=True, slots=True, eq=False)
class ComposedLoss:
    """Loss of independent cells together.

    Attributes:
        step: lattice step, in nats.
        total: tilted measure of the sum of the losses.
        infinite: bound on the mass at infinite loss.
    """

    step: float
    total: TiltedSum
    infinite: float

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta at `epsilon`, in [0, 1]; 1 where losses above it are below the window."""
        if epsilon < self.total.first * self.step:
            return 1.0
        positions = self.total.first + np.arange(len(self.total.masses), dtype=np.float64)
        above = positions[positions * self.step > epsilon]
        values = -np.expm1(epsilon - above * self.step)
        tilt = self.total.tilt / self.step
        log_peak = _log_largest_tilted_excess(tilt) - tilt * epsilon
        return min(1.0, self.total.upper_bound_of_mean(above, values, log_peak) + self.infinite)


def _log_largest_tilted_excess(tilt: float) -> float:
    """Return ln of the largest e^(-t y) (1 - e^(-y)) over y >= 0, which is where e^(-y) = t / (t + 1); t per nat."""
    return (0.0 if tilt == 0 else -tilt * math.log1p(1 / tilt)) - math.log1p(tilt)


def compose_loss_distributions(cells: Cells, delta: float) -> ComposedLoss:
    """Return the composed loss of independent cells, most precise where delta(epsilon) is near `delta`.

    Args:
        cells: profiles of cells, with the number of cells that have each.
        delta: additive slack, in [1e-15, 0.5].
    """
    reach = max(MIN_REACH, *(profile.reach for profile, _ in cells))
    points = POINTS
    while True:
        step = reach / points
        parts = [(dominating_distribution(profile, step), count) for profile, count in cells]
        terms = [(part.measure, count) for part, count in parts]
        tilt = _chernoff_tilt(terms, delta, step, MAX_TILT / (points + 1))
        _, _, variance, excess = tilted_moments(terms, tilt)
        if 2 * bernstein_tail_distance(variance, excess) < MAX_WINDOW or points <= MIN_POINTS:
            break
        points //= 2
    mass = math.exp(sum(count * math.log(max(1.0, float(m.masses.sum()))) for m, count in terms))
    infinite = mass * sum(part.infinite * count for part, count in parts)
    return ComposedLoss(step, tilted_sum(terms, tilt, MIN_WINDOW), infinite)


def _chernoff_tilt(terms: list[tuple[LatticeMeasure, int]], delta: float, step: float, largest: float) -> float:
    """Return the tilt at which the least over t of the bound M e^(-t epsilon) max_y e^(-t y) (1 - e^(-y)) is `delta`.

    The least is where epsilon is the tilted mean less ln(1 + 1/t).
    """
    low, high = 0.0, largest
    for _ in range(30):
        tilt = (low + high) / 2
        log_scale, mean, _, _ = tilted_moments(terms, tilt)
        low, high = (tilt, high) if log_scale - tilt * mean - math.log1p(tilt / step) > math.log(delta) else (low, tilt)
    return (low + high) / 2


def composed_epsilon(cells: Cells, delta: float) -> float:
    """Return the smallest certified epsilon of independent cells together at `delta`, rounded up.

    It is never above the sum of the cells' epsilons, nor above advanced composition.

    Raises:
        SettingsError: delta is outside [1e-15, 0.5], or a count is below 1.
    """
    require_delta(delta)
    if not cells or min(count for _, count in cells) < 1:
        raise SettingsError("composition needs at least one cell", value=[count for _, count in cells])
    high = min(pure_epsilon(cells), advanced_epsilon(cells, delta))
    if max(profile.reach for profile, _ in cells) > MAX_REACH:
        return high
    composed = compose_loss_distributions(cells, delta)
    if not composed.delta(high) <= delta:
        return high
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if composed.delta(middle) <= delta else (middle, high)
    return high


def pure_epsilon(cells: Cells) -> float:
    """Return the sum of the cells' epsilons, rounded up: basic composition, delta 0."""
    return sum_rounded_up([(profile.epsilon, count) for profile, count in cells])


def advanced_epsilon(cells: Cells, delta: float) -> float:
    """Return epsilon at `delta` by advanced composition; infinite if a cell's epsilon is.

    sum e (e^e - 1)/(e^e + 1) + sqrt(2 ln(1/delta) sum e^2) (Kairouz, Oh, Viswanath 2015, theorem 3.4, third term).
    """
    if any(math.isinf(profile.epsilon) for profile, _ in cells):
        return math.inf
    mean = sum(count * profile.epsilon * math.tanh(profile.epsilon / 2) for profile, count in cells)
    squares = sum(count * profile.epsilon**2 for profile, count in cells)
    return (mean + math.sqrt(2 * math.log(1 / delta) * squares)) * (1 + 1e-12)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedBounds:
    """Privacy loss of several cells together, by three methods.

    Attributes:
        delta: additive slack of `advanced` and `exact`.
        pure: sum of epsilons, at delta 0.
        advanced: epsilon by advanced composition, at `delta`.
        exact: epsilon of the composed privacy-loss distribution at `delta`, rounded up; at most the other two.
        least: name of the least bound; "pure" where the slack gains nothing, None if all are infinite. A tie is won by
            the sum, which holds at delta 0, then by advanced composition.
    """

    delta: float
    pure: float
    advanced: float
    exact: float
    least: Bound | None


def composed_bounds(cells: Cells, delta: float, pure: float) -> dict[str, Any]:
    """Return the attributes of `ComposedBounds` of independent cells; `pure` is a bound at delta 0.

    Raises:
        SettingsError: delta is outside [1e-15, 0.5], or a count is below 1.
    """
    require_delta(delta)
    advanced, exact = advanced_epsilon(cells, delta), min(pure, composed_epsilon(cells, delta))
    least = name_of_least_bound(pure, advanced, exact)
    return {"delta": delta, "pure": pure, "advanced": advanced, "exact": exact, "least": least}


def name_of_least_bound(pure: float, advanced: float, exact: float) -> Bound | None:
    """Return the name of the least of three sound bounds, the first of equal ones; None if all are infinite."""
    named: tuple[tuple[float, Bound], ...] = ((pure, "pure"), (advanced, "advanced"), (exact, "exact"))
    least, name = min(named, key=lambda pair: pair[0])
    return name if math.isfinite(least) else None


def require_delta(delta: float) -> float:
    """Return `delta` if it is in [1e-15, 0.5].

    Raises:
        SettingsError: delta is outside this interval.
    """
    if not MIN_DELTA <= delta <= MAX_DELTA:
        raise SettingsError(
            f"delta must be in [{MIN_DELTA:g}, {MAX_DELTA:g}]",
            value=delta,
            hint="1e-6 is usual; keep it below 1/people.",
        )
    return float(delta)
