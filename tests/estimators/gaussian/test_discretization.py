"""Discretization of numbers: weight of priors, and interpolation of densities on a coarse grid."""

import numpy as np
import pytest

from crowdveil.channels.alphabet import Scale
from crowdveil.estimators.gaussian import discretization as grid


def test_learned_priors_prefer_the_middle_and_allow_means_beyond_the_scale() -> None:
    """The weights of means are symmetric and fall from the middle; each side beyond 0..9 has 3 to 10 % in total."""
    alphabet = Scale(0, 9)
    points = grid.truth_points(alphabet, None)
    family = grid.normal_priors(points, alphabet)

    weights = grid.prior_weights(family, points, alphabet)

    means = family @ points
    below, above = means < 0, means > 9
    assert weights.sum() == pytest.approx(1)
    assert 0.03 < weights[below].sum() < 0.1
    assert weights[above].sum() == pytest.approx(weights[below].sum(), rel=0.2)
    inside = np.flatnonzero(~below & ~above)
    nearest, farthest = inside[np.argsort(np.abs(means[inside] - 4.5))[[0, -1]]]
    assert weights[nearest] > 4 * weights[farthest]


def test_a_single_prior_is_believed() -> None:
    """A public prior has all the weight, wherever it is."""
    points = grid.truth_points(Scale(0, 9), None)

    assert [1.0] == grid.prior_weights(np.exp(grid.normal_prior(points, -2, 1))[None], points, Scale(0, 9)).tolist()


def test_a_smooth_density_is_interpolated_between_coarse_points() -> None:
    """Quantiles of normals with deviations of 1/3 to 1.4 cells are exact to 1 % of a cell."""
    points = np.arange(12.0)
    centres, widths = (axis.ravel() for axis in np.meshgrid(np.linspace(4, 7, 7), [1 / 3, 1.0, 1.4]))
    logs = -0.5 * ((points - centres[:, None]) / widths[:, None]) ** 2

    found = grid.quantiles(*grid.refine(logs, points), (0.05, 0.5, 0.95))

    expected = centres[:, None] + widths[:, None] * [-1.6449, 0.0, 1.6449]
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_far_smaller_probabilities_do_not_ripple_the_density() -> None:
    """Probabilities of e^-1000 and less, as many reports give, leave the density around the mode unchanged."""
    points = np.arange(10.0)
    logs = -0.5 * ((points - 4.3) / 0.03) ** 2

    found = grid.quantiles(*grid.refine(logs[None], points), (0.05, 0.95))

    assert np.abs(found - 4.3).max() < 0.2
