"""Protected participation and most_claims: the printed figures against exact enumeration, and what stays public."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest

from crowdveil.channels.guarantee import Unit
from crowdveil.errors import SettingsError
from crowdveil.randomness import seeded
from crowdveil.synthesis.budgets import TaskBudgets, allocated_budgets
from crowdveil.synthesis.claims import Claims, scale_claims
from crowdveil.synthesis.discrete_noise import epsilon_rounded_down
from crowdveil.synthesis.private.exponential_mechanism import (
    DyadicRanges,
    exponential_weights,
    largest_range_counts,
    location_scores,
)
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.noisy_counts import NoisyCounter, bin_counts
from crowdveil.synthesis.private.pooled_shape import SHAPE_SHARE, SPREAD_SHARE, PooledShape, shape_counts

TASKS = np.array(["a", "b", "c"])
PLACES = (None, 0.1, 0.9)
State = tuple[float | None, ...]
"""The claims of one worker, task by task; None where there is none."""


def worker_claims(state: State) -> Claims:
    """The claims of one worker, on a public list of tasks."""
    made = [(task, value) for task, value in zip(TASKS, state, strict=False) if value is not None]
    names, values = [task for task, _ in made], [value for _, value in made]
    return Claims.from_arrays(names, ["w"] * len(made), values, bounds=(0, 1), tasks=TASKS[: len(state)], workers=["w"])


def subsets(state: State, most: int | None) -> list[State]:
    """Every choice of at most `most` claims, all equally likely."""
    made = [task for task, value in enumerate(state) if value is not None]
    chosen = itertools.combinations(made, min(len(made), most or len(made)))
    return [tuple(value if task in some else None for task, value in enumerate(state)) for some in chosen]


def worst_loss(tables: Sequence[np.ndarray], states: Sequence[State], unit: Unit) -> float:
    """Largest log ratio of output probabilities between states that differ in one claim, or in any of the worker's."""
    pairs = [
        (one, other)
        for one, other in itertools.permutations(range(len(states)), 2)
        if unit == "worker" or sum(a != b for a, b in zip(states[one], states[other], strict=True)) == 1
    ]
    return max(float(np.log(tables[one] / tables[other]).max()) for one, other in pairs)


def histogram_table(state: State, method: Histogram) -> np.ndarray:
    """Probabilities, up to a common factor, of the noisy counts of both bins that the claims can be in.

    Counts are 0 or 1, so that noisy counts below 0 have the information of 0, and those above 1 that of 1.
    """
    claims = worker_claims(state)
    budgets = allocated_budgets(
        claims, epsilon=method.epsilon, unit=method.unit, participation="protected", most_claims=method.most_claims
    )
    epsilon = budgets.exact_epsilon[int(budgets.divisor[0])]
    scale = float(NoisyCounter(epsilon=epsilon, bins=8, select_range=False).scale)
    outputs = np.array(list(itertools.product((0, 1), repeat=2 * len(state))))
    parts = []
    for some in subsets(state, method.most_claims):
        made = worker_claims(some)
        used = scale_claims(made, np.arange(len(state)), np.ones(len(made), dtype=bool))
        counts = bin_counts(used, np.zeros(len(state), dtype=int), 8, DyadicRanges())[:, [0, 7]]
        parts.append(np.exp(-np.abs(outputs - counts.ravel()).sum(axis=1) / scale))
    return np.mean(parts, axis=0)


@pytest.mark.parametrize("most", [1, 2, None])
@pytest.mark.parametrize("asked", ["cell", "worker"])
def test_printed_figures_hold_for_every_change_of_claims(asked: Unit, most: int | None) -> None:
    """Claims that come, go, are replaced or put others out of use: the exact loss is below the printed, and near it."""
    if asked == "worker" and most is None:
        most = 3
    method = Histogram(epsilon=1.0, unit=asked, participation="protected", most_claims=most, expected_claims=1)
    states = list(itertools.product(PLACES, repeat=3))
    tables = [histogram_table(state, method) for state in states]
    printed = {g.unit: g.epsilon for g in method.release(worker_claims(states[-1]), seeded(1)).guarantees}

    assert printed[asked] == pytest.approx(1.0, abs=1e-5)
    for unit in ("cell", "worker"):
        exact = worst_loss(tables, states, unit)
        assert exact <= printed[unit] * (1 + 1e-12)
        assert exact > 0.99 * min(printed[unit], 3 * printed["cell"])


def shared_outputs(pair: tuple[State, State], method: PooledShape) -> Iterable[tuple[float, float]]:
    """Probabilities of outputs of `Shared` under two states of one worker; two others have a claim on a task each."""
    crowds = [_with_others(state) for state in pair]
    budgets = allocated_budgets(
        crowds[0], epsilon=method.epsilon, unit=method.unit, participation="public", most_claims=method.most_claims
    )
    chances = [_chances(crowd, budgets, method) for crowd in crowds]
    for spread, first, second in itertools.product(range(3), range(8), range(8)):
        outputs = [chance(spread, (first, second)) for chance in chances]
        yield from zip(*outputs, strict=True)


def _with_others(state: State) -> Claims:
    return Claims.from_arrays(["a", "a", "b", "b"], ["w", "x", "w", "y"], [state[0], 0.1, state[1], 0.1], bounds=(0, 1))


def _chances(claims: Claims, budgets: TaskBudgets, method: PooledShape) -> Callable[[int, tuple[int, int]], np.ndarray]:
    """Return the probability of a noisy spread, two locations and every noisy shape, from the proof."""
    mine = np.flatnonzero(claims.worker == 0)
    choices = list(itertools.combinations(mine, min(2, method.most_claims or 2)))
    least = min(budgets.exact_epsilon.values())
    for_spread, for_shapes = (
        epsilon_rounded_down(float(least) * SPREAD_SHARE),
        epsilon_rounded_down(float(least) * SHAPE_SHARE),
    )
    rest = float(least - for_spread - for_shapes)
    rows, columns = np.arange(2), np.array(list(itertools.product(range(3), repeat=3)))

    def chance(spread: int, place: tuple[int, int]) -> np.ndarray:
        parts = []
        for chosen in choices:
            used = np.isin(np.arange(4), chosen) | (claims.worker > 0)
            here = scale_claims(claims, rows, used)
            levels = np.abs(largest_range_counts(here, DyadicRanges())[1:] - spread).sum()
            weight = exponential_weights(location_scores(here, 8), epsilon=rest, largest=8)
            places = np.prod([weight[t, place[t]] / weight[t].sum() for t in rows])
            # Claims lie at two places, so that three shape bins around two places are sufficient.
            counts = shape_counts(here, (np.array(place) + 0.5) / 8, np.ones(2), np.zeros(2, dtype=int)).ravel()
            occupied = counts[_occupied_bins(claims, place)]
            shapes = np.abs(columns - occupied).sum(axis=1)
            parts.append(np.exp(-levels * float(for_spread) / 8 - shapes * float(for_shapes) / 2) * places)
        return np.mean(parts, axis=0)

    return chance


def _occupied_bins(claims: Claims, place: tuple[int, int]) -> np.ndarray:
    """Three of the shape bins that claims at either end of the bounds fall into, for given places."""
    ends = Claims.from_arrays(["a", "a", "b", "b"], [0, 1, 0, 1], [0.1, 0.9] * 2, bounds=(0, 1))
    here = scale_claims(ends, np.arange(2), np.ones(4, dtype=bool))
    counts = shape_counts(here, (np.array(place) + 0.5) / 8, np.ones(2), np.zeros(2, dtype=int)).ravel()
    return np.resize(np.flatnonzero(counts), 3)


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, None])
@pytest.mark.parametrize("asked", ["cell", "worker"])
def test_shared_keeps_its_figures_when_only_some_claims_are_used(asked: Unit, most: int | None) -> None:
    """Exact probabilities of spread, places and shapes: no replaced claim, or worker, exceeds the printed figure."""
    method = PooledShape(epsilon=2.0, unit=asked, most_claims=most)
    values = [(one, other) for one in (0.1, 0.9) for other in (0.1, 0.9)]
    printed = {g.unit: g.epsilon for g in method.release(_with_others((0.1, 0.9)), seeded(1)).guarantees}
    worst = {"cell": 0.0, "worker": 0.0}
    for pair in itertools.permutations(values, 2):
        loss = max(abs(math.log(one / other)) for one, other in shared_outputs(pair, method))
        unit = "cell" if sum(a != b for a, b in zip(*pair, strict=True)) == 1 else "worker"
        worst[unit] = max(worst[unit], loss)

    assert printed[asked] == pytest.approx(2.0, abs=1e-5)
    assert 0.2 * printed["cell"] < worst["cell"] <= printed["cell"]
    assert 0.2 * printed["worker"] < max(worst.values()) <= printed["worker"]


def test_a_list_of_tasks_that_follows_from_the_claims_is_refused() -> None:
    """A task's only claim would be visible with certainty, so protected participation needs the list from elsewhere."""
    taken = Claims.from_arrays(["a", "b"], ["v", "w"], [1.0, 2.0], bounds=(0, 5))
    listed = Claims.from_arrays(["a", "b"], ["v", "w"], [1.0, 2.0], bounds=(0, 5), tasks=["a", "b", "c"])
    method = Histogram(epsilon=1.0, records=2, participation="protected", expected_claims=2)

    assert (False, True) == (taken.public_tasks, listed.public_tasks)
    with pytest.raises(SettingsError, match=r"public list of tasks.*--tasks FILE"):
        method.release(taken, seeded(1))
    assert method.release(listed, seeded(1)).tasks.tolist() == ["a", "b", "c"]
    assert Histogram(epsilon=1.0, records=2).release(taken, seeded(1)).tasks.tolist() == ["a", "b"]


def test_neither_workers_nor_the_order_of_rows_matter() -> None:
    """Under protected participation other names of workers, and rows in another order, give the same release."""
    task, worker, value = ["b", "a", "b"], ["v", "w", "w"], [1.0, 2.0, 3.0]
    crowds = [
        Claims.from_arrays(task, worker, value, bounds=(0, 5), tasks=["b", "c", "a"]),
        Claims.from_arrays(task[::-1], worker[::-1], value[::-1], bounds=(0, 5), tasks=["b", "c", "a"]),
        Claims.from_arrays(task, [9, 7, 7], value, bounds=(0, 5), tasks=["b", "c", "a"], workers=range(99)),
    ]
    method = Histogram(epsilon=9.0, records=2, participation="protected", expected_claims=2)
    made = [method.release(crowd, seeded(4)) for crowd in crowds]

    assert {tuple(release.value) for release in made} == {tuple(made[0].value)}
    assert {release.guarantees for release in made} == {made[0].guarantees}


def test_the_order_of_tasks_is_that_of_their_names() -> None:
    """Rows sorted by value do not show through: without a list, tasks come in the order of their names."""
    rows = [("b", 1.0), ("a", 2.0), ("c", 0.5)]
    for order in itertools.permutations(rows):
        claims = Claims.from_arrays([name for name, _ in order], ["w"] * 3, [x for _, x in order], bounds=(0, 5))
        assert claims.tasks.tolist() == ["a", "b", "c"]
