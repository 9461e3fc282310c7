"""Accelerated EM against plain EM: the same optimum in fewer steps, and an objective that never falls."""

from typing import Any

import numpy as np
import pytest

from crowdveil import Categories, DawidSkene, OneCoin, RandomizedResponse
from crowdveil.answers.reports import Reports
from crowdveil.em import acceleration
from crowdveil.em.acceleration import Acceleration
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, perturb_cells

pytestmark = pytest.mark.slow

LABELS = Categories(("a", "b", "c"))
CHANNEL = RandomizedResponse(alphabet=LABELS, epsilon=2.0, participation="public").channel()
CASES = [
    pytest.param(DawidSkene(), None, id="dawid-skene"),
    pytest.param(OneCoin(), None, id="one-coin"),
    pytest.param(DawidSkene(), CHANNEL, id="dawid-skene, channel"),
]


@pytest.fixture(scope="module")
def answers() -> Reports:
    """Ten weak answers on each of 1,500 tasks."""
    crowd = categorical_crowd(
        workers=150,
        tasks=1500,
        labels=LABELS,
        sparsity=1 - 10 / 150,
        ability=lambda generator, count: generator.uniform(0.3, 0.65, count),
        source=seeded(4),
    )
    return crowd.answers


def fits(model: Any, channel: Any, answers: Reports, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Return the accelerated fit and the plain one, the latter to a smaller tolerance."""
    reports = answers if channel is None else perturb_cells(answers, channel, seeded(5))
    fast = model.fit(reports, channel=channel)
    monkeypatch.setattr(acceleration, "MIN_REPORTS", len(reports) + 1)
    return fast, type(model)(tolerance=1e-8, max_steps=5000).fit(reports, channel=channel)


@pytest.mark.parametrize(("model", "channel"), CASES)
def test_acceleration_reaches_the_optimum_of_plain_steps(
    model: Any, channel: Any, answers: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The truths are those of plain EM, whose likelihood is reached, in less than half of the steps."""
    fast, plain = fits(model, channel, answers, monkeypatch)

    assert (fast.truth != plain.truth).mean() < 1e-4
    assert fast.log_likelihoods[-1] == pytest.approx(plain.log_likelihoods[-1], abs=1e-3)
    assert 2 * fast.steps < plain.steps
    assert fast.converged


@pytest.mark.parametrize(("model", "channel"), CASES)
def test_the_objective_never_falls(model: Any, channel: Any, answers: Reports, monkeypatch: pytest.MonkeyPatch) -> None:
    """Extrapolations as long as they come are refused where they lose, so that the trace rises."""
    monkeypatch.setattr(acceleration, "MAX_LENGTH", 1e6)
    fast, _ = fits(model, channel, answers, monkeypatch)

    assert np.diff(fast.log_likelihoods).min() >= -1e-8


def test_a_refused_step_goes_back_to_the_last_plain_one() -> None:
    """Three points on a geometric series are extrapolated to its limit; after a loss, the third point follows."""

    class Line:
        max_steps = 100

        def coordinates(self, point: float) -> tuple[np.ndarray[Any, Any], ...]:
            return (np.array([point]),)

        def from_coordinates(self, point: float, coordinates: tuple[np.ndarray[Any, Any], ...]) -> float:
            return float(coordinates[0][0])

    model: Any = Line()
    state = Acceleration[float](model, acceleration.MIN_REPORTS)
    first = state.next_or_extrapolated_parameters(acceleration.PLAIN_STEPS, 0.0, 0.5, 0.1)
    limit = state.next_or_extrapolated_parameters(acceleration.PLAIN_STEPS + 1, 0.5, 0.75, 0.05)

    assert (0.5, 1.0) == (first, limit)
    assert 0.1 == state.remaining
    assert not state.last_extrapolation_lost([-2.0, -1.0])
    assert state.last_extrapolation_lost([-1.0, -2.0])
    assert 0.75 == state.undo_refused_step([-1.0, -2.0])
