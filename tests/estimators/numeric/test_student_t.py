"""Normal and Student errors against the equations written as loops, a worked example, and real numbers with gold."""

import math
from typing import Any

import numpy as np
import pytest

from crowdveil.answers.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.em.fit_state import FitState
from crowdveil.estimators.numeric.first_residuals import LARGEST_NORMAL_KURTOSIS
from crowdveil.estimators.numeric.student_t import StudentT
from crowdveil.estimators.numeric.worker_precisions import WorkerPrecisions
from tests.real_data import load_or_skip

SCALE2, SHAPE, POOLED2, GEOMETRIC2, NU, FAR2, LARGEST, PHI, RHO = range(9)
"""Places in the shared part of a state."""


def shared(estimate: Estimate) -> list[float]:
    """Return the shared part of the state."""
    assert estimate.state is not None
    return estimate.state.shared["shared"].tolist()


def numbers(rows: list[tuple[int, int, float]]) -> Reports:
    """Make reports of (task, worker, number) rows."""
    task, worker, value = zip(*rows, strict=True)
    return Reports.from_arrays(task, worker, value, numeric=True)


def crowd(
    seed: int, outliers: float, tasks: int = 60, workers: int = 8, factor: float = 1000
) -> tuple[Reports, np.ndarray[Any, Any]]:
    """Make normal reports, worker i with deviation 1 + i / 2, a share of them replaced by gross errors; and truths."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0, 100, tasks)
    task, worker = np.indices((tasks, workers)).reshape(2, -1)
    value = truth[task] + rng.normal(size=len(task)) * (1 + worker / 2)
    value = np.where(rng.random(len(task)) < outliers, value + rng.normal(size=len(task)) * factor, value)
    return Reports.from_arrays(task, worker, value, numeric=True, tasks=range(tasks), workers=range(workers)), truth


def example() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return task, worker and number of eight tasks by four workers, whose deviations are .5, 1, 2 and 4."""
    task, worker = np.indices((8, 4)).reshape(2, -1)
    deviation = np.array([0.5, 1, 2, 4])[worker]
    return task, worker, 10 * task + deviation * ((7 * task + 3 * worker**2 + 2 * worker * task) % 11 - 5) / 3


def test_the_first_steps_of_an_example() -> None:
    """Truths, deviations of workers, s^2 and a of the first three steps; the fit starts from medians."""
    reports = Reports.from_arrays(*example(), numeric=True)
    one, two, three = (StudentT(max_steps=steps, tolerance=0.0).fit(reports) for steps in (2, 3, 4))
    assert three.state is not None
    assert two.state is not None

    np.testing.assert_allclose(one.posterior[:2], [-1.0417, 9.75], atol=1e-4)
    assert [6.0856, 50.0] == pytest.approx(shared(one)[:2], abs=1e-4)
    np.testing.assert_allclose(
        1 / np.sqrt(two.state.by_worker["precision"]), [2.0428, 2.0941, 2.4108, 2.9245], atol=1e-4
    )
    assert [5.2865, 3.1895] == pytest.approx(shared(two)[:2], abs=1e-4)
    assert [4.4469, 2.7966] == pytest.approx(shared(three)[:2], abs=1e-4)


def test_the_end_of_an_example() -> None:
    """Truths and the interval of the first task for a given rho, and truths of Student errors with two answers far."""
    task, worker, value = example()
    estimate = StudentT(error_correlation=0.28317).fit(Reports.from_arrays(task, worker, value, numeric=True))
    value[[5, 18]] *= 1000
    heavy = StudentT(degrees_of_freedom=1.0).fit(Reports.from_arrays(task, worker, value, numeric=True))

    expected = [-1.015, 9.374, 20.441, 29.776, 39.460, 49.143, 59.533, 69.216]
    np.testing.assert_allclose(estimate.posterior, expected, atol=6e-4)
    assert shared(estimate)[PHI] == 0
    assert estimate.low is not None
    assert estimate.high is not None
    assert (-3.3327, 1.3028) == pytest.approx((estimate.low[0], estimate.high[0]), abs=1e-4)
    far = [-0.831, 10.381, 20.385, 30.450, 39.994, 49.155, 59.910, 69.142]
    np.testing.assert_allclose(heavy.posterior, far, atol=0.02)


def slow_step(reports: Reports, state: FitState, truth: list[float]) -> tuple[list[float], list[float], list[float]]:
    """Return truths, sums Q of squares and sums of shares of the workers, by loops over the equations."""
    lam = state.by_worker["precision"].tolist()
    _, _, _, _, nu, _, _, phi, _ = state.shared["shared"].tolist()
    rows = list(zip(reports.task.tolist(), reports.worker.tolist(), reports.numbers.tolist(), strict=True))
    w = [1 / ((1 - phi) / one + phi * float(np.median(1 / np.array(lam)))) for one in lam]
    squares, shares, found = [0.0] * len(lam), [0.0] * len(lam), []
    for j, start in enumerate(truth):
        own, mu, u = [(i, x) for t, i, x in rows if t == j], start, [1.0] * len(lam)
        for _ in range(2 if nu else 1):
            u = [1.0] * len(lam)
            for i, x in own:
                u[i] = (nu + 1) / (nu + w[i] * (x - mu) ** 2) if nu else 1.0
            if nu and len(own) == 2:
                u = [sum(u[i] for i, _ in own) / 2] * len(lam)
            total = sum(u[i] * w[i] for i, _ in own)
            mu = sum(u[i] * w[i] * x for i, x in own) / total
        h = {i: u[i] * w[i] / total for i, _ in own}
        o = {i: 1 / (u[i] * lam[i]) for i, _ in own}
        of_mean = sum(h[i] ** 2 * o[i] for i in h)
        for i, x in own:
            squares[i] += u[i] * ((x - mu) ** 2 + max(2 * h[i] * o[i] - of_mean, 0))
            shares[i] += h[i]
        found.append(mu)
    return found, squares, shares


@pytest.mark.parametrize(("nu", "phi"), [(0.0, 0.0), (0.0, 0.6), (0.0, 1.0), (1.5, 0.0), (6.0, 0.0)])
def test_a_step_equals_the_equations(nu: float, phi: float) -> None:
    """Truths and precisions after a step equal the equations written as loops, with tasks of one to four answers."""
    rng = np.random.default_rng(4)
    cells = [(j, i) for j in range(12) for i in range(5) if (i * i + 3 * j) % 7 > 2 or i == j % 5]
    rows = [(j, i, float(rng.normal(10 * j, 1 + i))) for j, i in cells]
    reports = numbers(rows)
    start = FitState(
        "student-t",
        reports.workers,
        {"precision": rng.uniform(0.2, 2, 5)},
        {"shared": np.array([1.3, 2.0, 0.9, 0.01, nu, 0.0, 0.0, phi, 0.3])},
    )
    before = [float(np.median([y for t, _, y in rows if t == j])) for j in range(12)]

    first = StudentT(max_steps=1, tolerance=0.0).fit(reports, warm_start=start)
    second = StudentT(max_steps=2, tolerance=0.0).fit(reports, warm_start=start)

    # The last step, which makes the intervals, goes on from the truths of the first.
    truth, squares, shares = slow_step(reports, start, before)
    np.testing.assert_allclose(first.posterior, slow_step(reports, start, truth)[0], rtol=1e-12)
    counts = np.bincount(reports.worker).astype(float)
    learned = WorkerPrecisions(start.by_worker["precision"], 1.3, 2.0, 0.9, 1.0).learned(
        counts, np.array(squares), counts - shares, least2=1e-8, largest=math.inf
    )
    assert second.state is not None
    np.testing.assert_allclose(second.state.by_worker["precision"], learned.precision, rtol=1e-11)


def test_units_and_names_do_not_matter() -> None:
    """Truths follow y -> 7 - 3 y and y + 1e9, and are the same where workers have other names."""
    reports, _ = crowd(2, outliers=0.0)
    plain = StudentT().fit(reports).posterior
    task, worker, value = reports.task, reports.worker, reports.numbers

    turned = StudentT().fit(Reports.from_arrays(task, worker, 7 - 3 * value, numeric=True)).posterior
    moved = StudentT().fit(Reports.from_arrays(task, worker, value + 1e9, numeric=True)).posterior
    renamed = StudentT().fit(Reports.from_arrays(task, 7 - worker, value, numeric=True)).posterior

    np.testing.assert_allclose(turned, 7 - 3 * plain, rtol=1e-9)
    np.testing.assert_allclose(moved - 1e9, plain, atol=1e-5)
    np.testing.assert_allclose(renamed, plain, rtol=1e-9)


def test_one_answer_far_away_costs_nothing() -> None:
    """With one answer of 480 at 1e12 the truths are those without it, and errors stay normal."""
    reports, _ = crowd(5, outliers=0.0)
    value = reports.numbers.copy()
    value[100] = 1e12
    task, worker = reports.task, reports.worker
    kept = np.arange(len(value)) != 100

    far = StudentT(tolerance=1e-8).fit(Reports.from_arrays(task, worker, value, numeric=True))
    without = StudentT(tolerance=1e-8).fit(Reports.from_arrays(task[kept], worker[kept], value[kept], numeric=True))

    np.testing.assert_allclose(far.posterior, without.posterior, atol=1e-4)
    assert shared(far)[NU] == 0


def test_two_answers_far_apart_share_their_task() -> None:
    """Where both answers to a task are far from their middle, it is the truth, and they count for no worker."""
    reports, _ = crowd(6, outliers=0.0)
    task, worker, value = (np.append(column, [60, 60]) for column in (reports.task, reports.worker, reports.numbers))
    value[-2:], worker[-2:] = (0.0, 1e9), (0, 1)

    estimate = StudentT().fit(Reports.from_arrays(task, worker, value, numeric=True))
    plain = StudentT().fit(reports)

    assert 0 < estimate.posterior[60] < 1e9
    np.testing.assert_allclose(estimate.posterior[:60], plain.posterior, atol=0.05)


def test_a_mode_that_most_answers_are_far_from_is_left() -> None:
    """Three of five answers are typing errors in different directions: the truth is that of the other two."""
    reports, truth = crowd(7, outliers=0.0, workers=5)
    value = reports.numbers.copy()
    value[:3] *= (1000, 2000, -3000)

    estimate = StudentT().fit(Reports.from_arrays(reports.task, reports.worker, value, numeric=True))

    assert abs(estimate.posterior[0] - truth[0]) < 10


@pytest.mark.parametrize("nu", [1.0, 3.0, 10.0])
def test_student_truths_are_fixed_points_of_the_equations(nu: float) -> None:
    """At convergence each truth is the mean weighted by lam (nu + 1) / (nu + lam e^2)."""
    reports, _ = crowd(1, outliers=0.1)
    estimate = StudentT(degrees_of_freedom=nu, tolerance=1e-10, max_steps=3000).fit(reports)
    assert estimate.state is not None
    precision = estimate.state.by_worker["precision"][reports.worker]
    away = reports.numbers - estimate.posterior[reports.task]
    weight = (nu + 1) / (nu + precision * away**2) * precision

    expected = np.bincount(reports.task, weight * reports.numbers) / np.bincount(reports.task, weight)

    np.testing.assert_allclose(estimate.posterior, expected, atol=1e-6)


@pytest.mark.parametrize("degrees", [None, 3.0])
def test_many_answers_to_a_task_do_not_stop_a_fit_early(degrees: float | None) -> None:
    """With 2,000 answers to a task, the fit ends within 0.2 standard errors of where a longer one ends."""
    rng = np.random.default_rng(3)
    task, worker = np.indices((20, 2000)).reshape(2, -1)
    value = rng.normal(size=20)[task] + rng.normal(size=len(task)) * np.where(worker % 2, 1.0, 5.0)
    reports = Reports.from_arrays(task, worker, value, numeric=True)

    fitted = StudentT(degrees_of_freedom=degrees).fit(reports)
    longer = StudentT(degrees_of_freedom=degrees, tolerance=1e-6, max_steps=1000).fit(reports)

    assert longer.state is not None
    total = longer.state.by_worker["precision"].sum()
    assert np.abs(fitted.posterior - longer.posterior).max() < 0.2 / math.sqrt(total)


LEAST_ERROR = {
    "n_emotion": 11.75,
    "snow_valence": 21.70,
    "weather_temperature": 0.7304,
    "peer_grading_mooc": 2.906,
    "population_tf": 2221,
    "population_cut": 2900,
}
"""Mean absolute error of the best of mean, median, CRH, CATD and GTM, first of repeated answers."""


@pytest.mark.parametrize("name", LEAST_ERROR)
def test_real_numbers_are_within_2_percent_of_the_best_known_method(name: str) -> None:
    """The error is at most 1.02 times the best of five methods; 85 to 97 % of gold is inside."""
    data = load_or_skip(name)
    estimate = StudentT().fit(data.answers)
    gold = np.array([data.gold.get(task, math.nan) for task in data.answers.tasks.tolist()], dtype=float)
    known = ~np.isnan(gold)
    inside = (np.asarray(estimate.low) <= gold) & (gold <= np.asarray(estimate.high))

    assert estimate.converged
    assert np.abs(estimate.posterior - gold)[known].mean() <= 1.02 * LEAST_ERROR[name]
    assert 0.85 <= inside[known].mean() <= 0.97


def test_the_kurtosis_decides_between_normal_and_student_errors() -> None:
    """The limit lies far from both kinds of real sets: the kind of errors is stored in the state."""
    kinds = {}
    for name in ("n_emotion", "snow_valence", "weather_temperature"):
        state = StudentT().fit(load_or_skip(name).answers).state
        assert state is not None
        kinds[name] = state.shared["shared"][NU] == 0

    assert {"n_emotion": True, "snow_valence": True, "weather_temperature": False} == kinds
    assert 7 < LARGEST_NORMAL_KURTOSIS < 100


@pytest.mark.parametrize("rows", [[(0, 0, 5.0)], [(0, 0, 5e-9), (0, 1, 5e-9), (1, 0, 7e-9)]])
def test_equal_answers_have_no_interval(rows: list[tuple[int, int, float]]) -> None:
    """Without any disagreement the errors have no scale: the truths are the answers, the intervals unknown."""
    estimate = StudentT().fit(numbers(rows))

    assert {value for _, _, value in rows} == set(estimate.posterior.tolist())
    assert estimate.low is not None
    assert np.isnan(estimate.low).all()
    assert estimate.high is not None
    assert np.isnan(estimate.high).all()


@pytest.mark.parametrize("unit", [1e-90, 1e90])
def test_units_may_be_extreme(unit: float) -> None:
    """Numbers near the least and the largest that are read give the truths of usual ones, in their unit."""
    reports, _ = crowd(8, outliers=0.05)
    small = Reports.from_arrays(reports.task, reports.worker, reports.numbers * unit, numeric=True)

    np.testing.assert_allclose(StudentT().fit(small).posterior / unit, StudentT().fit(reports).posterior, rtol=1e-9)
