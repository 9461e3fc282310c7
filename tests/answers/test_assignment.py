"""Assigned cells: balanced, within a budget, with gold mixed in, and held to the lists of tasks and workers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.answers.assignment import Assignment, affordable_workers_per_task, assignment_with_gold
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.randomness import secure, seeded


@given(tasks=st.integers(1, 30), workers=st.integers(1, 20), data=st.data())
def test_a_balanced_assignment_is_balanced(tasks: int, workers: int, data: st.DataObject) -> None:
    """Every task gets as many different workers as asked; loads differ by at most one."""
    per_task = data.draw(st.integers(1, workers))

    drawn = Assignment.balanced(np.arange(tasks), np.arange(workers), per_task, seeded(0))

    assert [per_task] * tasks == np.bincount(drawn.task, minlength=tasks).tolist()
    assert tasks * per_task == len(set(zip(drawn.task, drawn.worker, strict=True)))
    assert np.ptp(drawn.per_worker) <= 1


def test_draws_differ() -> None:
    """Two secure draws of 100 cells are not the same (chance below 1e-100)."""
    first, second = (Assignment.balanced(np.arange(100), np.arange(100), 1, secure()) for _ in range(2))

    assert (first.worker != second.worker).any()


def test_more_workers_than_there_are_cannot_be_asked() -> None:
    """The error names the number of workers."""
    with pytest.raises(SettingsError, match=r"per_task must be in 1\.\.3, the number of workers, got 4"):
        Assignment.balanced(["t"], ["a", "b", "c"], 4, seeded(0))


def test_cells_are_sorted_and_held_to_the_lists() -> None:
    """Names that are listed without a cell stay; the cells come in the order of tasks, then workers."""
    assignment = Assignment.from_arrays(["u", "t"], ["b", "a"], tasks=["t", "u", "v"], workers=["a", "b"])

    assert ["t", "u", "v"] == assignment.tasks.tolist()
    assert [(0, 0), (1, 1)] == list(zip(assignment.task, assignment.worker, strict=True))
    assert 2 == len(assignment)


def test_a_cell_is_assigned_once() -> None:
    """Repeated cells are refused, by number."""
    with pytest.raises(ReportsError, match="a worker is assigned a task once, 1 cells repeat"):
        Assignment.from_arrays(["t", "t"], ["a", "a"])


def test_cells_are_put_into_other_lists() -> None:
    """Aligned cells count task-major in the other lists' order; a name they lack is refused."""
    assignment = Assignment.from_arrays(["t", "u"], ["a", "b"])

    assert [1, 4] == assignment.recoded_cells(np.array(["u", "x", "t"]), np.array(["a", "b"])).tolist()
    with pytest.raises(ReportsError, match=r"every assigned worker must be listed.*b"):
        assignment.recoded_cells(np.array(["t", "u"]), np.array(["a"]))


@given(budget=st.floats(0.5, 30), epsilon=st.floats(0.1, 5), tasks=st.integers(1, 60), workers=st.integers(1, 60))
def test_an_assignment_within_a_budget_overspends_for_nobody(
    budget: float, epsilon: float, tasks: int, workers: int
) -> None:
    """The worker with the most tasks spends at most the budget; one more worker for each task would overspend."""
    try:
        per_task = affordable_workers_per_task(budget, epsilon, tasks=tasks, workers=workers)
    except SettingsError:
        assert workers * int(budget / epsilon + 1e-9) < tasks
        return
    drawn = Assignment.balanced(np.arange(tasks), np.arange(workers), per_task, seeded(1))

    assert int(drawn.per_worker.max()) * epsilon <= budget * (1 + 1e-12)
    more = per_task + 1
    assert more > workers or -(-more * tasks // workers) * epsilon > budget * (1 - 1e-12)


@given(workers=st.integers(1, 20), gold=st.integers(1, 12), others=st.integers(1, 20), data=st.data())
def test_gold_tasks_are_mixed_in_evenly(workers: int, gold: int, others: int, data: st.DataObject) -> None:
    """Each worker has the asked number of gold tasks, gold tasks are used evenly, and other tasks as without gold."""
    per_worker, per_task = data.draw(st.integers(1, gold)), data.draw(st.integers(1, workers))
    tasks = data.draw(st.permutations(range(gold + others)))
    known = tasks[:gold]

    drawn = assignment_with_gold(sorted(tasks), range(workers), per_task, seeded(0), gold=known, per_worker=per_worker)
    is_gold = np.isin(drawn.tasks[drawn.task], known)

    assert [per_worker] * workers == np.bincount(drawn.worker[is_gold], minlength=workers).tolist()
    assert np.ptp(np.bincount(drawn.task, minlength=gold + others)[known]) <= 1
    assert {per_task} == set(np.bincount(drawn.task, minlength=gold + others)[tasks[gold:]].tolist())
    assert np.ptp(drawn.per_worker) <= 1


@pytest.mark.parametrize(
    ("gold", "per_worker", "rule"),
    [
        (["x"], 1, "gold tasks must be in the list of tasks"),
        (["t", "t"], 1, "each gold task must be named once"),
        (["t"], 2, r"gold tasks per worker must be in 1\.\.1"),
        (["t", "u"], 1, "some tasks must not be gold"),
    ],
)
def test_gold_that_cannot_be_mixed_in_is_refused(gold: list[str], per_worker: int, rule: str) -> None:
    """Each rule on gold tasks is named."""
    with pytest.raises(SettingsError, match=rule):
        assignment_with_gold(["t", "u"], ["a", "b"], 1, seeded(0), gold=gold, per_worker=per_worker)
