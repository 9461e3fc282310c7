"""Channels of comparisons: exact epsilon, tossed ties, and the choice between two and three symbols."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from crowdveil.channels.channel import DENOMINATOR
from crowdveil.channels.compared_pairs import COMPARISON_ANSWERS
from crowdveil.design.comparison_channel import (
    ExpectedComparisons,
    best_comparison_channel,
    comparison_channel,
)
from crowdveil.errors import CrowdveilError
from crowdveil.estimators.ranking.channels import report_table
from crowdveil.mechanisms import Designed
from tests.mechanisms.test_mechanism_contract import below_exp

CASES = [*product((1e-3, 0.5, 1.0, 3.7, 12.0), ("protected", "public"), (2, 3))]


@pytest.mark.parametrize(("epsilon", "participation", "symbols"), CASES)
def test_exact_epsilon(epsilon: float, participation: Any, symbols: int) -> None:
    """No report is more than e^epsilon times as probable for one answer, or none, as for another."""
    channel = comparison_channel(epsilon, participation, symbols)
    worst = max(Fraction(a, b) for column in zip(*channel.rows, strict=True) for a, b in product(column, repeat=2))

    assert len(channel.rows) == 3 + (participation == "protected")
    assert channel.inputs[:3] == COMPARISON_ANSWERS.names
    assert worst <= below_exp(epsilon)
    assert worst == channel.ratio
    assert channel.certificate()["participation"] == participation


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 3.7, 12.0])
def test_null_apart(epsilon: float) -> None:
    """Two symbols with NULL apart keep epsilon, toss ties, and let the share that is answered be learned."""
    channel = comparison_channel(epsilon, "protected", 2, null_apart=True)
    worst = max(Fraction(a, b) for column in zip(*channel.rows, strict=True) for a, b in product(column, repeat=2))
    left, tie, right, none = channel.rows

    assert channel.outputs == ("left", "right", "NULL")
    assert worst == channel.ratio <= below_exp(epsilon)
    assert [2 * half for half in tie[:2]] == [left[0] + left[1]] * 2
    assert left[2] == tie[2] == right[2] < none[2]
    assert report_table(channel, 0.8).answers == ("left", "right")
    assert (
        comparison_channel(epsilon, "public", 2, null_apart=True).rows == comparison_channel(epsilon, "public", 2).rows
    )


@pytest.mark.parametrize("participation", ["protected", "public"])
def test_ties_are_tossed(participation: Any) -> None:
    """With two symbols a tie, and a protected NULL, are each side with one half; the sides are treated alike."""
    left, tie, right, *null = comparison_channel(1.0, participation, 2).rows

    assert {tie, *null} == {(DENOMINATOR // 2, DENOMINATOR // 2)}
    assert right == left[::-1]
    assert len(null) == (participation == "protected")


def test_tossed_ties_are_not_estimated() -> None:
    """Reports of two symbols tell nothing of ties, so `rank` estimates none; those of three do."""
    tables = [report_table(comparison_channel(1.0, "protected", symbols), 0.8) for symbols in (2, 3)]

    assert [one.answers for one in tables] == [("left", "right"), ("left", "tie", "right")]
    assert all(np.allclose(one.table.sum(axis=1), 1) for one in tables)


def information_by_differences(expected: ExpectedComparisons, channel: Any) -> float:
    """Return the information of a comparison by a grid of pairs and differences of the log-likelihood."""
    nu, step = math.exp(expected.tie_weight), 1e-5

    def reports(d: float) -> np.ndarray:
        odds = np.array([math.exp(d / 2), nu, math.exp(-d / 2)])
        return (odds / odds.sum()) @ expected.reports(channel)

    deviation = math.sqrt(2) * expected.spread
    grid = np.linspace(-7, 7, 1401) * deviation
    density = np.exp(-((grid / deviation) ** 2) / 2)
    values = [(((reports(d + step) - reports(d - step)) / (2 * step)) ** 2 / reports(d)).sum() for d in grid]
    return float(density @ values / density.sum())


@pytest.mark.parametrize(("ties", "answered"), [(0.067, 1.0), (0.4, 0.8)])
def test_information(ties: float, answered: float) -> None:
    """Information and share of ties agree with a grid of pairs."""
    expected = ExpectedComparisons(ties=ties, answered=answered)
    for channel in (None, comparison_channel(1.0, "protected", 2), comparison_channel(1.0, "protected", 3)):
        wanted = information_by_differences(expected, channel) * (answered if channel is None else 1)
        assert expected.information(channel) == pytest.approx(wanted, rel=2e-4)
    grid = np.linspace(-7, 7, 1401)
    nu, half = math.exp(expected.tie_weight), grid * expected.spread / math.sqrt(2)
    share = nu / (nu + 2 * np.cosh(half))
    assert float(np.exp(-(grid**2) / 2) @ share / np.exp(-(grid**2) / 2).sum()) == pytest.approx(ties, rel=1e-4)


def test_information_of_unknown_scores() -> None:
    """Where nothing is known, it is that of the best linear estimate of the difference from the report."""
    expected, channel = ExpectedComparisons(spread=2.0), comparison_channel(1.0, "public", 3)
    deviation, nu = 2.0 * math.sqrt(2), math.exp(expected.tie_weight)
    grid = np.linspace(-7, 7, 2801) * deviation
    odds = np.stack([np.exp(grid / 2), np.full_like(grid, nu), np.exp(-grid / 2)], axis=1)
    reports = odds / odds.sum(axis=1, keepdims=True) @ expected.reports(channel)
    density = np.exp(-((grid / deviation) ** 2) / 2)
    density /= density.sum()
    mean = density @ reports
    covariance = (density * grid) @ reports
    explained = (covariance**2 / mean).sum() / deviation**4

    assert expected.information(channel, unknown=4.0) == pytest.approx(explained, rel=1e-4)
    found = [expected.information(channel, unknown=one) for one in (0.0, 1.0, 2.0, 4.0)]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize(
    ("ties", "epsilon", "three"),
    [(0.067, 0.5, 0.74), (0.067, 1.0, 0.81), (0.067, 2.0, 0.95), (0.175, 0.5, 0.79), (0.175, 1.0, 0.89)],
)
def test_two_symbols_against_three(ties: float, epsilon: float, three: float) -> None:
    """The information of three symbols relative to two."""
    expected = ExpectedComparisons(ties=ties)
    two, full = (expected.information(comparison_channel(epsilon, "public", symbols)) for symbols in (2, 3))

    assert full / two == pytest.approx(three, abs=0.006)


def test_choice() -> None:
    """Two symbols are chosen at a small epsilon, three at a large one and where ties are frequent."""
    few, many = ExpectedComparisons(ties=0.175), ExpectedComparisons(ties=0.5)

    assert best_comparison_channel(few, 1.0, "public").outputs == ("left", "right")
    assert best_comparison_channel(few, 3.0, "public").outputs == ("left", "tie", "right")
    assert best_comparison_channel(many, 1.0, "public").outputs == ("left", "tie", "right")
    assert best_comparison_channel(few, 1.0, "protected").outputs == ("left", "right")
    assert Designed.from_channel(best_comparison_channel(few, 4.0, "protected")).guarantee.epsilon <= 4.0


def test_unanswered_comparisons_tell_nothing() -> None:
    """With public participation the information is that of the answered share."""
    channel = comparison_channel(1.0, "public", 2)
    whole, half = (ExpectedComparisons(answered=rate).information(channel) for rate in (1.0, 0.5))

    assert half == pytest.approx(whole / 2)


def test_guessing() -> None:
    """The more workers guess, the less a comparison tells; less than if they were known."""
    expected, channel = ExpectedComparisons(), comparison_channel(1.0, "public", 3)
    found = [expected.information(channel, share) for share in (0.0, 0.2, 0.5)]

    assert found == sorted(found, reverse=True)
    assert found[1] < 0.8 * found[0]


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"ties": 0}, "ties must be above 0"),
        ({"ties": "many"}, "ties must be a number"),
        ({"spread": -1}, "spread must be above 0"),
        ({"answered": 1.5}, "answered must be above 0 and at most 1"),
    ],
)
def test_wrong_expectations(given: Any, rule: str) -> None:
    """Numbers out of range are refused."""
    with pytest.raises(CrowdveilError, match=rule):
        ExpectedComparisons(**given)


def test_wrong_symbols() -> None:
    """Another number of symbols is refused."""
    with pytest.raises(CrowdveilError, match="2 or 3 symbols"):
        comparison_channel(1.0, "public", 4)
