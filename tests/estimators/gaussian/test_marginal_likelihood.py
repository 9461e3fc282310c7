"""Anonymous worker models: long scales need no more memory than one table at a time."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from crowdveil import Gaussian, RandomizedResponse, Reports, Scale
from crowdveil.estimators.gaussian import marginal_likelihood
from crowdveil.randomness import seeded
from crowdveil.simulate import numeric_crowd, perturb_reports

pytestmark = pytest.mark.slow


def sent(top: int, **crowd: Any) -> tuple[Reports, RandomizedResponse]:
    """Return reports on a scale from 0 to `top` through randomized response at epsilon 5, and the mechanism."""
    scale = Scale(0, top)
    made = numeric_crowd(sparsity=0.5, scale=scale, sigmas=(top / 20, top / 5), source=seeded(1), **crowd)
    mechanism = RandomizedResponse(alphabet=scale, epsilon=5, participation="public")
    return perturb_reports(made.answers, mechanism, seeded(2)), mechanism


@pytest.mark.parametrize("prior", [{}, {"prior_mean": 3.0, "prior_deviation": 2.0}], ids=["learned", "public"])
def test_tables_made_anew_give_the_same_truths(prior: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Truths and workers are the same, to rounding, whether the tables of all crowds are held or made anew."""
    reports, mechanism = sent(9, workers=30, tasks=20)
    held = Gaussian(**prior).fit(reports, channel=mechanism.channel())  # type: ignore[arg-type]
    monkeypatch.setattr(marginal_likelihood, "MAX_TABLE_NUMBERS", 0)
    anew = Gaussian(**prior).fit(reports, channel=mechanism.channel())  # type: ignore[arg-type]

    np.testing.assert_allclose(held.posterior, anew.posterior, atol=1e-9)
    np.testing.assert_allclose(held.workers.quality, anew.workers.quality, atol=1e-9)


def test_a_long_scale_fits_into_memory() -> None:
    """The first step of a fit on 301 grid points takes less than 300 MB, where all tables would take 1.6 GB."""
    reports, mechanism = sent(300, workers=10, tasks=10)
    tracemalloc.start()
    Gaussian(max_steps=2).fit(reports, channel=mechanism.channel())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 300e6
