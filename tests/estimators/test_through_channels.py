"""Majority vote, Dawid-Skene and one-coin through channels, from reports to estimate: what must hold for whole fits."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crowdveil import Categories, DawidSkene, MajorityVote, OneCoin, RandomizedResponse, Reports, Scale
from crowdveil.answers.reports import Block
from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import Channel
from crowdveil.estimators import Estimator
from crowdveil.mechanisms import Laplace
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, perturb_reports
from tests.estimators.dense import assert_never_falls, channels, random_reports, sent_alphabet
from tests.strategies import small_reports

CHANNELS = channels()
METHODS: tuple[Estimator[Any, Any], ...] = (MajorityVote(), DawidSkene(), OneCoin())
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
each_fitted = pytest.mark.parametrize("method", METHODS[1:], ids=lambda method: method.name)

each_pair = pytest.mark.parametrize(
    ("method", "channel"),
    [
        pytest.param(method, channel, id=f"{name}-{method.name}")
        for name, channel in CHANNELS.items()
        for method in METHODS
        if method.capabilities.reads_label_blocks or sent_alphabet(channel) == channel.alphabet
    ],
)
"""Every method with every channel whose reports it reads."""


def channel_of(kind: str, size: int, epsilon: float) -> Channel:
    """Return a channel over that many grid points."""
    alphabet = Scale(1, size)
    match kind:
        case "protected" | "public":
            return RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation=kind).channel()
        case "laplace":
            return Laplace(alphabet=alphabet, epsilon=epsilon).channel()
        case _:
            return Laplace(alphabet=alphabet, epsilon=epsilon, participation="public").channel()


def relabelled(reports: Reports, alphabet: Alphabet) -> Reports:
    """Return the same reports as codes of another alphabet."""
    return Reports(reports.task, reports.worker, reports.value, reports.tasks, reports.workers, alphabet)


def row(*cells: tuple[int, int, int], tasks: int, workers: int, labels: int = 2) -> Reports:
    """Return reports from (task, worker, label) codes."""
    task, worker, value = np.array(cells).reshape(-1, 3).T
    return Reports(task, worker, value, np.arange(tasks), np.arange(workers), Scale(1, labels))


@pytest.mark.slow
@each_fitted
@example(
    reports=row((0, 0, 0), tasks=2, workers=1), kind="laplace", epsilon=0.001, with_prior=False
)  # a report is lost
@given(
    reports=small_reports(),
    kind=st.sampled_from(["protected", "public", "laplace", "laplace, public"]),
    epsilon=st.sampled_from([0.001, 0.3, 1.0, 2.5, 6.0, 20.0]),
    with_prior=st.booleans(),
)
def test_the_objective_never_falls(
    method: Estimator[Any, Any], reports: Reports, kind: str, epsilon: float, with_prior: bool
) -> None:
    """Log-likelihood plus log-prior rises at every step, whatever channel, epsilon and prior."""
    channel = channel_of(kind, reports.labels, epsilon)
    weights = np.arange(1, reports.labels + 1) / (reports.labels * (reports.labels + 1) / 2)
    prior = dict(zip(channel.alphabet.names, weights.tolist(), strict=True)) if with_prior else None

    estimate = method.fit(relabelled(reports, channel.alphabet), channel=channel, prior=prior)

    assert_never_falls(estimate)
    np.testing.assert_allclose(estimate.posterior.sum(axis=1), 1.0, atol=1e-9)
    assert np.isfinite(estimate.workers.quality).all()


@pytest.mark.slow
@each_pair
def test_one_block_or_many(method: Estimator[Any, Any], channel: Channel) -> None:
    """Blocks change nothing but rounding: not the start by deconvolution, not the likelihood."""
    dense = random_reports(np.random.default_rng(7), sent_alphabet(channel), tasks=30, workers=12, share=0.8)
    kept = np.random.default_rng(8).random(len(dense)) < np.linspace(1.0, 0.05, 30)[dense.task]
    alphabet = dense.alphabet
    reports = Reports(dense.task[kept], dense.worker[kept], dense.value[kept], dense.tasks, dense.workers, alphabet)
    whole_blocks = Reports.blocks

    def small_blocks(self: Reports, reports: int = 0) -> Iterator[Block]:
        return whole_blocks(self, 10)

    whole = method.fit(reports, channel=channel, gold={3: channel.alphabet.names[1]})
    with patch.object(Reports, "blocks", small_blocks):
        assert len(list(reports.blocks())) > 8
        parts = method.fit(reports, channel=channel, gold={3: channel.alphabet.names[1]})

    np.testing.assert_allclose(parts.posterior, whole.posterior, rtol=0, atol=1e-7)
    np.testing.assert_allclose(parts.workers.quality, whole.workers.quality, rtol=0, atol=1e-7)


@each_method
@pytest.mark.parametrize("epsilon", [0.001, 0.01])
def test_no_information_gives_one_constant(method: Estimator[Any, Any], epsilon: float) -> None:
    """At epsilon 0.001 and 0.01 all tasks have one posterior (to 0.05), hardly better than the constant."""
    labels = Categories(("G", "P", "R", "X"))
    crowd = categorical_crowd(workers=200, tasks=400, labels=labels, sparsity=0.9, source=seeded(0))
    mechanism = RandomizedResponse(alphabet=labels, epsilon=epsilon)

    estimate = method.fit(perturb_reports(crowd.answers, mechanism, seeded(1)), channel=mechanism.channel())

    assert np.ptp(estimate.posterior, axis=0).max() < 0.05
    assert estimate.baseline.estimate_error is not None
    assert estimate.baseline.estimate_error > estimate.baseline.expected_error - 0.005


@each_method
@pytest.mark.parametrize("participation", ["public", "protected"])
def test_no_information_gives_the_public_prior(method: Estimator[Any, Any], participation: Any) -> None:
    """With a public prior every posterior is that prior (to 0.02), and its most probable label every truth."""
    labels = Categories(("G", "P", "R", "X"))
    prior = {"G": 0.3, "P": 0.1, "R": 0.4, "X": 0.2}
    crowd = categorical_crowd(workers=100, tasks=200, labels=labels, sparsity=0.5, source=seeded(0))
    mechanism = RandomizedResponse(alphabet=labels, epsilon=0.001, participation=participation)

    estimate = method.fit(
        perturb_reports(crowd.answers, mechanism, seeded(1)), channel=mechanism.channel(), prior=prior
    )

    np.testing.assert_allclose(estimate.posterior, np.tile(list(prior.values()), (200, 1)), atol=0.02)
    assert ("R", 0) == (estimate.baseline.constant, estimate.baseline.moved)


@each_fitted
@pytest.mark.parametrize("epsilon", [2.0, 4.0])
def test_participation_is_recovered(method: Estimator[Any, Any], epsilon: float) -> None:
    """Shares of tasks answered, from none to nearly all, come back from protected reports (correlation above 0.95)."""
    labels = Categories(("a", "b", "c"))
    crowd = categorical_crowd(
        workers=50,
        tasks=600,
        labels=labels,
        answers_per_worker=lambda generator, count: np.linspace(0, 540, count),
        source=seeded(5),
    )
    mechanism = RandomizedResponse(alphabet=labels, epsilon=epsilon)

    estimate = method.fit(perturb_reports(crowd.answers, mechanism, seeded(6)), channel=mechanism.channel())

    share = crowd.answers.per_worker / 600
    assert estimate.workers.participation is not None
    assert np.corrcoef(estimate.workers.participation, share)[0, 1] > 0.95
    assert abs(float(estimate.workers.participation.mean() - share.mean())) < 0.05
