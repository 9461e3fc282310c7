"""The Gaussian estimator: fits, intervals, channels, and the grid on which it computes."""

from dataclasses import replace

import numpy as np
import pytest

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import NULL, Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.em.estimate import Estimate
from crowdveil.errors import SettingsError
from crowdveil.estimators.gaussian import discretization as grid
from crowdveil.estimators.gaussian.estimator import Gaussian, fit_known
from crowdveil.estimators.unlinked.pooled_gaussian import PooledGaussian
from crowdveil.mechanisms.base import Mechanism
from crowdveil.mechanisms.laplace import Laplace
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.randomness import seeded
from crowdveil.simulate import Crowd, numeric_crowd, perturb_reports
from tests.estimators.dense_numbers import output_cells, report_probability

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


@every_channel
def test_known_workers_give_the_exact_posterior(name: str) -> None:
    """With sigmas and participations known, the posterior is prior times the product over cells, normalised."""
    reports, channel = tiny_reports(name), CHANNELS[name]
    sigma, share = np.array([0.5, 2.0, 0.5, 1.0, 2.0]), np.array([0.3, 0.3, 0.6, 0.6, 0.6])
    points = grid.truth_grid_with_margin(SMALL, (-3.0, 5.0))
    expected = []
    for row in output_cells(reports, channel):
        weight = np.exp(-0.5 * (points - 1.0) ** 2)
        for worker, output in enumerate(row):
            if output is not None:
                cell = (float(sigma[worker]), float(share[worker]), channel, output)
                weight = weight * [report_probability(mu, *cell) for mu in points.tolist()]
        expected.append(weight / weight.sum())

    estimate = fit_known(PUBLIC, reports, sigma=sigma, participation=share, channel=channel)

    quantiles = np.clip(grid.quantiles(np.array(expected), points, (0.05, 0.5, 0.95)), 0, 3)
    np.testing.assert_allclose(np.stack([estimate.low, estimate.truth, estimate.high], 1), quantiles, atol=1e-8)


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
    return perturb_reports(crowd.answers, mechanism, seeded(seed)), mechanism.channel()


MECHANISMS: dict[str, Mechanism | None] = {
    "clean": None,
    "k-RR": RandomizedResponse(alphabet=WIDE, epsilon=3.0),
    "laplace": Laplace(alphabet=WIDE, epsilon=8.0, participation="public"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("prior", ["public", "learned"])
def test_intervals_cover_the_truth(name: str, prior: str) -> None:
    """90 % intervals cover 85 to 95 % of 450 truths (3 crowds, seeds 0-2; false alarms at true 90 %: below 1e-3)."""
    estimator = Gaussian(tolerance=0.01)
    estimator = replace(estimator, prior_mean=4.0, prior_deviation=2.0) if prior == "public" else estimator
    inside = []
    for seed in range(3):
        crowd = sun_crowd(seed, workers=80)
        reports, channel = sent(crowd, MECHANISMS[name], seed)
        found = estimator.fit(reports, channel=channel)
        assert found.low is not None
        assert found.high is not None
        # A truth at an end of the scale is covered whenever the interval reaches that end: it says nothing.
        within = (crowd.truth > 0) & (crowd.truth < 9)
        inside.append(((found.low <= crowd.truth) & (crowd.truth <= found.high))[within])

    assert 0.85 <= np.concatenate(inside).mean() <= 0.95


@pytest.mark.slow
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


@pytest.mark.slow
def test_channel_aware_beats_the_naive_mean_and_the_constant() -> None:
    """At epsilon 3 with NULL protected (seed 1) the error is a third of the constant's, near that of known workers."""
    crowd = sun_crowd(1)
    reports, channel = sent(crowd, MECHANISMS["k-RR"], 1)
    known = Gaussian(prior_mean=4.0, prior_deviation=2.0)

    errors = [
        np.abs(found.truth - crowd.truth).mean()
        for found in (
            Gaussian().fit(reports, channel=channel),
            fit_known(known, reports, sigma=crowd.quality, participation=0.5, channel=channel),
            Gaussian().fit(reports),
        )
    ]

    assert errors[0] < 1.25 * errors[1]
    assert errors[0] < np.abs(4 - crowd.truth).mean() / 3 < errors[2]


@pytest.mark.slow
def test_a_learned_prior_errs_no_more_than_the_corrected_mean_of_all_reports() -> None:
    """With five reports per task (epsilon 1, Laplace, seeds 0-5) it costs at most 5 % more than that one number."""
    scale, errors = Scale(0, 10), []
    channel = Laplace(alphabet=scale, epsilon=1.0, participation="public").channel()
    sent_mean = channel.probabilities[: scale.size] @ scale.values
    for seed in range(6):
        crowd = numeric_crowd(
            sparsity=1 - 5 / 72,
            scale=scale,
            workers=72,
            tasks=72,
            sigmas=(2.0,),
            truth=lambda generator, size: generator.normal(6.5, 1.5, size),
            source=seeded(seed),
        )
        reports = perturb_reports(
            crowd.answers, Laplace(alphabet=scale, epsilon=1.0, participation="public"), seeded(seed)
        )
        one_number = np.interp(scale.values[reports.value].mean(), sent_mean, scale.values)
        found = Gaussian().fit(reports, channel=channel)
        listed = np.isfinite(found.posterior)
        truth = crowd.truth[listed]
        errors.append([np.abs(found.posterior[listed] - truth).mean(), np.abs(one_number - truth).mean()])

    learned, corrected = np.mean(errors, axis=0)
    assert learned <= 1.05 * corrected


def test_silent_tasks_have_the_public_prior() -> None:
    """Without reports, a public prior gives its median and quantiles, a learned one gives nan."""
    reports = Reports.from_arrays([1, 1], ["a", "b"], [5, 6], alphabet=WIDE, tasks=[1, 2], workers=["a", "b"])

    public, learned = Gaussian(prior_mean=4.0, prior_deviation=1.0).fit(reports), Gaussian().fit(reports)

    assert public.low is not None
    assert public.high is not None
    assert [4.0, 4 - 1.645, 4 + 1.645] == pytest.approx([public.truth[1], public.low[1], public.high[1]], abs=0.02)
    assert learned.low is not None
    assert [True, True] == np.isnan([learned.truth[1], learned.low[1]]).tolist()


def test_a_prior_by_label_is_read() -> None:
    """A prior by label decides where a report is weak, and is refused together with a normal one."""
    reports = Reports.from_arrays([1], ["a"], [0], alphabet=SMALL, tasks=[1, 2], workers=["a"])
    prior = {"0": 0.1, "1": 0.1, "2": 0.1, "3": 0.7}

    truth = Gaussian(sigmas=(1.0,)).fit(reports, prior=prior).truth

    assert truth[0] < 2 < 2.9 < truth[1] <= 3
    with pytest.raises(SettingsError, match="not both"):
        Gaussian(prior_mean=0.0, prior_deviation=1.0).fit(reports, prior=prior)


def test_exact_posteriors_need_a_public_prior() -> None:
    """Known workers without a known prior determine no posterior, and a prior needs both of its numbers."""
    with pytest.raises(SettingsError, match="public prior"):
        fit_known(Gaussian(), tiny_reports("none"), sigma=1.0)
    with pytest.raises(SettingsError, match="needs both mean and deviation"):
        Gaussian(prior_mean=1.0)


METHODS = (Gaussian(points_per_step=1), PooledGaussian())
either_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


def laplace_estimate(
    scale: Scale, workers: int, seed: int, method: Gaussian | PooledGaussian
) -> tuple[Crowd, Estimate]:
    """Return the crowd of Sun et al. on 30 tasks, 90 % NULL, and the estimate from Laplace reports at epsilon 3."""
    crowd = numeric_crowd(workers=workers, tasks=30, sparsity=0.9, scale=scale, source=seeded(seed))
    mechanism = Laplace(alphabet=scale, epsilon=3.0)
    return crowd, method.fit(
        perturb_reports(crowd.answers, mechanism, seeded(1000 + seed)), channel=mechanism.channel()
    )


@pytest.mark.slow
def test_unknown_participation_is_averaged_over() -> None:
    """If reports do not tell NULL from answers, intervals contain the truths, and the error is near the constant's."""
    crowd, estimate = laplace_estimate(WIDE, 800, 11, METHODS[0])
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.intervals_narrower_than_scale
    assert estimate.baseline.estimate_error is not None

    assert ((estimate.low <= crowd.truth) & (crowd.truth <= estimate.high)).mean() >= 0.8
    error = np.abs(estimate.truth - crowd.truth).mean()
    assert error < 1.2 * np.abs(crowd.truth - np.median(crowd.truth)).mean()
    assert error < 2 * estimate.baseline.estimate_error


@pytest.mark.slow
@either_method
def test_truths_are_refused_if_participation_stays_unknown(method: Gaussian | PooledGaussian) -> None:
    """If participation is not known within a factor of 2, every task has one number, with the scale as its interval."""
    _, estimate = laplace_estimate(SMALL, 20, 1, method)
    assert estimate.low is not None
    assert estimate.high is not None

    assert not estimate.intervals_narrower_than_scale
    assert 0 == estimate.baseline.moved
    assert (0, 3) == (estimate.low.max(), estimate.high.min())


def test_learned_priors_prefer_the_middle_and_allow_means_beyond_the_scale() -> None:
    """The weights of means are symmetric and fall from the middle; each side beyond 0..9 has 3 to 10 % in total."""
    alphabet = Scale(0, 9)
    points = grid.truth_grid_with_margin(alphabet, None)
    family = grid.candidate_normal_priors(points, alphabet)

    weights = grid.weights_of_candidate_priors(family, points, alphabet)

    means = family @ points
    below, above = means < 0, means > 9
    assert weights.sum() == pytest.approx(1)
    assert 0.03 < weights[below].sum() < 0.1
    assert weights[above].sum() == pytest.approx(weights[below].sum(), rel=0.2)
    inside = np.flatnonzero(~below & ~above)
    nearest, farthest = inside[np.argsort(np.abs(means[inside] - 4.5))[[0, -1]]]
    assert weights[nearest] > 4 * weights[farthest]


def test_a_smooth_density_is_interpolated_between_coarse_points() -> None:
    """Quantiles of normals with deviations of 1/3 to 1.4 cells are exact to 1 % of a cell."""
    points = np.arange(12.0)
    centres, widths = (axis.ravel() for axis in np.meshgrid(np.linspace(4, 7, 7), [1 / 3, 1.0, 1.4]))
    logs = -0.5 * ((points - centres[:, None]) / widths[:, None]) ** 2

    found = grid.quantiles(*grid.probabilities_refined_by_splines(logs, points), (0.05, 0.5, 0.95))

    expected = centres[:, None] + widths[:, None] * [-1.6449, 0.0, 1.6449]
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_far_smaller_probabilities_do_not_ripple_the_density() -> None:
    """Probabilities of e^-1000 and less, as many reports give, leave the density around the mode unchanged."""
    points = np.arange(10.0)
    logs = -0.5 * ((points - 4.3) / 0.03) ** 2

    found = grid.quantiles(*grid.probabilities_refined_by_splines(logs[None], points), (0.05, 0.95))

    assert np.abs(found - 4.3).max() < 0.2
