"""What devices would have sent where cells differ: through a table of channels, or on assigned cells only.

A campaign in rounds, replayed: who reports when, and where the later rounds cut.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crowdveil.adaptive_rounds import Round, join_rounds, next_thresholds, threshold_table
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.assignment import Assignment
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import Gaussian
from crowdveil.mechanisms.designed import Designed
from crowdveil.randomness import Source
from crowdveil.simulate.perturbation import Progress, perturb


def perturb_cells(
    answers: Reports,
    channel: Channel | ChannelTable,
    source: Source,
    *,
    assignment: Assignment | None = None,
    progress: Progress | None = None,
) -> Reports:
    """Return what all devices would have sent, NULL reports left out, over the same tasks and workers.

    Args:
        answers: unprotected answers, coded in the channel's alphabet, at most one per cell.
        channel: what every cell goes through, or which channel each cell goes through.
        source: `secure()`, or `seeded(n)` for an experiment, which protects nobody.
        assignment: the cells that send a report; None for all of them.
        progress: called as the work goes on, with the work done and the whole work.

    Raises:
        ReportsError: an answer of a cell that was not assigned, another alphabet, or a cell with two answers.
        SettingsError: a task or worker that the table does not name.
    """
    table = channel if isinstance(channel, ChannelTable) else ChannelTable(channels=(channel,), choice=((0,),))
    if answers.alphabet is None or answers.alphabet.names != table.alphabet.names:
        raise ReportsError(
            f"the answers must be coded in the channel's labels {table.alphabet.names}",
            examples=str(None if answers.alphabet is None else answers.alphabet.names),
            hint="Read the answers with alphabet=channel.alphabet.",
        )
    if assignment is not None:
        return _on_assigned_cells(answers, table, source, assignment)
    return _on_all_cells(answers, table, source, progress)


def simulated_assignment(answers: Reports, per_task: int, source: Source) -> Assignment:
    """Return an assignment that could have led to these answers: every answered cell, and others up to `per_task`.

    For simulations from answers that were collected without an assignment. A real one is drawn beforehand
    (`Assignment.balanced`); drawn afterwards, as here, it would tell who answered.

    Raises:
        SettingsError: some task has more answers than `per_task`, or there are fewer workers.
    """
    crowd, most = len(answers.workers), int(answers.per_task.max(initial=0))
    if not most <= per_task <= crowd:
        raise SettingsError(f"per_task must be in {most}..{crowd}: answers of a task, workers", value=per_task)
    cells = []
    ends = np.concatenate(([0], np.cumsum(answers.per_task)))
    for task in range(len(answers.tasks)):
        rank = source.words(crowd).astype(np.float64)
        rank[answers.worker[ends[task] : ends[task + 1]]] = -1.0
        cells.append(task * crowd + np.argsort(rank, kind="stable")[:per_task])
    task_codes, worker_codes = np.divmod(np.concatenate(cells), crowd)
    return Assignment(np.asarray(answers.tasks), np.asarray(answers.workers), task_codes, worker_codes)


def _on_assigned_cells(answers: Reports, table: ChannelTable, source: Source, assignment: Assignment) -> Reports:
    """Draw one report per assigned cell, NULL where it was skipped."""
    crowd = len(answers.workers)
    cells = assignment.aligned(answers.tasks, answers.workers)
    answered = answers.task.astype(np.int64) * crowd + answers.worker
    outside = ~np.isin(answered, cells)
    if outside.any() or (np.diff(answered) == 0).any():
        raise ReportsError(
            f"answers come from assigned cells, one each: {int(outside.sum()):,} were not assigned, "
            f"{int((np.diff(answered) == 0).sum()):,} repeat a cell",
            hint="Give the assignment that this campaign was asked with: devices report on assigned cells only.",
        )
    code = np.full(len(cells), table.alphabet.size, dtype=np.int64)
    code[np.searchsorted(cells, answered)] = answers.value
    task, worker = np.divmod(cells, crowd)
    of_task, of_worker = table.groups(answers.tasks, answers.workers)
    chosen = np.array(table.choice)[of_worker[worker], of_task[task]]
    report = np.empty(len(cells), dtype=np.int64)
    for index in range(len(table.channels)):
        report[chosen == index] = table.sample(index, code[chosen == index], source)
    return _reports(answers, table, task, worker, report)


def _on_all_cells(answers: Reports, table: ChannelTable, source: Source, progress: Progress | None) -> Reports:
    """Perturb the part of the crowd in every pair of groups through its own channel."""
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
        sent = _through(part, table, table.choice[row][column], source)
        parts.append((tasks[sent.task], workers[sent.worker], _codes(sent, table)))
        if progress is not None:
            progress(done, len(pairs))
    return _reports(answers, table, *(np.concatenate(column) for column in zip(*parts, strict=True)))


def _through(part: Reports, table: ChannelTable, index: int, source: Source) -> Reports:
    """Return what a part of the crowd sends; the identity lets answers through as they are."""
    channel = table.channels[index]
    if channel.is_identity or not (len(part.tasks) and len(part.workers)):
        return part
    return perturb(part, Designed.from_channel(channel), source)


def _codes(sent: Reports, table: ChannelTable) -> NDArray[np.int64]:
    """Return reports in the codes of the table's own alphabet of reports."""
    assert sent.alphabet is not None
    place = {name: code for code, name in enumerate(table.report_alphabet.names)}
    return np.array([place.get(name, -1) for name in sent.alphabet.names])[sent.value]


def _reports(
    answers: Reports,
    table: ChannelTable,
    task: NDArray[np.int64],
    worker: NDArray[np.int64],
    report: NDArray[np.int64],
) -> Reports:
    """Return the reports that are not NULL."""
    said = report < table.report_alphabet.size
    codes = task[said].astype(np.int32), worker[said].astype(np.int32)
    return Reports(*codes, report[said], answers.tasks, answers.workers, table.report_alphabet, answers.public_lists)


def perturb_in_rounds(
    answers: Reports,
    first: Channel | ChannelTable,
    source: Source,
    *,
    epsilon: float,
    rounds: int,
    estimator: Gaussian,
    prior: Mapping[str, float] | None = None,
) -> Round:
    """Return what all devices would have sent if the workers were dealt to rounds in turn, in the order of their list.

    The first round goes through `first`; from then on every task is cut at its estimate from all reports so far
    (`next_thresholds`).

    Args:
        answers: unprotected answers, at most one per cell.
        first: what the cells of the first round go through; a table must name all workers or none.
        source: `secure()`, or `seeded(n)` for an experiment, which protects nobody.
        epsilon: privacy loss of one cell in the later rounds, in nats; participation as in `first`.
        rounds: how many, from 1 to the number of workers.
        estimator: infers the truths between rounds.
        prior: public prior probability of each label, known to it.

    Raises:
        SettingsError: no rounds, or more than workers.
    """
    if not 1 <= rounds <= len(answers.workers):
        raise SettingsError("there must be a worker for each round, and one round", value=rounds)
    alphabet = first.alphabet
    participation = first.guarantee.participation
    channel: Channel | ChannelTable = first
    done: list[Round] = []
    for turn in range(rounds):
        part = _of_workers(answers, np.arange(len(answers.workers)) % rounds == turn)
        done.append(Round(reports=perturb_cells(part, channel, source), channel=channel))
        so_far = join_rounds(done)
        if turn + 1 < rounds:
            found = estimator.fit(so_far.reports, channel=so_far.channel, prior=prior)
            cuts = next_thresholds(found.tasks, found.posterior, alphabet)
            channel = threshold_table(alphabet, epsilon, cuts, participation=participation)
    return so_far


def _of_workers(answers: Reports, chosen: NDArray[np.bool_]) -> Reports:
    """Return the answers of some workers, over all tasks."""
    inside = chosen[answers.worker]
    worker = (np.cumsum(chosen) - 1)[answers.worker[inside]]
    workers = answers.workers[chosen]
    codes = answers.task[inside], worker, answers.value[inside]
    return Reports(*codes, answers.tasks, workers, answers.alphabet, answers.public_lists)
