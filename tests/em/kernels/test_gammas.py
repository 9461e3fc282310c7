"""Sums of log-gamma functions, compiled or not, against scipy's, one by one."""

import numpy as np
import pytest
from scipy.special import gammaln

from crowdveil.em.kernels.reductions import log_gamma_sums


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_sums_are_those_of_the_log_gamma_function(compiled: bool) -> None:
    """From next to nothing to many millions, one number or several."""
    more = np.array([1e-10, 1e-3, 0.5, 1.0, 1.5, 2.0, 7.0, 60.0, 1e4, 1e8])
    numbers = np.array([0.0, 0.25, 3.0, 100.0])
    expected = [sum(float(gammaln(number + added)) for number in numbers) for added in more]

    alone, summed = (log_gamma_sums(some, more, compiled=compiled) for some in (numbers[:1], numbers))

    np.testing.assert_allclose(alone, gammaln(more), rtol=1e-14, atol=1e-12)
    np.testing.assert_allclose(summed, expected, rtol=1e-14, atol=1e-12)
