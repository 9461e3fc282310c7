"""Differences of groups and tests of no difference: values by hand, loops, and the level under noise."""

import math

import numpy as np
import pytest

import crowdveil
from crowdveil import Categories, RandomizedResponse, Reports
from crowdveil.quality.shares.differences import difference_interval, no_difference_statistic, profile
from tests.quality.shares.loops import best_null_share, randomized_response

YES_NO = Categories(("yes", "no"))
FIRST, SECOND = (60, 90, 50), (40, 110, 50)


def found_of(first: tuple[int, ...], second: tuple[int, ...], epsilon: float = 1.0) -> tuple[float, float, float]:
    """Return the statistic and the interval of the difference of the shares of yes."""
    table = RandomizedResponse(alphabet=YES_NO, epsilon=epsilon).channel().probabilities
    profiles = [profile(np.array(counts, dtype=float), table, 2, 0) for counts in (first, second)]
    return no_difference_statistic(profiles), *difference_interval(profiles[0], profiles[1], 0.95)


def test_statistic_and_interval_have_their_known_digits() -> None:
    """Two samples of 200 reports at epsilon 1: 5.5508, and .0501 to .4532."""
    assert found_of(FIRST, SECOND) == pytest.approx((5.5508, 0.0501, 0.4532), abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [(FIRST, SECOND), ((30, 120, 50), (8, 20, 9))])
def test_the_likelihood_ratio_is_that_of_loops(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    """Statistic and loss at both ends are those of likelihoods maximized over a grid of 2,000 shares in loops."""
    statistic, low, high = found_of(first, second)
    table = randomized_response(3, 1.0)
    one, other = (
        [best_null_share(counts, table, step / 1000)[0] for step in range(1001)] for counts in (first, second)
    )
    best = max(one) + max(other)

    assert statistic == pytest.approx(2 * (best - max(map(sum, zip(one, other, strict=True)))), abs=0.01)
    for end in (low, high):
        if -0.999 < end < 0.999:
            shift = round(1000 * end)
            inside = [(one[step + shift], other[step]) for step in range(1001) if 0 <= step + shift <= 1000]
            assert 2 * (best - max(map(sum, inside))) == pytest.approx(1.959964**2, abs=0.08)


def test_groups_of_answers_are_compared_without_noise() -> None:
    """30 of 100 and 10 of 100: the G statistic of the two by two table, and Newcombe's interval with weights of 1."""
    labels = ["yes"] * 30 + ["no"] * 70 + ["yes"] * 10 + ["no"] * 90
    answers = {"task": ["q"] * 200, "worker": [*range(200)], "label": labels}
    groups = {worker: "ab"[worker // 100] for worker in range(200)}
    found = crowdveil.share(answers, by=groups)
    weighted = crowdveil.share(answers, by=groups, weights=dict.fromkeys(range(200), 1))
    (test,) = [one for one in found.tests if one.label == "yes"]
    (difference,) = [one for one in found.differences if one.label == "yes"]
    (recovered,) = [one for one in weighted.differences if one.label == "yes"]
    cells = [(30, 20), (70, 80), (10, 20), (90, 80)]

    assert test.statistic == pytest.approx(2 * sum(seen * math.log(seen / fit) for seen, fit in cells), abs=1e-3)
    assert 1 == test.degrees
    assert difference[5:7] == pytest.approx((0.2, 0.2))
    assert 0.08 < difference.low < 0.11 < 0.29 < difference.high < 0.32
    assert recovered[7:9] == pytest.approx(difference[7:9], abs=0.02)


def rejections(share: float, people: tuple[int, int], answered: tuple[float, float], runs: int) -> float:
    """Return how often the test of equal shares rejects at 5 % at epsilon 1."""
    table = RandomizedResponse(alphabet=YES_NO, epsilon=1.0).channel().probabilities
    rng, rejected = np.random.default_rng(7), 0
    cells = [np.array([share * s, (1 - share) * s, 1 - s]) for s in answered]
    for _ in range(runs):
        counts = [rng.multinomial(n, f @ table).astype(float) for n, f in zip(people, cells, strict=True)]
        rejected += no_difference_statistic([profile(one, table, 2, 0) for one in counts]) > 3.841459
    return rejected / runs


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [(0.02, (400, 400), (0.8, 0.8)), (0.1, (400, 100), (0.9, 0.5)), (0.35, (500, 500), (0.9, 0.5))]
)
def test_no_difference_is_rejected_at_most_as_often_as_stated(
    case: tuple[float, tuple[int, int], tuple[float, float]],
) -> None:
    """Of 600 samples (seed 7) at most 7.5 % reject; at a level of 5 % more would in one of 300 such counts."""
    assert rejections(*case, runs=600) <= 0.075


def test_many_groups_are_tested_and_not_compared_in_pairs() -> None:
    """Thirteen groups have one test with 12 degrees of freedom, no differences, and a note."""
    answers = {"task": ["q"] * 260, "worker": [*range(260)], "label": ["yes", "no"] * 130}
    found = crowdveil.share(answers, by={worker: f"g{worker % 13}" for worker in range(260)})

    assert [12, 12] == [test.degrees for test in found.tests]
    assert () == found.differences
    assert "differences are of at most 12 groups" in " ".join(found.notes)


def test_a_group_without_reports_has_no_difference() -> None:
    """A group of workers who sent nothing in public has no share, and the whole interval."""
    workers = [*range(40)]
    reports = Reports.from_arrays(["q"] * 20, workers[:20], ["yes", "no"] * 10, tasks=["q"], workers=workers)
    found = crowdveil.share(reports, by={worker: "ab"[worker // 20] for worker in workers})

    assert (-1.0, 1.0) == (found.differences[0].low, found.differences[0].high)
    assert math.isnan(found.tests[0].p_value)
