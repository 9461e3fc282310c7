"""Online inference by incremental EM (Neal and Hinton 1998): the cost of an update depends on its own reports only.

Tasks whose reports are kept are open: they are updated when reports on them arrive, and in turn with every `add`. A
task whose reports were dropped is closed: its last contribution to the sums stays, and its last posterior is the prior
of late reports.
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
from crowdveil.em.estimator import one_of, summarize
from crowdveil.em.gold import NO_GOLD
from crowdveil.errors import ReportsError, SettingsError, to_builtin
from crowdveil.estimators.confusion.model import ConfusionEstimator
from crowdveil.incremental.online_em import OnlineCrowd, Rows, grown_to

TASKS_PER_STEP = 64
"""Number of tasks of one EM step."""
REVISITED_REPORTS = 4
"""Reports of open tasks that are revisited for every new report."""
KEPT_REPORTS = 1 << 20
"""Default number of kept reports."""

Codes = NDArray[np.int64]


class _TaskReports(NamedTuple):
    """The kept reports on one task: codes of workers and of symbols."""

    worker: Codes
    symbol: Codes


class Stream:
    """Online estimate of truths and worker qualities.

    Memory: a confusion matrix per worker, a posterior per task, and the newest reports. Time of `add`: the reports of
    its tasks, four more per new report, and the confusion matrices of their workers; behind a channel, those of all
    workers for every 64 tasks.

    Args:
        estimator: dawid-skene or one-coin.
        alphabet: labels of the reports; by default those of the channel.
        channel: channel of the reports; None reads them as answers.
        workers: names of all workers, if the channel protects participation: each task is then added once, with all its
            reports, and a worker without a report on it has sent NULL.
        gold: known truths by task name.
        prior: public prior probability of each label.
        kept_reports: number of newest reports to keep, whose tasks stay open.

    Attributes:
        kept: number of kept reports.
        adds: number of calls of `add`.

    Raises:
        SettingsError: another method, a setting out of range, or workers that are missing or not needed.
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
        if known is None or not (isinstance(estimator, ConfusionEstimator) and estimator.capabilities.online):
            raise SettingsError(
                "a stream needs a method for streams, and labels or a channel",
                value=estimator.name if known is not None else known,
                hint=f"Use {one_of(online=True)}.",
            )
        if channel is not None and not isinstance(channel, Channel):
            raise SettingsError("a stream reads one channel, not a table of them", value=channel.mechanism)
        protected = channel is not None and channel.participation == "protected"
        if protected != (workers is not None):
            raise SettingsError(
                "a stream needs the names of all workers if participation is protected, and only then", value=workers
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
        self._open: OrderedDict[int, _TaskReports] = OrderedDict()
        self._turn: deque[int] = deque()
        self.kept = self.adds = 0

    def add(self, reports: Reports) -> None:
        """Update truths and workers with reports on new or old tasks; a report that is added twice counts twice.

        If participation is protected, all listed tasks are complete, those without a report included.

        Raises:
            ReportsError: other labels, or, if participation is protected, a task that was added before or an unknown
                worker; the stream is then unchanged.
        """
        self._check(reports)
        self.adds += 1
        task, worker = self._codes(reports)
        for first in range(0, len(task), TASKS_PER_STEP):
            block = reports.rows.block(first, min(first + TASKS_PER_STEP, len(task)))
            starts = block.pointers.astype(np.int64)
            rows = Rows(worker[block.worker], block.value.astype(np.int64), starts)
            self._receive(task[block.first : block.stop], rows)
            self._revisit(REVISITED_REPORTS * len(rows.worker))
            self._close()

    def settle(self) -> int:
        """Update all open tasks until the estimator's stopping rule holds; return the number of passes.

        A pass reads all kept reports. If no task is closed, the result is a fixed point of the fit of all reports.
        """
        estimator = self._crowd.estimator
        self._crowd.warm = True
        passes, moved = 0, np.inf
        while moved > estimator.tolerance and passes < estimator.max_steps:
            before = self._posterior[: len(self._tasks)].copy()
            self._revisit(None)
            passes, moved = passes + 1, np.abs(self._posterior[: len(self._tasks)] - before).max(initial=0.0)
        return passes

    def posterior(self, task: str) -> NDArray[np.float64]:
        """Return the last posterior of a task, shape (labels,).

        Raises:
            ReportsError: a task that was never added.
        """
        if task not in self._tasks:
            raise ReportsError("only tasks that were added have a truth", examples=task, hint="Add its reports.")
        return self._posterior[self._tasks[task]].copy()

    def truth(self, task: str) -> str:
        """Return the most probable label of a task, the first of tied ones; errors as in `posterior`."""
        alphabet = self._crowd.summary.alphabet
        assert alphabet is not None
        return alphabet.names[int(self.posterior(task).argmax())]

    def estimate(self) -> Estimate:
        """Return all truths and workers, with posteriors of open tasks recomputed from all kept reports.

        Tasks and workers are in order of arrival; `steps` counts calls of `add`, `converged` is False.
        """
        posterior = self._posterior[: len(self._tasks)].copy()
        for tasks in _groups(np.array(list(self._open), dtype=np.int64)):
            posterior[tasks] = self._crowd.infer(self._rows(tasks), self._known[tasks])
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
            stopped="limit",
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
                "if participation is protected, all reports on a task must be added together",
                examples=", ".join(again[:3]),
                hint="Add a task when it is complete, with every report on it.",
            )
        if strangers:
            raise ReportsError(
                "if participation is protected, all workers must be named when the stream starts",
                examples=", ".join(strangers[:3]),
                hint="Start a stream with all workers.",
            )

    def _codes(self, reports: Reports) -> tuple[Codes, Codes]:
        """Register new names; return the codes of the reports' tasks, and of workers with a report."""
        sent = np.unique(reports.worker)
        worker = np.zeros(len(reports.workers), dtype=np.int64)
        worker[sent] = [self._workers.setdefault(str(name), len(self._workers)) for name in reports.workers[sent]]
        names, met = [str(name) for name in reports.tasks], len(self._tasks)
        task = np.array([self._tasks.setdefault(name, len(self._tasks)) for name in names], dtype=np.int64)
        size = len(self._tasks)
        self._posterior, self._per_task = grown_to(self._posterior, size), grown_to(self._per_task, size)
        self._known = grown_to(self._known, size)
        new = task >= met
        self._known[task[new]] = [
            self._gold.get(name, NO_GOLD) for name, is_new in zip(names, new, strict=True) if is_new
        ]
        return task, worker

    def _receive(self, tasks: Codes, rows: Rows) -> None:
        """Count reports and update their tasks."""
        new = tasks >= self._crowd.tasks
        held = np.array([int(task) in self._open for task in tasks], dtype=bool)
        self._crowd.count(rows, len(self._workers), max(self._crowd.tasks, int(tasks.max()) + 1))
        self._per_task[tasks] += np.diff(rows.pointers)
        self._update_closed(tasks, rows, ~(new | held))
        for place in np.flatnonzero(new | held):
            task, own = int(tasks[place]), slice(*rows.pointers[place : place + 2])
            sent = _TaskReports(rows.worker[own], rows.symbol[own])
            if held[place]:
                self._retract(np.array([task]))
                sent = _TaskReports(*(np.concatenate(pair) for pair in zip(self._open[task], sent, strict=True)))
            else:
                self._turn.append(task)
            self._open[task] = sent
            self._open.move_to_end(task)
        self.kept += int(np.diff(rows.pointers)[new | held].sum())
        self._update(tasks[new | held])

    def _update_closed(self, tasks: Codes, rows: Rows, late: NDArray[np.bool_]) -> None:
        """Update closed tasks by late reports, with the last posterior as the prior."""
        late &= np.diff(rows.pointers) > 0
        if not late.any():
            return
        mine = late[rows.task]
        sizes = np.diff(rows.pointers)[late]
        few = Rows(rows.worker[mine], rows.symbol[mine], np.concatenate(([0], np.cumsum(sizes))))
        earlier = self._posterior[tasks[late]]
        posterior = self._crowd.predict(few, earlier, self._known[tasks[late]])
        self._posterior[tasks[late]] = posterior
        self._crowd.add(few, posterior, (posterior - earlier).sum(axis=0))

    def _revisit(self, reports: int | None) -> None:
        """Update open tasks in turn, up to about this number of reports (None: all), each at most once."""
        visited, read = list[int](), 0
        while self._turn and (reports is None or read < reports):
            task = self._turn.popleft()
            if task in self._open:
                visited.append(task)
                read += max(1, len(self._open[task].worker))
        self._turn.extend(visited)
        for tasks in _groups(np.array(visited, dtype=np.int64)):
            self._retract(tasks)
            self._update(tasks)

    def _update(self, tasks: Codes) -> None:
        if len(tasks):
            self._posterior[tasks] = self._crowd.update(self._rows(tasks), self._known[tasks])

    def _retract(self, tasks: Codes) -> None:
        posterior = self._posterior[tasks]
        self._crowd.retract(self._rows(tasks), posterior)

    def _close(self) -> None:
        """Drop the reports of the least recently reported tasks while too many are kept."""
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
    """Yield tasks in groups of `TASKS_PER_STEP`."""
    for first in range(0, len(tasks), TASKS_PER_STEP):
        yield tasks[first : first + TASKS_PER_STEP]


def _coded(gold: Mapping[str, Any], alphabet: Alphabet | None) -> dict[str, int]:
    names = () if alphabet is None else alphabet.names
    for task, truth in gold.items():
        if truth not in names:
            raise ReportsError(
                f"gold {to_builtin(truth)!r} of task {to_builtin(task)!r} must be among {names}", source="gold"
            )
    return {task: names.index(truth) for task, truth in gold.items()}
