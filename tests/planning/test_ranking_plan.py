"""Tests of the plan of a ranking."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from experiments.utility.comparisons.crowd import Kind, draw_crowd, drawn_answers
from scipy.stats import kendalltau

import crowdveil as cv
from crowdveil.design.comparison_channel import ExpectedComparisons, best_comparison_channel
from crowdveil.errors import SettingsError
from crowdveil.estimators.ranking.methods import Davidson

EQUAL = Kind(name="equal workers", spam=0.0, slope_spread=0.0, tie_spread=0.0, side=0.0, side_spread=0.0)


def test_more_of_everything_helps() -> None:
    """More comparisons, a larger epsilon, fewer who guess or skip: fewer wrong pairs; never more than half."""
    planned = cv.plan_ranking([1, 10, 100], epsilons=[0.5, 2])
    by_number = np.array([one.high for one in planned]).reshape(3, 3)

    assert (np.diff(by_number, axis=0) < 0).all()
    assert (np.diff(by_number, axis=1) < 0).all()
    assert by_number.max() < 0.5
    assert all(one.low < one.high for one in planned)
    for worse in ({"guessing": 0.5}, {"answered": 0.5}):
        other = cv.plan_ranking([1, 10, 100], epsilons=[0.5, 2], **worse)  # type: ignore[arg-type]
        assert all(one.high < two.high for one, two in zip(planned, other, strict=True))


def test_needed_comparisons_are_enough() -> None:
    """The needed number meets the wanted share, and one less does not; a worker spends epsilon for each."""
    planned = cv.plan_ranking([1], epsilons=[1.0], wrong_pairs=0.2, items=50, workers=100)
    number = planned.reports[0].comparisons
    assert number is not None
    found = cv.plan_ranking([number - 1, number], epsilons=[1.0]).rows

    assert [one.high <= 0.2 for one in found] == [False, True, True, True]
    assert planned.reports[0].worker_epsilon == pytest.approx(math.ceil(number / 4))
    assert planned.reports[1].worker_epsilon is None


def test_symbols() -> None:
    """Two symbols are planned at a small epsilon, three at a large one; with NULL if participation is protected."""
    symbols = [one.symbols for one in cv.plan_ranking(epsilons=[0.5, 4]).reports]

    assert symbols == [("left", "right"), ("left", "tie", "right", "NULL"), ("left", "tie", "right")]


def test_text_and_picture() -> None:
    """The sentences name the wanted share and what it takes; the picture has at most four lines."""
    planned = cv.plan_ranking(epsilons=[1, 4], wrong_pairs=0.2, items=100, workers=100)
    shown = str(planned)

    assert "For 20 % wrongly ordered pairs compare each item" in shown
    assert "All comparisons of one worker then spend" in shown
    assert "Two symbols, ties tossed, tell more than three at epsilon 1." in shown
    assert str(planned.picture()).count("<polyline") <= 4
    assert planned.to_arrow().num_rows == 18
    assert planned._repr_html_().startswith("<")


def test_too_many() -> None:
    """A share that would take more than a million comparisons of each item is not promised."""
    planned = cv.plan_ranking([1], epsilons=[0.01], wrong_pairs=0.01)

    assert planned.reports[0].comparisons is None
    assert "more than 1,000,000 times" in str(planned)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"comparisons": [0]}, "comparisons must be"),
        ({"comparisons": 5}, "comparisons must be a list"),
        ({"epsilons": [0]}, "epsilon"),
        ({"ties": 1.0}, "ties must be above 0"),
        ({"guessing": 1.0}, "guessing must be at least 0 and below 1"),
        ({"wrong_pairs": 0.5}, "wrong_pairs must be above 0 and below 0.5"),
        ({"participation": "hidden"}, "participation"),
        ({"items": 1}, "items must be"),
        ({"workers": 0}, "workers must be"),
    ],
)
def test_wrong_settings(given: dict[str, Any], rule: str) -> None:
    """Numbers out of range are refused."""
    with pytest.raises(SettingsError, match=rule):
        cv.plan_ranking(**given)


@pytest.mark.slow
def test_simulated_crowds() -> None:
    """Over 24 cells of comparisons and epsilons the share of wrong pairs is as planned, of equal workers."""
    expected, off = ExpectedComparisons(), []
    for number in (2, 5, 10, 20, 50, 100):
        planned = cv.plan_ranking([number], epsilons=[1.0, 2.0, 4.0], guessing=0, participation="public")
        for one in planned:
            found = [_wrong_pairs(number, one.epsilon, expected, seed) for seed in range(8)]
            off.append(one.high - np.mean(found))

    assert len(off) == 24
    assert np.abs(off).max() < 0.02


def _wrong_pairs(number: int, epsilon: float, expected: ExpectedComparisons, seed: int) -> float:
    """Return the share of wrongly ordered pairs of a simulated crowd, ranked by Davidson's model."""
    crowd = draw_crowd(replace(EQUAL, per_item=number), seed)
    rows, table = crowd.comparisons, None
    if epsilon < math.inf:
        channel = best_comparison_channel(expected, epsilon, "public")
        table = expected.reports(channel)
        sent = drawn_answers(np.random.default_rng([seed, 9]), table[rows.answer])
        rows = replace(rows.with_answers(sent), symbols=channel.outputs)
    return float(1 - kendalltau(crowd.scores, Davidson().fit(rows, table).scores)[0]) / 2
