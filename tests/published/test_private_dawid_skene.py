"""Private Dawid-Skene (Wang & Xu, Algorithm 1) against its equations written as loops."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import NULL, Categories
from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Participation
from crowdveil.em.estimator import coded_and_summarized
from crowdveil.em.model import Summary
from crowdveil.errors import SettingsError
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.published.private_dawid_skene import PrivateDawidSkene, symmetric_entries

BINARY = Categories(("0", "1"))


def response(labels: int, epsilon: float, participation: Participation = "public") -> Channel:
    """Return k-ary randomized response over the labels 0, 1, ..."""
    alphabet = Categories(tuple(map(str, range(labels))))
    return RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation=participation).channel()


def table_of(answers: NDArray[np.int64], labels: int = 2) -> Reports:
    """Make reports from a dense table of codes, indexed [worker, task]; negative codes and `labels` mean NULL."""
    worker, task = np.nonzero((answers >= 0) & (answers < labels))
    alphabet = Categories(tuple(map(str, range(labels))))
    sizes = np.arange(answers.shape[1]), np.arange(answers.shape[0])
    return Reports(task, worker, answers[worker, task], *sizes, alphabet)


def random_table(seed: int, workers: int, tasks: int, labels: int = 2, share: float = 1.0) -> NDArray[np.int64]:
    """Draw a table of codes [worker, task], -1 where there is no answer; workers are right with probability 0.7."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, labels, tasks)
    answers = np.where(rng.random((workers, tasks)) < 0.7, truth, rng.integers(0, labels, (workers, tasks)))
    return np.where(rng.random((workers, tasks)) < share, answers, -1)


def slow_binary(
    table: NDArray[np.int64], iterations: int, low: float, high: float, first: list[float] | None = None
) -> tuple[list[float], list[float]]:
    """Steps 4 to 6 of Algorithm 1 as loops over a binary table with gaps: y(T) and p(T), by (10), (7) and (8)."""
    n, m = table.shape
    done = [[j for j in range(m) if table[i, j] >= 0] for i in range(n)]
    given = [[i for i in range(n) if table[i, j] >= 0] for j in range(m)]
    vote = [sum(table[i, j] for i in given[j]) / len(given[j]) if given[j] else 0.5 for j in range(m)]
    y, p = vote if first is None else list(first), list[float]()
    for _ in range(iterations):
        p = []
        for i in range(n):
            right = sum((1 - table[i, j]) * (1 - y[j]) + table[i, j] * y[j] for j in done[i])
            p.append(min(max(right / len(done[i]) if done[i] else 0.5, low), high))
        for j in range(m):
            one = math.prod(p[i] ** table[i, j] * (1 - p[i]) ** (1 - table[i, j]) for i in given[j])
            zero = math.prod(p[i] ** (1 - table[i, j]) * (1 - p[i]) ** table[i, j] for i in given[j])
            y[j] = one / (one + zero)
    return y, p


@pytest.mark.parametrize("iterations", [1, 2, 3, 6])
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_steps_equal_the_equations(share: float, iterations: int) -> None:
    """T iterations are T + 1 steps: truths follow from y(T), abilities by step 7 from p(T), dense and sparse."""
    epsilon, channel = 1.5, response(2, 1.5)
    flip = 1 / (math.exp(epsilon) + 1)
    for seed in range(4):
        table = random_table(seed, 6, 9, share=share)
        estimate = PrivateDawidSkene(max_steps=iterations + 1, tolerance=0.0).fit(table_of(table), channel=channel)

        y, p = slow_binary(table, iterations, flip, 1 - flip)

        factor = (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
        abilities = [min(max(factor * (x - flip), 0.0), 1.0) for x in p]
        unknown = ~(table >= 0).any(axis=1)
        np.testing.assert_allclose(estimate.posterior[:, 1], y, atol=1e-9)
        np.testing.assert_allclose(estimate.workers.quality, np.where(unknown, np.nan, abilities), atol=1e-9)


def test_one_step_is_the_vote_with_the_abilities_that_follow_from_it() -> None:
    """Without an iteration (T = 0) the paper has no abilities: truths are y(0), abilities those of p(1)."""
    table, flip = random_table(1, 6, 9), 1 / (math.exp(1.5) + 1)

    estimate = PrivateDawidSkene(max_steps=1).fit(table_of(table), channel=response(2, 1.5))

    p = np.array(slow_binary(table, 1, flip, 1 - flip)[1])
    np.testing.assert_allclose(estimate.posterior[:, 1], slow_binary(table, 0, flip, 1 - flip)[0], atol=1e-9)
    np.testing.assert_allclose(estimate.workers.quality, np.clip((p - flip) / (1 - 2 * flip), 0, 1), atol=1e-9)


def test_the_papers_own_projection() -> None:
    """`projection=` replaces the channel's interval by the paper's [lambda, 1 - lambda]."""
    table = random_table(0, 6, 9)

    estimate = PrivateDawidSkene(max_steps=5, tolerance=0.0, projection=0.3).fit(
        table_of(table), channel=response(2, 3)
    )

    np.testing.assert_allclose(estimate.posterior[:, 1], slow_binary(table, 4, 0.3, 0.7)[0], atol=1e-9)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_many_labels_equal_the_one_coin_model(share: float) -> None:
    """With K labels the posterior is a product of P(right) and P(wrong), wrong ones spread over K - 1 labels."""
    labels, channel = 3, response(3, 2.0)
    flip, keep = 1 / (math.exp(2) + 2), math.exp(2) / (math.exp(2) + 2)
    for seed in range(3):
        table = random_table(seed, 5, 8, labels, share)
        first, second = (
            PrivateDawidSkene(max_steps=k, tolerance=0.0).fit(table_of(table, labels), channel=channel) for k in (1, 2)
        )
        log_likelihood = 0.0
        for j in range(8):
            likelihood = [1.0] * labels
            for i in np.flatnonzero(table[:, j] >= 0):
                mine = np.flatnonzero(table[i] >= 0)
                p = min(max(np.mean([first.posterior[t, table[i, t]] for t in mine]), flip), keep)
                for z in range(labels):
                    likelihood[z] *= p if table[i, j] == z else (1 - p) / (labels - 1)
            np.testing.assert_allclose(second.posterior[j], np.array(likelihood) / sum(likelihood), atol=1e-9)
            log_likelihood += math.log(sum(likelihood) / labels)
        assert second.log_likelihoods == pytest.approx((log_likelihood,), abs=1e-9)


def test_the_likelihood_is_equation_2() -> None:
    """The log-likelihood equals the log of equation (2), tasks with gold counting with their known label only."""
    table, flip = random_table(3, 5, 7, share=0.7), 1 / (math.exp(2) + 1)
    fits = [
        PrivateDawidSkene(max_steps=k, tolerance=0.0).fit(table_of(table), channel=response(2, 2.0), gold={6: "1"})
        for k in (1, 2)
    ]
    agree = [np.mean([fits[0].posterior[j, table[i, j]] for j in range(7) if table[i, j] >= 0]) for i in range(5)]
    p = np.clip(agree, flip, 1 - flip)

    expected = 0.0
    for j in range(7):
        given = [i for i in range(5) if table[i, j] >= 0]
        parts = [0.5 * math.prod(p[i] if table[i, j] == z else 1 - p[i] for i in given) for z in (0, 1)]
        expected += math.log(parts[1] if j == 6 else sum(parts))

    assert fits[0].log_likelihoods == ()
    assert fits[1].log_likelihoods == pytest.approx((expected,), abs=1e-9)


def _summary(reports: Reports, channel: Channel) -> Summary:
    """Summarize reports as a fit does."""
    return coded_and_summarized(PrivateDawidSkene(), reports, channel, None, None)[1]


@pytest.mark.parametrize("labels", [2, 4])
def test_protected_participation_by_enumeration(labels: int) -> None:
    """Through randomized response with NULL, P(report right) is base + gain * ability, as summing over answers says."""
    channel, tasks = response(labels, 1.5, "protected"), 50
    table = np.full((3, tasks), labels)
    for worker, reports in enumerate((30, 40, 50)):
        table[worker, :reports] = 0
    accuracy = PrivateDawidSkene().initialize(_summary(table_of(table, labels), channel)).accuracy

    for worker, sent in enumerate((0.6, 0.8, 1.0)):
        share = accuracy.participation[worker]
        for ability in (0.0, 0.3, 1.0):
            answer = [share * (ability if x == 0 else (1 - ability) / (labels - 1)) for x in range(labels)] + [
                1 - share
            ]
            report = np.array(answer) @ channel.probabilities
            if share < 1:
                assert pytest.approx(sent) == report[:labels].sum()
            right = report[0] / report[:labels].sum()
            assert pytest.approx(right) == accuracy.base[worker] + accuracy.gain[worker] * ability


def test_a_channel_without_information_gives_the_prior() -> None:
    """Where every answer gives the same reports, truths are the prior and abilities unknown."""
    half = 1 << 47
    channel = Channel(BINARY, "public", BINARY.names, ((half, half), (half, half)))

    estimate = PrivateDawidSkene().fit(table_of(random_table(0, 4, 6)), channel=channel, prior={"0": 0.3, "1": 0.7})

    np.testing.assert_allclose(estimate.posterior, [[0.3, 0.7]] * 6, atol=1e-12)
    assert np.isnan(estimate.workers.quality).all()


def test_blanks_sent_as_labels_leave_participation_at_one() -> None:
    """If NULL is sent as a coin toss, participation is taken as 1, and the fit still separates labels."""
    quarter = 1 << 46
    rows = ((3 * quarter, quarter), (quarter, 3 * quarter), (2 * quarter, 2 * quarter))
    table = random_table(2, 20, 40)

    estimate = PrivateDawidSkene().fit(table_of(table), channel=Channel(BINARY, "protected", BINARY.names, rows))

    np.testing.assert_array_equal(estimate.workers.participation, np.ones(20))
    assert estimate.posterior.max(axis=1).mean() > 0.9


def test_a_prior_weighs_in() -> None:
    """A public prior shifts posteriors by exactly its log-odds where abilities are at chance, and fills empty tasks."""
    reports = Reports.from_arrays([1, 1], [1, 2], ["0", "1"], alphabet=BINARY, tasks=[1, 2], workers=[1, 2])

    estimate = PrivateDawidSkene(max_steps=1).fit(reports, prior={"0": 0.2, "1": 0.8})
    settled = PrivateDawidSkene(max_steps=2).fit(reports, prior={"0": 0.2, "1": 0.8})

    np.testing.assert_allclose(estimate.posterior, [[0.5, 0.5], [0.2, 0.8]])
    np.testing.assert_allclose(settled.posterior, [[0.2, 0.8], [0.2, 0.8]])


def test_other_channels_are_refused_with_a_way_out() -> None:
    """A channel that treats labels differently, or inverts them, is refused, and the message names other estimators."""
    part = 1 << 44
    lopsided = Channel(BINARY, "public", BINARY.names, ((12 * part, 4 * part), (2 * part, 14 * part)))
    unequal_blanks = Channel(
        BINARY,
        "protected",
        (*BINARY.names, NULL),
        ((12 * part, 2 * part, 2 * part), (2 * part, 12 * part, 2 * part), (1 * part, 3 * part, 12 * part)),
    )
    inverted = Channel(BINARY, "public", BINARY.names, ((4 * part, 12 * part), (12 * part, 4 * part)))

    for channel in (lopsided, unequal_blanks, inverted):
        with pytest.raises(SettingsError, match="dawid-skene, one-coin"):
            symmetric_entries(channel)
