"""Exact discrete Laplace noise from uniform words, in integer arithmetic.

P(z) is proportional to exp(-|z| / scale) on the integers, for a rational `scale`. Canonne, Kamath and Steinke, "The
discrete Gaussian for differential privacy" (2020), Algorithms 1 and 2. The time of a draw depends on the noise only.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.randomness import WORD_BITS, Seeded, Source

MAX_SCALE = 1 << 40
"""Largest scale; sums of 64-bit reports then do not overflow."""
WORDS_PER_READ = 256

UniformBelow = Callable[[int], int]
"""Function of a bound that returns an integer uniform on 0 .. bound - 1."""


def sample_discrete_laplace(scale: Fraction, count: int, source: Source) -> list[int]:
    """Return `count` independent exact discrete Laplace integers.

    Args:
        scale: rational, in (0, MAX_SCALE]; the ratio of neighbouring probabilities is exp(-1 / scale).
        count: number of integers.
        source: `randomness.secure()` on a device.

    Raises:
        SettingsError: the scale is out of range.
    """
    require_scale(scale)
    uniform = _uniform_below(source)
    return [_discrete_laplace(scale, uniform) for _ in range(count)]


def simulate_discrete_laplace_sum(scale: Fraction, terms: int, count: int, source: Seeded) -> NDArray[np.int64]:
    """Return `count` sums of `terms` discrete Laplace integers each, shape (count,). Simulation only: no privacy.

    A sum is drawn in floating point as the difference of two negative binomial numbers; its cost does not depend on
    `terms`.

    Raises:
        SettingsError: the scale is out of range, or there are no terms.
    """
    require_scale(scale)
    if terms < 1:
        raise SettingsError("a sum needs at least one term", value=terms)
    success = -math.expm1(-1.0 / float(scale))
    drawn = source.generator.negative_binomial(terms, success, size=(2, count))
    return drawn[0] - drawn[1]


def discrete_laplace_variance(scale: Fraction) -> float:
    """Return the variance of one discrete Laplace integer: 2 q / (1 - q)^2 with q = exp(-1 / scale)."""
    require_scale(scale)
    rate = 1.0 / float(scale)
    return 2.0 * math.exp(-rate) / math.expm1(-rate) ** 2


def require_scale(scale: Fraction) -> None:
    """Raise SettingsError unless the scale is in (0, MAX_SCALE]."""
    if not 0 < scale <= MAX_SCALE:
        raise SettingsError(
            f"the noise scale must be in (0, 2**{MAX_SCALE.bit_length() - 1}]",
            value=float(scale),
            hint="Use a larger epsilon or a coarser answer grid.",
        )


def _discrete_laplace(scale: Fraction, uniform: UniformBelow) -> int:
    """Return a discrete Laplace integer (Algorithm 2): geometric magnitude, fair sign; "minus zero" is rejected."""
    while True:
        magnitude = _geometric(scale, uniform)
        negative = uniform(2) == 1
        if magnitude or not negative:
            return -magnitude if negative else magnitude


def _geometric(scale: Fraction, uniform: UniformBelow) -> int:
    """Return g >= 0 with P(g) proportional to exp(-g / scale), scale = t / s."""
    t, s = scale.numerator, scale.denominator
    while True:
        fraction = uniform(t)
        if _bernoulli_exponential(fraction, t, uniform):
            break
    whole = 0
    while _bernoulli_exponential(1, 1, uniform):
        whole += 1
    return (fraction + t * whole) // s


def _bernoulli_exponential(numerator: int, denominator: int, uniform: UniformBelow) -> bool:
    """Return True with probability exp(-gamma), gamma = numerator / denominator in [0, 1] (Algorithm 1).

    The first k at which a Bernoulli(gamma / k) trial fails is odd with probability 1 - gamma + gamma^2/2! - ... =
    exp(-gamma).
    """
    k = 1
    while uniform(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


def _uniform_below(source: Source) -> UniformBelow:
    """Return a sampler of uniform integers from words, by rejection, exact for any bound."""
    words = _endless_random_words(source)

    def uniform(bound: int) -> int:
        bits = (bound - 1).bit_length()
        while True:
            drawn = 0
            for _ in range(-(-bits // WORD_BITS)):
                drawn = (drawn << WORD_BITS) | next(words)
            drawn &= (1 << bits) - 1
            if drawn < bound:
                return drawn

    return uniform


def _endless_random_words(source: Source) -> Iterator[int]:
    while True:
        yield from source.words(WORDS_PER_READ).tolist()
