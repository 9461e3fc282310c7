"""Draws from the posterior of a ranking: against numerical integration, and the mirror image."""

from dataclasses import replace

import numpy as np
import pytest

from crowdveil.answers.comparisons.values import Comparisons, comparisons_of_names
from crowdveil.estimators.ranking import draws
from crowdveil.estimators.ranking.fit import Hyperparameters, Known, Problem, fit, item_gradient, point_at
from crowdveil.estimators.ranking.methods import HierarchicalDavidson
from tests.estimators.ranking.test_fit import RESPONSE, drawn

PRIORS = Hyperparameters(score=1.0, slope_mean=1.0, slope=0.5, side=0.2, tie_mean=-0.5, tie=0.3)
ROWS = comparisons_of_names([0, 0, 0, 1, 0, 1], [1, 1, 1, 0, 1, 0], ["u"] * 6, [0, 0, 1, 2, 2, 2])


def integrated(table: np.ndarray | None) -> tuple[float, float, float]:
    """Return mean and variance of the difference of the scores, and the mean slope, by a grid over all parameters.

    The sum of the two scores is independent of the answers, so the grid has the difference alone.
    """
    difference, slope, side, tie = np.meshgrid(
        np.linspace(-5, 5, 41), np.linspace(-2, 4, 37), np.linspace(-1.6, 1.6, 17), np.linspace(-2.8, 1.8, 17),
        indexing="ij",
    )  # fmt: skip
    total = np.zeros(difference.shape)
    for left, report in zip(ROWS.left, ROWS.answer, strict=True):
        eta = (slope * np.where(left == 0, difference, -difference) + side) / 2
        odds = [np.exp(eta), np.exp(tie), np.exp(-eta)]
        answers = [one / sum(odds) for one in odds]
        total += np.log(
            answers[report] if table is None else sum(p * row[report] for p, row in zip(answers, table, strict=True))
        )
    total -= difference**2 / 4 + (slope - 1) ** 2 + side**2 / 0.4 + (tie + 0.5) ** 2 / 0.6
    weight = np.exp(total - total.max())
    weight /= weight.sum()
    mean = float((weight * difference).sum())
    return mean, float((weight * (difference - mean) ** 2).sum()), float((weight * slope).sum())


@pytest.mark.slow
@pytest.mark.parametrize("table", [None, RESPONSE], ids=["answers", "reports"])
def test_draws_have_the_integrated_moments(monkeypatch: pytest.MonkeyPatch, table: np.ndarray | None) -> None:
    """Mean and variance of a chain of 8,000 are those of the integral.

    Standard errors of a mean of 8,000 draws with a correlation time below 8 are at most .03 deviations; the bounds
    are five of them.
    """
    monkeypatch.setattr(draws, "KEPT", 8_000)
    monkeypatch.setattr(draws, "_scale", lambda *_: 1.0)
    monkeypatch.setattr(draws, "_of_majority", lambda *one: one)
    fitted = fit(Problem(comparisons=ROWS, table=table, learned=False, start=PRIORS))
    found = draws.posterior_draws(fitted, 3)
    difference = found.scores[:, 0] - found.scores[:, 1]
    mean, variance, slope = integrated(table)

    assert found.accepted > 0.8
    assert difference.mean() == pytest.approx(mean, abs=0.15 * np.sqrt(variance))
    assert difference.var() == pytest.approx(variance, rel=0.2)
    assert found.workers[:, 0, 0].mean() == pytest.approx(slope, abs=0.11)


def test_force_is_the_gradient() -> None:
    """The gradient of the scores is that of the objective, by differences."""
    fitted = fit(Problem(comparisons=drawn(1), known=Known(better=np.array([0, 1], np.int32),
                                                           worse=np.array([3, 2], np.int32))))  # fmt: skip
    scores, step = fitted.point.scores + 0.3, 1e-5
    point = point_at(fitted.problem, scores, fitted.point.workers, fitted.priors)
    moved = [
        [
            point_at(fitted.problem, scores + sign * step * np.eye(len(scores))[item], point.workers, fitted.priors)
            for sign in (1, -1)
        ]
        for item in range(len(scores))
    ]
    differences = [(up.objective - down.objective) / (2 * step) for up, down in moved]

    np.testing.assert_allclose(item_gradient(fitted.problem, point, fitted.priors), differences, atol=1e-5)


def test_draws_repeat_and_have_one_direction() -> None:
    """A chain repeats, and every draw has a positive mean slope: the majority decides the direction."""
    fitted = fit(Problem(comparisons=drawn(2)))
    one, other = (draws.posterior_draws(fitted, 4) for _ in range(2))

    assert (one.scores == other.scores).all()
    assert (one.workers[:, :, 0].mean(axis=1) >= 0).all()
    np.testing.assert_allclose((one.workers[:, :, 0] ** 2).mean(axis=1), 1)


def test_order_of_rows_does_not_matter() -> None:
    """Draws of shuffled rows are the same to the last bit."""
    rows = drawn(5)
    shuffled = rows.only_rows(np.random.default_rng(6).permutation(len(rows)))
    one, other = (HierarchicalDavidson().fit(each).posterior for each in (rows, shuffled))

    assert one.crowd is not None
    assert (one.draws == other.draws).all()


def test_where_draws_are_used() -> None:
    """Up to 10,000 comparisons, with ten answers of a worker; with fewer answers the approximation is normal."""
    rows = drawn(7)
    few = replace(rows, worker=np.arange(len(rows), dtype=np.int32), workers=np.arange(len(rows)))

    def by_draws(one: Comparisons) -> bool:
        return HierarchicalDavidson().fit(one).by_draws

    assert by_draws(rows)
    assert not by_draws(few)
    assert not by_draws(rows.only_rows(np.arange(11_000) % len(rows)))
