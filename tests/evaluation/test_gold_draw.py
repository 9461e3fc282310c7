"""The draw of gold: every task is as likely as any other, a larger draw extends a smaller one, gaps are refused."""

import numpy as np
import pytest

from crowdveil.errors import ReportsError
from crowdveil.evaluation.gold_draw import draw_order, drawn_tasks, require_drawn

TASKS = [f"t{number}" for number in range(40)]


def test_every_task_is_equally_likely() -> None:
    """Over 4,000 seeds each task is among the first 10 in 25 % of draws, within five standard errors (.7 %)."""
    first = np.concatenate([draw_order(TASKS, seed)[:10] for seed in range(4000)])
    shares = np.bincount(first, minlength=40) / 4000

    assert np.abs(shares - 0.25).max() < 5 * (0.25 * 0.75 / 4000) ** 0.5


def test_the_order_does_not_depend_on_the_order_of_tasks_or_on_new_ones() -> None:
    """Tasks keep their order in other lists and beside new tasks; those without reports are not drawn."""
    order = [TASKS[place] for place in draw_order(TASKS, 7)]
    shuffled = [*TASKS[::-1], "new"]
    again = [shuffled[place] for place in draw_order(shuffled, 7)]

    assert order == [task for task in again if task != "new"]
    reports = np.ones(40, dtype=np.int64)
    reports[TASKS.index(order[0])] = 0
    assert order[1:] == drawn_tasks(TASKS, reports, 7)


def test_gaps_are_refused() -> None:
    """Gold without a task that was drawn before others is refused by name; tasks without reports do not count."""
    order = [TASKS[place] for place in draw_order(TASKS, 7)]
    gold = dict.fromkeys(order[:12], "yes")

    require_drawn(gold | {"unasked": "no"}, order, 7)
    del gold[order[3]]
    with pytest.raises(ReportsError, match=f"1 are missing.*{order[3]}"):
        require_drawn(gold, order, 7)
