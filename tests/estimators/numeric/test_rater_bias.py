"""Biases of workers against equations written as loops, against the marginal solution, and on crowds with biases."""

import math
from typing import Any

import numpy as np
import pytest

from crowdveil.answers.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.em.fit_state import FitState
from crowdveil.estimators.numeric import student_t
from crowdveil.estimators.numeric.student_t import StudentT
from tests.real_data import load_or_skip

Array = np.ndarray[Any, Any]


def crowd(
    seed: int, bias: float, *, sigmas: tuple[float, ...] = (2.0,), density: float = 0.2, tasks: int = 100
) -> tuple[Reports, Array, Array]:
    """Make answers of 100 workers with biases N(0, bias^2), their truths N(0, 3^2), and the biases."""
    rng = np.random.default_rng(seed)
    truth, biases, sigma = 3 * rng.normal(size=tasks), bias * rng.normal(size=100), np.resize(sigmas, 100)
    task, worker = np.nonzero(rng.random((tasks, 100)) < density)
    value = truth[task] + biases[worker] + sigma[worker] * rng.normal(size=len(task))
    return Reports.from_arrays(task, worker, value, numeric=True, tasks=range(tasks), workers=range(100)), truth, biases


def shared(estimate: Estimate) -> list[float]:
    """Return the shared part of the state, with tau^2 at its end if biases were fitted."""
    assert estimate.state is not None
    return estimate.state.shared["shared"].tolist()


def without_bias(reports: Reports, monkeypatch: pytest.MonkeyPatch) -> Estimate:
    """Return the fit without biases."""
    with monkeypatch.context() as context:
        context.setattr(student_t, "LEAST_RATIO", math.inf)
        return StudentT().fit(reports)


def error(estimate: Estimate, truth: Array) -> float:
    """Return the mean absolute error of tasks with answers."""
    return float(np.nanmean(np.abs(estimate.posterior - truth)))


def slow_step(reports: Reports, state: FitState, gold: dict[int, float]) -> dict[str, Any]:
    """Return truths, and the next biases, their variances and tau^2, by loops over the equations."""
    tau2 = state.shared["shared"][9]
    lam, (b, var) = state.by_worker["precision"], state.by_worker["bias"].T
    rows = list(zip(reports.task.tolist(), reports.worker.tolist(), reports.numbers.tolist(), strict=True))
    workers = range(len(lam))
    total = {j: sum(lam[i] for t, i, _ in rows if t == j) for j in range(len(reports.tasks))}
    truth = {j: gold.get(j, sum(lam[i] * (y - b[i]) for t, i, y in rows if t == j) / total[j]) for j in total}
    share = {(j, i): 0.0 if j in gold else lam[i] / total[j] for j, i, _ in rows}
    middle = float(np.median(b))
    usual2 = 16 * ((1.4826 * float(np.median(np.abs(b - middle)))) ** 2 + float(np.median(var)))
    near = [usual2 / max(usual2, (one - middle) ** 2) for one in b]
    n = sum(near)
    level = 1 / (n / tau2 + sum(lam[i] for j, i, _ in rows if j in gold))
    pull = sum(lam[i] * (y - b[i] - truth[j]) for j, i, y in rows)
    shift = level * (pull - sum(z * one for z, one in zip(near, b, strict=True)) / tau2)
    shifted = {j: mu if j in gold else mu - shift for j, mu in truth.items()}
    mean = [
        sum(lam[i] * (y - shifted[j]) for j, i, y in rows if i == k)
        / (sum(lam[i] for j, i, _ in rows if i == k) + near[k] / tau2)
        for k in workers
    ]
    left = [1 / (sum(lam[i] * (1 - share[j, i]) for j, i, _ in rows if i == k) + near[k] / tau2) for k in workers]
    squares = sum(z * (m**2 + x) for z, m, x in zip(near, mean, left, strict=True))
    return {
        "truth": list(truth.values()),
        "bias": np.stack([mean, left], axis=1),
        "tau2": (squares + n * level) / (n + 5),
    }


@pytest.mark.parametrize("gold", [{}, {0: 1.0, 4: -2.0}])
def test_a_step_equals_the_equations(gold: dict[int, float]) -> None:
    """Truths, biases and tau^2 after a step equal the equations written as loops; one bias is far from the others."""
    rng = np.random.default_rng(4)
    cells = [(j, i) for j in range(9) for i in range(5) if (i + 2 * j) % 4]
    task, worker = np.array(cells).T
    reports = Reports.from_arrays(task, worker, rng.normal(size=len(task)) + 3.0 * worker, numeric=True)
    start = FitState(
        "student-t",
        reports.workers,
        {
            "precision": rng.uniform(0.5, 2, 5),
            "bias": np.stack([[*rng.normal(size=4), 40], rng.uniform(0.1, 1, 5)], axis=1),
        },
        {"shared": np.array([0.7, 2.0, 0.8, 0.1, 0.0, 0.0, 0.0, 0.0, 0.5, 1.3])},
    )

    first = StudentT(max_steps=1, tolerance=0.0).fit(reports, warm_start=start, gold=gold)
    second = StudentT(max_steps=2, tolerance=0.0).fit(reports, warm_start=start, gold=gold)

    expected, state = slow_step(reports, start, gold), second.state
    assert state is not None
    np.testing.assert_allclose(first.posterior, expected["truth"], rtol=1e-10)
    np.testing.assert_allclose(state.by_worker["bias"], expected["bias"], rtol=1e-10)
    assert state.shared["shared"][9] == pytest.approx(expected["tau2"], rel=1e-10)


def test_updates_in_turn_end_at_the_marginal_solution() -> None:
    """At convergence the biases solve (M + 1 / tau^2) b = g, in which the truths are marginalized; their sum is 0."""
    reports, _, _ = crowd(1, 2.0)
    estimate = StudentT(tolerance=1e-9, max_steps=5000).fit(reports)
    assert estimate.state is not None
    assert estimate.workers.bias is not None
    tau2 = shared(estimate)[9]
    w = np.zeros((len(reports.tasks), 100))
    w[reports.task, reports.worker] = estimate.state.by_worker["precision"][reports.worker]
    y = np.zeros_like(w)
    y[reports.task, reports.worker] = reports.numbers
    total = w.sum(axis=1, keepdims=True)
    mean = (w * y).sum(axis=1, keepdims=True) / total

    solved = np.linalg.solve(
        np.diag(w.sum(axis=0)) - w.T @ (w / total) + np.eye(100) / tau2, (w * (y - mean)).sum(axis=0)
    )

    np.testing.assert_allclose(estimate.workers.bias, solved, atol=1e-5)
    assert abs(estimate.workers.bias.sum()) < 1e-5


def test_gold_fixes_the_level_of_the_biases() -> None:
    """Where all workers add 10, ten gold tasks show it: the mean bias is near 10, and so are truths without gold."""
    reports, truth, biases = crowd(2, 2.0)
    high = Reports.from_arrays(reports.task, reports.worker, reports.numbers + 10, numeric=True)

    estimate = StudentT().fit(high, gold={task: truth[task] for task in range(10)})

    assert estimate.workers.bias is not None
    assert abs((estimate.workers.bias - 10 - biases).mean()) < 0.5
    assert abs((estimate.posterior - truth)[10:].mean()) < 0.5


@pytest.mark.parametrize(("sigmas", "density"), [((2.0,), 0.05), ((2.0,), 0.2), ((1.0, 5.0), 0.2)])
def test_crowds_with_biases_err_a_tenth_less(
    sigmas: tuple[float, ...], density: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over eight crowds with biases of deviation 2, the error is at most .9 of that without biases."""
    crowds = [crowd(seed, 2.0, sigmas=sigmas, density=density) for seed in range(8)]

    found = np.mean([error(StudentT().fit(reports), truth) for reports, truth, _ in crowds])
    plain = np.mean([error(without_bias(reports, monkeypatch), truth) for reports, truth, _ in crowds])

    assert found < 0.9 * plain


@pytest.mark.parametrize("density", [0.05, 0.2, 1.0])
def test_intervals_carry_the_uncertainty_of_biases(density: float) -> None:
    """With independent errors and rho 0, 85 to 95 % of the truths of 30 crowds with biases are inside."""
    inside = []
    for seed in range(30):
        reports, truth, _ = crowd(seed, 2.0, density=density)
        estimate = StudentT(error_correlation=0.0).fit(reports)
        known = np.isfinite(estimate.posterior)
        inside.append(((np.asarray(estimate.low) <= truth) & (truth <= np.asarray(estimate.high)))[known].mean())

    assert 0.85 <= np.mean(inside) <= 0.95


def test_a_fit_resumes_with_its_biases() -> None:
    """From its own state a fit with biases ends at once, with the same truths; a new worker has the prior."""
    reports, _, _ = crowd(5, 2.0)
    fitted = StudentT(tolerance=1e-6).fit(reports)
    more = Reports.from_arrays(
        [*reports.task, 0], [*reports.worker, 100], [*reports.numbers, 1.0], numeric=True, workers=range(101)
    )

    again = StudentT().fit(reports, warm_start=fitted.state)
    grown = StudentT().fit(more, warm_start=fitted.state)

    assert again.steps <= 2
    np.testing.assert_allclose(again.posterior, fitted.posterior, atol=1e-3)
    assert grown.workers.bias is not None
    np.testing.assert_allclose(grown.workers.bias[:100], fitted.workers.bias, atol=0.1)


def test_two_workers_have_no_biases() -> None:
    """Of two workers who always differ by 5, the answers do not show which one is biased."""
    task, worker = np.indices((50, 2)).reshape(2, -1)
    value = np.random.default_rng(7).normal(size=50)[task] + 5.0 * worker
    estimate = StudentT().fit(Reports.from_arrays(task, worker, value, numeric=True))

    assert estimate.workers.bias is None


SETS = (
    "n_emotion", "snow_valence", "weather_temperature", "peer_grading_mooc", "population_tf", "population_cut"
)  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_real_numbers_are_no_worse(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Biases are fitted to the peer grades only; no set errs by more than .5 % more than without them."""
    data = load_or_skip(name)
    gold = np.array([data.gold.get(task, math.nan) for task in data.answers.tasks.tolist()], dtype=float)

    estimate = StudentT().fit(data.answers)

    assert (name == "peer_grading_mooc") == (estimate.workers.bias is not None)
    assert error(estimate, gold) <= 1.005 * error(without_bias(data.answers, monkeypatch), gold)
