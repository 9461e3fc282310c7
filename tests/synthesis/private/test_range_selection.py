"""Windows: what they cover, and an exact audit of the integer exponential mechanism over all neighbours."""

import itertools
import math

import numpy as np
import pytest

from crowdveil.randomness import seeded
from crowdveil.synthesis.private.range_selection import (
    BOTTOM,
    STEPS,
    TOP,
    Windows,
    choose,
    level_price,
    probability_weights,
)
from tests.chi_square import chi_square_p_value

SMALL = Windows(levels=2)


def inside(steps: tuple[int, ...], weights: tuple[int, ...]) -> np.ndarray:
    """Weight in every small window of one task's claims, shape (1, windows)."""
    return SMALL.weight_inside(np.array(steps), np.zeros(len(steps), dtype=int), np.array(weights), 1)


def test_windows_are_dyadic_parts_and_their_half_shifts() -> None:
    """Level k has 2**(k+1) - 1 windows of width 2**-k, half a width apart, from end to end."""
    found = [(int(k), first / 8, last / 8) for k, first, last in zip(SMALL.level, SMALL.first, SMALL.last, strict=True)]
    expected = [(k, i * 2.0**-k / 2, i * 2.0**-k / 2 + 2.0**-k) for k in range(3) for i in range(2 ** (k + 1) - 1)]

    assert found == expected


def test_weight_inside_equals_a_loop() -> None:
    """Sums by cumulation equal sums over claims, for several tasks."""
    generator = np.random.default_rng(1)
    step, task, weight = generator.integers(0, 8, 40), generator.integers(0, 3, 40), generator.integers(1, 5, 40)
    found = SMALL.weight_inside(step, task, weight, 3)

    for t, w in itertools.product(range(3), range(len(SMALL.level))):
        expected = sum(int(weight[c]) for c in range(40) if task[c] == t and SMALL.first[w] <= step[c] < SMALL.last[w])
        assert expected == found[t, w]


def worst_loss(epsilon: float, largest: int, replaced: bool) -> float:
    """Largest |log ratio| of window probabilities over all neighbours of all crowds of 4 claims at 4 places."""
    places = (0, 3, 4, 7)
    worst = 0.0
    for rest in itertools.combinations_with_replacement(places, 3):
        crowds = [(*rest, place) for place in places]
        weights: list[tuple[int, ...]] = [(1, largest, 1, largest)] * len(places)
        if not replaced:
            crowds, weights = [rest, *crowds], [(1, largest, 1), *weights]
        tables = []
        for crowd, weight in zip(crowds, weights, strict=True):
            score = STEPS * inside(crowd, weight) - 7 * (SMALL.levels - SMALL.level)
            integers = probability_weights(score, epsilon=epsilon, largest=largest, windows=SMALL)[0]
            tables.append(np.log(integers / integers.sum()))
        against = tables if replaced else tables[:1]
        worst = max(worst, *(np.abs(a - b).max() for a, b in itertools.product(against, tables)))
    return worst


@pytest.mark.parametrize(("replaced", "part"), [(True, 1.0), (False, 0.5)])
@pytest.mark.parametrize("largest", [1, 3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 20.0])
def test_no_neighbour_tells_more_than_epsilon(epsilon: float, largest: int, replaced: bool, part: float) -> None:
    """Exact integer probabilities of windows differ by at most exp(epsilon); by its root if a claim comes or goes."""
    assert worst_loss(epsilon, largest, replaced) <= part * epsilon


def test_a_budget_below_the_rounding_buys_nothing() -> None:
    """With next to no budget all windows have the weight of their share, whatever the claims."""
    found = probability_weights(np.array([[0, 50] + [0] * 9]), epsilon=1e-6, largest=1, windows=SMALL)

    np.testing.assert_array_equal(found[0], TOP * SMALL.share)


def test_the_audit_can_fail() -> None:
    """The loss is not far below epsilon, so that a mechanism with three times the rate would be found out."""
    assert worst_loss(3.0, 1, True) > 1.0


def test_probabilities_fit_into_an_integer() -> None:
    """The largest possible sum of weights of all windows is below 2**62, the smallest weight has 20 bits."""
    windows = Windows()
    far = probability_weights(np.where(windows.level == 0, 10**6, 0)[None], epsilon=20.0, largest=1, windows=windows)

    assert TOP * int(windows.share.sum()) < 2**62
    assert far.min() == BOTTOM * windows.share[-1]


def test_windows_are_drawn_with_their_probabilities() -> None:
    """50,000 choices on one crowd pass a chi-square test at 1e-4, fixed seed."""
    found = np.repeat(inside((1, 1, 2), (1, 1, 1)), 50_000, axis=0)
    price = np.full(50_000, 7)
    score = STEPS * found[:1] - 7 * (SMALL.levels - SMALL.level)
    integers = probability_weights(score, epsilon=2.0, largest=1, windows=SMALL)[0]
    drawn = choose(found, price, epsilon=2.0, largest=1, windows=SMALL, source=seeded(5))

    assert chi_square_p_value(np.bincount(drawn, minlength=len(integers)), integers / integers.sum()) > 1e-4


def test_a_tight_cluster_is_found() -> None:
    """100 claims in one place are covered by a finest window with a large budget."""
    windows = Windows()
    found = windows.weight_inside(np.full(100, 200), np.zeros(100, dtype=int), np.ones(100, dtype=int), 1)
    price = level_price(np.array([100.0]), epsilon=4.0, largest=1)
    number = int(choose(found, price, epsilon=4.0, largest=1, windows=windows, source=seeded(6))[0])

    assert windows.level[number] == windows.levels
    assert windows.first[number] <= 200 < windows.last[number]


def test_the_price_of_a_level_is_public_and_bounded() -> None:
    """The price is between 2 % and 10 % of the expected weight, in score units, whatever the budget."""
    expected = np.array([10.0, 1000.0, 1e6])
    for epsilon in (0.01, 1.0, 10.0):
        price = level_price(expected, epsilon=epsilon, largest=1)
        assert (price >= 0.02 * STEPS * expected).all()
        assert (price <= 0.1 * STEPS * expected + 1).all()
    assert math.isclose(level_price(np.array([1000.0]), epsilon=0.1, largest=1)[0], STEPS * 40)
