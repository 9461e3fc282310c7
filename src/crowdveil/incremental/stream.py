"""Truths and abilities while reports come in: each `add` costs its own reports, never those of the past.

Incremental EM over tasks (Neal and Hinton 1998). Tasks whose reports are still kept are open: they are looked at again
when reports come, and some of them in turn with every `add`. A task whose reports were dropped is closed: what it last
said of its workers stays, and late reports are read with what was last believed of its truth.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import Channel
from crowdveil.data.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.em.estimator import summarize
from crowdveil.em.gold import NO_GOLD
from crowdveil.errors import ReportsError, SettingsError, to_builtin
from crowdveil.estimators.confusion.model import ConfusionEstimator
from crowdveil.incremental.online_em import OnlineCrowd, Rows, with_room

TASKS_AT_ONCE = 64
"""Tasks of one step: after it, the next ones are read with what it taught."""
SECOND_LOOKS = 4
"""Reports of open tasks that are looked at again for every report that came in."""
KEPT_REPORTS = 1 << 20

Codes = NDArray[np.int64]


class _Sent(NamedTuple):
    """The kept reports on one task: codes of workers and of symbols."""

    worker: Codes
    symbol: Codes


class Stream:
    """An estimate that grows with the reports.

    Memory: a table for every worker, a posterior for every task seen, and the newest reports. Time of `add`: the
    reports of the tasks that it touches and four more for each, and the tables of the workers who sent these; behind a
    channel, the tables of all workers for every 64 tasks.

    Args:
        estimator: dawid-skene or one-coin.
        alphabet: the labels of reports; those of the channel unless given.
        channel: what reports go through; None reads them as answers.
        workers: everybody's name, where participation is protected: then a task comes whole, all of its reports in one
            `add`, and every worker without a report on it has sent NULL.
        gold: known truths by task name.
        prior: public prior probability of each label.
        kept_reports: how many reports are kept, so that their tasks stay open.

    Attributes:
        kept: number of reports that are kept now.
        adds: how often reports were taken in.

    Raises:
        SettingsError: another method, a setting out of range, or workers missing or given in vain.
        ReportsError: a gold truth that is no label.
    """

    def __init__(
        self,
        estimator: ConfusionEstimator,
        alphabet: Alphabet | None = None,
        *,
        channel: Channel | None = None,
        workers: list[str] | None = None,
        gold: Mapping[str, str] | None = None,
        prior: Mapping[str, float] | None = None,
        kept_reports: int = KEPT_REPORTS,
    ) -> None:
        known = channel.report_alphabet if channel is not None and alphabet is None else alphabet
        if known is None or not isinstance(estimator, ConfusionEstimator):
            raise SettingsError("a stream needs dawid-skene or one-coin, and labels or a channel", value=estimator)
        if channel is not None and not isinstance(channel, Channel):
            raise SettingsError("a stream reads one channel, not a table of them", value=channel.mechanism)
        protected = channel is not None and channel.participation == "protected"
        if protected != (workers is not None):
            raise SettingsError(
                "a stream must know all workers where participation is protected, and only there", value=workers
            )
        if kept_reports < 0:
            raise SettingsError("kept_reports must not be negative", value=kept_reports)
        nothing = np.zeros(0, dtype=np.int32)
        probe = Reports(nothing, nothing, nothing, np.array(["task"]), np.array(["worker"]), known)
        self._alphabet, self._channel, self._kept_reports = known, channel, kept_reports
        self._crowd = OnlineCrowd(estimator, summarize(estimator, probe, channel, None, prior)[1])
        self._gold = _coded(gold or {}, self._crowd.summary.alphabet)
        self._workers = {name: code for code, name in enumerate(workers or ())}
        self._tasks: dict[str, int] = {}
        self._known = np.zeros(0, dtype=np.int64)
        self._per_task = np.zeros(0, dtype=np.int64)
        self._posterior = np.zeros((0, self._crowd.summary.labels))
        self._open: OrderedDict[int, _Sent] = OrderedDict()
        self._turn: deque[int] = deque()
        self.kept = self.adds = 0

    def add(self, reports: Reports) -> None:
        """Take reports in, of new and old tasks and workers; a report that is added twice counts twice.

        Where participation is protected, the tasks that `reports` lists are complete, those without a report too.

        Raises:
            ReportsError: other labels, or, where participation is protected, a task that was complete before or a
                worker who was not named; then nothing is taken in.
        """
        self._check(reports)
        self.adds += 1
        task, worker = self._codes(reports)
        for first in range(0, len(task), TASKS_AT_ONCE):
            block = reports.rows.block(first, min(first + TASKS_AT_ONCE, len(task)))
            starts = block.pointers.astype(np.int64)
            rows = Rows(worker[block.worker], block.value.astype(np.int64), starts)
            self._take_in(task[block.first : block.stop], rows)
            self._look_again(SECOND_LOOKS * len(rows.worker))
            self._close()

    def settle(self) -> int:
        """Look at all open tasks again and again, by the estimator's rule for stopping; return how often.

        Each pass takes as long as all kept reports. If no task is closed, this ends where a fit of all reports ends, or
        in another optimum of its objective.
        """
        estimator = self._crowd.estimator
        self._crowd.warm = True
        passes, moved = 0, np.inf
        while moved > estimator.tolerance and passes < estimator.max_steps:
            before = self._posterior[: len(self._tasks)].copy()
            self._look_again(None)
            passes, moved = passes + 1, np.abs(self._posterior[: len(self._tasks)] - before).max(initial=0.0)
        return passes

    def posterior(self, task: str) -> NDArray[np.float64]:
        """Return what was believed of a task's truth when it was last looked at, shape (labels,).

        Raises:
            ReportsError: a task that was never added.
        """
        if task not in self._tasks:
            raise ReportsError("only tasks that were added have a truth", examples=task, hint="Add its reports.")
        return self._posterior[self._tasks[task]].copy()

    def truth(self, task: str) -> str:
        """Return the likeliest label of a task, of tied ones the alphabet's first; errors as `posterior`."""
        alphabet = self._crowd.summary.alphabet
        assert alphabet is not None
        return alphabet.names[int(self.posterior(task).argmax())]

    def estimate(self) -> Estimate:
        """Return all truths and workers; open tasks are read once more, so this takes as long as all kept reports.

        Tasks and workers are in the order in which they came; `steps` counts calls of `add`, `converged` is False.
        """
        posterior = self._posterior[: len(self._tasks)].copy()
        for tasks in _groups(np.array(list(self._open), dtype=np.int64)):
            posterior[tasks] = self._crowd.read(self._rows(tasks), self._known[tasks])
        used = int((self._known[: len(self._tasks)] != NO_GOLD).sum())
        return Estimate(
            method=self._crowd.estimator.name,
            alphabet=self._crowd.summary.alphabet,
            tasks=np.array(list(self._tasks), dtype=str),
            posterior=posterior,
            reports_per_task=self._per_task[: len(self._tasks)].copy(),
            worker_names=np.array(list(self._workers), dtype=str),
            workers=self._crowd.table(),
            reports_per_worker=self._crowd.per_worker,
            log_likelihoods=(),
            steps=self.adds,
            converged=False,
            channel_used=self._channel is not None,
            gold_used=used,
            gold_unknown=len(self._gold) - used,
        )

    def _check(self, reports: Reports) -> None:
        summarize(self._crowd.estimator, reports, self._channel, None, None)
        if reports.alphabet is None or reports.alphabet.names != self._alphabet.names:
            raise ReportsError(f"reports must be in the labels of the stream, {self._alphabet.names}")
        if not self._crowd.summary.model.protected:
            return
        again = [str(name) for name in reports.tasks if str(name) in self._tasks]
        strangers = [str(name) for name in reports.workers if str(name) not in self._workers]
        if again:
            raise ReportsError(
                "where participation is protected, all reports on a task come together",
                examples=", ".join(again[:3]),
                hint="Add a task when it is complete, with every report on it.",
            )
        if strangers:
            raise ReportsError(
                "where participation is protected, the workers are those named at the beginning",
                examples=", ".join(strangers[:3]),
                hint="Begin a stream with all workers.",
            )

    def _codes(self, reports: Reports) -> tuple[Codes, Codes]:
        """Name what is new; return the codes of the reports' tasks, and of the workers who sent any."""
        sent = np.unique(reports.worker)
        worker = np.zeros(len(reports.workers), dtype=np.int64)
        worker[sent] = [self._workers.setdefault(str(name), len(self._workers)) for name in reports.workers[sent]]
        names, met = [str(name) for name in reports.tasks], len(self._tasks)
        task = np.array([self._tasks.setdefault(name, len(self._tasks)) for name in names], dtype=np.int64)
        size = len(self._tasks)
        self._posterior, self._per_task = with_room(self._posterior, size), with_room(self._per_task, size)
        self._known = with_room(self._known, size)
        new = task >= met
        self._known[task[new]] = [
            self._gold.get(name, NO_GOLD) for name, is_new in zip(names, new, strict=True) if is_new
        ]
        return task, worker

    def _take_in(self, tasks: Codes, rows: Rows) -> None:
        """Count reports, and look at their tasks."""
        new = tasks >= self._crowd.tasks
        held = np.array([int(task) in self._open for task in tasks], dtype=bool)
        self._crowd.count(rows, len(self._workers), max(self._crowd.tasks, int(tasks.max()) + 1))
        self._per_task[tasks] += np.diff(rows.pointers)
        self._read_late(tasks, rows, ~(new | held))
        for place in np.flatnonzero(new | held):
            task, own = int(tasks[place]), slice(*rows.pointers[place : place + 2])
            sent = _Sent(rows.worker[own], rows.symbol[own])
            if held[place]:
                self._forget(np.array([task]))
                sent = _Sent(*(np.concatenate(pair) for pair in zip(self._open[task], sent, strict=True)))
            else:
                self._turn.append(task)
            self._open[task] = sent
            self._open.move_to_end(task)
        self.kept += int(np.diff(rows.pointers)[new | held].sum())
        self._look(tasks[new | held])

    def _read_late(self, tasks: Codes, rows: Rows, late: NDArray[np.bool_]) -> None:
        """Read reports on closed tasks: what was believed of their truths is all that is left of earlier ones."""
        late &= np.diff(rows.pointers) > 0
        if not late.any():
            return
        mine = late[rows.task]
        sizes = np.diff(rows.pointers)[late]
        few = Rows(rows.worker[mine], rows.symbol[mine], np.concatenate(([0], np.cumsum(sizes))))
        believed = self._posterior[tasks[late]]
        posterior = self._crowd.predict(few, believed, self._known[tasks[late]])
        self._posterior[tasks[late]] = posterior
        self._crowd.learn(few, posterior, (posterior - believed).sum(axis=0))

    def _look_again(self, reports: int | None) -> None:
        """Look at open tasks in turn, of about so many reports in all (None: all of them), none of them twice."""
        seen, looked = list[int](), 0
        while self._turn and (reports is None or looked < reports):
            task = self._turn.popleft()
            if task in self._open:
                seen.append(task)
                looked += max(1, len(self._open[task].worker))
        self._turn.extend(seen)
        for tasks in _groups(np.array(seen, dtype=np.int64)):
            self._forget(tasks)
            self._look(tasks)

    def _look(self, tasks: Codes) -> None:
        if len(tasks):
            self._posterior[tasks] = self._crowd.look(self._rows(tasks), self._known[tasks])

    def _forget(self, tasks: Codes) -> None:
        posterior = self._posterior[tasks]
        self._crowd.forget(self._rows(tasks), posterior)

    def _close(self) -> None:
        """Drop the reports of the tasks that have been without a new one for longest, as far as too many are kept."""
        while self.kept > self._kept_reports:
            _, sent = self._open.popitem(last=False)
            self.kept -= len(sent.worker)

    def _rows(self, tasks: Codes) -> Rows:
        """Return all kept reports on open tasks."""
        sent = [self._open[int(task)] for task in tasks]
        sizes = [len(one.worker) for one in sent]
        columns = [np.concatenate(column) for column in zip(*sent, strict=True)]
        return Rows(columns[0], columns[1], np.concatenate(([0], np.cumsum(sizes))))


def _groups(tasks: Codes) -> Iterator[Codes]:
    """Yield tasks in groups of `TASKS_AT_ONCE`."""
    for first in range(0, len(tasks), TASKS_AT_ONCE):
        yield tasks[first : first + TASKS_AT_ONCE]


def _coded(gold: Mapping[str, Any], alphabet: Alphabet | None) -> dict[str, int]:
    names = () if alphabet is None else alphabet.names
    for task, truth in gold.items():
        if truth not in names:
            raise ReportsError(
                f"gold {to_builtin(truth)!r} of task {to_builtin(task)!r} must be among {names}", source="gold"
            )
    return {task: names.index(truth) for task, truth in gold.items()}
