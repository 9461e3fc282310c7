"""Compiled loops of accelerated EM against numpy."""

import numpy as np
import pytest

from crowdveil.em import acceleration
from crowdveil.em.kernels.reductions import confusion_from_unnormalized_logs


def test_compiled_extrapolation_is_that_of_numpy() -> None:
    """The step length and the extrapolated coordinates of two arrays equal those of numpy."""
    points = np.random.default_rng(0).normal(size=(3, 11, 5, 4))
    arrays = [tuple(points), tuple(points[:, 0, 0])]
    length = acceleration._extrapolation_step_length(arrays)

    found = [acceleration._extrapolate(three, 2.5, compiled=True) for three in arrays]

    assert length == pytest.approx(acceleration._extrapolation_step_length(arrays, compiled=True), rel=1e-13)
    for three, one in zip(arrays, found, strict=True):
        np.testing.assert_allclose(one, acceleration._extrapolate(three, 2.5), rtol=0, atol=1e-13)


@pytest.mark.parametrize("shape", [(300, 3, 3), (4, 9, 9), (5, 4, 3)])
def test_compiled_softmax_is_that_of_numpy(shape: tuple[int, int, int]) -> None:
    """Unrolled and other numbers of labels, and other numbers of truths, give the probabilities of numpy."""
    scores = np.random.default_rng(1).normal(scale=30, size=shape)

    found = confusion_from_unnormalized_logs(scores, compiled=True)

    np.testing.assert_allclose(found, confusion_from_unnormalized_logs(scores), rtol=1e-13, atol=1e-300)
