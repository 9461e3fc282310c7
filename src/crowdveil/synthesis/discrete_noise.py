"""Exact integer noise for whole arrays: two-sided geometric numbers and uniform integers from 48-bit words.

The steps are those of `mechanisms.discrete_laplace` (Canonne, Kamath and Steinke 2020, Algorithms 1 and 2) on many
draws at once: integers only, no logarithm and no exponential. How long it takes depends on the noise alone.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.randomness import WORD_BITS, Source

Integers = NDArray[np.int64]
EPSILON_BITS = 20
"""Budgets are multiples of 2**-20, so that noise scales are small fractions."""
MAX_NUMERATOR = 1 << 38
"""Largest numerator of a scale: the coins of a draw then stay far below one 48-bit word."""


def budget(epsilon: float) -> Fraction:
    """Return the largest multiple of 2**-20 that is at most `epsilon`.

    Raises:
        SettingsError: epsilon is below 2**-20, infinite or not a number.
    """
    if not (math.isfinite(epsilon) and epsilon >= 2.0**-EPSILON_BITS):
        raise SettingsError("a budget must be finite and at least 1e-6", value=epsilon, hint="Use a larger epsilon.")
    return Fraction(math.floor(epsilon * 2**EPSILON_BITS), 2**EPSILON_BITS)


def two_sided_geometric(scale: Fraction, count: int, source: Source) -> Integers:
    """Draw independent integers z with P(z) proportional to exp(-|z| / scale), exactly.

    Args:
        scale: positive; its numerator is at most `MAX_NUMERATOR`.
        count: how many.
        source: `randomness.secure()` unless this is an experiment.

    Returns:
        int64, shape (count,).

    Raises:
        SettingsError: the scale is not positive or too fine.
    """
    if not 0 < scale.numerator <= MAX_NUMERATOR:
        raise SettingsError("a noise scale must be positive and not too large", value=float(scale))
    found = np.zeros(count, dtype=np.int64)
    waiting = np.arange(count)
    while len(waiting):
        magnitude = _geometric(scale, len(waiting), source)
        negative = uniform_below(np.full(len(waiting), 2), source) == 1
        found[waiting] = np.where(negative, -magnitude, magnitude)
        # "Minus zero" is drawn again, or 0 would count twice.
        waiting = waiting[negative & (magnitude == 0)]
    return found


def two_sided_geometric_variance(scale: Fraction) -> float:
    """Return the variance of such an integer: 2 q / (1 - q)**2 with q = exp(-1 / scale)."""
    rate = 1.0 / float(scale)
    return 2.0 * math.exp(-rate) / math.expm1(-rate) ** 2


def uniform_below(bounds: Integers, source: Source) -> Integers:
    """Draw one integer uniform on 0 .. bound - 1 for every bound in 1 .. 2**62, by rejection; shape (bounds,)."""
    # A float may round up to the next power of two: one bit more only means more rejections.
    _, bits = np.frexp((bounds - 1).astype(np.float64))
    mask = (np.int64(1) << bits.astype(np.int64)) - 1
    wide = bool((bounds > 1 << WORD_BITS).any())
    found = np.zeros(len(bounds), dtype=np.int64)
    waiting = np.arange(len(bounds))
    while len(waiting):
        drawn = source.words(len(waiting)).astype(np.int64)
        if wide:
            drawn |= source.words(len(waiting)).astype(np.int64) << WORD_BITS
        drawn &= mask[waiting]
        found[waiting] = drawn
        waiting = waiting[drawn >= bounds[waiting]]
    return found


def unit_interval(count: int, source: Source) -> NDArray[np.float64]:
    """Draw floats on a grid of 2**-48, strictly inside (0, 1), for what needs no exactness (sampling a density)."""
    return (source.words(count).astype(np.float64) + 0.5) / 2.0**WORD_BITS


def _geometric(scale: Fraction, count: int, source: Source) -> Integers:
    """Draw g >= 0 with P(g) proportional to exp(-g / scale), scale = t / s."""
    t, s = scale.numerator, scale.denominator
    fraction = np.zeros(count, dtype=np.int64)
    waiting = np.arange(count)
    while len(waiting):
        fraction[waiting] = uniform_below(np.full(len(waiting), t), source)
        waiting = waiting[~_exponential_coin(fraction[waiting], t, source)]
    whole = np.zeros(count, dtype=np.int64)
    going = np.arange(count)
    while len(going):
        going = going[_exponential_coin(np.ones(len(going), dtype=np.int64), 1, source)]
        whole[going] += 1
    return (fraction + t * whole) // s


def _exponential_coin(numerator: Integers, denominator: int, source: Source) -> NDArray[np.bool_]:
    """Return True with probability exp(-numerator / denominator), for every numerator in 0 .. denominator.

    The first k at which a coin of bias gamma / k fails is odd with probability exp(-gamma).
    """
    odd = np.ones(len(numerator), dtype=bool)
    going, k = np.arange(len(numerator)), 1
    while len(going):
        bounds = np.full(len(going), denominator * k)
        going = going[uniform_below(bounds, source) < numerator[going]]
        odd[going] ^= True
        k += 1
    return odd
