"""Selection of the next answers to buy, by the expected gain of one more report of a worker on a task.

Let p(z) be the posterior of a task, L(x | z) = sum_a P(x | a) pi(a | z) the probability of a report through the channel
P from a worker with confusion matrix pi, and C[z, d] the cost of the decision d (1 unless d = z). The expected cost of
the best decision falls in expectation by the value of information (Raiffa and Schlaifer 1961)
    G = min_d sum_z p(z) C[z, d] - sum_x min_d sum_z p(z) L(x | z) C[z, d] >= 0,
which is 0 if no single report changes the decision. The mutual information of truth and report, in nats,
    I = sum_x sum_z p(z) L(x | z) ln(L(x | z) / sum_y p(y) L(x | y)),
is positive for every informative report. `CrowdState.new_report_probability` discounts both for answers that
share causes.

A batch has at most one answer per task, since the gain of a second one depends on the first. Tasks with fewer than
`FIRST_REPORTS` reports come first: without answers in common, the qualities of workers are not identified.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.reports import Reports
from crowdveil.errors import SettingsError

FIRST_REPORTS = 2
"""Reports that every task gets before gains decide."""
ROUNDING = 1e-12
"""Largest gain that counts as 0: sums of probabilities are rounded."""
SHORTLIST = 2
LEADING_WORKERS = 32
TABLE_PAIRS = 1 << 24
"""Largest number of pairs (task, worker) that are searched together."""
CHUNK_NUMBERS = 1 << 20
"""Numbers in the tables of tasks that are evaluated together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CrowdState:
    """Fitted state of a crowd, from which gains follow.

    Attributes:
        posterior: p(z), indexed [task, truth].
        reports: number n of reports on each task, in answers without noise, shape (tasks,).
        likelihood: L_w(x | z), indexed [worker, truth, report].
        costs: C, indexed [truth, decision]; None for 1 unless they are equal.
        error_correlation: rho.
    """

    posterior: NDArray[np.float64]
    reports: NDArray[np.float64]
    likelihood: NDArray[np.float64]
    costs: NDArray[np.float64] | None = None
    error_correlation: float = 0.0

    @property
    def new_report_probability(self) -> NDArray[np.float64]:
        """Probability k that a further report on each task is new; otherwise it repeats what is known; shape (tasks,).

        With correlation rho of errors, n answers are worth n / (1 + (n - 1) rho) independent ones (see
        `hierarchical_dawid_skene`), and one more adds k = (1 - rho) / ((1 + n rho) (1 + (n - 1) rho)). The likelihood
        becomes k L(x | z) + (1 - k) sum_y p(y) L(x | y).
        """
        n, rho = self.reports, self.error_correlation
        return np.asarray((1 - rho) / ((1 + n * rho) * np.maximum(1 + (n - 1) * rho, 1 - rho)))

    @property
    def decision_costs(self) -> NDArray[np.float64]:
        """The costs C, indexed [truth, decision]."""
        return 1 - np.eye(self.posterior.shape[1]) if self.costs is None else self.costs


@dataclass(frozen=True, kw_only=True, eq=False)
class NextAnswers:
    """Answers to buy, in the order of choice.

    Attributes:
        task, worker: codes, shape (answers,).
        expected_gain: expected fall of the expected cost of the best decision (of the error, without costs).
        information: mutual information of truth and report, in nats.
        expected_cost: mean expected cost of the tasks that can be asked, before the answers.
    """

    task: NDArray[np.int64]
    worker: NDArray[np.int64]
    expected_gain: NDArray[np.float64]
    information: NDArray[np.float64]
    expected_cost: float


def report_gains(
    state: CrowdState, tasks: NDArray[np.int64], workers: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the expected gain G and the information I of one report, both indexed [task, worker]."""
    prior = state.posterior[tasks][:, None, :, None]
    joint = prior * state.likelihood[workers]
    repeated = prior * joint.sum(axis=2, keepdims=True)
    new = state.new_report_probability[tasks][:, None, None, None]
    joint = new * joint + (1 - new) * repeated
    costs = state.decision_costs
    now = (state.posterior[tasks] @ costs).min(axis=1)[:, None]
    after = np.einsum("twzx,zd->twxd", joint, costs).min(axis=3).sum(axis=2)
    ratio = np.divide(joint, repeated, out=np.ones_like(joint), where=joint > 0)
    information = (joint * np.log(ratio)).sum(axis=(2, 3))
    return _gains_without_rounding_errors(now - after), _gains_without_rounding_errors(information)


def _gains_without_rounding_errors(gains: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return gains, 0 for those that are rounding errors."""
    return np.where(gains > ROUNDING, gains, 0.0)


def next_answers(
    state: CrowdState,
    reports: Reports,
    *,
    budget: int,
    tasks: NDArray[np.int64] | None = None,
    per_worker: int | None = None,
) -> NextAnswers:
    """Return the answers to buy, at most one for each task; fewer than the budget if there are no more.

    The pair (task, worker) with the largest gain is chosen, again and again, among workers who have not answered the
    task. The search is over `SHORTLIST` times as many tasks as answers: those with the largest gain by one of the
    `LEADING_WORKERS` best workers.

    Args:
        state: fitted state of the crowd.
        reports: cells that are not asked again, over the same tasks and workers.
        budget: number of answers.
        tasks: codes of the tasks that can be asked; None for all.
        per_worker: largest number of answers of a worker; None for no bound.

    Raises:
        SettingsError: a budget or a bound below 1, or no worker.
    """
    for name, number in (("budget", budget), ("answers of a worker", per_worker), ("workers", len(state.likelihood))):
        if number is not None and number < 1:
            raise SettingsError(f"the number of {name} must be at least 1", value=number)
    most = budget if per_worker is None else per_worker
    open_tasks = np.arange(len(state.posterior)) if tasks is None else tasks
    found = _GreedyChoice(state, reports, open_tasks, np.full(len(state.likelihood), most)).chosen_pairs_best_first(
        budget
    )
    task, worker, gain, information = (np.concatenate(column) for column in zip(*found, strict=True))
    return NextAnswers(
        task=task,
        worker=worker,
        expected_gain=gain,
        information=information,
        expected_cost=float((state.posterior[open_tasks] @ state.decision_costs).min(axis=1).mean()),
    )


class _Picked(NamedTuple):
    """Chosen pairs with G and I, each of shape (pairs,)."""

    task: NDArray[np.int64]
    worker: NDArray[np.int64]
    gain: NDArray[np.float64]
    information: NDArray[np.float64]


@dataclass
class _GreedyChoice:
    """Greedy choice of `tasks` and workers; each worker has `room` for so many answers, shape (workers,)."""

    state: CrowdState
    reports: Reports
    tasks: NDArray[np.int64]
    room: NDArray[np.int64]

    def chosen_pairs_best_first(self, budget: int) -> list[_Picked]:
        """Return the chosen pairs in parts, best first."""
        tasks, found = self._tasks_by_best_gain(), list[_Picked]()
        most = max(1, TABLE_PAIRS // len(self.room))
        while True:
            listed = tasks[: min(SHORTLIST * budget, most)]
            part = self._pick_pairs_of_workers_with_room(
                listed, min(budget, max(1, len(listed) // SHORTLIST) if len(listed) == most else budget)
            )
            found.append(part)
            budget -= len(part.task)
            tasks = tasks[~np.isin(tasks, part.task)] if len(part.task) else tasks[len(listed) :]
            if not budget or not len(tasks):
                return found

    def _tasks_by_best_gain(self) -> NDArray[np.int64]:
        """Return all tasks, those with too few reports first, then by the gain of the best of the leading workers."""
        mean = CrowdState(
            posterior=self.state.posterior[self.tasks].mean(axis=0, keepdims=True),
            reports=np.zeros(1),
            likelihood=self.state.likelihood,
        )
        quality = report_gains(mean, np.zeros(1, dtype=np.int64), np.arange(len(self.room)))[1][0]
        leading = np.argsort(-quality, kind="stable")[:LEADING_WORKERS]
        best = np.concatenate(
            [
                np.stack([part.max(axis=1) for part in (information, gain)], axis=1)
                for gain, information in self._gains(self.tasks, leading)
            ]
        )
        return self.tasks[np.lexsort((-best[:, 1], -best[:, 0], self._negated_missing_first_reports(self.tasks)))]

    def _gains(
        self, tasks: NDArray[np.int64], workers: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        step = max(1, CHUNK_NUMBERS // (len(workers) * self.state.likelihood[0].size))
        return (report_gains(self.state, tasks[at : at + step], workers) for at in range(0, len(tasks), step))

    def _negated_missing_first_reports(self, tasks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return 0 minus the number of first reports that each task lacks."""
        return -np.maximum(FIRST_REPORTS - np.asarray(self.reports.per_task)[tasks].astype(np.int64), 0)

    def _pick_pairs_of_workers_with_room(self, tasks: NDArray[np.int64], budget: int) -> _Picked:
        """Return the greedy choice of pairs of these tasks and the workers with room."""
        open_to = np.flatnonzero(self.room > 0)
        parts = list(self._gains(tasks, open_to)) if len(open_to) else []
        if not parts:
            nothing, none = np.zeros(0, dtype=np.int64), np.zeros(0)
            return _Picked(nothing, nothing, none, none)
        gain, information = (np.concatenate(column) for column in zip(*parts, strict=True))
        row, column = np.nonzero(~self._has_answered_by_task_and_worker(tasks, open_to))
        order = np.lexsort(
            (-gain[row, column], -information[row, column], self._negated_missing_first_reports(tasks)[row])
        )
        used, chosen = np.zeros(len(tasks), dtype=bool), list[int]()
        for place in order.tolist():
            at, worker = int(row[place]), int(open_to[column[place]])
            if used[at] or not self.room[worker]:
                continue
            used[at] = True
            self.room[worker] -= 1
            chosen.append(place)
            if len(chosen) == budget:
                break
        rows, columns = row[chosen], column[chosen]
        return _Picked(tasks[rows], open_to[columns], gain[rows, columns], information[rows, columns])

    def _has_answered_by_task_and_worker(
        self, tasks: NDArray[np.int64], workers: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return whether each worker has answered each task, indexed [task, worker]."""
        place = np.full(len(self.state.likelihood), -1)
        place[workers] = np.arange(len(workers))
        blocks = [self.reports.rows.block(task, task + 1).worker for task in tasks.tolist()]
        row, column = np.repeat(np.arange(len(tasks)), list(map(len, blocks))), place[np.concatenate(blocks)]
        found = np.zeros((len(tasks), len(workers)), dtype=bool)
        found[row[column >= 0], column[column >= 0]] = True
        return found
