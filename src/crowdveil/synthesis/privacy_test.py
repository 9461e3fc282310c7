"""The randomized test a candidate must pass (Huai et al., section 4.3): enough claims could as well have been its seed.

The densities of the candidate under all claims are sorted into bins (gamma^(-a-1), gamma^-a]. The claims in the bin of
the candidate's own seed are counted, and it passes if they reach k plus Laplace noise of scale 1 / epsilon0. The paper
asks for a >= 0, which no density above 1 meets; here a is any integer, as the proof allows.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.errors import SettingsError


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
