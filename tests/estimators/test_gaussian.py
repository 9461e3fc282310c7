"""Numbers through a channel: mean field against loops, exact posteriors, recovery, intervals and refusals."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import number_grid as grid
from crowdveil.estimators.fitting import GoldBlock, summarize
from crowdveil.estimators.gaussian import M_STEPS, Gaussian, GaussianParameters
from crowdveil.labels import NULL, Categories, Scale
from crowdveil.mechanisms.laplace import Laplace
from crowdveil.mechanisms.mechanism import Mechanism
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.randomness import seeded
from crowdveil.reports import Reports
from crowdveil.simulate import Crowd, numeric_crowd, perturb

Table = NDArray[np.float64]
SMALL = Scale(0, 3)
WIDE = Scale(0, 9)
PUBLIC = Gaussian(prior_mean=1.0, prior_deviation=1.0, sigmas=(0.5, 2.0), participations=(0.3, 0.6))


def blocks_channel(epsilon: float = 1.0) -> Channel:
    """Randomized response over the blocks 0, 1..2 and 3 of the small scale, and NULL."""
    names = ("0", "1..2", "3")
    inner = RandomizedResponse(alphabet=Categories(names, ordered=True), epsilon=epsilon).channel()
    return Channel(SMALL, "protected", (*names, NULL), tuple(inner.rows[k] for k in (0, 1, 1, 2, 3)), "blocks")


CHANNELS: dict[str, Channel | None] = {
    "none": None,
    "k-RR": RandomizedResponse(alphabet=SMALL, epsilon=1.5).channel(),
    "public": RandomizedResponse(alphabet=SMALL, epsilon=1.5, participation="public").channel(),
    "laplace": Laplace(alphabet=SMALL, epsilon=2.0, null_value=1.0).channel(),
    "blocks": blocks_channel(),
}
every_channel = pytest.mark.parametrize("name", CHANNELS)


def tiny_reports(name: str, tasks: int = 4, workers: int = 5) -> Reports:
    """Draw reports of 5 workers on 4 tasks (seed 7), in the channel's symbols; every cell where NULL sends none."""
    rng, channel = np.random.default_rng(7), CHANNELS[name]
    alphabet = SMALL if channel is None else channel.report_alphabet
    share = 1.0 if name == "laplace" else 0.6
    task, worker = np.nonzero(rng.random((tasks, workers)) < share)
    value = rng.integers(0, alphabet.size, len(task))
    return Reports(task, worker, value, np.arange(tasks), np.arange(workers), alphabet)


def some_parameters(estimator: Gaussian, reports: Reports, channel: Channel | None) -> GaussianParameters:
    """Return start parameters with random responsibilities (seed 3)."""
    parameters = estimator.start(summarize(estimator, reports, channel, None, None)[1])
    q = np.random.default_rng(3).dirichlet(np.ones(parameters.q.shape[1]), len(reports.workers))
    return replace(parameters, q=q)


def whole_block(reports: Reports, gold: Table | None = None) -> GoldBlock:
    """Return all reports as one block."""
    (block,) = reports.blocks()
    return GoldBlock(block, np.full(len(reports.tasks), np.nan) if gold is None else gold, None)


def normal_mass(low: float, high: float) -> float:
    """Phi(high) - Phi(low) by the complementary error function, taken on the side where the tails are small."""
    if low > 0:
        return normal_mass(-high, -low)
    return (math.erfc(-high / math.sqrt(2)) - math.erfc(-low / math.sqrt(2))) / 2


def answer_probability(mu: float, sigma: float, answer: int) -> float:
    """C_sigma(mu)[x] on the grid 0..3, tails at the ends."""
    low = -math.inf if answer == 0 else (answer - 0.5 - mu) / sigma
    high = math.inf if answer == 3 else (answer + 0.5 - mu) / sigma
    return normal_mass(low, high)


def report_probability(mu: float, sigma: float, share: float, channel: Channel | None, output: int) -> float:
    """R_c[mu, y] of one report symbol."""
    if channel is None:
        return answer_probability(mu, sigma, output)
    table = channel.probabilities
    protected = channel.participation == "protected"
    total = (1 - share) * table[4, output] if protected else 0.0
    answered = sum(answer_probability(mu, sigma, x) * table[x, output] for x in range(4))
    return float(total + (share if protected else 1.0) * answered)


def output_cells(reports: Reports, channel: Channel | None) -> list[list[int | None]]:
    """Output symbol of every cell, indexed [task][worker]; None where no report was sent."""
    null = None if channel is None else channel.null_output
    cells: list[list[int | None]] = [[null] * len(reports.workers) for _ in reports.tasks]
    for t, w, v in zip(reports.task.tolist(), reports.worker.tolist(), reports.value.tolist(), strict=True):
        cells[t][w] = v
    return cells


def log_tables(parameters: GaussianParameters, channel: Channel | None) -> Table:
    """Log R_c[mu, y] of all classes, truths and outputs, by loops; indexed [class, truth, output]."""
    kinds = list(product(parameters.classes.sigmas, parameters.classes.participations))
    outputs = range(4 if channel is None else len(channel.outputs))
    return np.array(
        [
            [
                [math.log(report_probability(mu, sigma, share, channel, y)) for y in outputs]
                for mu in parameters.points.tolist()
            ]
            for sigma, share in kinds
        ]
    )


def dense_posterior(parameters: GaussianParameters, reports: Reports, channel: Channel | None) -> Table:
    """gamma_j(mu) ~ pi(mu) exp(sum over all cells and classes of q_i(c) log R_c[mu, y_ij]), by loops."""
    logs, scores = log_tables(parameters, channel), []
    for row in output_cells(reports, channel):
        score = parameters.crowds.family[0].copy()
        for worker, output in enumerate(row):
            if output is not None:
                for c, share in enumerate(parameters.q[worker]):
                    score += share * logs[c, :, output]
        scores.append(np.exp(score - score.max()) / np.exp(score - score.max()).sum())
    return np.array(scores)


def dense_worker_scores(
    posterior: Table, parameters: GaussianParameters, reports: Reports, channel: Channel | None
) -> Table:
    """Sum over all cells of gamma_j(mu) log R_c[mu, y_ij], by loops; indexed [worker, class]."""
    logs = log_tables(parameters, channel)
    scores = np.zeros(parameters.q.shape)
    for task, row in enumerate(output_cells(reports, channel)):
        for worker, output in enumerate(row):
            if output is not None:
                scores[worker] += logs[:, :, output] @ posterior[task]
    return scores


@every_channel
def test_a_posterior_step_equals_loops_over_every_cell(name: str) -> None:
    """Given responsibilities, sparse products yield the dense posterior's sums to 1e-10, NULL cells included."""
    reports, channel = tiny_reports(name), CHANNELS[name]
    parameters = some_parameters(PUBLIC, reports, channel)
    posterior = dense_posterior(parameters, reports, channel)

    found = PUBLIC.expect(whole_block(reports), parameters)

    medians = np.clip(grid.quantiles(posterior, parameters.points, (0.5,))[:, 0], 0, 3)
    np.testing.assert_allclose(found.posterior, medians, atol=1e-10)
    np.testing.assert_allclose(found.statistics.by_truth, posterior.sum(axis=0), atol=1e-10)


@every_channel
def test_a_worker_step_equals_loops_over_every_cell(name: str) -> None:
    """The M-step is q_i(c) ~ omega_c exp(expected log-probability of i's cells), omega = damped mean of q, in turn."""
    reports, channel = tiny_reports(name), CHANNELS[name]
    parameters = some_parameters(PUBLIC, reports, channel)
    posterior = dense_posterior(parameters, reports, channel)
    scores = dense_worker_scores(posterior, parameters, reports, channel)

    a, b = parameters.sigma_shares, parameters.participation_shares
    for _ in range(M_STEPS):
        q = np.exp(scores - scores.max(axis=1, keepdims=True)) * np.outer(a, b).ravel()
        q = q / q.sum(axis=1, keepdims=True)
        split = q.reshape(len(q), len(a), len(b))
        a, b = split.sum(axis=(0, 2)) + 0.01, split.sum(axis=(0, 1)) + 0.01
        a, b = a / a.sum(), b / b.sum()
    found = PUBLIC.maximize(PUBLIC.expect(whole_block(reports), parameters).statistics, parameters)

    np.testing.assert_allclose(found.q, q, atol=1e-10)
    np.testing.assert_allclose(found.sigma_shares, a, atol=1e-10)
    np.testing.assert_allclose(found.participation_shares, b, atol=1e-10)


@every_channel
def test_the_trace_is_the_mean_field_bound(name: str) -> None:
    """Traced value = E[log joint] + entropies of gamma and q + log-density of the mixture, written out."""
    reports, channel = tiny_reports(name), CHANNELS[name]
    parameters = some_parameters(PUBLIC, reports, channel)
    gamma, q = dense_posterior(parameters, reports, channel), parameters.q
    mixture = np.outer(parameters.sigma_shares, parameters.participation_shares).ravel()
    joint = (dense_worker_scores(gamma, parameters, reports, channel) * q).sum()
    joint += (gamma @ parameters.crowds.family[0]).sum() + (q @ np.log(mixture)).sum()
    entropy = -(gamma * np.log(np.maximum(gamma, 1e-300))).sum() - (q * np.log(q)).sum()
    shares = np.concatenate((parameters.sigma_shares, parameters.participation_shares))

    statistics = PUBLIC.expect(whole_block(reports), parameters).statistics
    traced = statistics.bound + PUBLIC.log_prior(parameters)

    assert pytest.approx(joint + entropy + 0.01 * np.log(shares).sum(), rel=1e-10) == traced


@every_channel
def test_known_workers_give_the_exact_posterior(name: str) -> None:
    """With sigmas and participations known, the posterior is prior times the product over cells, normalised."""
    reports, channel = tiny_reports(name), CHANNELS[name]
    sigma, share = np.array([0.5, 2.0, 0.5, 1.0, 2.0]), np.array([0.3, 0.3, 0.6, 0.6, 0.6])
    points = grid.truth_points(SMALL, (-3.0, 5.0))
    expected = []
    for row in output_cells(reports, channel):
        weight = np.exp(-0.5 * (points - 1.0) ** 2)
        for worker, output in enumerate(row):
            if output is not None:
                cell = (float(sigma[worker]), float(share[worker]), channel, output)
                weight = weight * [report_probability(mu, *cell) for mu in points.tolist()]
        expected.append(weight / weight.sum())

    estimate = PUBLIC.fit_known(reports, sigma=sigma, participation=share, channel=channel)

    quantiles = np.clip(grid.quantiles(np.array(expected), points, (0.05, 0.5, 0.95)), 0, 3)
    np.testing.assert_allclose(np.stack([estimate.low, estimate.truth, estimate.high], 1), quantiles, atol=1e-8)


@every_channel
@pytest.mark.parametrize("prior", ["public", "learned"])
def test_the_bound_never_falls(name: str, prior: str) -> None:
    """The traced bound rises at every step, whatever the channel, gold included."""
    estimator = Gaussian(tolerance=1e-9, max_steps=40)
    estimator = replace(estimator, prior_mean=1.0, prior_deviation=2.0) if prior == "public" else estimator

    trace = np.array(estimator.fit(tiny_reports(name), channel=CHANNELS[name], gold={1: 2.3}).log_likelihoods)

    assert len(trace) > 5
    assert np.diff(trace).min() >= -1e-9 * np.abs(trace).max()


def sun_crowd(seed: int, sparsity: float = 0.5, workers: int = 120, tasks: int = 150) -> Crowd:
    """Make a crowd by the recipe of Sun et al. on 0..9, truths N(4, 2), so that the ends of the scale are rare."""
    return numeric_crowd(
        workers=workers,
        tasks=tasks,
        sparsity=sparsity,
        truth=lambda rng, count: rng.normal(4.0, 2.0, count),
        sigmas=(0.7, 3.0),
        source=seeded(seed),
    )


def sent(crowd: Crowd, mechanism: Mechanism | None, seed: int) -> tuple[Reports, Channel | None]:
    """Return what the curator gets, and the channel."""
    if mechanism is None:
        return crowd.answers, None
    return perturb(crowd.answers, mechanism, seeded(seed)), mechanism.channel()


MECHANISMS: dict[str, Mechanism | None] = {
    "clean": None,
    "k-RR": RandomizedResponse(alphabet=WIDE, epsilon=3.0),
    "laplace": Laplace(alphabet=WIDE, epsilon=8.0, participation="public"),
}


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("prior", ["public", "learned"])
def test_intervals_cover_the_truth(name: str, prior: str) -> None:
    """90 % intervals cover 85 to 95 % of 600 truths (4 crowds, seeds 0-3; false alarms at honest 90 %: below 1e-4)."""
    estimator = Gaussian(prior_mean=4.0, prior_deviation=2.0) if prior == "public" else Gaussian()
    inside = []
    for seed in range(4):
        crowd = sun_crowd(seed)
        reports, channel = sent(crowd, MECHANISMS[name], seed)
        found = estimator.fit(reports, channel=channel)
        assert found.low is not None
        assert found.high is not None
        # A truth at an end of the scale is covered whenever the interval reaches that end: it says nothing.
        within = (crowd.truth > 0) & (crowd.truth < 9)
        inside.append(((found.low <= crowd.truth) & (crowd.truth <= found.high))[within])

    assert 0.85 <= np.concatenate(inside).mean() <= 0.95


@pytest.mark.parametrize("name", MECHANISMS)
def test_sigmas_are_recovered(name: str) -> None:
    """Median sigmas of 60 good and 60 bad workers lie within a quarter of 0.7 and 3.0 (seed 0)."""
    crowd = sun_crowd(0)
    reports, channel = sent(crowd, MECHANISMS[name], 0)

    table = Gaussian().fit(reports, channel=channel).workers

    assert table.sigma is not None
    for sigma in (0.7, 3.0):
        assert np.median(table.sigma[crowd.quality == sigma]) == pytest.approx(sigma, rel=0.25)
    assert table.quality[crowd.quality == 0.7].mean() > 2 * table.quality[crowd.quality == 3.0].mean()


def test_channel_aware_beats_the_naive_mean_and_the_constant() -> None:
    """At epsilon 3 with NULL protected (seed 1) the error is a third of the constant's, near that of known workers."""
    crowd = sun_crowd(1)
    reports, channel = sent(crowd, MECHANISMS["k-RR"], 1)
    known = Gaussian(prior_mean=4.0, prior_deviation=2.0)

    errors = [
        np.abs(found.truth - crowd.truth).mean()
        for found in (
            Gaussian().fit(reports, channel=channel),
            known.fit_known(reports, sigma=crowd.quality, participation=0.5, channel=channel),
            Gaussian().fit(reports),
        )
    ]

    assert errors[0] < 1.25 * errors[1]
    assert errors[0] < np.abs(4 - crowd.truth).mean() / 3 < errors[2]


@pytest.mark.parametrize("participation", ["public", "protected"])
@pytest.mark.parametrize(
    "estimator", [Gaussian(), Gaussian(prior_mean=4.0, prior_deviation=2.0)], ids=["own", "public"]
)
def test_the_identity_channel_equals_none(participation: str, estimator: Gaussian) -> None:
    """On a scale, the fit through the identity equals the plain fit to 1e-9, intervals and sigmas included."""
    answers = sun_crowd(2, workers=20, tasks=30).answers
    identity = Channel.identity(WIDE, "public" if participation == "public" else "protected")

    plain, through = estimator.fit(answers), estimator.fit(answers, channel=identity)

    for name in ("truth", "low", "high"):
        np.testing.assert_allclose(getattr(through, name), getattr(plain, name), atol=1e-9)
    np.testing.assert_allclose(through.workers.sigma, plain.workers.sigma, atol=1e-9)


def test_little_information_does_no_more_harm_than_the_constant() -> None:
    """At epsilon 0.5, a tenth answered (seeds 0-2): a public prior costs at most 0.01 beside its own median."""
    for seed in range(3):
        crowd = sun_crowd(seed, sparsity=0.9)
        reports, channel = sent(crowd, RandomizedResponse(alphabet=WIDE, epsilon=0.5), seed)
        found = Gaussian(prior_mean=4.0, prior_deviation=2.0).fit(reports, channel=channel)

        assert np.abs(found.truth - crowd.truth).mean() <= np.abs(4.0 - crowd.truth).mean() + 0.01


def test_silent_tasks_have_the_public_prior() -> None:
    """Where nobody reported, a public prior gives its median and quantiles, a learned one gives nan."""
    reports = Reports.from_arrays([1, 1], ["a", "b"], [5, 6], alphabet=WIDE, tasks=[1, 2], workers=["a", "b"])

    public, learned = Gaussian(prior_mean=4.0, prior_deviation=1.0).fit(reports), Gaussian().fit(reports)

    assert public.low is not None
    assert public.high is not None
    assert [4.0, 4 - 1.645, 4 + 1.645] == pytest.approx([public.truth[1], public.low[1], public.high[1]], abs=0.02)
    assert learned.low is not None
    assert [True, True] == np.isnan([learned.truth[1], learned.low[1]]).tolist()


def test_a_prior_by_label_is_read() -> None:
    """A prior by label decides where a report is weak, and is refused beside a normal one."""
    reports = Reports.from_arrays([1], ["a"], [0], alphabet=SMALL, tasks=[1, 2], workers=["a"])
    prior = {"0": 0.1, "1": 0.1, "2": 0.1, "3": 0.7}

    truth = Gaussian(sigmas=(1.0,)).fit(reports, prior=prior).truth

    assert truth[0] < 2 < 2.9 < truth[1] <= 3
    with pytest.raises(SettingsError, match="not both"):
        Gaussian(prior_mean=0.0, prior_deviation=1.0).fit(reports, prior=prior)


def test_columns_hold_intervals() -> None:
    """Task columns have low and high, worker columns sigma with its interval, in order."""
    estimate = Gaussian().fit(sun_crowd(0, workers=10, tasks=10).answers)
    columns, workers = estimate.tasks_columns(), estimate.workers_columns()

    assert ["task", "truth", "low", "high", "reports"] == list(columns)
    assert ["worker", "weight", "sigma", "sigma_low", "sigma_high", "reports"] == list(workers)
    assert (columns["low"] <= columns["truth"]).all()
    assert (columns["truth"] <= columns["high"]).all()
    assert (workers["sigma_low"] < workers["sigma_high"]).all()


def test_settings_are_checked() -> None:
    """Settings out of range, exact posteriors without a prior, and numbers on no scale are refused."""
    for wrong in (
        {"prior_mean": 1.0},
        {"prior_mean": 1.0, "prior_deviation": 0.0},
        {"prior_mean": math.nan, "prior_deviation": 1.0},
    ):
        with pytest.raises(SettingsError, match="prior"):
            Gaussian(**wrong)
    with pytest.raises(SettingsError, match="smoothing"):
        Gaussian(smoothing=0.0)
    with pytest.raises(SettingsError, match="sigmas"):
        Gaussian(sigmas=(0.0, 1.0))
    with pytest.raises(SettingsError, match="participations"):
        Gaussian(participations=(1.5,))
    with pytest.raises(SettingsError, match="public prior"):
        Gaussian().fit_known(tiny_reports("none"), sigma=1.0)
    with pytest.raises(ReportsError, match="scale"):
        Gaussian().fit(Reports.from_arrays([1], [1], [0.5], numeric=True))
