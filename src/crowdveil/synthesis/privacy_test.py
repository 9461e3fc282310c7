"""The randomized test a candidate must pass (Huai et al., section 4.3): enough claims could as well have been its seed.

The densities of the candidate under all claims are sorted into bins (gamma^(-a-1), gamma^-a]. The claims in the bin of
the candidate's own seed are counted, and it passes if they reach k plus Laplace noise of scale 1 / epsilon0. The paper
asks for a >= 0, which no density above 1 meets; here a is any integer, as the proof allows.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis.integer_noise import Integers, budget, two_sided_geometric


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyTest:
    """Parameters of the test, named as in the paper; its defaults for k and gamma are those of the experiments.

    Attributes:
        k: claims wanted in the bin, at least 1. A task with fewer claims than k releases nothing.
        gamma: width of a bin, a ratio of densities above 1.
        epsilon0: privacy loss of one count, in nats; the paper does not say which it used.
    """

    k: int = 5
    gamma: float = 4.0
    epsilon0: float = 1.0

    def __post_init__(self) -> None:
        if self.k < 1:
            raise SettingsError("k must be at least 1", value=self.k)
        if not (math.isfinite(self.gamma) and self.gamma > 1):
            raise SettingsError("gamma must be a number above 1", value=self.gamma)
        if not (math.isfinite(self.epsilon0) and self.epsilon0 > 0):
            raise SettingsError("epsilon0 must be a positive number", value=self.epsilon0)

    def pass_probability(self, count: ArrayLike) -> NDArray[np.float64]:
        """Return P(k + Lap(1 / epsilon0) <= count); grows by a factor of at most exp(epsilon0) per claim."""
        above = self.epsilon0 * (np.asarray(count, dtype=float) - self.k)
        tail = 0.5 * np.exp(-np.abs(above))
        return np.where(above < 0, tail, 1 - tail)

    def bins(self, log_density: ArrayLike) -> NDArray[np.float64]:
        """Return the bin a of every density, a whole number; infinity for density 0, which is in no bin."""
        return np.floor(-np.asarray(log_density, dtype=float) / math.log(self.gamma))


@dataclass(frozen=True, slots=True)
class GeometricTest:
    """The same test with two-sided geometric noise in place of Laplace noise, drawn exactly.

    Attributes:
        settings: k, gamma and epsilon0; the latter is rounded down to a multiple of 2**-20.
    """

    settings: PrivacyTest

    @property
    def k(self) -> int:
        """Claims wanted in the bin."""
        return self.settings.k

    @property
    def gamma(self) -> float:
        """Width of a bin."""
        return self.settings.gamma

    @property
    def exact(self) -> Fraction:
        """The epsilon0 of the noise, as a fraction.

        Raises:
            SettingsError: it is below 2**-20.
        """
        return budget(self.settings.epsilon0)

    @property
    def epsilon0(self) -> float:
        """The same as a float, exactly."""
        return float(self.exact)

    def pass_probability(self, count: ArrayLike) -> NDArray[np.float64]:
        """Return P(count + Z >= k), P(Z = z) proportional to exp(-epsilon0 |z|).

        It, and its complement, change by a factor of at most exp(epsilon0) per claim.
        """
        lacking = self.k - np.asarray(count, dtype=float)
        ratio = math.exp(-self.epsilon0)
        tail = ratio ** np.where(lacking > 0, lacking, 1 - lacking) / (1 + ratio)
        return np.where(lacking > 0, tail, 1 - tail)

    def passes(self, count: Integers, source: Source) -> NDArray[np.bool_]:
        """Draw whether a candidate passes, for every count, exactly; shape as `count`."""
        return count + two_sided_geometric(1 / self.exact, len(count), source) >= self.k
