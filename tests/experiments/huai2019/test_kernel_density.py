"""Kernels, bandwidths and densities: against textbook formulas, quadrature and loops."""

import math

import numpy as np
import pytest
from experiments.papers.huai2019.algorithm1.kernel_density import KERNELS, Bandwidth, WeightedKernelDensity
from scipy.integrate import quad

from crowdveil.errors import SettingsError
from crowdveil.synthesis.claims import Claims
from tests.experiments.huai2019.small_claims import one_task, plain_density

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


@NAMES
def test_log_density_is_the_logarithm_of_the_textbook_density(name: str) -> None:
    """Inside and outside the support, the far tail included."""
    z = np.linspace(-4, 4, 81)

    np.testing.assert_allclose(
        np.exp(KERNELS[name].log_density(z)), [plain_density(name, x) for x in z], rtol=1e-12, atol=1e-15
    )


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


def test_epanechnikov_reproduces_no_hilbert_space() -> None:
    """Its matrix of values is not positive semidefinite, which is why its distances are taken in L2."""
    z = np.arange(12) * 1.4
    difference = z[:, None] - z
    values = np.exp(KERNELS["epanechnikov"].log_density(difference))

    assert np.linalg.eigvalsh(values).min() < -0.01
    assert np.linalg.eigvalsh(KERNELS["epanechnikov"].similarity(difference)).min() > -1e-12


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
        [0] * 5 + [2] * 5, list(range(5)) * 2, VALUES + [10 * v for v in VALUES], tasks=[0, 1, 2]
    )
    sd = np.std(VALUES, ddof=1)
    iqr = np.quantile(VALUES, 0.75) - np.quantile(VALUES, 0.25)
    silverman, scott = 0.9 * min(sd, iqr / 1.34) * 5**-0.2, sd * 5**-0.2

    np.testing.assert_allclose(Bandwidth().for_tasks(claims), [silverman, np.nan, 10 * silverman], rtol=1e-12)
    np.testing.assert_allclose(Bandwidth(rule="scott").for_tasks(claims), [scott, np.nan, 10 * scott], rtol=1e-12)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([7.0, 7.0, 7.0], 7e-9), ([5.0], 5e-9), ([0.0, 0.0], 1e-9), ([3.0, 3.0, 3.0, 3.0, 4.0], 0.9 * 0.2**0.5 * 5**-0.2)],
    ids=["constant", "single", "zeros", "most equal"],
)
def test_degenerate_tasks_have_a_stated_bandwidth(values: list[float], expected: float) -> None:
    """Equal or single claims get the least bandwidth; where only the quartiles agree, the deviation stands in."""
    assert math.isclose(float(Bandwidth().for_tasks(one_task(values))[0]), expected)


def test_an_absurd_claim_does_not_widen_silvermans_rule() -> None:
    """One claim of 6.6e18 leaves the bandwidth to the quartiles."""
    assert Bandwidth().for_tasks(one_task([1, 2, 3, 4, 6.6e18]))[0] < 2
    assert Bandwidth(rule="scott").for_tasks(one_task([1, 2, 3, 4, 6.6e18]))[0] > 1e18


def test_public_bandwidths() -> None:
    """Given widths and shares of given bounds are public; rules and derived bounds are not."""
    derived = one_task(VALUES)
    given = Claims.from_arrays(["t"] * 5, range(5), VALUES, bounds=(0, 20))

    assert Bandwidth(rule="given", width=2.0).for_tasks(derived).tolist() == [2.0]
    assert Bandwidth(rule="share", width=0.1).for_tasks(given).tolist() == [2.0]
    assert Bandwidth(rule="given", width=2.0).public(derived)
    assert Bandwidth(rule="share", width=0.1).public(given)
    assert not Bandwidth().public(given)
    with pytest.raises(SettingsError, match="given bounds"):
        Bandwidth(rule="share", width=0.1).for_tasks(derived)


@pytest.mark.parametrize(
    "settings",
    [{"rule": "wide"}, {"rule": "given"}, {"width": 1.0}, {"rule": "given", "width": 0.0}, {"least": float("nan")}],
)
def test_bad_bandwidths_are_refused(settings: dict[str, object]) -> None:
    """Unknown rules, a width without its rule and widths that are not positive are refused."""
    with pytest.raises(SettingsError):
        Bandwidth(**settings)  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    ("weight", "bandwidth"), [([0.5, 0.4], 1.0), ([1.5, -0.5], 1.0), ([1.0], 1.0), ([0.5, 0.5], 0.0)]
)
def test_a_density_needs_weights_that_sum_to_1(weight: list[float], bandwidth: float) -> None:
    """Weights of another length, negative or not summing to 1, and bandwidth 0 are refused."""
    with pytest.raises(SettingsError):
        WeightedKernelDensity(
            value=np.array([1.0, 2.0]), weight=np.array(weight), bandwidth=bandwidth, kernel=KERNELS["gaussian"]
        )
