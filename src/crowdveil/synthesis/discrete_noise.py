"""Exact discrete Laplace noise and uniform integers for arrays, from 48-bit random words.

Algorithms 1 and 2 of Canonne, Kamath and Steinke (2020), as in `mechanisms.discrete_laplace`, on many draws at once:
integers only, no logarithm and no exponential. The running time depends on the noise alone.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.randomness import WORD_BITS, Source

Integers = NDArray[np.int64]
SENSITIVITY = 2
"""L1 sensitivity of a task's counts to a replaced claim; it is 1 for an added or removed claim."""
EPSILON_BITS = 20
"""Epsilons are multiples of 2**-20, so that noise scales are fractions of small integers."""
MAX_NUMERATOR = 1 << 38
"""Largest numerator of a noise scale; it keeps the bounds of all uniform draws far below 2**62."""


def round_epsilon_down(epsilon: float) -> Fraction:
    """Return the largest multiple of 2**-20 that is at most `epsilon`.

    Raises:
        SettingsError: epsilon is below 2**-20, infinite or not a number.
    """
    if not (math.isfinite(epsilon) and epsilon >= 2.0**-EPSILON_BITS):
        raise SettingsError("epsilon must be finite and at least 1e-6", value=epsilon, hint="Use a larger epsilon.")
    return Fraction(math.floor(epsilon * 2**EPSILON_BITS), 2**EPSILON_BITS)


def sample_discrete_laplace_array(scale: Fraction, count: int, source: Source) -> Integers:
    """Return independent integers z with P(z) proportional to exp(-|z| / scale), exactly; int64, shape (count,).

    Args:
        scale: positive; its numerator is at most `MAX_NUMERATOR`.
        count: number of draws.
        source: `randomness.secure()` unless this is an experiment.

    Raises:
        SettingsError: the scale is not positive, or its numerator is too large.
    """
    if not 0 < scale.numerator <= MAX_NUMERATOR:
        raise SettingsError("a noise scale must be positive and not too large", value=float(scale))
    drawn = np.zeros(count, dtype=np.int64)
    pending = np.arange(count)
    while len(pending):
        magnitude = _sample_geometric(scale, len(pending), source)
        negative = uniform_below(np.full(len(pending), 2), source) == 1
        drawn[pending] = np.where(negative, -magnitude, magnitude)
        # "Minus zero" is rejected; otherwise 0 would have twice its probability.
        pending = pending[negative & (magnitude == 0)]
    return drawn


def noisy_counts(exact: Integers, epsilon: Fraction, source: Source) -> tuple[NDArray[np.float64], float]:
    """Return counts with noise of scale `SENSITIVITY` / epsilon, and the variance of the noise.

    A claim that moves from one count to another loses `epsilon`, one that is added or removed half of it.
    """
    scale = SENSITIVITY / epsilon
    noise = sample_discrete_laplace_array(scale, exact.size, source).reshape(exact.shape)
    return (exact + noise).astype(np.float64), discrete_laplace_variance(scale)


def discrete_laplace_variance(scale: Fraction) -> float:
    """Return the variance of the discrete Laplace distribution, 2 q / (1 - q)**2 with q = exp(-1 / scale)."""
    rate = 1.0 / float(scale)
    return 2.0 * math.exp(-rate) / math.expm1(-rate) ** 2


def uniform_below(bounds: Integers, source: Source) -> Integers:
    """Return one integer uniform on 0 .. bound - 1 for every bound in 1 .. 2**62, by rejection; shape (bounds,)."""
    # A float may round up to the next power of two: one bit more only means more rejections.
    _, bits = np.frexp((bounds - 1).astype(np.float64))
    mask = (np.int64(1) << bits.astype(np.int64)) - 1
    wide = bool((bounds > 1 << WORD_BITS).any())
    accepted = np.zeros(len(bounds), dtype=np.int64)
    pending = np.arange(len(bounds))
    while len(pending):
        drawn = source.words(len(pending)).astype(np.int64)
        if wide:
            drawn |= source.words(len(pending)).astype(np.int64) << WORD_BITS
        drawn &= mask[pending]
        accepted[pending] = drawn
        pending = pending[drawn >= bounds[pending]]
    return accepted


def uniform_floats(count: int, source: Source) -> NDArray[np.float64]:
    """Return floats uniform on the midpoints of 2**48 equal steps of (0, 1), for draws without exactness; (count,)."""
    return (source.words(count).astype(np.float64) + 0.5) / 2.0**WORD_BITS


def _sample_geometric(scale: Fraction, count: int, source: Source) -> Integers:
    """Return integers g >= 0 with P(g) proportional to exp(-g / scale), scale = t / s; shape (count,)."""
    t, s = scale.numerator, scale.denominator
    remainder = np.zeros(count, dtype=np.int64)
    pending = np.arange(count)
    while len(pending):
        remainder[pending] = uniform_below(np.full(len(pending), t), source)
        pending = pending[~_bernoulli_exp(remainder[pending], t, source)]
    quotient = np.zeros(count, dtype=np.int64)
    pending = np.arange(count)
    while len(pending):
        pending = pending[_bernoulli_exp(np.ones(len(pending), dtype=np.int64), 1, source)]
        quotient[pending] += 1
    return (remainder + t * quotient) // s


def _bernoulli_exp(numerator: Integers, denominator: int, source: Source) -> NDArray[np.bool_]:
    """Return True with probability exp(-gamma), gamma = numerator / denominator in [0, 1], for every numerator.

    The first k at which a draw of Bernoulli(gamma / k) fails is odd with probability exp(-gamma).
    """
    odd = np.ones(len(numerator), dtype=bool)
    pending, k = np.arange(len(numerator)), 1
    while len(pending):
        bounds = np.full(len(pending), denominator * k)
        pending = pending[uniform_below(bounds, source) < numerator[pending]]
        odd[pending] ^= True
        k += 1
    return odd
