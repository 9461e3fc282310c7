"""Places: scores equal their equations, change by no more than was said, and are drawn with exact probabilities."""

import itertools

import numpy as np
import pytest

from crowdveil.randomness import seeded
from crowdveil.synthesis.private.location import FINE, captured, locate, scores
from crowdveil.synthesis.private.noisy_counts import Positions
from crowdveil.synthesis.private.range_selection import Windows, decayed


def crowd(places: list[float], tasks: int = 1, used: int = 1) -> Positions:
    """The same claims on every task."""
    task = np.repeat(np.arange(tasks), len(places))
    return Positions(tasks, task, np.tile(places, tasks), np.full(len(task), used))


def test_scores_are_sums_of_triangles() -> None:
    """Every cell's score equals a loop over claims, for several tasks; unused claims do not count."""
    generator = np.random.default_rng(1)
    claims = Positions(3, np.sort(generator.integers(0, 3, 40)), generator.random(40), generator.integers(0, 2, 40))
    expected = np.zeros((3, 32), dtype=int)
    for task, place, weight in zip(claims.task, claims.place, claims.weight, strict=True):
        for cell in range(32):
            expected[task, cell] += weight * max(0, FINE - abs(cell - int(place * 32)))

    np.testing.assert_array_equal(expected, scores(claims, 32))


def test_no_score_changes_by_more_than_the_top() -> None:
    """Over all crowds of two claims at 9 places, moving or removing one changes no score by more than FINE."""
    places = [k / 8 for k in range(9)]
    worst = 0
    for one, two, other in itertools.product(places, repeat=3):
        before = scores(crowd([one, two]), 32)
        worst = max(worst, int(np.abs(scores(crowd([one, other]), 32) - before).max()))
        worst = max(worst, int(np.abs(scores(crowd([one]), 32) - before).max()))

    assert worst == FINE


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0, 20.0])
def test_no_neighbour_tells_more_than_epsilon(epsilon: float) -> None:
    """Exact integer probabilities of all places differ by at most exp(epsilon), over all crowds of three claims."""
    places = [k / 6 for k in range(7)]
    worst = 0.0
    for rest in itertools.combinations_with_replacement(places, 2):
        tables = []
        for claims in ([*rest, place] for place in places):
            integers = decayed(scores(crowd(claims), 16), epsilon=epsilon, largest=FINE)[0]
            tables.append(np.log(integers / integers.sum()))
        worst = max(worst, *(float(np.abs(a - b).max()) for a, b in itertools.combinations(tables, 2)))

    assert 0.3 * min(epsilon, 5) < worst <= epsilon


def test_captured_claims_equal_a_loop() -> None:
    """For every level, the claims in the fullest window of each task are added up."""
    generator = np.random.default_rng(2)
    claims = Positions(4, np.sort(generator.integers(0, 4, 50)), generator.random(50), np.ones(50, dtype=int))
    windows = Windows(levels=3)
    step = (claims.place * windows.steps).astype(int)
    expected = []
    for level in range(4):
        full = 0
        for task in range(4):
            inside = [
                int(((step >= windows.first[w]) & (step < windows.last[w]) & (claims.task == task)).sum())
                for w in range(len(windows.level))
                if windows.level[w] == level
            ]
            full += max(inside)
        expected.append(full)

    assert expected == captured(claims, windows).tolist()
    assert expected[0] == 50


def test_places_are_near_the_claims() -> None:
    """With 40 claims in one cell and epsilon 4, all of 500 tasks are placed within half a spread of them."""
    found = locate(crowd([0.31] * 40, tasks=500), 4, 4.0, seeded(3))

    assert np.abs(found - 0.31).max() <= 0.5 / 16


def test_without_claims_every_place_is_as_likely() -> None:
    """A task without claims is placed anywhere."""
    found = locate(crowd([0.1], tasks=2000, used=0), 0, 1.0, seeded(4))

    assert 150 < np.bincount((found * FINE).astype(int), minlength=FINE).min()
