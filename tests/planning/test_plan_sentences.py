"""Errors as text: two digits, and bounds for errors that a simulation does not resolve."""

from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR

import pytest

from crowdveil.mechanisms import RandomizedResponse
from crowdveil.planning import Prediction, predict
from crowdveil.planning.plan_sentences import expected_error_text, real_interval_text, two_digits
from crowdveil.planning.prediction import predict_from_bayes_errors
from tests.planning.campaigns import of_labels, of_numbers

FOUND = Prediction(
    error=0.12345, consensus_error=0.12345, low=0.0987, high=0.1501, real_low=0.0123, real_high=0.4567, less_than=None,
    information=0.1,
    known_classes=0.1, unknown_classes=0.2, simulated=1, simulated_tasks=60,
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "nearest", "down", "up"),
    [
        (0.0, "0", "0", "0"),
        (0.1, "0.10", "0.10", "0.10"),
        (0.123, "0.12", "0.12", "0.13"),
        (0.0996, "0.10", "0.099", "0.10"),
        (0.00021, "0.00021", "0.00021", "0.00021"),
        (1.0, "1.0", "1.0", "1.0"),
        (39.4, "39", "39", "40"),
        (12345.6, "12,000", "12,000", "13,000"),
    ],
)
def test_numbers_have_two_digits(value: float, nearest: str, down: str, up: str) -> None:
    """A number has two significant digits in each direction of rounding, and no exponent."""
    assert nearest == two_digits(value)
    assert (down, up) == (two_digits(value, ROUND_FLOOR), two_digits(value, ROUND_CEILING))


def test_intervals_are_rounded_outwards() -> None:
    """The lower end is rounded down, the upper end up."""
    assert ("0.12", "0.012 to 0.46") == (expected_error_text(FOUND), real_interval_text(FOUND))


def test_unresolved_errors_are_bounds() -> None:
    """A bound replaces the error, rounded up."""
    assert "less than 0.0022" == expected_error_text(replace(FOUND, error=4.38e-10, less_than=0.00213))
    assert "< 0.0022" == expected_error_text(replace(FOUND, error=4.38e-10, less_than=0.00213), "<")


def test_a_bound_follows_from_simulated_and_drawn_tasks() -> None:
    """Without a wrong task among n, the bound is 3 / n, or the Bayes error with unknown classes if that is less."""
    campaign = of_labels(workers=300)
    found = predict(campaign, RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=8.0))
    simulated = 2.9957 / (found.simulated * found.simulated_tasks)

    assert found.error < 1e-6
    assert min(max(found.unknown_classes, 2.9957 / 3072), simulated) == pytest.approx(found.less_than, rel=1e-3)
    assert found.real_high >= (found.less_than or 1.0)


def test_predictions_without_simulation_have_a_bound() -> None:
    """Without simulation, the 3072 drawn tasks resolve an error; a resolved error has no bound."""
    campaign = of_labels(workers=300)
    channel = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=8.0).channel()
    noisy = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=1.0).channel()

    assert predict_from_bayes_errors(campaign, channel, 0.0).less_than == pytest.approx(2.9957 / 3072, rel=1e-3)
    assert predict_from_bayes_errors(of_labels(), noisy, 0.0).less_than is None


def test_errors_of_numbers_are_resolved_to_the_grid_of_truths() -> None:
    """Grid points are an eighth of a step apart: a mean absolute error below 1/32 is shown as that bound."""
    found = predict_from_bayes_errors(of_numbers(workers=100_000), None, 0.0)

    assert found.error < 1 / 32
    assert found.less_than == pytest.approx(1 / 32)
    assert predict_from_bayes_errors(of_numbers(), None, 0.5).less_than is None
