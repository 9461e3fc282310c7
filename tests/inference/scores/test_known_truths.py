"""Estimates from known truths: draws of gold, prediction-powered estimates, and stacking."""

import math

import numpy as np
import pytest
from scipy.stats import t

from crowdveil.errors import ReportsError
from crowdveil.inference.gold_draw import require_draw_start, seeded_order_of_tasks, tasks_in_draw_order
from crowdveil.inference.stacking import (
    Regression,
    fit_regression,
    label_features,
    log_loss_warning,
    mixture_weights,
)
from crowdveil.quality.prediction_powered import (
    SQUARE,
    SampledValues,
    binary_wilson_interval,
    interval_of_mean_difference,
    regression_coefficient,
    rogan_gladen,
    share_interval,
)

TASKS = [f"t{number}" for number in range(40)]


def test_every_task_is_equally_likely() -> None:
    """Over 4,000 seeds each task is among the first 10 in 25 % of draws, within five standard errors (.7 %)."""
    first = np.concatenate([seeded_order_of_tasks(TASKS, seed)[:10] for seed in range(4000)])
    shares = np.bincount(first, minlength=40) / 4000

    assert np.abs(shares - 0.25).max() < 5 * (0.25 * 0.75 / 4000) ** 0.5


def test_the_order_does_not_depend_on_the_order_of_tasks_or_on_new_ones() -> None:
    """Tasks keep their order in other lists and beside new tasks; those without reports are not drawn."""
    order = [TASKS[place] for place in seeded_order_of_tasks(TASKS, 7)]
    shuffled = [*TASKS[::-1], "new"]
    again = [shuffled[place] for place in seeded_order_of_tasks(shuffled, 7)]

    assert order == [task for task in again if task != "new"]
    reports = np.ones(40, dtype=np.int64)
    reports[TASKS.index(order[0])] = 0
    assert order[1:] == tasks_in_draw_order(np.array(TASKS), reports, 7)


def test_gaps_are_refused() -> None:
    """Gold without a task that was drawn before others is refused by name; tasks without reports do not count."""
    order = [TASKS[place] for place in seeded_order_of_tasks(TASKS, 7)]
    gold = dict.fromkeys(order[:12], "yes")

    require_draw_start(gold | {"unasked": "no"}, order, 7)
    del gold[order[3]]
    with pytest.raises(ReportsError, match=f"1 are missing.*{order[3]}"):
        require_draw_start(gold, order, 7)


GENERATOR = np.random.default_rng(3)
VALUES = (GENERATOR.random(30) < 0.4).astype(float)
PREDICTED = 0.6 * VALUES + 0.4 * GENERATOR.random(30)


def sampled(values: np.ndarray = VALUES, predicted: np.ndarray = PREDICTED, items: int = 200) -> SampledValues:
    """Return a sample whose predictions have the mean .45 over all items."""
    return SampledValues(values, predicted, 0.45, items)


def test_a_share_follows_the_formula_written_as_loops() -> None:
    """The estimate is l mean(f) + mean(y - l f), its interval that of Wilson for n_e answers."""
    n = len(VALUES)
    means = sum(VALUES) / n, sum(PREDICTED) / n
    products = sum((y - means[0]) * (f - means[1]) for y, f in zip(VALUES, PREDICTED, strict=True))
    weight = min(max(products / sum((f - means[1]) ** 2 for f in PREDICTED), 0.0), 1.0)
    residuals = [y - weight * f for y, f in zip(VALUES, PREDICTED, strict=True)]
    share = weight * 0.45 + sum(residuals) / n
    squares = sum((d - sum(residuals) / n) ** 2 for d in residuals)
    plain = share * (1 - share) + SQUARE / n
    effective = n * plain / ((squares + SQUARE) / (n - 2)) / (1 - n / 200)
    z = float(t.ppf(0.95, n - 2))
    middle = (share + z * z / 2 / effective) / (1 + z * z / effective)
    half = z * math.sqrt(share * (1 - share) / effective + z * z / 4 / effective**2) / (1 + z * z / effective)

    found = share_interval(sampled())

    assert np.allclose(found, (share, middle - half, middle + half), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.05, 0.3, 0.5])
def test_the_intervals_hold_and_are_shorter(share: float) -> None:
    """In 2,000 samples of 50 among 400 they hold 87 to 95 %, at most .75 as wide as the sample alone.

    The standard error of a coverage of 90 % is .7 percentage points.
    """
    source = np.random.default_rng(5)
    truths = (np.arange(400) < 400 * share).astype(float)
    predicted = np.clip(truths * 0.9 + 0.05 + source.normal(0, 0.15, 400), 0, 1)
    held, widths, alone = 0, 0.0, 0.0
    for _ in range(2000):
        at = source.permutation(400)[:50]
        low, high = share_interval(SampledValues(truths[at], predicted[at], float(predicted.mean()), 400))[1:]
        only = binary_wilson_interval(truths[at], 400)
        held += low <= share <= high
        widths, alone = widths + high - low, alone + only.high - only.low

    assert 0.87 <= held / 2000 <= 0.95
    assert widths <= 0.75 * alone


def test_an_end_is_where_the_sample_contradicts_nothing() -> None:
    """If no known value is 1, the share may be 0; if all are 1, it may be 1; all items known leave no doubt."""
    assert 0.0 == share_interval(sampled(values=np.zeros(30))).low
    assert 1.0 == share_interval(sampled(values=np.ones(30)), 1.0, 0.1).high
    assert len({*share_interval(sampled(items=30))}) == 1


def test_a_difference_follows_the_formula() -> None:
    """Its estimate is l mean(f) + mean(d), its half width the t quantile times the standard error."""
    values, predicted = VALUES - VALUES[::-1], PREDICTED - PREDICTED[::-1]
    weight = regression_coefficient(values, predicted)
    residuals = values - weight * predicted
    error = math.sqrt((((residuals - residuals.mean()) ** 2).sum() + SQUARE) / 29 / 30 * (1 - 30 / 200))

    found = interval_of_mean_difference(SampledValues(values, predicted, 0.1, 200), weight)

    assert found.estimate == pytest.approx(weight * 0.1 + residuals.mean())
    assert found.high - found.estimate == pytest.approx(float(t.ppf(0.95, 29)) * error)


def test_rogan_and_gladen_undo_known_errors() -> None:
    """Shares of decisions give the prevalences from which they follow; gold without one of the truths gives none."""
    truths = np.repeat([0, 1], [10, 10])
    decided = np.concatenate([np.repeat([0, 1], [8, 2]), np.repeat([0, 1], [1, 9])])
    shares = 0.3 * np.array([0.8, 0.2]) + 0.7 * np.array([0.1, 0.9])

    assert np.allclose(rogan_gladen(truths, decided, shares), [0.3, 0.7])
    assert np.isnan(rogan_gladen(np.zeros(20, dtype=np.int64), decided, shares)).all()


WEIGHTS = np.array([1.5, -0.5, 0.7, 0.0, -0.7])


def simulated(tasks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features of three labels, two shared and three class biases, and truths drawn from the model."""
    rng = np.random.default_rng(1)
    features = np.concatenate([rng.normal(size=(tasks, 3, 2)), label_features(np.ones((tasks, 1)), 3)], axis=2)
    shares = Regression(WEIGHTS, 0.0).probabilities(features)
    return features, (shares.cumsum(axis=1) > rng.random((tasks, 1))).argmax(axis=1)


def test_weights_are_recovered_from_many_truths() -> None:
    """With 20,000 truths the weights are those that drew them, and all but the sum of the biases is determined."""
    features, truths = simulated(20_000)

    fit = fit_regression(features, truths, mean=np.zeros(5), deviation=np.full(5, 3.0))

    assert fit.weights == pytest.approx(WEIGHTS, abs=0.06)
    assert fit.effective == pytest.approx(4.0, abs=0.01)


def test_weights_of_a_mixture_follow_the_formula() -> None:
    """Written as loops: the prior times exp(.1 (2 right - log-loss)) over all truths; one truth leaves the prior."""
    posteriors = np.random.default_rng(2).dirichlet(np.ones(3), size=(2, 30))
    truths, prior = np.arange(30) % 3, np.array([0.2, 0.8])
    for known in (30, 1):
        weights = []
        for posterior, share in zip(posteriors, prior, strict=True):
            evidence = 0.0
            for row, truth in zip(posterior[:known], truths[:known], strict=True):
                evidence += 2 * (max(row) == row[truth]) + math.log(max(row[truth], 0.001))
            weights.append(share * math.exp(0.1 * evidence))
        found = mixture_weights(posteriors[:, :known], truths[:known], prior)
        assert found == pytest.approx(np.array(weights) / sum(weights))

    assert mixture_weights(posteriors[:, :0], truths[:0], prior) == pytest.approx(prior)


def test_gold_that_makes_probabilities_worse_is_named_with_what_to_do() -> None:
    """On 40 held-out tasks a rise of the log-loss beyond its standard error gives a warning, a fall or noise none."""
    truths = np.arange(40) % 2
    good = np.where(np.eye(2)[truths] > 0, 0.8, 0.2)
    bad = np.where(np.eye(2)[truths] > 0, 0.6, 0.4)
    noisy = np.where((np.arange(40) % 4 < 2)[:, None], good, 1 - good)

    (note,) = log_loss_warning(bad, good, truths)
    assert "log-loss 0.511 on gold tasks that are held out, 0.223 without" in note
    assert "Leave gold out" in note
    assert (
        ()
        == log_loss_warning(good, bad, truths)
        == log_loss_warning(noisy, 1 - noisy, truths)
        == log_loss_warning(bad, bad, truths)
    )
