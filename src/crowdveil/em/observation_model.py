"""Observation model P(symbol | answer) of reports through one or several channels.

A symbol is a pair of a channel and one of its outputs. If every worker reports on every task, NULL reports are not
listed but counted (implicit NULL); if tasks were assigned, they are listed like other symbols.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import MAX_LABELS, NULL, Categories
from crowdveil.channels.channel import Channel, retained_share
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.display.counts import number_of, verb_of
from crowdveil.errors import ReportsError, SettingsError

NO_IMPLICIT_NULL = -1
"""Sentinel: the channel has no implicit NULL."""
CHUNK_TASKS = 1 << 20
"""Tasks counted together, to bound memory."""
NULL_NAME = "\0"
"""Name of a listed NULL among label names, which no label can have."""


@dataclass(frozen=True, eq=False)
class ObservationModel:
    """P(symbol | answer), and the cells with implicit NULL reports.

    Every channel with unlisted NULL reports has one implicit NULL. Groups are those of the channel table; a single
    channel has one group of workers and one of tasks.

    Attributes:
        labels: number of labels of an answer.
        protected: whether NULL is an input, the last one.
        table: P(symbol | input), indexed [input, symbol], of listed symbols.
        null: P(NULL | input) of each implicit NULL, indexed [input, implicit NULL].
        implicit_null_of: implicit NULL that a listed symbol replaces, shape (symbols,), or NO_IMPLICIT_NULL.
        is_informative: whether a symbol is not NULL, shape (symbols,).
        retention: smallest total variation distance of two rows of the channel of each symbol, then of each implicit
            NULL.
        channel: index of the channel of each report, in the order of `full_table`.
        choice: implicit NULL or NO_IMPLICIT_NULL, indexed [worker group, task group].
        worker_group, task_group: shapes (workers,) and (tasks,).
    """

    labels: int
    protected: bool
    table: NDArray[np.float64]
    null: NDArray[np.float64]
    implicit_null_of: NDArray[np.int64]
    is_informative: NDArray[np.bool_]
    retention: NDArray[np.float64]
    channel: NDArray[np.int64]
    choice: NDArray[np.int64]
    worker_group: NDArray[np.int64]
    task_group: NDArray[np.int64]

    @property
    def listed_symbol_count(self) -> int:
        """Number of listed symbols."""
        return self.table.shape[1]

    @property
    def is_identity(self) -> bool:
        """Whether every report is its answer: no noise, and no implicit NULL."""
        return not self.protected and np.array_equal(self.full_table, np.eye(self.labels))

    @property
    def implicit_null_count(self) -> int:
        """Number of implicit NULLs."""
        return self.null.shape[1]

    @property
    def full_table(self) -> NDArray[np.float64]:
        """P(report | input) of listed symbols, then of implicit NULLs; indexed [input, report]."""
        return np.concatenate((self.table, self.null), axis=1)

    @property
    def task_groups(self) -> int:
        """Number of groups of tasks."""
        return self.choice.shape[1]

    def replaced_nulls(self) -> NDArray[np.float64]:
        """Return 1 where a listed symbol replaces an implicit NULL, indexed [symbol, implicit NULL]."""
        return np.equal(self.implicit_null_of[:, None], np.arange(self.implicit_null_count)).astype(float)

    def implicit_null_of_worker(self, task_group: int) -> NDArray[np.float64]:
        """Return 1 where a worker's unlisted report in a task group is the implicit NULL, [worker, implicit NULL]."""
        return np.equal(
            self.choice[self.worker_group, task_group][:, None], np.arange(self.implicit_null_count)
        ).astype(float)

    def implicit_null_cells(self) -> NDArray[np.float64]:
        """Return the number of cells per task of each implicit NULL's channel, indexed [task group, implicit NULL]."""
        of_group = np.bincount(self.worker_group, minlength=len(self.choice))
        cells = np.zeros((self.task_groups, self.implicit_null_count))
        for group, count in enumerate(of_group):
            for task_group, implicit_null in enumerate(self.choice[group]):
                if implicit_null != NO_IMPLICIT_NULL:
                    cells[task_group, implicit_null] += count
        return cells

    def full_report_totals(self, listed: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return counts of all reports in the order of `full_table`, from those of listed symbols."""
        of_group = np.zeros(self.task_groups)
        for first in range(0, len(self.task_group), CHUNK_TASKS):
            of_group += np.bincount(self.task_group[first : first + CHUNK_TASKS], minlength=self.task_groups)
        return np.concatenate((listed, of_group @ self.implicit_null_cells() - listed @ self.replaced_nulls()))

    def implicit_null_counts(self, listed: NDArray[np.float64], task_group: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the number of workers with each implicit NULL, indexed [task, implicit NULL].

        Args:
            listed: reports by symbol, indexed [task, symbol].
            task_group: group of each task, shape (tasks,).
        """
        return self.implicit_null_cells()[task_group] - listed @ self.replaced_nulls()

    def implicit_null_posterior_sums(
        self, by_report: NDArray[np.float64], by_truth: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return posterior sums over the tasks with each worker's implicit NULL, [worker, truth, implicit NULL].

        Args:
            by_report: the same sums over listed reports, indexed [worker, truth, symbol].
            by_truth: sums over all tasks, indexed [task group, truth].
        """
        chosen = np.equal(self.choice[:, :, None], np.arange(self.implicit_null_count))
        asked = np.einsum("wgs,gz->wzs", chosen, by_truth)[self.worker_group]
        return np.maximum(asked - by_report @ self.replaced_nulls(), 0.0)


def observation_model(
    channel: Channel | ChannelTable, reports: Reports, assignment: Assignment | None
) -> tuple[Reports, ObservationModel]:
    """Return the reports coded by symbol, and the model of their symbols.

    Args:
        channel: channel of the reports; the identity if they are read as answers.
        reports: non-NULL reports, in the channel's own `report_alphabet`.
        assignment: cells that report; None if every worker reports on every task (or participation is public).

    Raises:
        ReportsError: a report that its cell's channel cannot send, from a cell that was not assigned, or an assigned
            cell without the report that its channel must send.
        SettingsError: a task or worker without a channel, or too many symbols.
    """
    table = channel if isinstance(channel, ChannelTable) else ChannelTable(channels=(channel,), choice=((0,),))
    symbols = _symbols_of_all_channels(table)
    listed = (symbols.names != NULL) | (assignment is not None)
    model = _observation_model_of(table, symbols, listed, reports)
    if len(table.channels) == 1 and assignment is None:
        return reports, model
    sent = reports if assignment is None else _with_null_reports(reports, assignment, table)
    channel_of = np.array(table.choice)[model.worker_group[sent.worker], model.task_group[sent.task]]
    return _with_symbols_for_values(sent, channel_of, symbols, listed), model


class _Symbols(NamedTuple):
    """Symbols of all channels of a table: channel and output name of each, and P(symbol | input)."""

    channel: NDArray[np.int64]
    names: NDArray[np.str_]
    table: NDArray[np.float64]


def _symbols_of_all_channels(table: ChannelTable) -> _Symbols:
    parts = [_table_with_null(one, table.protects_participation) for one in table.channels]
    return _Symbols(
        channel=np.repeat(np.arange(len(parts)), [len(names) for names, _ in parts]),
        names=np.array([name for names, _ in parts for name in names]),
        table=np.concatenate([table for _, table in parts], axis=1),
    )


def _observation_model_of(
    table: ChannelTable, symbols: _Symbols, listed: NDArray[np.bool_], reports: Reports
) -> ObservationModel:
    """Return the observation model in which symbols that are not listed, all NULL, are implicit."""
    task_group, worker_group = table.groups(reports.tasks, reports.workers)
    implicit_null_of_channel = np.full(len(table.channels), NO_IMPLICIT_NULL)
    implicit_null_of_channel[symbols.channel[~listed]] = np.arange(int((~listed).sum()))
    kept = np.array([1.0 if one.is_identity else retained_share(one) for one in table.channels])[symbols.channel]
    return ObservationModel(
        labels=table.alphabet.size,
        protected=table.protects_participation,
        table=np.ascontiguousarray(symbols.table[:, listed]),
        null=np.ascontiguousarray(symbols.table[:, ~listed]),
        implicit_null_of=implicit_null_of_channel[symbols.channel[listed]],
        is_informative=symbols.names[listed] != NULL,
        retention=np.concatenate((kept[listed], kept[~listed])),
        channel=np.concatenate((symbols.channel[listed], symbols.channel[~listed])),
        choice=implicit_null_of_channel[np.array(table.choice)],
        worker_group=worker_group,
        task_group=task_group,
    )


def _table_with_null(channel: Channel, protected: bool) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Return the outputs of a channel, and P(output | input).

    In a table that protects participation, a public channel maps NULL to NULL only.
    """
    if channel.participation == "protected" or not protected:
        return channel.outputs, channel.probabilities
    labels, reports = channel.probabilities.shape
    table = np.zeros((labels + 1, reports + 1))
    table[:labels, :reports], table[labels, reports] = channel.probabilities, 1.0
    return (*channel.outputs, NULL), table


def _with_null_reports(reports: Reports, assignment: Assignment, table: ChannelTable) -> Reports:
    """Return all reports of the assigned cells, NULL reports included (the code after the last name)."""
    assert reports.alphabet is not None
    crowd = len(reports.workers)
    assigned = assignment.recoded_cells(reports.tasks, reports.workers)
    sent = reports.task.astype(np.int64) * crowd + reports.worker
    outside = ~np.isin(sent, assigned)
    if outside.any():
        first, found = int(outside.argmax()), int(outside.sum())
        raise ReportsError(
            f"{number_of(found, 'report')} {verb_of(found, 'comes', 'come')} from cells that were not assigned",
            examples=f"task {reports.tasks[reports.task[first]]}, worker {reports.workers[reports.worker[first]]}",
            hint="Give the assignment of this campaign.",
        )
    if not table.protects_participation:
        return reports
    task, worker = np.divmod(np.setdiff1d(assigned, sent, assume_unique=True), crowd)
    names = Categories((*reports.alphabet.names, NULL_NAME), reports.alphabet.ordered)
    return replace(
        reports,
        task=np.concatenate((reports.task, task)),
        worker=np.concatenate((reports.worker, worker)),
        value=np.concatenate((reports.value, np.full(len(task), reports.labels))),
        alphabet=names,
    )


def _with_symbols_for_values(
    reports: Reports, channel_of: NDArray[np.int64], symbols: _Symbols, listed: NDArray[np.bool_]
) -> Reports:
    """Return the reports with symbols for values, the listed symbol of a report's name in its cell's channel."""
    assert reports.alphabet is not None
    if int(listed.sum()) > MAX_LABELS:
        raise SettingsError(
            f"the channels of a campaign have at most {MAX_LABELS} symbols in all",
            value=int(listed.sum()),
            hint="Use fewer channels.",
        )
    pairs = list(zip(symbols.channel[listed].tolist(), symbols.names[listed].tolist(), strict=True))
    code = {pair: place for place, pair in enumerate(pairs)}
    names = [NULL if name == NULL_NAME else name for name in reports.alphabet.names]
    found = np.array([[code.get((k, name), -1) for name in names] for k in range(int(symbols.channel[-1]) + 1)])
    value = found[channel_of, reports.value]
    wrong = np.flatnonzero(value < 0)
    if wrong.size:
        are = verb_of(wrong.size, "is not a symbol of its", "are not symbols of their")
        task, worker = reports.tasks[reports.task[wrong[0]]], reports.workers[reports.worker[wrong[0]]]
        raise ReportsError(
            f"{number_of(wrong.size, 'report')} {are} channel",
            examples=f"{names[reports.value[wrong[0]]]!r} of task {task}, worker {worker}",
            hint="Give the certificate that was written with these reports.",
        )
    return replace(reports, value=value, alphabet=Categories(tuple(f"{k}:{name}" for k, name in pairs)))
