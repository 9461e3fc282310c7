"""Division of one epsilon over tasks, so that it holds per claim or per worker."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.guarantee import Guarantee, Participation, Unit
from crowdveil.channels.rounding import float_rounded_up
from crowdveil.randomness import Source
from crowdveil.synthesis.discrete_noise import EPSILON_BITS, Integers, round_epsilon_down
from crowdveil.synthesis.original_claims import Claims


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskBudgets:
    """Privacy budget of every task, and the total loss per claim and per worker.

    Attributes:
        epsilon: requested bound.
        unit: "cell" or "worker", whose loss `epsilon` bounds.
        participation: "public": neighbours replace claims; "protected": they also add and remove them.
        most_claims: number of claims of one worker that are used; None for all.
        divisor: task t spends epsilon / divisor[t] on a replaced claim, shape (tasks,); an added or removed claim costs
            half of that.
        per_worker: number of used claims of each worker, shape (workers,); empty if participation is protected.
        largest_task_epsilon: largest budget among the tasks of each worker, shape as `per_worker`.
    """

    epsilon: float
    unit: Unit
    participation: Participation
    most_claims: int | None
    divisor: Integers
    per_worker: Integers
    largest_task_epsilon: NDArray[np.float64]

    @cached_property
    def exact_task_epsilon(self) -> dict[int, Fraction]:
        """Budget of a task by its divisor."""
        return {int(divisor): round_epsilon_down(self.epsilon / int(divisor)) for divisor in np.unique(self.divisor)}

    @cached_property
    def task_epsilon(self) -> NDArray[np.float64]:
        """Budget of every task, shape (tasks,)."""
        return np.array([float(self.exact_task_epsilon[int(divisor)]) for divisor in self.divisor])

    def sample_used(self, claims: Claims, source: Source) -> NDArray[np.bool_]:
        """Return which claims are used: all, or `most_claims` of each worker at random; shape (claims,)."""
        if self.most_claims is None:
            return np.ones(len(claims), dtype=bool)
        order = np.lexsort((source.words(len(claims)), claims.worker))
        worker = claims.worker[order]
        used = np.empty(len(claims), dtype=bool)
        used[order] = np.arange(len(claims)) - np.searchsorted(worker, worker) < self.most_claims
        return used

    def guarantees(self) -> tuple[Guarantee, Guarantee]:
        """Return the guarantees for any change of one claim, and of all claims of one worker.

        With protected participation and `most_claims`, an added claim may displace another one: two tasks pay half of
        their budget each. Per worker, up to `most_claims` used claims are removed and as many are added.
        """
        reason = ""
        if self.participation == "public":
            # Budgets are multiples of 2**-EPSILON_BITS: products are whole numbers of them, without rounding.
            steps = np.ldexp(self.largest_task_epsilon, EPSILON_BITS).astype(np.int64)
            cell, worker = (
                float_rounded_up(Fraction(int(np.max(loss, initial=0)), 2**EPSILON_BITS))
                for loss in (steps, self.per_worker * steps)
            )
        else:
            task = max(self.exact_task_epsilon.values(), default=Fraction(0))
            cell, worker = (float_rounded_up(task * count) for count in (1, self.most_claims or 0))
            if self.most_claims is None:
                worker, reason = float("inf"), "any number of claims of one worker is used: give most_claims"
        participation = self.participation
        return (
            Guarantee(epsilon=cell, participation=participation),
            Guarantee(epsilon=worker, unit="worker", participation=participation, reason=reason),
        )


def allocated_budgets(
    claims: Claims, *, epsilon: float, unit: Unit, participation: Participation, most_claims: int | None
) -> TaskBudgets:
    """Return the budgets of all tasks for one epsilon.

    Per claim, every task spends all of epsilon: a change of one claim replaces one used claim, or adds one and removes
    one at half the loss each. Per worker, a task spends epsilon / r for the largest number r of used claims among its
    workers (protected participation: r = most_claims), so that no worker's sum exceeds epsilon.
    """
    per_worker = claims.per_worker if most_claims is None else np.minimum(claims.per_worker, most_claims)
    divisor = np.ones(len(claims.tasks), dtype=np.int64)
    if unit == "worker" and participation == "protected":
        divisor[:] = most_claims or 1
    elif unit == "worker":
        np.maximum.at(divisor, claims.task_of_each_claim, per_worker[claims.worker])
    known = participation == "public"
    budgets = TaskBudgets(
        epsilon=epsilon,
        unit=unit,
        participation=participation,
        most_claims=most_claims,
        divisor=divisor,
        per_worker=per_worker if known else np.zeros(0, dtype=np.int64),
        largest_task_epsilon=np.zeros(len(claims.workers) if known else 0),
    )
    if known:
        np.maximum.at(budgets.largest_task_epsilon, claims.worker, budgets.task_epsilon[claims.task_of_each_claim])
    return budgets
