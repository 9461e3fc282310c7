"""Losses and expected errors of releases."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from crowdveil.channels.guarantee import Guarantee, Unit
from crowdveil.errors import SettingsError
from crowdveil.randomness import seeded
from crowdveil.synthesis import expected_error as module
from crowdveil.synthesis.budgets import TaskBudgets, allocated_budgets
from crowdveil.synthesis.discrete_noise import SENSITIVITY, round_epsilon_down
from crowdveil.synthesis.expected_error import (  # type: ignore[attr-defined]
    PrivateMethod,
    ReleaseErrors,
    TaskMeanError,
    expected_errors_of_release,
    mean_record_shares,
    prefer_first,
    simulated_task_mean_error,
)
from crowdveil.synthesis.original_claims import Claims, scaled_claims
from crowdveil.synthesis.private.exponential_mechanism import (
    exponential_weights,
    fullest_range_counts,
    triangular_kernel_scores,
)
from crowdveil.synthesis.private.histogram import Histogram, bin_counts
from crowdveil.synthesis.private.pooled_shape import SHAPE_SHARE, SPREAD_SHARE, PooledShape, shape_counts
from crowdveil.synthesis.release import Release

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
    epsilon = budgets.exact_task_epsilon[int(budgets.divisor[0])]
    scale = float(SENSITIVITY / epsilon)
    outputs = np.array(list(itertools.product((0, 1), repeat=2 * len(state))))
    parts = []
    for some in subsets(state, method.most_claims):
        made = worker_claims(some)
        used = scaled_claims(made, np.arange(len(state)), np.ones(len(made), dtype=bool))
        counts = bin_counts(used, 8)[:, [0, 7]]
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
    least = min(budgets.exact_task_epsilon.values())
    for_spread, for_shapes = (
        round_epsilon_down(float(least) * SPREAD_SHARE),
        round_epsilon_down(float(least) * SHAPE_SHARE),
    )
    rest = float(least - for_spread - for_shapes)
    rows, columns = np.arange(2), np.array(list(itertools.product(range(3), repeat=3)))

    def chance(spread: int, place: tuple[int, int]) -> np.ndarray:
        parts = []
        for chosen in choices:
            used = np.isin(np.arange(4), chosen) | (claims.worker > 0)
            here = scaled_claims(claims, rows, used)
            levels = np.abs(fullest_range_counts(here) - spread).sum()
            weight = exponential_weights(triangular_kernel_scores(here, 8), epsilon=rest, score_sensitivity=8)
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
    here = scaled_claims(ends, np.arange(2), np.ones(4, dtype=bool))
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
    with pytest.raises(SettingsError, match=r"public list of tasks.*: tasks"):
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


HIDDEN: dict[str, Any] = {"participation": "protected", "expected_claims": 12}


def crowd(tasks: int, each: int, *, spread: float = 1.0, scatter: float = 5.0, seed: int = 1) -> Claims:
    """Claims within 0 .. 100 around truths that lie evenly in the middle `spread` of the bounds."""
    generator = np.random.default_rng(seed)
    truth = 50 + 100 * spread * (generator.random(tasks) - 0.5)
    value = np.repeat(truth, each) + scatter * generator.normal(size=tasks * each)
    task, worker = np.repeat(np.arange(tasks), each), np.tile(np.arange(each), tasks)
    return Claims.from_arrays(task, worker, value, bounds=(0, 100), outside="clip", tasks=range(tasks))


Kind = type[Histogram] | type[PooledShape]


def errors(method: PrivateMethod, claims: Claims) -> tuple[float, float]:
    """Errors of a release's task means and of the best constant, in shares of the bounds."""
    count, total = (np.bincount(claims.task_of_each_claim, weights=column) for column in (None, claims.value / 100))
    means = mean_record_shares(method.release(claims, seeded(9)), claims)
    held = np.isfinite(means)
    truth = (total / count)[held]
    return float(np.abs(means[held] - truth).mean()), float(np.abs(truth - np.median(truth)).mean())


@pytest.mark.parametrize("method", [Histogram(epsilon=2.0), PooledShape(epsilon=2.0, unit="worker")])
def test_no_claim_is_read(method: PrivateMethod) -> None:
    """Crowds with the same participation and other values have the same expected error."""
    first, second = crowd(40, 12), crowd(40, 12, spread=0.1, seed=5)

    assert simulated_task_mean_error(method, first) == simulated_task_mean_error(method, second)


def test_under_protected_participation_not_even_the_number_of_claims_is_read() -> None:
    """Another number of claims of other workers on other tasks leaves the expected error as it is."""
    few = Claims.from_arrays([3], ["w"], [5.0], bounds=(0, 100), tasks=range(40))

    assert simulated_task_mean_error(Histogram(epsilon=2.0, **HIDDEN), crowd(40, 12)) == simulated_task_mean_error(
        Histogram(epsilon=2.0, **HIDDEN), few
    )


@pytest.mark.parametrize("unit", ["cell", "worker"])
@pytest.mark.parametrize("epsilon", [1.0, 5.0])
@pytest.mark.parametrize("kind", [Histogram, PooledShape])
def test_the_error_is_near_the_expected_one(kind: Kind, epsilon: float, unit: Unit) -> None:
    """On 300 tasks with truths anywhere, error and constant's error are within a third of what was expected."""
    claims, method = crowd(300, 12), kind(epsilon=epsilon, unit=unit)
    found, real = simulated_task_mean_error(method, claims), errors(method, claims)

    assert found is not None
    assert found == pytest.approx(real, rel=1 / 3)


@pytest.mark.parametrize(("error", "word"), [(0.59, "hardly better"), (0.61, "no better"), (0.7, "no better")])
def test_the_warning_says_whether_records_are_better_at_all(error: float, word: str) -> None:
    """A small advantage over one number is "hardly better", none is "no better"."""
    said = ReleaseErrors(TaskMeanError(error, 0.61), None)

    assert f"expected to be {word} than one number for all tasks" in said.constant_warning(1.0)
    assert "" == ReleaseErrors(TaskMeanError(0.5, 0.61), None).constant_warning(1.0)


def test_truths_that_hardly_differ_are_found_in_the_records() -> None:
    """Useful for truths anywhere, but worse than a constant for truths this close: the expected errors show it."""
    claims, method = crowd(300, 12, spread=0.1), PooledShape(epsilon=0.5)
    said = expected_errors_of_release(method, claims, method.release(claims, seeded(2)))
    real, constant = errors(method, claims)

    assert real > constant
    assert said.any_truths is not None
    assert said.any_truths.better_than_constant
    assert said.truths_of_records is not None
    assert not said.truths_of_records.better_than_constant
    assert f"off by {said.truths_of_records.error * 100:.3g}" in said.constant_warning(100.0)
    assert said.to_json(100.0)["any_truths"] == {
        "error": said.any_truths.error * 100, "constant": said.any_truths.constant * 100,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("each", "epsilon", "chosen"), [(100, 1.0, Histogram), (12, 1.0, PooledShape), (12, 0.01, Histogram)]
)
def test_the_more_accurate_method_is_chosen(each: int, epsilon: float, chosen: type) -> None:
    """Many claims: the histogram is good enough; few: shapes are shared; no budget: neither helps, the first stays."""
    claims = crowd(200, each)

    assert isinstance(prefer_first(Histogram(epsilon=epsilon), PooledShape(epsilon=epsilon), claims), chosen)


@pytest.mark.parametrize("unit", ["cell", "worker"])
def test_a_part_of_a_large_crowd_is_enough(monkeypatch: pytest.MonkeyPatch, unit: Unit) -> None:
    """With a quarter of the tasks, and of a worker's epsilon, the expected error is within a tenth."""
    claims = crowd(1000, 12)
    method = Histogram(epsilon=2.0) if unit == "cell" else Histogram(epsilon=20.0, unit="worker", most_claims=100)
    whole = simulated_task_mean_error(method, claims)
    monkeypatch.setattr(module, "MAX_CLAIMS", 3000)
    part = simulated_task_mean_error(method, claims)

    assert whole != part
    assert part == pytest.approx(whole, rel=0.1)


def test_nothing_is_expected_where_nothing_is_released() -> None:
    """If no task has enough claims there is no error, no warning, and the first mode stays."""
    method = Histogram(epsilon=1.0, least_claims=50)
    claims = crowd(20, 12)
    said = expected_errors_of_release(method, claims, method.release(claims, seeded(1)))

    assert (said.any_truths, said.truths_of_records) == (None, None)
    assert said.constant_warning(1.0) == ""
    assert prefer_first(method, PooledShape(epsilon=1.0), claims) == method


def made(task: list[int], value: list[float]) -> Release:
    """Return a release of records of three tasks."""
    common: dict[str, Any] = {"method": "test", "tasks": np.array(["a", "b", "c"]), "withheld": (), "simulation": True}
    guarantees = Guarantee(epsilon=1.0), Guarantee(epsilon=2.0, unit="worker")
    return Release(task=np.array(task), value=np.array(value), guarantees=guarantees, **common)


def test_workers_are_numbered_within_their_task() -> None:
    """The first record of every task belongs to synthetic worker s1, and the release reads as reports."""
    reports = made([0, 0, 2, 2, 2], [0.0, 1.0, 2.0, 3.0, 4.0]).reports()

    assert reports.worker.tolist() == [0, 1, 0, 1, 2]
    assert np.asarray(reports.workers).tolist() == ["s1", "s2", "s3"]
    assert reports.per_task.tolist() == [2, 0, 3]
