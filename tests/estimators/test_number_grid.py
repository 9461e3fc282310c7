"""Grids of truths: how far priors are believed beforehand."""

import numpy as np
import pytest

from crowdveil.estimators import number_grid as grid
from crowdveil.labels import Scale


def test_truths_below_within_and_above_the_scale_are_equally_likely() -> None:
    """A third of the weight goes to priors with means below the scale, within it, and above it."""
    alphabet = Scale(0, 9)
    points = grid.truth_points(alphabet, None)
    family = grid.normal_family(points, alphabet)

    weights = grid.place_weights(family, points, alphabet)

    means = family @ points
    for place in (means < 0, (means >= 0) & (means < 9), means >= 9):
        assert place.sum() > 10
        assert weights[place].sum() == pytest.approx(1 / 3)
        assert np.ptp(weights[place]) < 1e-15


def test_a_single_prior_is_believed() -> None:
    """A public prior has all the weight, wherever it is."""
    points = grid.truth_points(Scale(0, 9), None)

    assert [1.0] == grid.place_weights(np.exp(grid.normal_prior(points, -2, 1))[None], points, Scale(0, 9)).tolist()
