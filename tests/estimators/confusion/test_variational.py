"""Variational methods through channels, as products over all cells; expected logarithms and divergences."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import digamma
from scipy.stats import dirichlet

from crowdveil.estimators import Ebcc, Mace
from crowdveil.estimators.confusion.variational import dirichlet_divergence, expected_log
from tests.estimators.dense import channels, dense_posterior, one_block, random_reports, sent_alphabet, summary_of


@pytest.mark.parametrize("model", [Mace(), Ebcc(subtypes=1)], ids=lambda model: model.name)
@pytest.mark.parametrize("name", channels())
def test_the_second_step_through_a_channel_equals_products_over_cells(model: Mace | Ebcc, name: str) -> None:
    """Posterior and bound are those of the reports' probabilities, with exp(E log) for the workers' parameters."""
    channel = channels()[name]
    reports = random_reports(np.random.default_rng(12), sent_alphabet(channel), tasks=6, workers=4, share=0.6)
    block, initial = one_block(reports), model.initialize(summary_of(reports, channel))
    parameters = model.m_step(model.e_step(block, initial).statistics, initial)

    step = model.e_step(block, parameters)
    expected, likelihood = dense_posterior(reports, replace(parameters, score_tables=None))

    if isinstance(model, Ebcc) and name.startswith("identity"):  # tasks without reports take no part in its bound
        likelihood -= int((np.asarray(reports.per_task) == 0).sum()) * np.log(parameters.class_prior.sum())
    np.testing.assert_allclose(step.posterior, expected, rtol=0, atol=1e-9)
    assert pytest.approx(likelihood, abs=1e-8) == step.statistics.log_likelihood


def test_expected_log_and_divergence_equal_means_of_draws() -> None:
    """E log is that of scipy's digamma; the divergence is within 0.02 of a mean over 200,000 draws (seed 0)."""
    counts, prior = np.array([2.0, 5.0, 1.5]), np.array([1.0, 1.0, 4.0])
    draws = dirichlet(counts).rvs(200_000, random_state=0).T
    ratio = dirichlet(counts).logpdf(draws) - dirichlet(prior).logpdf(draws)

    np.testing.assert_allclose(expected_log(counts), digamma(counts) - digamma(8.5))
    assert pytest.approx(float(ratio.mean()), abs=0.02) == dirichlet_divergence(counts[None], prior)
