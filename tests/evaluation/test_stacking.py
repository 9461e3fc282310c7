"""Stacking of known truths: a regression that recovers weights, keeps to its prior, and counts what it learned."""

import numpy as np
import pytest

from crowdveil.evaluation.stacking import Regression, by_label, fit_regression, worse_notes

WEIGHTS = np.array([1.5, -0.5, 0.7, 0.0, -0.7])


def simulated(tasks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features of three labels, two shared and three class biases, and truths drawn from the model."""
    rng = np.random.default_rng(1)
    features = np.concatenate([rng.normal(size=(tasks, 3, 2)), by_label(np.ones((tasks, 1)), 3)], axis=2)
    shares = Regression(WEIGHTS, 0.0).probabilities(features)
    return features, (shares.cumsum(axis=1) > rng.random((tasks, 1))).argmax(axis=1)


def test_weights_are_recovered_from_many_truths() -> None:
    """With 20,000 truths the weights are those that drew them, and all but the sum of the biases is determined."""
    features, truths = simulated(20_000)

    fit = fit_regression(features, truths, mean=np.zeros(5), deviation=np.full(5, 3.0))

    assert fit.weights == pytest.approx(WEIGHTS, abs=0.06)
    assert fit.effective == pytest.approx(4.0, abs=0.01)


def test_without_truths_the_weights_are_the_prior_means() -> None:
    """No truth leaves the prior as it is, and determines no weight."""
    features, truths = simulated(10)

    fit = fit_regression(features[:0], truths[:0], mean=WEIGHTS, deviation=np.ones(5))

    assert fit.weights.tolist() == WEIGHTS.tolist()
    assert fit.effective == 0.0


def test_gold_that_makes_probabilities_worse_is_named_with_what_to_do() -> None:
    """On 40 held-out tasks a rise of the log-loss beyond its standard error gives a warning, a fall or noise none."""
    truths = np.arange(40) % 2
    good = np.where(np.eye(2)[truths] > 0, 0.8, 0.2)
    bad = np.where(np.eye(2)[truths] > 0, 0.6, 0.4)
    noisy = np.where((np.arange(40) % 4 < 2)[:, None], good, 1 - good)

    (note,) = worse_notes(bad, good, truths)
    assert "log-loss 0.511 on gold tasks that are held out, 0.223 without" in note
    assert "Leave --gold out" in note
    assert (
        () == worse_notes(good, bad, truths) == worse_notes(noisy, 1 - noisy, truths) == worse_notes(bad, bad, truths)
    )
