"""Simulated campaigns: reports through tables of channels and on assigned cells."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.reports import Reports
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms.designed import Designed
from crowdveil.randomness import Source
from crowdveil.simulate.perturbation import Progress, perturb_reports


def perturb_cells(
    answers: Reports,
    channel: Channel | ChannelTable,
    source: Source,
    *,
    assignment: Assignment | None = None,
    progress: Progress | None = None,
) -> Reports:
    """Return the non-NULL reports of all devices, over the same tasks and workers.

    Args:
        answers: unprotected answers, coded in the channel's alphabet, at most one per cell.
        channel: channel of all cells, or table of channels.
        source: `secure()`, or `seeded(n)` for a simulation without privacy.
        assignment: cells that send a report; None for all cells.
        progress: called with the work done and the whole work.

    Raises:
        ReportsError: an answer on an unassigned cell, another alphabet, or a cell with two answers.
        SettingsError: a task or worker that the table does not list.
    """
    table = channel if isinstance(channel, ChannelTable) else ChannelTable(channels=(channel,), choice=((0,),))
    if answers.alphabet is None or answers.alphabet.names != table.alphabet.names:
        raise ReportsError(
            f"the answers must be coded in the channel's labels {table.alphabet.names}",
            examples=str(None if answers.alphabet is None else answers.alphabet.names),
            hint="Read the answers with alphabet=channel.alphabet.",
        )
    if assignment is not None:
        found = _reports_of_assigned_cells(answers, table, source, assignment)
    else:
        found = _reports_of_all_cells(answers, table, source, progress)
    return _in_alphabet_of(channel, found) if isinstance(channel, Channel) else found


def _in_alphabet_of(channel: Channel, found: Reports) -> Reports:
    """Return reports in the alphabet of a channel, which may have fewer symbols than its answers."""
    alphabet = channel.report_alphabet
    assert found.alphabet is not None
    if found.alphabet.names == alphabet.names:
        return found
    code_of = {name: code for code, name in enumerate(alphabet.names)}
    codes = np.array([code_of.get(name, -1) for name in found.alphabet.names])
    return Reports(found.task, found.worker, codes[found.value], found.tasks, found.workers, alphabet, found.asked)


def simulated_assignment(answers: Reports, per_task: int, source: Source) -> Assignment:
    """Return an assignment with every answered cell and random others, `per_task` in all per task. Simulation only.

    It fits answers that were collected without an assignment. A real assignment is drawn beforehand
    (`Assignment.balanced`); one drawn from answers reveals who answered.

    Raises:
        SettingsError: a task has more answers than `per_task`, or there are fewer workers.
    """
    crowd, most = len(answers.workers), int(answers.per_task.max(initial=0))
    if not most <= per_task <= crowd:
        raise SettingsError(
            f"per_task must be in {most}..{crowd}: from the most answers to a task to the number of workers",
            value=per_task,
        )
    cells = []
    ends = np.concatenate(([0], np.cumsum(answers.per_task)))
    for task in range(len(answers.tasks)):
        rank = source.words(crowd).astype(np.float64)
        rank[answers.worker[ends[task] : ends[task + 1]]] = -1.0
        cells.append(task * crowd + np.argsort(rank, kind="stable")[:per_task])
    task_codes, worker_codes = np.divmod(np.concatenate(cells), crowd)
    return Assignment(np.asarray(answers.tasks), np.asarray(answers.workers), task_codes, worker_codes)


def _reports_of_assigned_cells(
    answers: Reports, table: ChannelTable, source: Source, assignment: Assignment
) -> Reports:
    """Return the reports of the assigned cells; an assigned cell without an answer is NULL."""
    crowd = len(answers.workers)
    cells = assignment.recoded_cells(answers.tasks, answers.workers)
    answered = answers.task.astype(np.int64) * crowd + answers.worker
    outside = ~np.isin(answered, cells)
    if outside.any() or (np.diff(answered) == 0).any():
        raise ReportsError(
            f"answers come from assigned cells, one each: {int(outside.sum()):,} were not assigned, "
            f"{int((np.diff(answered) == 0).sum()):,} repeat a cell",
            hint="Give the assignment of this campaign: devices report on assigned cells only.",
        )
    code = np.full(len(cells), table.alphabet.size, dtype=np.int64)
    code[np.searchsorted(cells, answered)] = answers.value
    task, worker = np.divmod(cells, crowd)
    of_task, of_worker = table.groups(answers.tasks, answers.workers)
    chosen = np.array(table.choice)[of_worker[worker], of_task[task]]
    report = np.empty(len(cells), dtype=np.int64)
    for index in range(len(table.channels)):
        report[chosen == index] = table.sample(index, code[chosen == index], source)
    return _non_null_reports(answers, table, task, worker, report)


def _reports_of_all_cells(answers: Reports, table: ChannelTable, source: Source, progress: Progress | None) -> Reports:
    """Return the reports of all cells, drawn for each pair of worker group and task group through its channel."""
    of_task, of_worker = table.groups(answers.tasks, answers.workers)
    parts = []
    pairs = [(row, column) for row in range(len(table.choice)) for column in range(len(table.choice[0]))]
    for done, (row, column) in enumerate(pairs, start=1):
        tasks, workers = np.flatnonzero(of_task == column), np.flatnonzero(of_worker == row)
        inside = (of_task[answers.task] == column) & (of_worker[answers.worker] == row)
        part = replace(
            answers,
            task=np.searchsorted(tasks, answers.task[inside]),
            worker=np.searchsorted(workers, answers.worker[inside]),
            value=answers.value[inside],
            tasks=answers.tasks[tasks],
            workers=answers.workers[workers],
        )
        sent = _perturbed_part(part, table, table.choice[row][column], source)
        parts.append((tasks[sent.task], workers[sent.worker], _codes_in_report_alphabet(sent, table)))
        if progress is not None:
            progress(done, len(pairs))
    return _non_null_reports(answers, table, *(np.concatenate(column) for column in zip(*parts, strict=True)))


def _perturbed_part(part: Reports, table: ChannelTable, channel_index: int, source: Source) -> Reports:
    """Return the reports of a part of the crowd; the identity leaves answers unchanged."""
    channel = table.channels[channel_index]
    if channel.is_identity or not (len(part.tasks) and len(part.workers)):
        return part
    return perturb_reports(part, Designed.from_channel(channel), source)


def _codes_in_report_alphabet(sent: Reports, table: ChannelTable) -> NDArray[np.int64]:
    """Return reports as codes of the table's report alphabet, -1 for other symbols."""
    assert sent.alphabet is not None
    code_of = {name: code for code, name in enumerate(table.report_alphabet.names)}
    return np.array([code_of.get(name, -1) for name in sent.alphabet.names])[sent.value]


def _non_null_reports(
    answers: Reports,
    table: ChannelTable,
    task: NDArray[np.int64],
    worker: NDArray[np.int64],
    report: NDArray[np.int64],
) -> Reports:
    """Return the non-NULL reports."""
    sent = report < table.report_alphabet.size
    codes = task[sent].astype(np.int32), worker[sent].astype(np.int32)
    return Reports(
        *codes, report[sent], answers.tasks, answers.workers, table.report_alphabet, answers.asked.of_reports
    )
