"""Laplace noise as published: its distribution, its clipping and its replacement of NULL."""

import math

import numpy as np
from experiments.papers.sun2018.continuous_laplace import simulate_continuous_laplace
from scipy.stats import kstest

from crowdveil import Scale
from crowdveil.randomness import seeded

DIGITS = Scale(0, 9)


def test_continuous_noise_is_laplace_with_scale_range_over_epsilon() -> None:
    """Kolmogorov-Smirnov test of 50,000 draws, which rejects the paper's scale |domain| / epsilon.

    False-alarm rate 1e-4, fixed seed.
    """
    values = np.full(50_000, 4.0)

    noise = simulate_continuous_laplace(values, domain=DIGITS, epsilon=2.0, source=seeded(1)) - 4.0

    assert kstest(noise, "laplace", args=(0, 9 / 2)).pvalue > 1e-4
    assert kstest(noise, "laplace", args=(0, 10 / 2)).pvalue < 1e-4


def test_continuous_noise_is_added_to_clipped_values_and_to_the_replacement_of_null() -> None:
    """Two runs with one seed differ by the clipped values alone; NaN is replaced by the constant."""
    settings = {"domain": DIGITS, "epsilon": 1.0, "null_value": 3.0}
    zero = simulate_continuous_laplace(np.zeros((2, 2)), source=seeded(5), **settings)

    shifted = simulate_continuous_laplace([[-4.0, 99.0], [2.5, math.nan]], source=seeded(5), **settings)

    np.testing.assert_allclose(shifted - zero, [[0, 9], [2.5, 3]], atol=1e-12)


def test_continuous_uniform_null_draws_every_value_alike() -> None:
    """NULL drawn uniformly has the domain's mean and variance, noise added: 100,000 draws, 5 standard errors."""
    drawn = simulate_continuous_laplace(np.full(100_000, math.nan), domain=DIGITS, epsilon=20.0, source=seeded(2))
    variance = 99 / 12 + 2 * (9 / 20) ** 2

    assert abs(drawn.mean() - 4.5) < 5 * math.sqrt(variance / 100_000)
    assert abs(drawn.var() - variance) < 5 * variance * math.sqrt(2 / 100_000)
