"""Expected errors of releases, and what a release holds."""

from typing import Any

import numpy as np
import pytest

from crowdveil.channels.guarantee import Guarantee, Unit
from crowdveil.errors import SettingsError
from crowdveil.randomness import seeded
from crowdveil.synthesis import expected_error as module
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.expected_error import (
    PrivateMethod,
    ReleaseErrors,
    TaskMeanError,
    expected_task_mean_error,
    more_accurate,
    release_errors,
    task_means,
)
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.pooled_shape import PooledShape
from crowdveil.synthesis.release import Release

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
    count, total = (np.bincount(claims.task, weights=column) for column in (None, claims.value / 100))
    means = task_means(method.release(claims, seeded(9)), claims)
    held = np.isfinite(means)
    truth = (total / count)[held]
    return float(np.abs(means[held] - truth).mean()), float(np.abs(truth - np.median(truth)).mean())


@pytest.mark.parametrize(
    "method",
    [Histogram(epsilon=2.0), PooledShape(epsilon=2.0, unit="worker"), Histogram(epsilon=2.0, select_range=True)],
)
def test_no_claim_is_read(method: PrivateMethod) -> None:
    """Crowds with the same participation and other values have the same expected error."""
    first, second = crowd(40, 12), crowd(40, 12, spread=0.1, seed=5)

    assert expected_task_mean_error(method, first) == expected_task_mean_error(method, second)


def test_under_protected_participation_not_even_the_number_of_claims_is_read() -> None:
    """Another number of claims of other workers on other tasks leaves the expected error as it is."""
    few = Claims.from_arrays([3], ["w"], [5.0], bounds=(0, 100), tasks=range(40))

    assert expected_task_mean_error(Histogram(epsilon=2.0, **HIDDEN), crowd(40, 12)) == expected_task_mean_error(
        Histogram(epsilon=2.0, **HIDDEN), few
    )


@pytest.mark.parametrize("unit", ["cell", "worker"])
@pytest.mark.parametrize("epsilon", [1.0, 5.0])
@pytest.mark.parametrize("kind", [Histogram, PooledShape])
def test_the_error_is_near_the_expected_one(kind: Kind, epsilon: float, unit: Unit) -> None:
    """On 300 tasks with truths anywhere, error and constant's error are within a third of what was expected."""
    claims, method = crowd(300, 12), kind(epsilon=epsilon, unit=unit)
    found, real = expected_task_mean_error(method, claims), errors(method, claims)

    assert found is not None
    assert found == pytest.approx(real, rel=1 / 3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Histogram, PooledShape])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_a_useless_release_is_flat_and_warns(kind: Kind, epsilon: float) -> None:
    """Where noise drowns the claims, records do not scatter over the bounds: they err like the middle of the bounds.

    Truths lie in the middle twentieth; spikes in wrong places would be off by about 25 % of the bounds.
    """
    claims = crowd(600, 12, spread=0.05)
    method = kind(epsilon=epsilon, unit="worker")
    said = release_errors(method, claims, method.release(claims, seeded(2)))

    assert errors(method, claims)[0] < 0.04
    assert said.any_truths is not None
    assert not said.any_truths.useful
    better = "hardly" if said.any_truths.error < said.any_truths.constant else "no"
    assert f"{better} better than one number for all tasks" in said.warning(100.0)


@pytest.mark.parametrize(("error", "word"), [(0.59, "hardly better"), (0.61, "no better"), (0.7, "no better")])
def test_the_warning_says_whether_records_are_better_at_all(error: float, word: str) -> None:
    """A small advantage over one number is "hardly better", none is "no better"."""
    said = ReleaseErrors(TaskMeanError(error, 0.61), None)

    assert f"expected to be {word} than one number for all tasks" in said.warning(1.0)
    assert "" == ReleaseErrors(TaskMeanError(0.5, 0.61), None).warning(1.0)


def test_truths_that_hardly_differ_are_found_in_the_records() -> None:
    """Useful for truths anywhere, but worse than a constant for truths this close: the expected errors show it."""
    claims, method = crowd(300, 12, spread=0.1), PooledShape(epsilon=0.5)
    said = release_errors(method, claims, method.release(claims, seeded(2)))
    real, constant = errors(method, claims)

    assert real > constant
    assert said.any_truths is not None
    assert said.any_truths.useful
    assert said.truths_of_records is not None
    assert not said.truths_of_records.useful
    assert f"off by {said.truths_of_records.error * 100:.3g}" in said.warning(100.0)
    assert said.to_json(100.0)["any_truths"] == {
        "error": said.any_truths.error * 100, "constant": said.any_truths.constant * 100,
    }  # fmt: skip


def test_a_useful_release_has_no_warning() -> None:
    """At 40 claims a task and epsilon 2 nothing is said against the records."""
    claims, method = crowd(100, 40), Histogram(epsilon=2.0)

    assert release_errors(method, claims, method.release(claims, seeded(2))).warning(100.0) == ""


@pytest.mark.parametrize(
    ("each", "epsilon", "chosen"), [(100, 1.0, Histogram), (12, 1.0, PooledShape), (12, 0.01, Histogram)]
)
def test_the_more_accurate_method_is_chosen(each: int, epsilon: float, chosen: type) -> None:
    """Many claims: the histogram is good enough; few: shapes are shared; no budget: neither helps, the first stays."""
    claims = crowd(200, each)

    assert isinstance(more_accurate(Histogram(epsilon=epsilon), PooledShape(epsilon=epsilon), claims), chosen)


@pytest.mark.parametrize("unit", ["cell", "worker"])
def test_a_part_of_a_large_crowd_is_enough(monkeypatch: pytest.MonkeyPatch, unit: Unit) -> None:
    """With a quarter of the tasks, and of a worker's epsilon, the expected error is within a tenth."""
    claims = crowd(1000, 12)
    method = Histogram(epsilon=2.0) if unit == "cell" else Histogram(epsilon=20.0, unit="worker", most_claims=100)
    whole = expected_task_mean_error(method, claims)
    monkeypatch.setattr(module, "MAX_CLAIMS", 3000)
    part = expected_task_mean_error(method, claims)

    assert whole != part
    assert part == pytest.approx(whole, rel=0.1)


def test_one_task_is_simulated_many_times() -> None:
    """The expected error of one task is a mean over many crowds: constants are near a quarter of the bounds."""
    found = expected_task_mean_error(Histogram(epsilon=1.0), crowd(1, 40))

    assert found is not None
    assert 0.15 < found.constant < 0.35
    assert release_errors(Histogram(epsilon=1.0), crowd(1, 40), Histogram(epsilon=1.0).release(crowd(1, 40)))[1] is None


def test_nothing_is_expected_where_nothing_is_released() -> None:
    """If no task has enough claims there is no error, no warning, and the first mode stays."""
    method = Histogram(epsilon=1.0, least_claims=50)
    claims = crowd(20, 12)
    said = release_errors(method, claims, method.release(claims, seeded(1)))

    assert said == (None, None)
    assert said.warning(1.0) == ""
    assert more_accurate(method, PooledShape(epsilon=1.0), claims) == method


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


def test_columns_have_one_length() -> None:
    """A release with more tasks than values is refused."""
    with pytest.raises(SettingsError, match="equal lengths"):
        made([0, 0], [0.0])
