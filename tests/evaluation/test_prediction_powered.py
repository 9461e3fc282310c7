"""Prediction-powered intervals: the formulas as loops, their coverage in simulations, and useless predictions."""

import math

import numpy as np
import pytest
from scipy.stats import t

from crowdveil.evaluation.prediction_powered import (
    SQUARE,
    SampledValues,
    difference_interval,
    regression_coefficient,
    rogan_gladen,
    sample_interval,
    share_interval,
)

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
        only = sample_interval(truths[at], 400)
        held += low <= share <= high
        widths, alone = widths + high - low, alone + only.high - only.low

    assert 0.87 <= held / 2000 <= 0.95
    assert widths <= 0.75 * alone


def test_useless_predictions_cost_little() -> None:
    """With predictions that are noise, or wrong, the interval is at most a tenth wider than the sample alone."""
    source = np.random.default_rng(6)
    for predicted in (source.random(30), 1 - VALUES):
        found = share_interval(sampled(predicted=predicted))
        alone = sample_interval(VALUES, 200)

        assert found.high - found.low <= 1.1 * (alone.high - alone.low)


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

    found = difference_interval(SampledValues(values, predicted, 0.1, 200), weight)

    assert found.estimate == pytest.approx(weight * 0.1 + residuals.mean())
    assert found.high - found.estimate == pytest.approx(float(t.ppf(0.95, 29)) * error)


def test_rogan_and_gladen_undo_known_errors() -> None:
    """Shares of decisions give the prevalences from which they follow; gold without one of the truths gives none."""
    truths = np.repeat([0, 1], [10, 10])
    decided = np.concatenate([np.repeat([0, 1], [8, 2]), np.repeat([0, 1], [1, 9])])
    shares = 0.3 * np.array([0.8, 0.2]) + 0.7 * np.array([0.1, 0.9])

    assert np.allclose(rogan_gladen(truths, decided, shares), [0.3, 0.7])
    assert np.isnan(rogan_gladen(np.zeros(20, dtype=np.int64), decided, shares)).all()
