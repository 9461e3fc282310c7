"""MACE: a step of variational Bayes as loops over reports, and the workers that it tells apart."""

import numpy as np

from crowdveil.estimators import Mace
from tests.estimators.dense import LABELS, random_reports, share


def test_two_steps_equal_loops_over_reports() -> None:
    """The second posterior and the abilities follow from the equations of Hovy et al., with the prior's first theta."""
    reports = random_reports(np.random.default_rng(2), LABELS, tasks=9, workers=5, share=0.6)
    rows = list(zip(reports.task.tolist(), reports.worker.tolist(), reports.value.tolist(), strict=True))
    posterior = np.zeros((9, 3))
    for j, _, y in rows:
        posterior[j, y] += 1
    posterior[posterior.sum(axis=1) == 0] = 1
    posterior /= posterior.sum(axis=1, keepdims=True)
    theta, xi = share(np.array([0.5, 0.5]))[1], share(np.array([0.5, 0.5]))[0] * share(np.full(3, 10.0))[0]
    knowing, strategy = np.full((5, 2), 0.5), np.full((5, 3), 10.0)
    for j, i, y in rows:
        known = posterior[j, y] * theta / (theta + xi)
        knowing[i] += (1 - known, known)
        strategy[i, y] += 1 - known
    expected = np.ones((9, 3))
    for j, i, y in rows:
        spam, know = share(knowing[i])
        for z in range(3):
            expected[j, z] *= know * (y == z) + spam * share(strategy[i])[y]
    expected /= expected.sum(axis=1, keepdims=True)
    right = knowing[:, 1] / knowing.sum(axis=1)

    estimate = Mace(max_steps=2, tolerance=0).fit(reports)

    np.testing.assert_allclose(estimate.posterior, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(estimate.workers.quality, right + (1 - right) / 3, rtol=0, atol=1e-12)
