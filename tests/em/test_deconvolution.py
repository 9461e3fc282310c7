"""Shares of answers behind report counts: against direct maximisation, and what they tend to."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from crowdveil import Laplace, RandomizedResponse, Reports, Scale
from crowdveil.channels.channel import Channel, retained_share
from crowdveil.channels.guarantee import Participation
from crowdveil.em import deconvolution
from crowdveil.em.deconvolution import (
    deconvolve,
    estimate_frequencies,
    frequencies_of_counts,
    frequencies_of_reports,
    input_pseudo_counts,
    vote_shares_or_prior,
)
from tests.estimators.dense import (
    LABELS,
    Table,
    channels,
    model_of,
    one_block,
    random_reports,
    summary_of,
)

CHANNELS = channels()
each_channel = pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)


def direct_shares(counts: Table, table: Table, prior: Table) -> Table:
    """Maximize sum_y counts log (f Q) + sum_x prior log f over the simplex by a general optimiser, in log-ratios."""

    def loss(free: Table) -> float:
        weights = np.exp(free - free.max())
        shares = weights / weights.sum()
        return -float(counts @ np.log(shares @ table) + prior @ np.log(shares))

    best = minimize(loss, np.zeros(len(table)), method="BFGS", options={"gtol": 1e-9})
    weights = np.exp(best.x - best.x.max())
    return weights / weights.sum()


@pytest.mark.parametrize(("epsilon", "share"), [(0.5, 0.6), (1.0, 0.8), (2.0, 0.95)])
def test_deviation_of_the_largest_share_is_that_of_a_proportion(epsilon: float, share: float) -> None:
    """With two labels and public participation it is that of the share of reports, divided by 2 P(keep) - 1."""
    channel = RandomizedResponse(alphabet=Scale(1, 2), epsilon=epsilon, participation="public").channel()
    keep = np.exp(epsilon) / (np.exp(epsilon) + 1)
    reported = share * keep + (1 - share) * (1 - keep)
    counts = np.round(1e6 * np.array([reported, 1 - reported]))

    pool = frequencies_of_counts(counts, model_of(channel), tasks=1000, perturbed=True)

    expected = np.sqrt(reported * (1 - reported) / 1e6) / (2 * keep - 1)
    assert pytest.approx(expected, rel=1e-3) == pool.largest_share_deviation


@example(epsilon=0.001, counts=[10**7, 10**7, 10**7, 3 * 10**7])  # information per cell 1e-7: EM would need 1e7 steps
@example(epsilon=20.0, counts=[10**9, 0, 0, 0])  # a corner of the simplex
@example(epsilon=1.0, counts=[0, 0, 0, 0])  # no report at all
@example(epsilon=0.1, counts=[0, 10**9, 0, 0])  # counts that no shares can explain
@given(epsilon=st.floats(0.001, 20.0), counts=st.lists(st.integers(0, 10**9), min_size=4, max_size=4))
def test_pooled_shares_have_no_slope_left(epsilon: float, counts: list[int]) -> None:
    """At the shares found, the objective's slope is the same along every symbol, whatever epsilon and counts."""
    table = RandomizedResponse(alphabet=LABELS, epsilon=epsilon).channel().probabilities
    sums = np.array(counts, dtype=float)

    weight = np.array([1.0, 1.0, 1.0, 50.0])
    shares = estimate_frequencies(sums, table, weight)
    slope = table @ (sums / (shares @ table)) + weight / shares

    assert (shares > 0).all()
    assert pytest.approx(1.0) == shares.sum()
    np.testing.assert_allclose(shares * slope, shares * (sums.sum() + weight.sum()), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("participation", ["protected", "public"])
@pytest.mark.parametrize("mechanism", [RandomizedResponse, Laplace])
def test_participation_is_determined_if_null_is_no_mixture_of_answers(
    mechanism: type[RandomizedResponse] | type[Laplace], participation: Participation
) -> None:
    """Its deviation is 0 if public, infinite for Laplace, which sends NULL as a number, and else falls with reports."""
    channel = mechanism(alphabet=Scale(0, 2), epsilon=1.0, participation=participation).channel()
    model = model_of(channel)
    few, many = (
        frequencies_of_counts(np.full(model.full_table.shape[1], count), model, tasks=5, perturbed=True)
        for count in (25.0, 2500.0)
    )

    if participation == "public":
        assert 0 == few.log_participation_deviation
    elif mechanism is Laplace:
        assert np.inf == many.log_participation_deviation
    else:
        ratio = few.log_participation_deviation / many.log_participation_deviation
        assert pytest.approx(10 * many.participation / few.participation) == ratio


@each_channel
def test_task_shares_are_the_direct_maximum(channel: Channel) -> None:
    """With pseudo-cells, deconvolution of each row finds what a general optimiser finds."""
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 9, (4, len(channel.outputs))).astype(float)
    base = rng.dirichlet(np.full(len(channel.inputs), 3.0))
    table = np.maximum(channel.probabilities, 1e-300)

    shares = deconvolve(counts, channel.probabilities, base, weight=5.0, steps=5000)

    for row, own in zip(counts, shares, strict=True):
        np.testing.assert_allclose(own, direct_shares(row, table, 5.0 * base), atol=1e-5)


@pytest.mark.parametrize("name", ["identity, public", "identity, protected"])
def test_nothing_perturbed_gives_the_shares_of_votes(name: str) -> None:
    """Through the identity each task's shares are its votes over their number; a task without votes is shared."""
    reports = random_reports(np.random.default_rng(2), LABELS, tasks=8, workers=6, share=0.5)
    summary = summary_of(reports, CHANNELS[name])

    shares = vote_shares_or_prior(one_block(reports), summary, frequencies_of_reports(summary))

    for task in range(8):
        mine = reports.value[reports.task == task]
        expected = [np.mean(mine == k) for k in range(3)] if len(mine) else [1 / 3] * 3
        np.testing.assert_allclose(shares[task], expected, atol=1e-12)


def test_an_empty_task_has_the_base_rate_behind_a_channel() -> None:
    """Behind a channel with public participation, a task without reports has the crowd's base rate, or the prior."""
    reports = random_reports(np.random.default_rng(4), LABELS, tasks=40, workers=6, share=0.7)
    channel = CHANNELS["randomized response, public"]
    prior = np.array([0.2, 0.5, 0.3])
    learned, public = summary_of(reports, channel), summary_of(reports, channel, prior)
    pool = frequencies_of_reports(learned)

    np.testing.assert_allclose(
        vote_shares_or_prior(one_block(reports), learned, pool)[-1], pool.label_shares, atol=1e-12
    )
    np.testing.assert_allclose(vote_shares_or_prior(one_block(reports), public, pool)[-1], prior, atol=1e-12)


def test_a_public_prior_replaces_the_base_rate_among_answers() -> None:
    """Behind protected participation each task's shares are drawn to the prior's labels, answered as the pool is."""
    reports = random_reports(np.random.default_rng(4), LABELS, tasks=40, workers=6, share=0.7)
    channel, prior = CHANNELS["randomized response, protected"], np.array([0.2, 0.5, 0.3])
    summary = summary_of(reports, channel, prior)
    pool = frequencies_of_reports(summary)
    counts = np.zeros((40, 4))
    np.add.at(counts, (reports.task, reports.value), 1)
    counts[:, 3] = 6 - counts.sum(axis=1)
    base = np.append(prior * pool.participation, 1 - pool.participation)

    weight = deconvolution.BASE_RATE_WEIGHT * pool.noise * 6
    expected = deconvolve(counts, channel.probabilities, base, weight=weight, steps=5000)[:, :3]

    np.testing.assert_allclose(
        vote_shares_or_prior(one_block(reports), summary, pool),
        expected / expected.sum(axis=1, keepdims=True),
        atol=1e-6,
    )


def test_noise_is_what_answers_do_not_account_for() -> None:
    """Noise = 1 - retention x answered share / share of label reports; for public k-RR, 1 - retention."""
    reports = random_reports(np.random.default_rng(6), LABELS, tasks=50, workers=8, share=0.6)
    public, protected = (CHANNELS[f"randomized response, {word}"] for word in ("public", "protected"))
    pool = frequencies_of_reports(summary_of(reports, protected))

    assert pytest.approx(1 - retained_share(public)) == frequencies_of_reports(summary_of(reports, public)).noise
    assert pytest.approx(1 - retained_share(protected) * pool.participation * 400 / len(reports)) == pool.noise
    assert 0 == frequencies_of_reports(summary_of(reports, None)).noise
    assert 0 == frequencies_of_reports(summary_of(reports, CHANNELS["identity, protected"])).noise


def test_no_report_is_all_noise() -> None:
    """Where no label was reported, whatever the model says of workers is prior: the noise is 1."""
    silent = Reports(np.array([], int), np.array([], int), np.array([], int), np.arange(3), np.arange(4), LABELS)

    assert 1 == frequencies_of_reports(summary_of(silent, CHANNELS["randomized response, public"])).noise


def test_the_prior_is_kept_if_nulls_are_uninformative() -> None:
    """Through a Laplace table whose NULL row is the mean of the others, the pool's participation is not overstated."""
    channel = Laplace(alphabet=Scale(0, 3), epsilon=3.0).channel()
    truth = np.array([0.0076, 0.0012, 0.0005, 0.0008, 0.9899])
    counts = np.rint(9e6 * truth @ channel.probabilities)

    shares = estimate_frequencies(counts, channel.probabilities, input_pseudo_counts(model_of(channel), counts.sum()))

    assert 1 - shares[-1] < 2 * (1 - truth[-1])
    assert 0 == shares[:-1].argmax()
