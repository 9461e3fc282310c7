"""Dependence of errors against loops over pairs, on independent errors, and what intervals hold with it."""

import math
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from crowdveil.answers.reports import Reports
from crowdveil.estimators.numeric.dependent_errors import (
    PRIOR_RHO,
    PRODUCTS,
    busiest_workers,
    dependence_of,
    products_of_pairs,
    squared_correlation,
)
from crowdveil.estimators.numeric.student_t import StudentT
from tests.estimators.numeric.test_student_t import PHI, RHO, shared


def panel(seed: int, tasks: int, group: int, shared: float, own: float) -> tuple[Reports, np.ndarray[Any, Any]]:
    """Make numbers of 24 judges in groups whose members share an error of deviation `shared`; and truths."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=tasks)
    copied = np.repeat(rng.normal(0, shared, (tasks, 24 // group)), group, axis=1)
    values = truth[:, None] + copied + rng.normal(0, own, (tasks, 24))
    task, judge = np.indices(values.shape).reshape(2, -1)
    return Reports.from_arrays(task, judge, values.ravel(), numeric=True), truth


def sparse_panel(seed: int, difficulty: float = 0.0) -> Reports:
    """Make independent errors of twenty workers with deviations .5 to 6, on 200 tasks of five answers."""
    rng = np.random.default_rng(seed)
    sigma = rng.uniform(0.5, 6, 20)
    worker = np.argsort(rng.random((200, 20)), axis=1)[:, :5].ravel()
    task = np.repeat(np.arange(200), 5)
    hard = np.exp(rng.uniform(-difficulty, difficulty, 200))[task]
    return Reports.from_arrays(task, worker, hard * sigma[worker] * rng.normal(size=1000), numeric=True)


def test_the_squared_correlation_equals_loops_over_pairs() -> None:
    """Products, sums and standard error of q equal the equations written as loops over answers that count."""
    reports = sparse_panel(1)
    rng = np.random.default_rng(2)
    precision, scaled, spread = rng.uniform(0.1, 2, 20), rng.normal(size=1000) * 2, rng.uniform(0.1, 1, 200)
    used, block = rng.random(1000) < 0.9, next(iter(reports.blocks()))
    ranks = np.arange(20, dtype=np.int32)[::-1]

    products = products_of_pairs(block, used, scaled, precision[reports.worker], spread, ranks, 1.0)
    q, error = squared_correlation(products, ranks, precision, bounded=True)

    sums: dict[tuple[int, int], list[float]] = {}
    for j in range(200):
        rows = [row for row in range(1000) if reports.task[row] == j and used[row]]
        for one, other in combinations(rows, 2):
            i, k = int(reports.worker[one]), int(reports.worker[other])
            x, y = (float(np.clip(scaled[row], -4, 4)) for row in (one, other))
            product = x * y + spread[j] * math.sqrt(precision[i] * precision[k])
            sums.setdefault((min(i, k), max(i, k)), []).append(product)
    terms, bounded = [], np.minimum(precision, np.median(precision))
    for (i, k), own in sums.items():
        weight, number = bounded[i] * bounded[k], len(own)
        terms.append((weight * (sum(own) ** 2 - sum(p * p for p in own)), weight * (number**2 - number)))
    total = sum(expected for _, expected in terms)
    mean = sum(found for found, _ in terms) / total
    assert q == pytest.approx(mean, rel=1e-9)
    assert error == pytest.approx(math.sqrt(sum((f - mean * e) ** 2 for f, e in terms)) / total, rel=1e-9)


@pytest.mark.parametrize("difficulty", [0.0, 1.0])
def test_independent_errors_have_no_dependence(difficulty: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of q over ten crowds is below .02 (standard error .005), also where tasks are unequally hard."""
    found: list[float] = []

    def kept(*given: Any, bounded: bool) -> tuple[float, float]:
        found.append(squared_correlation(*given, bounded=bounded)[0])
        return squared_correlation(*given, bounded=bounded)

    monkeypatch.setattr("crowdveil.estimators.numeric.student_t.squared_correlation", kept)
    for seed in range(10):
        StudentT().fit(sparse_panel(seed, difficulty))

    assert abs(np.mean(found)) < 0.02


def test_without_common_tasks_the_correlation_is_the_prior_one() -> None:
    """Where no pair of workers has two common tasks, q is unknown; a given correlation is kept for intervals only."""
    assert dependence_of(0.0, math.inf, normal=True) == (0.0, pytest.approx(PRIOR_RHO))
    rng = np.random.default_rng(4)
    task, worker = np.repeat(np.arange(50), 2), np.arange(100)
    reports = Reports.from_arrays(task, worker, rng.normal(size=100), numeric=True)

    estimate, given = StudentT().fit(reports), StudentT(error_correlation=0.9).fit(reports)

    assert [0.0, PRIOR_RHO] == pytest.approx(shared(estimate)[PHI : RHO + 1])
    np.testing.assert_array_equal(estimate.posterior, given.posterior)
    assert (given.high != estimate.high).all()


def test_the_busiest_workers_bound_the_products() -> None:
    """Of 2,000 workers with 500 answers each, so few are compared that about 65,536 products arise."""
    rng = np.random.default_rng(3)
    task, worker = np.repeat(np.arange(500), 2000), np.tile(np.arange(2000), 500)
    reports = Reports.from_arrays(task, worker, rng.normal(size=len(task)), numeric=True)
    summary: Any = SimpleNamespace(per_worker=reports.per_worker, per_task=reports.per_task, workers=2000)
    ranks = busiest_workers(summary)

    compared = int((ranks >= 0).sum())

    assert compared * (compared - 1) / 2 * 500 <= PRODUCTS * 1.1
    assert compared > 15


@pytest.mark.parametrize(
    ("group", "shared", "own"), [(1, 0.0, 0.7), (6, 0.5, 0.5), (6, 1.0, 0.3), (3, 0.8, 0.5), (2, 0.5, 0.5)]
)
def test_intervals_hold_with_independent_judges_and_with_copies(group: int, shared: float, own: float) -> None:
    """85 % or more of 1,200 truths lie in the 90 % intervals of judges in groups that share 0 to 92 % of a variance."""
    inside = []
    for seed in range(3):
        reports, truth = panel(seed, 400, group, shared, own)
        estimate = StudentT().fit(reports)
        inside.append((np.asarray(estimate.low) <= truth) & (truth <= np.asarray(estimate.high)))

    assert np.mean(inside) >= 0.85


def test_gold_tasks_do_not_count() -> None:
    """Errors about a known truth hold what all judges share; the correlation is that of the other tasks."""
    reports, truth = panel(7, 100, 6, 0.5, 0.5)
    gold = {int(task): float(truth[task]) + 3 for task in range(40)}
    others = reports.task >= 40
    rest = Reports.from_arrays(reports.task[others], reports.worker[others], reports.numbers[others], numeric=True)

    found = shared(StudentT().fit(reports, gold=gold))[RHO]

    assert found == pytest.approx(shared(StudentT().fit(rest))[RHO], abs=0.03)
