"""TaskBudgets: whatever the crowd, no claim and no worker pays more than was said."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.channels.rounding import lower_of_binary_and_decimal
from crowdveil.randomness import seeded
from crowdveil.synthesis.budgets import allocated_budgets
from crowdveil.synthesis.claims import Claims

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), min_size=1, max_size=30, unique=True)


def crowd(pairs: list[tuple[int, int]]) -> Claims:
    """Claims of 0.5 for pairs of task and worker."""
    task, worker = zip(*pairs, strict=True)
    return Claims.from_arrays(task, worker, np.full(len(pairs), 0.5), bounds=(0, 1))


@settings(max_examples=60)
@given(PAIRS, st.floats(0.01, 10), st.none() | st.integers(1, 4))
def test_no_worker_pays_more_than_epsilon(pairs: list[tuple[int, int]], epsilon: float, most: int | None) -> None:
    """Under unit worker, the budgets of the tasks of a worker's used claims add up to at most epsilon."""
    claims = crowd(pairs)
    budgets = allocated_budgets(claims, epsilon=epsilon, unit="worker", participation="public", most_claims=most)
    used = budgets.sample_used(claims, seeded(1))
    spent = np.bincount(claims.worker, weights=budgets.task_epsilon[claims.task] * used)
    cell, worker = budgets.guarantees()

    assert spent.max() <= worker.epsilon * (1 + 1e-12) <= epsilon * (1 + 1e-12)
    assert lower_of_binary_and_decimal(cell.epsilon) >= max(budgets.exact_epsilon.values())
    assert cell.epsilon == pytest.approx(budgets.task_epsilon.max(), rel=1e-15)
    assert np.bincount(claims.worker, weights=used).max() <= (most or len(pairs))


@settings(max_examples=30)
@given(PAIRS, st.floats(0.01, 10))
def test_per_claim_every_task_spends_everything(pairs: list[tuple[int, int]], epsilon: float) -> None:
    """Under unit cell all tasks have the same budget, and a worker pays it once per claim."""
    claims = crowd(pairs)
    budgets = allocated_budgets(claims, epsilon=epsilon, unit="cell", participation="public", most_claims=None)
    cell, worker = budgets.guarantees()

    assert epsilon - 2**-20 < cell.epsilon <= epsilon
    assert worker.epsilon == pytest.approx(cell.epsilon * claims.per_worker.max())


def test_tasks_of_light_workers_get_more() -> None:
    """A task whose workers claim little has more to spend than one with a busy worker."""
    budgets = allocated_budgets(
        crowd([(0, 0), (1, 1), (2, 1), (3, 1)]), epsilon=3.0, unit="worker", participation="public", most_claims=None
    )

    assert budgets.task_epsilon.tolist() == [3.0, 1.0, 1.0, 1.0]


def test_tasks_without_claims_have_no_loss() -> None:
    """The loss per claim is the largest budget of a task with a claim; one without could have spent all of epsilon."""
    claims = Claims.from_arrays([0, 1], [0, 0], [0.5, 0.5], bounds=(0, 1), tasks=[0, 1, 2])
    budgets = allocated_budgets(claims, epsilon=3.0, unit="worker", participation="public", most_claims=None)

    assert budgets.task_epsilon.tolist() == [1.5, 1.5, 3.0]
    assert [one.epsilon for one in budgets.guarantees()] == [1.5, 3.0]


def test_protected_participation_depends_on_no_claim() -> None:
    """The division of protected workers is by most_claims alone; without it nothing is bounded."""
    claims = crowd([(0, 0), (1, 1), (2, 1)])
    split = allocated_budgets(claims, epsilon=3.0, unit="worker", participation="protected", most_claims=2)
    open_ended = allocated_budgets(claims, epsilon=3.0, unit="cell", participation="protected", most_claims=None)

    assert split.task_epsilon.tolist() == [1.5, 1.5, 1.5]
    assert [one.epsilon for one in split.guarantees()] == [1.5, 3.0]
    assert math.isinf(open_ended.guarantees()[1].epsilon)
    assert "most_claims" in open_ended.guarantees()[1].reason
    assert {one.participation for one in split.guarantees()} == {"protected"}


def test_claims_that_are_used_are_drawn_anew() -> None:
    """Of a worker's three claims any two may be the ones that are used."""
    claims = crowd([(0, 0), (1, 0), (2, 0)])
    budgets = allocated_budgets(claims, epsilon=3.0, unit="cell", participation="protected", most_claims=2)
    used = [budgets.sample_used(claims, seeded(seed)) for seed in range(30)]

    assert {int(chosen.sum()) for chosen in used} == {2}
    assert len({tuple(chosen.tolist()) for chosen in used}) == 3
    assert [one.epsilon for one in budgets.guarantees()] == [3.0, 6.0]
