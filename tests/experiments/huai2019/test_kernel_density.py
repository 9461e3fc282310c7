"""Kernels, bandwidths and densities: against textbook formulas, quadrature and loops."""

import math

import numpy as np
import pytest
from experiments.papers.huai2019.algorithm1.kernel_density import KERNELS, Bandwidth, WeightedKernelDensity
from scipy.integrate import quad

from crowdveil.synthesis.original_claims import Claims
from tests.experiments.huai2019.small_claims import plain_density

NAMES = pytest.mark.parametrize("name", KERNELS)
VALUES = [1.0, 2.0, 4.0, 4.5, 9.0]
ENDS = {"gaussian": 12.0, "epanechnikov": 5**0.5}
"""Distance beyond which a density is 0, or negligible."""


@NAMES
def test_kernel_has_mass_1_mean_0_and_variance_1(name: str) -> None:
    """Assumption 1: a density with mean zero and identity covariance."""
    end = ENDS[name]
    moments = [
        quad(lambda z, power=power: z**power * math.exp(float(KERNELS[name].log_density(z))), -end, end)[0]
        for power in range(3)
    ]

    np.testing.assert_allclose(moments, [1, 0, 1], atol=1e-8)


def test_gaussian_reproduces_itself() -> None:
    """The inner product of the Gaussian's own space is the kernel itself, over its top."""
    z = np.linspace(-3, 3, 13)
    kernel = KERNELS["gaussian"]

    np.testing.assert_allclose(kernel.similarity(z), np.exp(kernel.log_density(z) - kernel.log_density(0)), rtol=1e-12)


def test_epanechnikov_similarity_is_its_convolution() -> None:
    """The closed form equals the integral of the product of two kernels z apart, over that of one with itself."""

    def overlap(z: float) -> float:
        ends = z - 5**0.5, 5**0.5
        return quad(lambda x: plain_density("epanechnikov", x) * plain_density("epanechnikov", x - z), *ends)[0]

    for z in (0.0, 0.3, 1.7, 3.9, 4.47, 5.0):
        expected = overlap(z) / overlap(0) if z < 2 * 5**0.5 else 0.0
        assert math.isclose(float(KERNELS["epanechnikov"].similarity(z)), expected, abs_tol=1e-9)
        assert KERNELS["epanechnikov"].similarity(z) == KERNELS["epanechnikov"].similarity(-z)


@NAMES
def test_quantile_inverts_the_mass(name: str) -> None:
    """The mass below quantile(u) is u."""
    low = -ENDS[name]
    for share in (1e-6, 0.1, 0.5, 0.77, 1 - 1e-6):
        end = float(KERNELS[name].quantile(share))
        mass = quad(lambda z: plain_density(name, z), low, end, epsabs=1e-12)[0]
        assert math.isclose(mass, share, abs_tol=1e-8)


def test_bandwidth_rules_are_the_textbook_ones() -> None:
    """Silverman 0.9 min(sd, IQR / 1.34) n^(-1/5) and Scott sd n^(-1/5), per task, for all other tasks."""
    claims = Claims.from_arrays(
        [0] * 5 + [2] * 5, list(range(5)) * 2, VALUES + [10 * v for v in VALUES], tasks=[0, 1, 2], bounds=(0, 99)
    )
    sd = np.std(VALUES, ddof=1)
    iqr = np.quantile(VALUES, 0.75) - np.quantile(VALUES, 0.25)
    silverman, scott = 0.9 * min(sd, iqr / 1.34) * 5**-0.2, sd * 5**-0.2

    np.testing.assert_allclose(Bandwidth().for_tasks(claims), np.array([silverman, np.nan, 10 * silverman]), rtol=1e-12)
    np.testing.assert_allclose(
        Bandwidth(rule="scott").for_tasks(claims), np.array([scott, np.nan, 10 * scott]), rtol=1e-12
    )


def test_degenerate_tasks_have_a_stated_bandwidth() -> None:
    """Equal or single claims get the least share of the bounds; where only the quartiles agree, the deviation is in."""
    values = [[7.0, 7.0, 7.0], [5.0], [3.0, 3.0, 3.0, 3.0, 4.0]]
    task = np.repeat(range(3), list(map(len, values)))
    claims = Claims.from_arrays(task, np.arange(len(task)), np.concatenate(values), bounds=(0, 10))

    found = Bandwidth(least=0.01).for_tasks(claims)

    np.testing.assert_allclose(found, [0.1, 0.1, 0.9 * 0.2**0.5 * 5**-0.2], rtol=1e-12)


def test_public_bandwidths() -> None:
    """Given widths and shares of given bounds are public; rules are not."""
    claims = Claims.from_arrays(["t"] * 5, range(5), VALUES, bounds=(0, 20))
    given, share = Bandwidth(rule="given", width=2.0), Bandwidth(rule="share", width=0.1)

    assert [given.for_tasks(claims).tolist(), share.for_tasks(claims).tolist()] == [[2.0], [2.0]]
    assert [one.public for one in (given, share, Bandwidth())] == [True, True, False]


@NAMES
def test_density_is_the_weighted_sum_of_kernels(name: str) -> None:
    """Equation 5 as loops, and mass 1 over the stated support."""
    weight = np.array([0.4, 0.1, 0.2, 0.3, 0.0])
    density = WeightedKernelDensity(value=np.array(VALUES), weight=weight, bandwidth=0.7, kernel=KERNELS[name])
    points = np.linspace(-2, 12, 57)
    loops = [
        sum(w * plain_density(name, (x - v) / 0.7) / 0.7 for v, w in zip(VALUES, weight, strict=True)) for x in points
    ]

    np.testing.assert_allclose(density.pdf(points), loops, rtol=1e-12, atol=1e-16)
    grid = np.linspace(
        density.value.min() - 10 * density.bandwidth, density.value.max() + 10 * density.bandwidth, 20001
    )
    assert math.isclose(float(np.trapezoid(density.pdf(grid), grid)), 1.0, abs_tol=1e-6)
