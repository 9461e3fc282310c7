"""Variance of an estimated share: its formula for randomized response, and people needed for a half-width."""

import math

import numpy as np
import pytest

from crowdveil import Categories, RandomizedResponse
from crowdveil.quality.shares.variance import unit_variance

NEEDED = {
    (0.1, 0.8): (14_391, 3_101, 670, 316),
    (0.35, 0.8): (13_290, 3_218, 938, 585),
    (0.1, 0.5): (35_906, 7_482, 1_470, 615),
}
"""People for a half-width of 5 points at epsilon .5, 1, 2, 3, by share and response."""


@pytest.mark.parametrize("case", NEEDED)
def test_people_for_a_half_width(case: tuple[float, float]) -> None:
    """The number of people for a 95 % interval of 5 points on each side follows from the variance."""
    (share, answered), needed = case, []
    for epsilon in (0.5, 1.0, 2.0, 3.0):
        table = RandomizedResponse(alphabet=Categories(("yes", "no")), epsilon=epsilon).channel().probabilities
        shares = np.array([share * answered, (1 - share) * answered, 1 - answered])
        needed.append(math.ceil(unit_variance(table, shares, 2, 0) * 1.959964**2 / 0.05**2))

    assert tuple(needed) == NEEDED[case]


@pytest.mark.parametrize("labels", [2, 3, 5])
def test_the_formula_of_randomized_response(labels: int) -> None:
    """The variance from the information is that of the closed formula, and of NULL f (1 - f) with the noise."""
    epsilon, g, s = 1.3, 0.2, 0.7
    names = Categories(tuple(map(str, range(labels))))
    table = RandomizedResponse(alphabet=names, epsilon=epsilon).channel().probabilities
    shares = np.array([g * s, *[(1 - g) * s / (labels - 1)] * (labels - 1), 1 - s])
    q = 1 / (labels + math.exp(epsilon))
    k, p = (math.exp(epsilon) - 1) * q, shares @ table
    formula = p[0] * (1 - g) ** 2 + g**2 * (1 - p[0] - p[-1]) - q**2 * (1 - g * labels) ** 2

    assert unit_variance(table, shares, labels, 0) == pytest.approx(formula / (k * s) ** 2, rel=1e-9)
    assert unit_variance(table, shares, labels, labels) == pytest.approx(p[-1] * (1 - p[-1]) / k**2, rel=1e-9)


def test_without_noise_it_is_that_of_a_proportion() -> None:
    """Of public answers the variance is g (1 - g); of answers with NULL it is divided by the response."""
    assert unit_variance(np.eye(2), np.array([0.3, 0.7]), 2, 0) == pytest.approx(0.21)
    assert unit_variance(np.eye(3), np.array([0.15, 0.35, 0.5]), 2, 0) == pytest.approx(0.42)
