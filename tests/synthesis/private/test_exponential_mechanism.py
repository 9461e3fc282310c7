"""Exponential mechanism: ranges, scores, and an exact audit of the integer probabilities over all neighbours."""

import itertools
import math

import numpy as np
import pytest

from crowdveil.randomness import seeded
from crowdveil.synthesis.claims import ScaledClaims
from crowdveil.synthesis.private.exponential_mechanism import (
    BOTTOM,
    CELLS_PER_SPREAD,
    SCORE_UNITS,
    TOP,
    DyadicRanges,
    exponential_weights,
    largest_range_counts,
    location_scores,
    range_weights,
    select_locations,
    select_ranges,
    width_penalty,
)
from tests.chi_square import chi_square_p_value

SMALL = DyadicRanges(levels=2)


def inside(steps: tuple[int, ...]) -> np.ndarray:
    """Claims of one task in every small range, given by their step; shape (1, ranges)."""
    return SMALL.claims_inside(at_steps(np.array(steps), np.zeros(len(steps), dtype=int)))


def at_steps(step: np.ndarray, task: np.ndarray) -> ScaledClaims:
    """Claims in the middle of given steps of the small ranges."""
    return ScaledClaims(int(task.max(initial=0)) + 1, task, (step + 0.5) / SMALL.steps)


def test_ranges_are_dyadic_intervals_and_their_half_shifts() -> None:
    """Level k has 2**(k+1) - 1 ranges of width 2**-k, half a width apart, from end to end."""
    found = [(int(k), first / 8, last / 8) for k, first, last in zip(SMALL.level, SMALL.first, SMALL.last, strict=True)]
    expected = [(k, i * 2.0**-k / 2, i * 2.0**-k / 2 + 2.0**-k) for k in range(3) for i in range(2 ** (k + 1) - 1)]

    assert found == expected


def test_claims_inside_equals_a_loop() -> None:
    """Counts by cumulation equal counts of claims, for several tasks."""
    generator = np.random.default_rng(1)
    step, task = generator.integers(0, 8, 40), generator.integers(0, 3, 40)
    found = SMALL.claims_inside(at_steps(step, task))

    for t, w in itertools.product(range(3), range(len(SMALL.level))):
        expected = int(((task == t) & (SMALL.first[w] <= step) & (step < SMALL.last[w])).sum())
        assert expected == found[t, w]


def worst_loss(epsilon: float, replaced: bool) -> float:
    """Largest |log ratio| of range probabilities over all neighbours of all crowds of 4 claims at 4 places."""
    places = (0, 3, 4, 7)
    worst = 0.0
    for rest in itertools.combinations_with_replacement(places, 3):
        crowds = [(*rest, place) for place in places]
        crowds = crowds if replaced else [rest, *crowds]
        tables = []
        for crowd in crowds:
            score = SCORE_UNITS * inside(crowd) - 7 * (SMALL.levels - SMALL.level)
            integers = range_weights(score, epsilon=epsilon, ranges=SMALL)[0]
            tables.append(np.log(integers / integers.sum()))
        against = tables if replaced else tables[:1]
        worst = max(worst, *(np.abs(a - b).max() for a, b in itertools.product(against, tables)))
    return worst


@pytest.mark.parametrize(("replaced", "part"), [(True, 1.0), (False, 0.5)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 20.0])
def test_ranges_of_neighbours_differ_by_at_most_epsilon(epsilon: float, replaced: bool, part: float) -> None:
    """Exact integer probabilities of ranges differ by exp(epsilon) at most, its root if a claim is added or removed."""
    assert worst_loss(epsilon, replaced) <= part * epsilon


def test_a_budget_below_the_rounding_ignores_the_claims() -> None:
    """With next to no budget the weight of a range is its prior, whatever the claims."""
    found = range_weights(np.array([[0, 50] + [0] * 9]), epsilon=1e-6, ranges=SMALL)

    np.testing.assert_array_equal(found[0], TOP * SMALL.prior)


def test_the_audit_can_fail() -> None:
    """The loss is not far below epsilon, so three times the rate would be detected."""
    assert worst_loss(3.0, True) > 1.0


def test_probabilities_fit_into_an_integer() -> None:
    """The largest possible sum of weights of all ranges is below 2**62, the smallest weight has 20 bits."""
    ranges = DyadicRanges()
    far = range_weights(np.where(ranges.level == 0, 10**6, 0)[None], epsilon=20.0, ranges=ranges)

    assert TOP * int(ranges.prior.sum()) < 2**62
    assert far.min() == BOTTOM * ranges.prior[-1]


def test_ranges_are_drawn_with_their_probabilities() -> None:
    """50,000 choices on one crowd pass a chi-square test at 1e-4, fixed seed."""
    found = np.repeat(inside((1, 1, 2)), 50_000, axis=0)
    penalty = np.full(50_000, 7)
    score = SCORE_UNITS * found[:1] - 7 * (SMALL.levels - SMALL.level)
    integers = range_weights(score, epsilon=2.0, ranges=SMALL)[0]
    drawn = select_ranges(found, penalty, epsilon=2.0, ranges=SMALL, source=seeded(5))

    assert chi_square_p_value(np.bincount(drawn, minlength=len(integers)), integers / integers.sum()) > 1e-4


def test_the_width_penalty_is_public_and_bounded() -> None:
    """The penalty of a doubled width is 2 % to 10 % of the expected number of claims, whatever the budget."""
    expected = np.array([10.0, 1000.0, 1e6])
    for epsilon in (0.01, 1.0, 10.0):
        penalty = width_penalty(expected, epsilon=epsilon)
        assert (penalty >= 0.02 * SCORE_UNITS * expected).all()
        assert (penalty <= 0.1 * SCORE_UNITS * expected + 1).all()
    assert math.isclose(width_penalty(np.array([1000.0]), epsilon=0.1)[0], SCORE_UNITS * 40)


def scaled(positions: list[float], tasks: int = 1) -> ScaledClaims:
    """The same claims on every task."""
    return ScaledClaims(tasks, np.repeat(np.arange(tasks), len(positions)), np.tile(positions, tasks))


def test_scores_are_sums_of_triangles() -> None:
    """Every cell's score equals a loop over claims, for several tasks."""
    generator = np.random.default_rng(1)
    claims = ScaledClaims(3, np.sort(generator.integers(0, 3, 40)), generator.random(40))
    expected = np.zeros((3, 32), dtype=int)
    for task, place in zip(claims.task, claims.position, strict=True):
        for cell in range(32):
            expected[task, cell] += max(0, CELLS_PER_SPREAD - abs(cell - int(place * 32)))

    np.testing.assert_array_equal(expected, location_scores(claims, 32))


def test_no_score_changes_by_more_than_the_top() -> None:
    """Over all crowds of two claims at 9 places, a changed claim changes no score by more than the triangle's top."""
    places = [k / 8 for k in range(9)]
    worst = 0
    for one, two, other in itertools.product(places, repeat=3):
        before = location_scores(scaled([one, two]), 32)
        worst = max(worst, int(np.abs(location_scores(scaled([one, other]), 32) - before).max()))
        worst = max(worst, int(np.abs(location_scores(scaled([one]), 32) - before).max()))

    assert worst == CELLS_PER_SPREAD


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0, 20.0])
def test_locations_of_neighbours_are_private(epsilon: float) -> None:
    """Exact integer probabilities of all locations differ by at most exp(epsilon), over all crowds of three claims."""
    places = [k / 6 for k in range(7)]
    worst = 0.0
    for rest in itertools.combinations_with_replacement(places, 2):
        tables = []
        for claims in ([*rest, place] for place in places):
            integers = exponential_weights(
                location_scores(scaled(claims), 16), epsilon=epsilon, largest=CELLS_PER_SPREAD
            )[0]
            tables.append(np.log(integers / integers.sum()))
        worst = max(worst, *(float(np.abs(a - b).max()) for a, b in itertools.combinations(tables, 2)))

    assert 0.3 * min(epsilon, 5) < worst <= epsilon


def test_largest_range_counts_equal_a_loop() -> None:
    """For every level, the claims in the fullest range of each task are summed."""
    generator = np.random.default_rng(2)
    claims = ScaledClaims(4, np.sort(generator.integers(0, 4, 50)), generator.random(50))
    ranges = DyadicRanges(levels=3)
    step = (claims.position * ranges.steps).astype(int)
    expected = []
    for level in range(4):
        full = 0
        for task in range(4):
            inside = [
                int(((step >= ranges.first[w]) & (step < ranges.last[w]) & (claims.task == task)).sum())
                for w in range(len(ranges.level))
                if ranges.level[w] == level
            ]
            full += max(inside)
        expected.append(full)

    assert expected == largest_range_counts(claims, ranges).tolist()
    assert expected[0] == 50


def test_without_claims_all_locations_are_equally_likely() -> None:
    """The location of a task without claims is uniform."""
    found = select_locations(scaled([], tasks=2000), 0, 1.0, seeded(4))

    assert 150 < np.bincount((found * CELLS_PER_SPREAD).astype(int), minlength=CELLS_PER_SPREAD).min()
