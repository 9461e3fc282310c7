"""The exact distribution of one attempt of Algorithm 1 on one small task, by midpoint quadrature, from the definition.

Nothing of `crowdveil.synthesis` is used but the numbers of the test: its sampling and accounting are held to this.
"""

from typing import NamedTuple

import numpy as np
from experiments.papers.huai2019.algorithm1.candidates import PrivacyTest
from scipy.stats import laplace

STEPS = 30_000


class Attempt(NamedTuple):
    """One attempt: the density of its record on a grid (if it passes) and the probability that it fails."""

    density: np.ndarray
    step: float
    failure: float

    @property
    def passing(self) -> float:
        """Probability to pass."""
        return 1 - self.failure

    def given_pass(self) -> np.ndarray:
        """Density of the record of the loop that repeats until one passes."""
        return self.density / self.density.sum() / self.step


def grid(low: float, high: float) -> tuple[np.ndarray, float]:
    """Midpoints of equal steps over [low, high]."""
    step = (high - low) / STEPS
    return low + step * (np.arange(STEPS) + 0.5), step


def attempt(
    values: np.ndarray,
    weights: np.ndarray,
    width: float,
    test: PrivacyTest,
    ends: tuple[float, float],
    kernel: str = "gaussian",
) -> Attempt:
    """Return what one attempt releases: the sum over claims of weight, density and the chance to pass in its bin."""
    points, step = grid(*ends)
    z = (points - values[:, None]) / width
    if kernel == "gaussian":
        log_density = -z * z / 2 - np.log(width * np.sqrt(2 * np.pi))
    else:
        with np.errstate(divide="ignore"):
            log_density = np.log(np.maximum(0.75 / 5**0.5 * (1 - z * z / 5) / width, 0))
    bins = np.floor(-log_density / np.log(test.gamma))
    counts = np.array([((bins == own) & np.isfinite(own)).sum(axis=0) for own in bins])
    chance = laplace.cdf(counts - test.k, scale=1 / test.epsilon0)
    density = (weights[:, None] * np.exp(log_density) * chance).sum(axis=0)
    return Attempt(density, step, 1 - float(density.sum() * step))


def excess(one: np.ndarray, other: np.ndarray, step: float, epsilon: float) -> float:
    """Smallest delta at `epsilon` in one direction: the integral of (one - exp(epsilon) other) where it is positive."""
    return float(np.maximum(one - np.exp(epsilon) * other, 0).sum() * step)


def excess_of_failure(one: Attempt, other: Attempt, epsilon: float) -> float:
    """What an observer of failures adds to `excess`."""
    return max(one.failure - float(np.exp(epsilon)) * other.failure, 0.0)


def lone_claims(claims: int, test: PrivacyTest) -> tuple[Attempt, Attempt]:
    """Claims of equal weight so far apart that no two share a bin, and the same with one moved to a free place."""
    values = 10.0 * np.arange(1, claims + 1) + 5
    moved = np.append(10.0 * (claims + 1) + 5, values[1:])
    weights, ends = np.full(claims, 1 / claims), (0.0, 10.0 * (claims + 2))
    one, other = (attempt(places, weights, 0.5, test, ends, "epanechnikov") for places in (values, moved))
    return one, other
