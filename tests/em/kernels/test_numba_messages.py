"""Compiled messages between workers and tasks against numpy and scipy: single calls on random tables, whole fits."""

from itertools import product

import numpy as np
import pytest

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.reports import Reports
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.em.kernels import dispatch
from crowdveil.estimators.gaussian.belief_propagation import Priors, propagate
from crowdveil.estimators.gaussian.estimator import Gaussian
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_reports
from tests.estimators.gaussian.test_belief_propagation import (
    CHANNELS,
    PUBLIC,
    every_channel,
    random_reports,
    ready,
)
from tests.estimators.gaussian.test_estimator import MECHANISMS, sun_crowd

pytestmark = pytest.mark.slow


def assert_told_alike(
    reports: Reports, channel: Channel | ChannelTable | None, assignment: Assignment | None = None
) -> None:
    """Both kernels give the same messages for random beliefs, priors, known workers and gold."""
    for estimator, learned, known in product((PUBLIC, Gaussian()), (False, True), (0, 3)):
        block, parameters = ready(reports, channel, assignment, estimator)
        priors = Priors(np.exp(parameters.anonymous_models[0].family), parameters.weights)
        gold = np.full(block.tasks, np.nan)
        if known:
            gold[::known] = 1.0

        plain, compiled = (
            propagate(block, gold, parameters.q, parameters.classes, priors, learned=learned, compiled=kernel)
            for kernel in (False, True)
        )

        np.testing.assert_allclose(compiled.posterior, plain.posterior, rtol=0, atol=1e-9)
        np.testing.assert_allclose(compiled.worker_scores, plain.worker_scores, rtol=0, atol=1e-8)


@every_channel
def test_messages_through_channels_are_alike(name: str) -> None:
    """Both kernels give the same messages on 30 tasks of up to 40 reports (seeds 0 and 1)."""
    channel = CHANNELS[name]
    for seed in range(2):
        assert_told_alike(random_reports(channel, 30, 40, seed=seed), channel)


def test_long_products_do_not_vanish() -> None:
    """After 1000 reports of a worker that contradict the others, logarithms beyond any float's are alike."""
    reports = random_reports(None, 1000, 60, share=1.0)
    block, parameters = ready(reports, None)
    priors = Priors(np.exp(parameters.anonymous_models[0].family), parameters.weights)

    plain, compiled = (
        propagate(block, np.full(block.tasks, np.nan), parameters.q, parameters.classes, priors, compiled=kernel)
        for kernel in (False, True)
    )

    assert plain.worker_scores.min() < -745
    np.testing.assert_allclose(compiled.worker_scores, plain.worker_scores, rtol=1e-9)
    np.testing.assert_allclose(compiled.posterior, plain.posterior, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["clean", "k-RR"])
def test_whole_fits_are_alike(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A fit that learns workers and the prior, of 40 workers on 50 tasks (seed 3), differs by rounding only."""
    crowd, mechanism = sun_crowd(3, workers=40, tasks=50), MECHANISMS[name]
    reports = crowd.answers if mechanism is None else perturb_reports(crowd.answers, mechanism, seeded(4))
    channel = None if mechanism is None else mechanism.channel()

    monkeypatch.setenv(dispatch.KERNELS_VARIABLE, "plain")
    plain = Gaussian().fit(reports, channel=channel)
    monkeypatch.setenv(dispatch.KERNELS_VARIABLE, "compiled")
    compiled = Gaussian().fit(reports, channel=channel)

    np.testing.assert_allclose(compiled.truth, plain.truth, rtol=0, atol=1e-6)
    np.testing.assert_allclose(compiled.workers.quality, plain.workers.quality, rtol=0, atol=1e-6)
    assert compiled.steps == plain.steps
