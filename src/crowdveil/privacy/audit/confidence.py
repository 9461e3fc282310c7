"""Lower confidence bounds on epsilon and delta from two binomial counts (Clopper and Pearson 1934).

For an event E, inputs a and b, and p = P(E | a), q = P(E | b), (epsilon, delta)-privacy asserts that p is at most
e^epsilon q + delta. With confidence 1 - alpha, p >= p_low and q <= q_high, so epsilon >= ln((p_low - delta) / q_high)
and delta >= p_low - e^epsilon q_high.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri


def lower_limit(successes: int, draws: int, alpha: float) -> float:
    """Return the exact lower confidence limit of a probability; it is above the probability with chance <= alpha."""
    return 0.0 if successes == 0 else float(betaincinv(successes, draws - successes + 1, alpha))


def upper_limit(successes: int, draws: int, alpha: float) -> float:
    """Return the exact upper confidence limit of a probability; it is below the probability with chance <= alpha."""
    return 1.0 - lower_limit(draws - successes, draws, alpha)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Occurrences of one event under two inputs.

    Attributes:
        first, second: numbers of draws in which it occurred.
        first_draws, second_draws: numbers of draws.
    """

    first: int
    second: int
    first_draws: int
    second_draws: int

    def lower_bound_on_epsilon(self, delta: float, alpha: float) -> float:
        """Return a lower bound on epsilon at this delta, in nats, at least 0; wrong with chance at most alpha."""
        low, high = self._ratio_confidence_limits(alpha)
        return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0

    def lower_bound_on_delta(self, epsilon: float, alpha: float) -> float:
        """Return a lower bound on delta at this epsilon, at least 0; wrong with chance at most alpha."""
        low, high = self._ratio_confidence_limits(alpha)
        return 0.0 if math.isinf(epsilon) else max(0.0, low - math.exp(epsilon) * high)

    def _ratio_confidence_limits(self, alpha: float) -> tuple[float, float]:
        low = lower_limit(self.first, self.first_draws, alpha / 2)
        return low, upper_limit(self.second, self.second_draws, alpha / 2)


def wilson_limits(
    first: NDArray[Any], second: NDArray[Any], draws: tuple[int, int], alpha: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Wilson's lower limits for `first` and upper limits for `second`; they rank events, and bound nothing."""
    z = -float(ndtri(alpha / 2))
    return _wilson_limit(first, draws[0], -z), _wilson_limit(second, draws[1], z)


def _wilson_limit(successes: NDArray[Any], draws: int, z: float) -> NDArray[np.float64]:
    share = successes / draws
    centre = share + z * z / (2 * draws)
    spread = z * np.sqrt(share * (1 - share) / draws + (z / (2 * draws)) ** 2)
    return np.asarray((centre + spread) / (1 + z * z / draws), dtype=np.float64)
