"""Errors of densities by quadrature, and the continuous Laplace mechanism."""

import math
from typing import Any

import numpy as np
import pytest
from experiments.papers.huai2019.algorithm1.kernel_density import (
    EpanechnikovKernel,
    GaussianKernel,
    WeightedKernelDensity,
)
from experiments.papers.sun2018.continuous_laplace import simulate_continuous_laplace
from experiments.synthesis.density_error import (
    basic_release,
    histogram_curve,
    integrated_squared_error,
    kernel_curve,
    truth_gap,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from crowdveil import Scale
from crowdveil.answers.reports import Reports
from crowdveil.randomness import seeded
from crowdveil.synthesis.original_claims import Claims
from crowdveil.synthesis.private.histogram_density import HistogramDensities


def bumps(value: list[float], bandwidth: float) -> WeightedKernelDensity:
    """Equally weighted Gaussian bumps."""
    return WeightedKernelDensity(
        value=np.array(value),
        weight=np.full(len(value), 1 / len(value)),
        bandwidth=bandwidth,
        kernel=GaussianKernel(),
    )


def closed_form(first: WeightedKernelDensity, second: WeightedKernelDensity) -> float:
    """Integral of the squared difference of two Gaussian mixtures, term by term."""

    def product(a: WeightedKernelDensity, b: WeightedKernelDensity) -> float:
        variance = a.bandwidth**2 + b.bandwidth**2
        return sum(
            float(v) * float(w) * math.exp(-((x - y) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
            for x, v in zip(a.value, a.weight, strict=True)
            for y, w in zip(b.value, b.weight, strict=True)
        )

    return product(first, first) - 2 * product(first, second) + product(second, second)


CLAIMED = st.lists(st.floats(-5, 5), min_size=1, max_size=6)


@settings(max_examples=40)
@given(CLAIMED, CLAIMED, st.floats(0.01, 3), st.sampled_from([1e-6, 1.0, 1e7]))
def test_quadrature_equals_the_closed_form(
    first: list[float], second: list[float], bandwidth: float, unit: float
) -> None:
    """Between Gaussian mixtures of any unit the error of quadrature is below 1e-6 of the densities' own size."""
    a, b = bumps([unit * x for x in first], unit * bandwidth), bumps([unit * x for x in second], unit * bandwidth * 1.5)
    size = closed_form(a, bumps([1e12 * unit], unit))

    assert integrated_squared_error(kernel_curve(a), kernel_curve(b)) == pytest.approx(
        closed_form(a, b), abs=1e-6 * size
    )


def test_many_claims_need_no_more_panels_than_bandwidths() -> None:
    """With 500 claims far fewer panels give the closed form to 1e-9."""
    generator = np.random.default_rng(1)
    a, b = bumps(list(generator.normal(size=500)), 0.2), bumps(list(generator.normal(size=40)), 0.3)

    assert len(kernel_curve(a).breaks) < 150
    assert integrated_squared_error(kernel_curve(a), kernel_curve(b)) == pytest.approx(closed_form(a, b), abs=1e-9)


def test_steps_and_parabolas_are_integrated_too() -> None:
    """A flat density against itself gives 0, against an Epanechnikov bump the exact integral."""
    flat = HistogramDensities(
        task=np.array([0]),
        low=np.array([-10.0]),
        high=np.array([10.0]),
        range_low=np.array([-10.0]),
        range_high=np.array([10.0]),
        mass=np.array([[0.0, 0.5, 0.5, 0.0]]),
    )
    bump = WeightedKernelDensity(value=np.array([0.0]), weight=np.ones(1), bandwidth=1.0, kernel=EpanechnikovKernel())

    assert integrated_squared_error(histogram_curve(flat, 0), histogram_curve(flat, 0)) == 0.0
    expected = 3 / (5 * math.sqrt(5)) - 2 / 20 + 1 / 20  # of the parabola squared, minus twice the product, plus flat
    assert integrated_squared_error(kernel_curve(bump), histogram_curve(flat, 0)) == pytest.approx(expected, rel=1e-9)


def test_basic_adds_laplace_noise_of_the_range() -> None:
    """Over 20,000 claims the mean absolute noise is (high - low) / epsilon, within 4 standard errors."""
    claims = Claims.from_arrays(np.zeros(20_000), np.arange(20_000), np.full(20_000, 5.0), bounds=(0, 10))
    noisy = basic_release(claims, 2.0, seeded(1))

    assert np.abs(noisy.value - 5.0).mean() == pytest.approx(5.0, abs=4 * 5.0 / math.sqrt(20_000))


def reports(value: list[float]) -> Reports:
    """Three tasks with three claims each."""
    return Reports.from_arrays(np.repeat([0, 1, 2], 3), np.tile([0, 1, 2], 3), value, numeric=True)


def test_truths_are_compared_with_the_best_constant() -> None:
    """The same claims have no gap; the constant's error is given."""
    ours = reports([1, 1, 1, 2, 2, 2, 6, 6, 6])
    same, moved = truth_gap(ours, ours), truth_gap(ours, reports([2, 2, 2, 3, 3, 3, 7, 7, 7]))

    assert same == (3, 0.0, pytest.approx(5 / 3), pytest.approx(1.0))
    assert moved == (3, pytest.approx(1.0), pytest.approx(5 / 3), pytest.approx(1.0))


def test_a_density_is_mass_over_width() -> None:
    """Every cell has its mass over its width, outside the bounds there is nothing, and all integrates to one."""
    densities = HistogramDensities(
        task=np.array([3, 7]),
        low=np.array([0.0, -1.0]),
        high=np.array([10.0, 1.0]),
        range_low=np.array([2.0, -1.0]),
        range_high=np.array([6.0, 1.0]),
        mass=np.array([[0.1, 0.0, 0.5, 0.0, 0.2, 0.2], [0.0, 0.25, 0.25, 0.25, 0.25, 0.0]]),
    )
    first, second = (histogram_curve(densities, row).at for row in range(2))
    points = np.linspace(-0.999, 10.999, 24_000, endpoint=False)

    np.testing.assert_allclose(first(np.array([1.0, 2.5, 3.5, 5.5, 9.0])), [0.05, 0.0, 0.5, 0.2, 0.05])
    np.testing.assert_array_equal(first(np.array([-0.1, 10.1])), 0.0)
    np.testing.assert_allclose(second(np.array([-1.0, 0.3, 1.0])), [0.5, 0.5, 0.0])
    assert np.mean(first(points)) * 12 == pytest.approx(1, abs=1e-3)


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
    settings: dict[str, Any] = {"domain": DIGITS, "epsilon": 1.0, "null_value": 3.0}
    zero = simulate_continuous_laplace(np.zeros((2, 2)), source=seeded(5), **settings)

    shifted = simulate_continuous_laplace([[-4.0, 99.0], [2.5, math.nan]], source=seeded(5), **settings)

    np.testing.assert_allclose(shifted - zero, [[0.0, 9.0], [2.5, 3.0]], atol=1e-12)
