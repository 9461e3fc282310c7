"""Workers behind a channel: the E-step and M-step of Dawid-Skene and one-coin against loops over every cell."""

from dataclasses import replace

import numpy as np
import pytest

from crowdveil import DawidSkene, OneCoin
from crowdveil.answers.reports import Reports
from crowdveil.channels.channel import Channel
from crowdveil.estimators.confusion.model import (
    M_STEPS,
    ConfusionEstimator,
    expected_worker_answers,
    full_report_sums,
)
from crowdveil.estimators.confusion.parameters import CrowdParameters
from tests.estimators.dense import (
    Table,
    channels,
    dense_posterior,
    naive_expected_answers,
    one_block,
    random_reports,
    sent_alphabet,
    summary_of,
)

CHANNELS = channels()
each_channel = pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)


def random_crowd(
    model: ConfusionEstimator, channel: Channel, seed: int = 0, prior: Table | None = None, tasks: int = 7
) -> tuple[Reports, CrowdParameters]:
    """Draw reports of 5 workers, the last one silent, and parameters that fit them no better than chance."""
    rng = np.random.default_rng(seed)
    reports = random_reports(rng, sent_alphabet(channel), tasks=tasks, workers=5, share=0.75)
    parameters = replace(
        model.initialize(summary_of(reports, channel, prior)),
        confusion=rng.dirichlet(np.ones(3), size=(5, 3)),
        class_prior=rng.dirichlet(np.ones(3)),
        is_initial=False,
    )
    if channel.participation == "protected":
        parameters = replace(parameters, participation=rng.uniform(0.1, 0.9, 5))
    return reports, parameters


@each_channel
@pytest.mark.parametrize("seed", range(3))
def test_e_step_is_the_dense_posterior(channel: Channel, seed: int) -> None:
    """Posterior and likelihood from sparse reports equal products over all cells, NULL cells included, to 1e-10."""
    model = DawidSkene()
    reports, parameters = random_crowd(model, channel, seed)

    expected, likelihood = dense_posterior(reports, parameters)
    result = model.e_step(one_block(reports), parameters)

    np.testing.assert_allclose(result.posterior, expected, rtol=0, atol=1e-10)
    assert pytest.approx(likelihood, rel=1e-10) == result.statistics.log_likelihood
    np.testing.assert_allclose(result.statistics.by_truth, expected.sum(axis=0)[None], atol=1e-10)


@each_channel
def test_m_step_enumerates_hidden_answers(channel: Channel) -> None:
    """Confusions, participation and class prior equal those from expected hidden answers, cell by cell, to 1e-10."""
    model = DawidSkene()
    reports, parameters = random_crowd(model, channel)
    statistics = model.e_step(one_block(reports), parameters).statistics
    posterior, _ = dense_posterior(reports, parameters)

    looped = parameters
    for _ in range(M_STEPS if parameters.pool.noise else 1):
        answers = naive_expected_answers(reports, looped, posterior)
        counts = answers[:, :, :3] + parameters.dirichlet_prior
        looped = replace(looped, confusion=counts / counts.sum(axis=2, keepdims=True))
        if channel.participation == "protected":
            given = (
                answers[:, :, :3].sum(axis=(1, 2))
                + parameters.participation_pseudo_counts * parameters.pool.participation
            )
            cells = answers.sum(axis=(1, 2)) + parameters.participation_pseudo_counts  # every cell that sent something
            looped = replace(looped, participation=given / cells)
    weight = model.damping * parameters.pool.noise * len(reports.tasks)
    prior = posterior.sum(axis=0) + weight * parameters.pool.label_shares

    result = model.m_step(statistics, parameters)

    np.testing.assert_allclose(result.confusion, looped.confusion, rtol=0, atol=1e-10)
    np.testing.assert_allclose(result.participation, looped.participation, rtol=0, atol=1e-10)
    np.testing.assert_allclose(result.class_prior, prior / prior.sum(), rtol=0, atol=1e-10)


@each_channel
def test_one_coin_ties_the_same_expected_answers(channel: Channel) -> None:
    """One-coin's ability is the share of expected answers, pseudo-answers included, that equal the truth."""
    model = OneCoin()
    reports, parameters = random_crowd(model, channel)
    statistics = model.e_step(one_block(reports), parameters).statistics
    posterior, _ = dense_posterior(reports, parameters)
    answers = naive_expected_answers(reports, parameters, posterior)[:, :, :3]

    expected = np.zeros((5, 3, 3))
    for worker in range(5):
        right = sum(answers[worker, z, z] + parameters.dirichlet_prior[z, z] for z in range(3))
        ability = right / (answers[worker].sum() + parameters.dirichlet_prior.sum())
        for truth in range(3):
            for answer in range(3):
                expected[worker, truth, answer] = ability if truth == answer else (1 - ability) / 2

    split, _ = expected_worker_answers(full_report_sums(statistics, parameters), parameters)

    np.testing.assert_allclose(
        model.estimate_confusions(split, parameters.dirichlet_prior), expected, rtol=0, atol=1e-10
    )
