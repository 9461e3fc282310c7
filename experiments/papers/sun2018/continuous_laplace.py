"""Laplace perturbation as published (Sun et al. 2018, equations 6-7): real-valued noise. Simulation only: no privacy.

Floating-point noise reveals the answer through its last bits; devices use `crowdveil.mechanisms.Laplace`.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil import Scale
from crowdveil.mechanisms.laplace import NullValue
from crowdveil.randomness import Seeded


def simulate_continuous_laplace(
    values: ArrayLike, *, domain: Scale, epsilon: float, source: Seeded, null_value: NullValue = "uniform"
) -> NDArray[np.float64]:
    """Return answers with Laplace noise of scale range / epsilon, same shape.

    Args:
        values: answers of any shape, clipped to the domain first; NaN is NULL.
        domain: domain of the answers; its range sets the noise scale.
        epsilon: privacy loss of one cell in exact real arithmetic, in nats.
        source: of the noise.
        null_value: replacement of NULL.
    """
    numbers = np.clip(np.asarray(values, dtype=float), domain.low, domain.high)
    if null_value == "uniform":
        replacement = source.generator.choice(domain.values, size=numbers.shape)
    else:
        replacement = np.full(numbers.shape, float(null_value))
    noise = source.generator.laplace(scale=domain.range / epsilon, size=numbers.shape)
    return np.where(np.isnan(numbers), replacement, numbers) + noise
