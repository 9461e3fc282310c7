"""Choice of the next answers: gains equal their definition by loops, and the choice is the greedy one."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.answers.reports import Reports
from crowdveil.errors import SettingsError
from crowdveil.quality.answer_selection import CrowdState, next_answers, report_gains

NOBODY = np.zeros(0, dtype=np.int32)


def distributions(source: np.random.Generator, *shape: int) -> np.ndarray:
    """Random distributions over the last axis."""
    return source.dirichlet(np.ones(shape[-1]), shape[:-1])


def state_of(seed: int, *, costs: bool = False, tasks: int = 5, workers: int = 4) -> CrowdState:
    """Random crowd with three labels and four reports."""
    source = np.random.default_rng(seed)
    return CrowdState(
        posterior=distributions(source, tasks, 3),
        reports=source.integers(0, 5, tasks).astype(float),
        likelihood=distributions(source, workers, 3, 4),
        costs=source.random((3, 2)) if costs else None,
        error_correlation=float(source.random() * 0.9),
    )


def gain_by_loops(state: CrowdState, task: int, worker: int) -> tuple[float, float]:
    """Expected fall of the cost, and mutual information, from their definitions."""
    prior, likelihood, costs = state.posterior[task], state.likelihood[worker], state.decision_costs
    n, rho = state.reports[task], state.error_correlation

    def independent(answers: float) -> float:
        return answers / (1 + (answers - 1) * rho) if answers else 0.0

    new = independent(n + 1) - independent(n)
    labels, reports, decisions = range(3), range(4), range(costs.shape[1])
    mean = [sum(prior[y] * likelihood[y, x] for y in labels) for x in reports]
    mixed = [[new * likelihood[z, x] + (1 - new) * mean[x] for x in reports] for z in labels]
    now = min(sum(prior[z] * costs[z, d] for z in labels) for d in decisions)
    after = sum(min(sum(prior[z] * mixed[z][x] * costs[z, d] for z in labels) for d in decisions) for x in reports)
    information = sum(prior[z] * mixed[z][x] * math.log(mixed[z][x] / mean[x]) for z in labels for x in reports)
    return now - after, information


@given(seed=st.integers(0, 10**6), costs=st.booleans())
def test_gains_are_those_of_loops(seed: int, costs: bool) -> None:
    """Every expected gain and information of random crowds follows from its definition."""
    state = state_of(seed, costs=costs)
    gain, information = report_gains(state, np.arange(5), np.arange(4))

    for task in range(5):
        for worker in range(4):
            known = gain_by_loops(state, task, worker)
            assert known == pytest.approx((gain[task, worker], information[task, worker]), abs=1e-12)


def test_an_expert_resolves_all_doubt_and_a_spammer_none() -> None:
    """A report without errors gains the whole expected error and the entropy; constant reports gain nothing."""
    likelihood = np.array([np.eye(2), [[0.3, 0.7], [0.3, 0.7]]])
    state = CrowdState(posterior=np.array([[0.6, 0.4]]), reports=np.zeros(1), likelihood=likelihood)
    gain, information = report_gains(state, np.array([0]), np.array([0, 1]))

    assert [0.4, 0.0] == pytest.approx(gain[0])
    assert [-0.6 * math.log(0.6) - 0.4 * math.log(0.4), 0.0] == pytest.approx(information[0])


def reports_of(cells: list[tuple[int, int]], tasks: int, workers: int) -> Reports:
    """Cells (task, worker) that have reported."""
    task, worker = np.array(cells, dtype=np.int32).reshape(-1, 2).T
    return Reports(task, worker, np.zeros(len(task)), np.arange(tasks), np.arange(workers))


def greedy_by_loops(state: CrowdState, reports: Reports, budget: int, per_worker: int) -> list[tuple[int, int]]:
    """Choose the pair with the largest gain among all pairs, again and again."""
    tasks, workers = len(state.posterior), len(state.likelihood)
    gain, information = report_gains(state, np.arange(tasks), np.arange(workers))
    used = set(zip(reports.task.tolist(), reports.worker.tolist(), strict=True))
    chosen: list[tuple[int, int]] = []
    while len(chosen) < budget:
        open_pairs = [
            (-max(2 - int(reports.per_task[t]), 0), -information[t, w], -gain[t, w], t, w)
            for t in range(tasks)
            for w in range(workers)
            if (t, w) not in used
            and t not in [task for task, _ in chosen]
            and [worker for _, worker in chosen].count(w) < per_worker
        ]
        if not open_pairs:
            break
        chosen.append(min(open_pairs)[3:])
    return chosen


@pytest.mark.parametrize("chunk", [1, 10**6])
def test_the_choice_is_greedy(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With bounds on unseen tasks and on workers, the choice is that of a search of all pairs."""
    monkeypatch.setattr("crowdveil.quality.answer_selection.CHUNK_NUMBERS", chunk)
    for seed in range(20):
        source = np.random.default_rng(seed)
        state = state_of(seed, tasks=12, workers=5)
        cells = [(t, w) for t in range(12) for w in range(5) if source.random() < 0.5]
        reports = reports_of(cells, 12, 5)
        found = next_answers(state, reports, budget=9, per_worker=2)

        assert greedy_by_loops(state, reports, 9, 2) == (
            list(zip(found.task.tolist(), found.worker.tolist(), strict=True))
        )


def test_a_budget_above_what_is_left_gives_fewer_answers() -> None:
    """No cell is asked twice, and a task gets one answer."""
    cells = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 2)]
    state, reports = state_of(1, tasks=3, workers=3), reports_of(cells, 3, 3)
    found = next_answers(state, reports, budget=9)

    assert {(1, 1), (2, found.worker[found.task == 2][0])} == set(
        zip(found.task.tolist(), found.worker.tolist(), strict=True)
    )
    assert (1 - state.posterior.max(axis=1)).mean() == pytest.approx(found.expected_cost)


@pytest.mark.parametrize("wrong", [{"budget": 0}, {"budget": 1, "per_worker": 0}])
def test_nothing_to_choose_is_refused(wrong: dict[str, Any]) -> None:
    """A budget or bound below 1, and no worker, are refused."""
    state, reports = state_of(1), reports_of([(0, 0)], 5, 4)
    with pytest.raises(SettingsError, match="at least 1"):
        next_answers(state, reports, **wrong)
    with pytest.raises(SettingsError, match="number of workers must be at least 1"):
        next_answers(replace(state, likelihood=state.likelihood[:0]), reports, budget=1)


def test_tables_of_few_pairs_give_a_whole_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searched in parts, the batch is as large, keeps the bound of every worker, and asks no task twice."""
    monkeypatch.setattr("crowdveil.quality.answer_selection.TABLE_PAIRS", 15)
    state, reports = state_of(3, tasks=40, workers=5), reports_of([(0, 0)], 40, 5)
    found = next_answers(state, reports, budget=20, per_worker=4)

    assert (20, 20) == (len(found.task), len(set(found.task.tolist())))
    assert 4 == np.bincount(found.worker).max()


def test_only_open_tasks_are_chosen() -> None:
    """Of named tasks each gets one answer, and the expected cost is theirs."""
    state, tasks = state_of(4), np.array([1, 3])
    found = next_answers(state, Reports(NOBODY, NOBODY, np.zeros(0), np.arange(5), np.arange(4)), budget=5, tasks=tasks)

    assert [1, 3] == sorted(found.task.tolist())
    assert float(1 - state.posterior[tasks].max(axis=1).mean()) == pytest.approx(found.expected_cost)
