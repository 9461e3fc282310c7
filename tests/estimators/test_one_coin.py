"""One-coin against its equations written as loops."""

from dataclasses import replace
from math import lgamma, log
from unittest.mock import patch

import numpy as np
import pytest

from crowdveil import OneCoin
from crowdveil.estimators.confusion.parameters import candidate_mean_abilities
from tests.estimators.dense import LABELS, channels, one_block, random_reports, summary_of

SMOOTHING = 0.01


@pytest.mark.parametrize("steps", [2, 3, 6])
def test_steps_are_the_equations(steps: int) -> None:
    """Ability = (expected right + pseudo-counts) / (reports + pseudo-counts); posterior ~ product over reports."""
    reports = random_reports(np.random.default_rng(steps), LABELS, tasks=9, workers=5, share=0.7)
    cells = list(zip(reports.task, reports.worker, reports.value, strict=True))
    truth = np.full((9, 3), 1 / 3)
    for i in range(9):
        own = [value for task, _, value in cells if task == i]
        truth[i] = [own.count(k) / len(own) for k in range(3)] if own else truth[i]
    for _ in range(steps - 1):
        ability = np.zeros(5)
        for k in range(5):
            own = [(task, value) for task, worker, value in cells if worker == k]
            right = sum(truth[task, value] for task, value in own)
            ability[k] = (right + 3 * SMOOTHING) / (len(own) + 9 * SMOOTHING)
        likelihood = 0.0
        for i in range(9):
            for z in range(3):
                truth[i, z] = 1 / 3
                for task, worker, value in cells:
                    if task == i:
                        truth[i, z] *= ability[worker] if value == z else (1 - ability[worker]) / 2
            likelihood += np.log(truth[i].sum())
            truth[i] /= truth[i].sum()

    estimate = OneCoin(max_steps=steps, tolerance=0.0).fit(reports)

    np.testing.assert_allclose(estimate.posterior, truth, rtol=0, atol=1e-9)
    np.testing.assert_allclose(estimate.workers.quality, ability, rtol=0, atol=1e-9)
    pseudo = sum(SMOOTHING * (3 * np.log(p) + 6 * np.log((1 - p) / 2)) for p in ability)
    assert pytest.approx(likelihood + pseudo) == estimate.log_likelihoods[-1]


def test_the_class_prior_is_fixed() -> None:
    """Without a channel it is uniform; through one it is mixed with the base rate as far as reports are noise."""
    reports = random_reports(np.random.default_rng(1), LABELS, tasks=30, workers=6, share=0.7)
    plain = OneCoin().initialize(summary_of(reports, None))
    noisy = OneCoin(damping=0.5).initialize(summary_of(reports, channels()["randomized response, protected"]))
    weight = 0.5 * noisy.pool.noise

    np.testing.assert_allclose(OneCoin().estimate_class_prior(np.array([28.0, 1.0, 1.0]), plain), np.full(3, 1 / 3))
    np.testing.assert_allclose(
        OneCoin(damping=0.5).estimate_class_prior(np.array([28.0, 1.0, 1.0]), noisy),
        [(1 - weight) / 3 + weight * share for share in noisy.pool.label_shares],
    )
    assert 0 == OneCoin().log_class_prior(noisy)


def test_the_crowds_ability_is_learned_behind_a_channel() -> None:
    """The learned mean ability has the highest joint density with the workers' abilities; without noise it is fixed."""
    model = OneCoin()
    reports = random_reports(np.random.default_rng(4), LABELS, tasks=30, workers=6, share=0.7)
    noisy = model.initialize(summary_of(reports, channels()["randomized response, protected"]))
    ability = np.array([0.5, 0.4, 0.45, 0.55, 0.5, 0.9])  # the last worker reported nothing
    tables = np.array([np.where(np.eye(3, dtype=bool), p, (1 - p) / 2) for p in ability])
    noisy = replace(noisy, confusion=tables)
    best, most = None, -np.inf
    for mean in candidate_mean_abilities(0.7):
        dirichlet_prior = model.dirichlet_prior(noisy.pool, mean)
        right = sum(dirichlet_prior[z, z] for z in range(3))
        wrong = dirichlet_prior.sum() - right
        density = -0.5 * ((mean - 0.7) / 0.1) ** 2
        for p in ability[:5]:
            density += right * log(p) + wrong * log(1 - p) - lgamma(right) - lgamma(wrong) + lgamma(right + wrong)
        best, most = (dirichlet_prior, density) if density > most else (best, most)

    learned = model.updated_dirichlet_prior(noisy)

    np.testing.assert_allclose(learned, best, rtol=1e-12)
    assert np.trace(learned) < np.trace(noisy.dirichlet_prior)
    assert pytest.approx(most) == model.log_confusion_prior(replace(noisy, dirichlet_prior=learned))
    plain = model.initialize(summary_of(reports, None))
    statistics = model.e_step(one_block(reports), plain).statistics
    np.testing.assert_array_equal(model.m_step(statistics, plain).dirichlet_prior, plain.dirichlet_prior)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_model_without_tables_is_the_same(steps: int) -> None:
    """Without a channel one number per worker gives what tables give: posteriors, tables, abilities and trace."""
    reports = random_reports(np.random.default_rng(steps), LABELS, tasks=30, workers=6, share=0.7)
    method, gold, prior = OneCoin(max_steps=steps, tolerance=0.0), {3: "b", 4: "a"}, {"a": 0.5, "b": 0.3, "c": 0.2}
    simplify = method.fit(reports, gold=gold, prior=prior)
    with patch.object(OneCoin, "simplify", lambda self, summary: self):
        full = method.fit(reports, gold=gold, prior=prior)

    np.testing.assert_allclose(simplify.posterior, full.posterior, rtol=0, atol=1e-12)
    np.testing.assert_allclose(simplify.workers.quality, full.workers.quality, rtol=0, atol=1e-12)
    np.testing.assert_allclose(simplify.workers.confusion, full.workers.confusion, rtol=0, atol=1e-12)
    np.testing.assert_allclose(simplify.log_likelihoods, full.log_likelihoods, rtol=1e-12)
