"""Least error at a budget per worker: every promise holds, and the search finds what a full search finds."""

import pytest

from crowdveil.errors import SettingsError
from crowdveil.planning import Plan, plan_budgets, predict, verdict
from crowdveil.planning.candidates import candidates
from crowdveil.planning.plan_sentences import privacy_loss
from crowdveil.planning.worker_budget import largest_load, loads_to_compare, with_load
from tests.planning.campaigns import of_labels, of_numbers

BUDGETS, TARGET = (1.0, 4.0, 12.0), 0.35


@pytest.fixture(scope="module")
def made() -> Plan:
    """Plan of 60 tasks and 40 workers for three budgets and both kinds of participation."""
    return plan_budgets(of_labels(), BUDGETS, target=TARGET, participations=("protected", "public"))


@pytest.mark.slow
def test_no_worker_exceeds_the_budget(made: Plan) -> None:
    """The exact loss of the worker with the most assigned tasks is at most the budget, whatever the participation."""
    for one in (*made.results, *made.without_assignment):
        assert one.cost.cells == largest_load(one.campaign)
        assert one.cost.worker_epsilon <= one.axis_value
        assert one.mechanism.guarantee.participation == one.campaign.participation


@pytest.mark.slow
def test_every_budget_and_participation_has_a_choice(made: Plan) -> None:
    """Choices ascend by budget, protected participation first, and their errors do not grow with the budget."""
    pairs = [(one.budget, one.campaign.participation) for one in made.results]

    assert [(budget, hidden) for budget in BUDGETS for hidden in ("protected", "public")] == pairs
    for hidden in ("protected", "public"):
        errors = [one.prediction.error for one in made.results if one.campaign.participation == hidden]
        assert sorted(errors, reverse=True) == errors


@pytest.mark.slow
def test_assignment_is_chosen_where_it_is_better(made: Plan) -> None:
    """A choice is not worse than the same budget divided over all tasks, which is one of the loads compared."""
    for whole in made.without_assignment:
        assert whole.cost.cells == made.campaign.tasks
        best = min(one.prediction.error for one in made.results if one.budget == whole.budget)
        assert best <= whole.prediction.error


@pytest.mark.slow
def test_the_choice_is_near_the_best_of_a_full_search() -> None:
    """Simulating every load finds an error at most .03 below that of the choice."""
    campaign = of_labels()
    chosen = plan_budgets(campaign, (12.0,)).results[0]
    full = []
    for load in loads_to_compare(campaign):
        assigned = with_load(campaign, load)
        for one in candidates(assigned, 12.0 / largest_load(assigned) * (1 - 1e-12), search_only=True):
            full.append(predict(one.campaign, one.mechanism).error)

    assert min(full) >= chosen.prediction.error - 0.03


def test_the_least_budget_meets_the_target(made: Plan) -> None:
    """It is the first choice whose error is at most the target; smaller budgets say how many workers they need."""
    least = made.recommended

    assert least is not None
    assert least.prediction.error <= TARGET
    smaller = [one for one in made.results if one.axis_value < least.axis_value]
    assert all(one.prediction.error > TARGET for one in smaller)
    assert {one.axis_value for one in smaller} <= set(made.workers_needed)
    for budget, more in made.workers_needed.items():
        if more is not None and more.mechanism is not None:
            assert more.campaign.workers > made.campaign.workers
            assert largest_load(more.campaign) * more.mechanism.guarantee.epsilon <= budget


def test_sentences_name_the_worker_first(made: Plan) -> None:
    """The recommendation and the promise state epsilon per worker before epsilon per answer."""
    least = made.recommended
    assert least is not None
    promise = privacy_loss(least)

    assert promise.index("per worker") < promise.index("per answer")
    assert promise in verdict(made)[0]
    assert "Without assignment" in verdict(made)[1]


def test_numbers_are_planned_too() -> None:
    """On a scale the error falls below that of the constant at a large budget."""
    made = plan_budgets(of_numbers(), (30.0,))

    assert made.results[0].prediction.error < made.constant_error
    assert "least error" in verdict(made)[0]


@pytest.mark.parametrize("budgets", [(), (0.0,), (-1.0,), (float("inf"),)])
def test_a_budget_must_be_positive(budgets: tuple[float, ...]) -> None:
    """No budget, or one that is not positive and finite, is refused."""
    with pytest.raises(SettingsError, match="budgets per worker"):
        plan_budgets(of_labels(), budgets)


def test_an_assigned_campaign_is_refused() -> None:
    """The search chooses the assignment itself."""
    with pytest.raises(SettingsError, match="over all assignments"):
        plan_budgets(of_labels(assigned_per_task=5), BUDGETS)


@pytest.mark.parametrize("load", [2, 3, 7])
def test_more_workers_have_no_more_tasks_each(load: int) -> None:
    """The epsilon of a cell is a share of the budget by the tasks of a worker, whatever the number of workers."""
    assigned = with_load(of_labels(), load)

    assert all(largest_load(assigned.with_workers(workers)) <= load for workers in range(assigned.workers, 400))
