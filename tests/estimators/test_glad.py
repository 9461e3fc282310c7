"""GLAD: a step against its equations as loops, and truths of easy and hard tasks."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories
from crowdveil.estimators.glad import BETA, LOG_BETA_PRIOR, Glad
from tests.estimators.dense import LABELS, one_block, random_reports, summary_of


def sigma(x: float) -> float:
    """Return the logistic function."""
    return 1 / (1 + math.exp(-x))


def joint_by_loops(reports: Reports, alpha: NDArray[np.float64], gold: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return P(reports, beta, truth) for every task, indexed [task, grid point, label], by loops over reports."""
    joint = np.zeros((len(reports.tasks), len(BETA), 3))
    for j, b, z in np.ndindex(joint.shape):
        if gold[j] in (-1, z):
            joint[j, b, z] = math.exp(LOG_BETA_PRIOR[b]) / 3
    for j, i, y in zip(reports.task, reports.worker, reports.value, strict=True):
        for b, z in np.ndindex(len(BETA), 3):
            right = sigma(alpha[i] * BETA[b])
            joint[j, b, z] *= right if y == z else (1 - right) / 2
    return joint


def test_a_step_equals_loops_over_reports() -> None:
    """Posterior, likelihood, difficulty and new abilities are those of the equations, gold tasks included."""
    rng = np.random.default_rng(0)
    reports = random_reports(rng, LABELS, tasks=9, workers=5, share=0.6)
    gold, model = np.array([-1, 2, *[-1] * 7]), Glad()
    parameters = replace(model.initialize(summary_of(reports, None)), alpha=rng.normal(1, 1, 5))
    evidence = joint_by_loops(reports, parameters.alpha, gold)
    joint = evidence / evidence.sum(axis=(1, 2), keepdims=True)
    alpha = []
    for i in range(5):
        gradient, curvature = -(parameters.alpha[i] - 1), 1.0
        for j, worker, y in zip(reports.task, reports.worker, reports.value, strict=True):
            for b in range(len(BETA) if worker == i else 0):
                p = joint[j, b].sum()
                gradient += BETA[b] * (joint[j, b, y] - sigma(parameters.alpha[i] * BETA[b]) * p)
                curvature += BETA[b] ** 2 * p / 4
        alpha.append(parameters.alpha[i] + gradient / curvature)

    step = model.e_step(one_block(reports, gold), parameters)

    np.testing.assert_allclose(step.posterior, joint.sum(axis=1), rtol=0, atol=1e-10)
    assert pytest.approx(np.log(evidence.sum(axis=(1, 2))).sum(), abs=1e-9) == step.statistics.log_likelihood
    assert step.task_parameters is not None
    np.testing.assert_allclose(step.task_parameters[:, 0], joint.sum(axis=2) @ (1 / BETA), rtol=1e-10)
    np.testing.assert_allclose(model.m_step(step.statistics, parameters).alpha, alpha, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_a_fit_goes_on_while_abilities_move() -> None:
    """Where all truths are certain, steps continue until difficulties settle too: the objective is then stationary."""
    rng = np.random.default_rng(5)
    abilities = np.where(np.arange(100) < 20, 0.5, 0.95)
    task, worker = np.divmod(np.arange(40 * 100), 100)
    truth = np.arange(40) % 2
    label = np.where(rng.random(4000) < abilities[worker], truth[task], 1 - truth[task]).astype(str)
    reports = Reports.from_arrays(task, worker, label, alphabet=Categories(("0", "1")))
    estimate = Glad().fit(reports)
    resumed = Glad(tolerance=1e-300, max_steps=50).fit(reports, warm_start=estimate.state)

    assert estimate.converged
    assert estimate.log_likelihoods[-1] == pytest.approx(resumed.log_likelihoods[-1], abs=0.01)
