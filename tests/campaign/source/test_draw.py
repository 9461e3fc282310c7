"""Random assignment with exclusions: never an excluded task, balanced, uniform over tasks and slots."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.campaign.source.draw import draw_assignment
from crowdveil.errors import SettingsError
from crowdveil.randomness import secure, seeded

STUDENTS, EACH, DRAWINGS = 72, 5, 1_000
OWN = [{student} for student in range(STUDENTS)]


def slots_per_task(lists, tasks):
    """Return the number of slots of each task."""
    return np.bincount([task for taken in lists for task in taken], minlength=tasks)


@pytest.mark.slow
def test_nobody_is_asked_about_the_own_essay_in_a_thousand_drawings():
    """In 1,000 drawings no student gets the own essay, each gets five others, and each essay has five readers.

    All other pairs are equally frequent: each count is binomial(1000, 5/71); the largest of 5,112 deviations exceeds
    six standard deviations with probability below 1e-4.
    """
    pairs = np.zeros((STUDENTS, STUDENTS), dtype=int)
    source = seeded(1)
    for _ in range(DRAWINGS):
        lists = draw_assignment(STUDENTS, STUDENTS, EACH, OWN, source)
        assert {EACH} == set(map(len, lists)) == set(slots_per_task(lists, STUDENTS).tolist())
        for slot, taken in enumerate(lists):
            pairs[slot, list(taken)] += 1

    share = EACH / (STUDENTS - 1)
    deviations = np.abs(pairs - DRAWINGS * share) / np.sqrt(DRAWINGS * share * (1 - share))

    assert 0 == np.trace(pairs)
    assert deviations[~np.eye(STUDENTS, dtype=bool)].max() < 6


@st.composite
def requests(draw):
    """Draw numbers of tasks and slots, tasks per worker, and exclusions that leave enough tasks."""
    tasks, slots = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    each = draw(st.integers(1, tasks))
    exclusions = st.sets(st.integers(0, tasks - 1), max_size=tasks - each)
    return tasks, slots, each, draw(st.lists(exclusions, min_size=slots, max_size=slots))


@pytest.mark.slow
@given(requests(), st.integers(0, 100))
def test_no_exchange_would_balance_more(request, seed):
    """Every slot gets its number of allowed tasks, and the sum of squared loads is the smallest that is possible."""
    tasks, slots, each, excluded = request

    lists = draw_assignment(tasks, slots, each, excluded, seeded(seed))

    assert [each] * slots == [len(set(taken)) for taken in lists]
    assert all(list(taken) == sorted(set(taken) - excluded[slot]) for slot, taken in enumerate(lists))
    assert best_squares(tasks, each, excluded) == int((slots_per_task(lists, tasks) ** 2).sum())


def best_squares(tasks, each, excluded):
    """Return the smallest sum of squared numbers of slots per task, by augmenting paths.

    Slots are served one by one; each unit of flow ends at the reachable task with the smallest load.
    """
    held = [set() for _ in excluded]
    loads = [0] * tasks
    for slot in range(len(excluded)):
        for _ in range(each):
            came = {task: (slot, None) for task in range(tasks) if task not in excluded[slot] | held[slot]}
            queue = list(came)
            for task in queue:
                for other in range(slot + 1):
                    if task in held[other]:
                        for new in set(range(tasks)) - excluded[other] - held[other] - came.keys():
                            came[new] = (other, task)
                            queue.append(new)
            task = min(queue, key=lambda task: loads[task])
            loads[task] += 1
            while task is not None:
                other, given_up = came[task]
                held[other].add(task)
                if given_up is not None:
                    held[other].remove(given_up)
                task = given_up
    return sum(load**2 for load in loads)


def test_without_a_number_everybody_gets_all_other_tasks():
    """Without a number per worker each slot gets every task that is not excluded."""
    assert ((1, 2), (0, 2), (0, 1, 2)) == draw_assignment(3, 3, None, [{0}, {1}, set()], secure())


@pytest.mark.parametrize("each", [None, 2])
def test_too_few_tasks_are_refused(each):
    """A worker who may get fewer tasks than needed is named."""
    excluded = [set(), {0, 1} if each else {0, 1, 2}]
    with pytest.raises(SettingsError, match="worker 1 has") as caught:
        draw_assignment(3, 2, each, excluded, secure())

    assert "not_for" in caught.value.hint
