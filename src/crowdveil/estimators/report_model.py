"""What a report can be and how it speaks of an answer: one column per symbol, whichever channel it came through.

Reports that went through different channels are told apart by their symbol: a symbol is a pair of a channel and one of
its outputs. NULL reports are counted, not listed, wherever every worker reports on every task; where tasks were
assigned, they are listed like any other symbol.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.assignment import Assignment
from crowdveil.channel import Channel
from crowdveil.channel_table import ChannelTable
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.labels import MAX_LABELS, NULL, Categories
from crowdveil.reports import Reports

LOUD = -1
"""Instead of a silent channel: cells that send nothing leave no report to be counted."""
UNSAID = "\0"
"""The name of NULL among names, where it is listed: no label may be called NULL."""


@dataclass(frozen=True, eq=False)
class ReportModel:
    """P(symbol | answer), and which cells send NULL reports that nobody lists.

    Silent channels are those whose NULL reports are counted. Groups are those of the table of channels; a single
    channel has one group of workers and one of tasks.

    Attributes:
        labels: number of labels an answer can have.
        protected: whether NULL is an input, the last one.
        table: P(symbol | input), indexed [input, symbol]; symbols are what blocks list.
        null: P(NULL | input) of each silent channel, indexed [input, silent].
        silent_of: silent channel whose NULL a listed symbol stands in place of, shape (symbols,); LOUD if none.
        says: whether a symbol is another than NULL, shape (symbols,).
        retention: share of the answer that survives each symbol's channel, shape (symbols,), and each silent channel's,
            shape (silent,), one after the other.
        choice: silent channel or LOUD, indexed [worker group, task group].
        worker_group, task_group: shapes (workers,) and (tasks,).
    """

    labels: int
    protected: bool
    table: NDArray[np.float64]
    null: NDArray[np.float64]
    silent_of: NDArray[np.int64]
    says: NDArray[np.bool_]
    retention: NDArray[np.float64]
    choice: NDArray[np.int64]
    worker_group: NDArray[np.int64]
    task_group: NDArray[np.int64]

    @property
    def symbols(self) -> int:
        """Number of listed symbols."""
        return self.table.shape[1]

    @property
    def silent(self) -> int:
        """Number of silent channels."""
        return self.null.shape[1]

    @property
    def everything(self) -> NDArray[np.float64]:
        """P(report | input) of listed symbols, then of the NULL of each silent channel; indexed [input, report]."""
        return np.concatenate((self.table, self.null), axis=1)

    @property
    def task_groups(self) -> int:
        """Number of groups of tasks."""
        return self.choice.shape[1]

    def replaces(self) -> NDArray[np.float64]:
        """Return 1 where a listed symbol stands in place of a silent channel's NULL, indexed [symbol, silent]."""
        return np.equal(self.silent_of[:, None], np.arange(self.silent)).astype(float)

    def silent_workers(self, task_group: int) -> NDArray[np.float64]:
        """Return 1 where a worker's unlisted report on tasks of the group is a silent channel's NULL, [worker, silent].

        Columns sum to the number of workers who send through each silent channel.
        """
        return np.equal(self.choice[self.worker_group, task_group][:, None], np.arange(self.silent)).astype(float)

    def silent_cells(self) -> NDArray[np.float64]:
        """Return the number of cells of each silent channel, listed or not, indexed [task group, silent]."""
        of_group = np.bincount(self.worker_group, minlength=len(self.choice))
        cells = np.zeros((self.task_groups, self.silent))
        for group, count in enumerate(of_group):
            for task_group, silent in enumerate(self.choice[group]):
                if silent != LOUD:
                    cells[task_group, silent] += count
        return cells

    def unlisted(self, listed: NDArray[np.float64], task_group: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how many workers sent each silent channel's NULL, indexed [task, silent].

        Args:
            listed: reports by symbol, indexed [task, symbol].
            task_group: group of each task, shape (tasks,).
        """
        return self.silent_cells()[task_group] - listed @ self.replaces()

    def null_totals(self, by_report: NDArray[np.float64], by_truth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums over the tasks whose NULL of each silent channel a worker sent, [worker, truth, silent].

        Args:
            by_report: the same sums over listed reports, indexed [worker, truth, symbol].
            by_truth: sums over all tasks, indexed [task group, truth].
        """
        chosen = np.equal(self.choice[:, :, None], np.arange(self.silent))
        asked = np.einsum("wgs,gz->wzs", chosen, by_truth)[self.worker_group]
        return np.maximum(asked - by_report @ self.replaces(), 0.0)


def report_model(
    channel: Channel | ChannelTable, reports: Reports, assignment: Assignment | None
) -> tuple[Reports, ReportModel]:
    """Return the reports by symbol, and the model of their symbols.

    Args:
        channel: what the reports went through; the identity where they are read as answers.
        reports: non-NULL reports, in the channel's own `report_alphabet`.
        assignment: cells that report; None if every worker reports on every task (or participation is public).

    Raises:
        ReportsError: a report that its cell's channel cannot send, from a cell that was not assigned, or an assigned
            cell without the report that its channel must send.
        SettingsError: a task or worker without a channel, or too many symbols.
    """
    table = channel if isinstance(channel, ChannelTable) else ChannelTable(channels=(channel,), choice=((0,),))
    protected = table.protects_participation
    parts = [_part(one, protected) for one in table.channels]
    listed = [assignment is not None or name != NULL for part in parts for name in part.names]
    channel_of = np.repeat(np.arange(len(parts)), [len(part.names) for part in parts])
    everything = np.concatenate([part.table for part in parts], axis=1)
    kept, silent = np.flatnonzero(listed), np.flatnonzero(~np.array(listed))
    silent_of_channel = np.full(len(parts), LOUD)
    silent_of_channel[channel_of[silent]] = np.arange(len(silent))
    task_group, worker_group = table.groups(reports.tasks, reports.workers)
    retention = np.array([one.retention for one in table.channels])[channel_of]
    names = np.array([name for part in parts for name in part.names])
    choice = np.array(table.choice)
    model = ReportModel(
        labels=table.alphabet.size,
        protected=protected,
        table=np.ascontiguousarray(everything[:, kept]),
        null=np.ascontiguousarray(everything[:, silent]),
        silent_of=silent_of_channel[channel_of[kept]],
        says=names[kept] != NULL,
        retention=np.concatenate((retention[kept], retention[silent])),
        choice=silent_of_channel[choice],
        worker_group=worker_group,
        task_group=task_group,
    )
    if len(parts) == 1 and assignment is None:
        return reports, model
    symbol = {(int(channel_of[k]), str(names[k])): place for place, k in enumerate(kept)}
    sent = reports if assignment is None else _with_nulls(reports, assignment, table)
    return _by_symbol(sent, choice[worker_group[sent.worker], task_group[sent.task]], symbol), model


class _Part(NamedTuple):
    """One channel of a table: names of its reports, and P(report | input)."""

    names: tuple[str, ...]
    table: NDArray[np.float64]


def _part(channel: Channel, protected: bool) -> _Part:
    """Return a channel's table; beside channels that protect participation, a public one sends NULL for NULL only."""
    if channel.participation == "protected" or not protected:
        return _Part(channel.outputs, channel.probabilities)
    labels, reports = channel.probabilities.shape
    table = np.zeros((labels + 1, reports + 1))
    table[:labels, :reports], table[labels, reports] = channel.probabilities, 1.0
    return _Part((*channel.outputs, NULL), table)


def _with_nulls(reports: Reports, assignment: Assignment, table: ChannelTable) -> Reports:
    """Return all reports of the assigned cells, NULL reports included (the code after the last name)."""
    assert reports.alphabet is not None
    crowd = len(reports.workers)
    assigned = assignment.aligned(reports.tasks, reports.workers)
    sent = reports.task.astype(np.int64) * crowd + reports.worker
    outside = ~np.isin(sent, assigned)
    if outside.any():
        first = int(outside.argmax())
        raise ReportsError(
            f"{int(outside.sum()):,} reports come from cells that were not assigned",
            examples=f"task {reports.tasks[reports.task[first]]}, worker {reports.workers[reports.worker[first]]}",
            way_out="Give the assignment of this campaign, or leave these reports out.",
        )
    if not table.protects_participation:
        return reports
    task, worker = np.divmod(np.setdiff1d(assigned, sent, assume_unique=True), crowd)
    names = Categories((*reports.alphabet.names, UNSAID), reports.alphabet.ordered)
    return replace(
        reports,
        task=np.concatenate((reports.task, task)),
        worker=np.concatenate((reports.worker, worker)),
        value=np.concatenate((reports.value, np.full(len(task), reports.labels))),
        alphabet=names,
    )


def _by_symbol(reports: Reports, channel_of: NDArray[np.int64], symbol: dict[tuple[int, str], int]) -> Reports:
    """Return the reports with symbols for values, the symbol of a report's name in its cell's channel."""
    assert reports.alphabet is not None
    if len(symbol) > MAX_LABELS:
        raise SettingsError(
            f"all channels together may send {MAX_LABELS} symbols", value=len(symbol), way_out="Use fewer channels."
        )
    names = [NULL if name == UNSAID else name for name in reports.alphabet.names]
    found = np.array(
        [[symbol.get((index, name), -1) for name in names] for index in range(int(channel_of.max(initial=0)) + 1)]
    )
    value = found[channel_of, reports.value]
    wrong = np.flatnonzero(value < 0)
    if wrong.size:
        task, worker = reports.tasks[reports.task[wrong[0]]], reports.workers[reports.worker[wrong[0]]]
        raise ReportsError(
            f"{wrong.size:,} cells hold what their channel never sends",
            examples=f"{names[reports.value[wrong[0]]]!r} of task {task}, worker {worker}",
            way_out="Give the certificate that was written with these reports.",
        )
    labels = Categories(tuple(f"{index}:{name}" for index, name in symbol))
    return replace(reports, value=value, alphabet=labels)
