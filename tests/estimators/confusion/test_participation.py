"""Participation in confusion models: its prior, its tangent, and the variational bound."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import digamma
from scipy.stats import dirichlet

from crowdveil import Categories, OneCoin, RandomizedResponse
from crowdveil.em.deconvolution import AnswerFrequencies, frequencies_of_reports
from crowdveil.em.model import Summary
from crowdveil.estimators import Ebcc, Mace
from crowdveil.estimators.confusion.credible_intervals import (
    AbilityTangent,
    CompleteDataSummary,
    marginalize_participation,
)
from crowdveil.estimators.confusion.parameters import CONCENTRATIONS, fit_participation_prior, report_counts_by_worker
from crowdveil.estimators.confusion.variational import dirichlet_divergence, expected_log_dirichlet
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, perturb_reports
from tests.estimators.dense import channels, dense_posterior, one_block, random_reports, sent_alphabet, summary_of

LABELS = Categories(("a", "b", "c"))


def sent(answers: int | np.ndarray, epsilon: float) -> tuple[Summary, AnswerFrequencies]:
    """Return counts of 80 workers who answered so many of 300 tasks."""
    numbers = np.broadcast_to(answers, 80)
    crowd = categorical_crowd(
        workers=80, tasks=300, labels=LABELS, answers_per_worker=lambda *_: numbers, source=seeded(1)
    )
    mechanism = RandomizedResponse(alphabet=LABELS, epsilon=epsilon)
    summary = summary_of(perturb_reports(crowd.answers, mechanism, seeded(2)), mechanism.channel())
    return summary, frequencies_of_reports(summary)


def test_evidence_is_that_of_normal_priors() -> None:
    """The concentration maximizes the integral over normal participations with quadratic log-likelihoods."""
    summary, pool = sent(np.linspace(20, 160, 80), 2.0)
    table, rate = pool.model.full_table, pool.participation
    answered = sum(pool.label_shares[x] * table[x] for x in range(3))
    logs = np.zeros(len(CONCENTRATIONS))
    for worker in report_counts_by_worker(summary)[::8]:
        seen = rate * answered + (1 - rate) * table[3]
        rise = sum(n * (answered[y] - table[3, y]) / seen[y] for y, n in enumerate(worker))
        bend = sum(n * ((answered[y] - table[3, y]) / seen[y]) ** 2 for y, n in enumerate(worker))
        for k, strength in enumerate(CONCENTRATIONS):
            deviation = np.sqrt(rate * (1 - rate) / strength)
            logs[k] += np.log(
                quad(
                    lambda x, rise=rise, bend=bend, deviation=deviation: np.exp(
                        rise * deviation * x - 0.5 * bend * (deviation * x) ** 2 - 0.5 * x**2
                    ),
                    -12,
                    12,
                    limit=200,
                )[0]
            )

    assert pool.noise * CONCENTRATIONS[logs.argmax()] == fit_participation_prior(
        report_counts_by_worker(summary)[::8], pool, 1.0
    )


def table(ability: float) -> np.ndarray:
    """Return one-coin's confusion of three labels."""
    return np.where(np.eye(3, dtype=bool), ability, (1 - ability) / 2)


def test_the_tangent_keeps_participation_at_its_maximum() -> None:
    """The slope is minus the mixed derivative over the second derivative in participation, by finite differences."""
    channel, rng = channels()["randomized response, protected"], np.random.default_rng(0)
    summary = summary_of(random_reports(rng, sent_alphabet(channel), tasks=7, workers=4, share=0.75), channel)
    abilities, shares, cells, step = np.array([0.4, 0.6, 0.7, 0.9]), np.array([0.2, 0.5, 0.6, 0.9]), 11.0, 1e-6
    parameters = replace(
        OneCoin().initialize(summary), participation=shares, participation_pseudo_counts=cells, is_initial=False
    )
    rate, reports = parameters.pool.participation, rng.uniform(0.5, 9.0, (4, 3, 4))
    tables = np.array([table(ability) for ability in abilities])
    complete_data_summary = CompleteDataSummary(abilities, np.ones(4), np.array([0.3, -0.2, 0.1, 0.0]))
    right = np.repeat(abilities[:, None], 3, axis=1)
    before = AbilityTangent(right, np.ones((4, 3)), tables)

    found, tangent = marginalize_participation(complete_data_summary, before, parameters, reports)

    def reported(ability: float, share: float) -> np.ndarray:
        return (1 - share) * channel.probabilities[3] + share * table(ability) @ channel.probabilities[:3]

    assert tangent.participation is not None
    for worker, (ability, share) in enumerate(zip(abilities, shares, strict=True)):
        curvature = np.zeros((2, 2))
        climb = 0.0
        for z in range(3):
            for y in range(4):
                at = reported(ability, share)[z, y]
                slopes = [
                    (reported(ability + step, share) - reported(ability - step, share))[z, y] / (2 * step * at),
                    (reported(ability, share + step) - reported(ability, share - step))[z, y] / (2 * step * at),
                ]
                curvature += reports[worker, z, y] * np.outer(slopes, slopes)
                climb += reports[worker, z, y] * slopes[1]
        bend = cells * (rate / share**2 + (1 - rate) / (1 - share) ** 2)
        climb += cells * (rate / share - (1 - rate) / (1 - share))
        follows = -curvature[0, 1] / (curvature[1, 1] + bend)
        assert pytest.approx(follows, rel=1e-6) == tangent.participation[worker]
        assert pytest.approx(follows**2 * bend, rel=1e-6) == np.broadcast_to(found.prior_information, 4)[worker]
        moved = complete_data_summary.excess[worker] + ability * (1 - ability) * follows * climb
        assert pytest.approx(moved, rel=1e-5) == found.excess[worker]


@pytest.mark.parametrize("model", [Mace(), Ebcc(subtypes=1)], ids=lambda model: model.name)
@pytest.mark.parametrize("name", channels())
def test_the_second_step_through_a_channel_equals_products_over_cells(model: Any, name: str) -> None:
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

    np.testing.assert_allclose(expected_log_dirichlet(counts), digamma(counts) - digamma(8.5))
    assert pytest.approx(float(ratio.mean()), abs=0.02) == dirichlet_divergence(counts[None], prior)
