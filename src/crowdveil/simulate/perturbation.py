"""Simulation of all devices' reports, with memory and time proportional to the number of non-NULL reports."""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.blocks import InMemoryRows
from crowdveil.answers.columnar_store import ReportChunk
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import NULL
from crowdveil.channels.channel import Channel
from crowdveil.display.counts import repeated_pairs_text
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.hints import advice, one_of
from crowdveil.mechanisms.base import Mechanism
from crowdveil.randomness import Seeded, Source
from crowdveil.simulate.bernoulli import successful_cells_by_chunk
from crowdveil.simulate.sums import worker_answer_codes

Progress = Callable[[int, int], None]
"""Function of the work done and the whole work: workers on the device path, cells on the vectorised path."""

MAX_REPORTS = 1 << 28
"""Largest expected number of reports in memory: about 5 GB at 20 bytes each."""


def perturb_reports(
    answers: Reports,
    mechanism: Mechanism,
    source: Source,
    *,
    progress: Progress | None = None,
) -> Reports:
    """Return the non-NULL reports of all devices, over the same tasks and workers.

    With a seeded source and a mechanism with one channel per cell, a vectorised path draws from the same distribution;
    its draws differ from those of `Mechanism.perturb` with that seed. All other cases run the code of the devices, one
    worker at a time.

    Args:
        answers: unprotected answers, coded in the mechanism's alphabet.
        mechanism: sends one symbol per task.
        source: `secure()`, or `seeded(n)` for a simulation without privacy.
        progress: called with the work done.

    Raises:
        ReportsError: another alphabet, or two answers of a worker to one task.
        SettingsError: the mechanism does not send one symbol per task, or more than `MAX_REPORTS` are expected.
    """
    _require_answers_of_mechanism(answers, mechanism)
    channel = mechanism.channel()
    if channel is not None:
        _refuse_too_many_reports(answers, channel)
    sent = mechanism.alphabet if channel is None else channel.report_alphabet
    if channel is None or not isinstance(source, Seeded):
        task, worker, label = _reports_of_devices(answers, mechanism, source, progress)
        return Reports(task, worker, label, answers.tasks, answers.workers, sent, answers.asked.of_reports)
    columns = _concatenated_columns(_reports_through_channel(answers, channel, source, progress))
    rows = InMemoryRows(*columns, len(answers.tasks))
    return Reports.from_rows(rows, answers.tasks, answers.workers, sent, answers.asked.of_reports)


def dense_reports(answers: Reports, mechanism: Mechanism, source: Source) -> Reports:
    """Return the reports of a mechanism that sends numbers: one for every task of every worker."""
    table = np.array([mechanism.perturb(codes, source) for codes in worker_answer_codes(answers)])
    worker, task = np.divmod(np.arange(table.size), table.shape[1])
    return Reports(task, worker, table.ravel(), answers.tasks, answers.workers, None, answers.asked.of_reports)


def expected_reports_of_answers(answers: Reports, channel: Channel) -> float:
    """Return the expected number of non-NULL reports from these answers."""
    cells = np.bincount(answers.value, minlength=channel.alphabet.size).tolist()
    if channel.participation == "protected":
        cells.append(len(answers.tasks) * len(answers.workers) - len(answers))
    return float(
        sum(count * share for count, share in zip(cells, _non_null_probability_per_input(channel), strict=True))
    )


def expected_report_count(answers: Reports, channel: Channel) -> float:
    """Return the expected number of non-NULL reports from public information.

    If participation is protected, it is that of a crowd without answers; answers add at most one report each.
    """
    if channel.participation == "public":
        return expected_reports_of_answers(answers, channel)
    return float(len(answers.tasks) * len(answers.workers) * _non_null_probability_per_input(channel)[-1])


def _reports_through_channel(
    answers: Reports, channel: Channel, source: Seeded, progress: Progress | None
) -> Iterator[ReportChunk]:
    """Yield the reports of answered cells, and of NULL cells that become a label."""
    drawn = _label_code_per_report_symbol(channel)[channel.sample(answers.value, source)].astype(np.int16)
    if channel.participation == "protected":
        yield from _answered_and_null_report_chunks(answers, drawn, channel, source, progress)
        return
    kept = drawn >= 0
    yield ReportChunk(answers.task[kept], answers.worker[kept], drawn[kept])


def _answered_and_null_report_chunks(
    answers: Reports, drawn: NDArray[np.int16], channel: Channel, source: Seeded, progress: Progress | None
) -> Iterator[ReportChunk]:
    """Yield chunks of ascending cells: answered cells with their drawn labels, and NULL cells that become a label."""
    workers = len(answers.workers)
    total = len(answers.tasks) * workers
    answered = answers.task.astype(np.int64) * workers + answers.worker
    first = 0
    for stop, found in successful_cells_by_chunk(
        source.generator, total, float(_non_null_probability_per_input(channel)[-1])
    ):
        mine = slice(first, int(np.searchsorted(answered, stop)))
        first = mine.stop
        # Answered cells are drawn from their own rows, so successes on them are dropped.
        empty = _without_known_cells(found, answered[mine])
        label = _labels_reported_for_null(channel, source, len(empty))
        sent = drawn[mine] >= 0
        cell, label = _merged_cells(empty, label, answered[mine][sent], drawn[mine][sent])
        task, worker = np.divmod(cell, workers)
        yield ReportChunk(task.astype(np.int32), worker.astype(np.int32), label)
        if progress is not None:
            progress(stop, total)


def _without_known_cells(found: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return `found` without the elements of `known`; both and the result ascend."""
    at = np.searchsorted(found, known)
    inside = at < len(found)
    at = at[inside]
    twice = at[found[at] == known[inside]]
    return np.delete(found, twice) if len(twice) else found


def _merged_cells(
    cell: NDArray[np.int64], label: NDArray[np.int16], more: NDArray[np.int64], labels: NDArray[np.int16]
) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
    """Return two disjoint ascending runs of cells merged into one, with their labels."""
    if not len(more):
        return cell, label
    positions = np.searchsorted(cell, more)
    return np.insert(cell, positions, more), np.insert(label, positions, labels)


def _labels_reported_for_null(channel: Channel, source: Seeded, count: int) -> NDArray[np.int16]:
    """Return labels drawn from NULL's row given that the report is a label; exact in integers."""
    bounds = np.cumsum([entry for name, entry in zip(channel.outputs, channel.rows[-1], strict=True) if name != NULL])
    words = source.generator.integers(0, bounds[-1], count)
    return np.searchsorted(bounds, words, side="right").astype(np.int16)


def _reports_of_devices(
    answers: Reports, mechanism: Mechanism, source: Source, progress: Progress | None
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int16]]:
    """Return the reports of every worker's device, one answer vector at a time."""
    channel = mechanism.channel()
    label_of = (
        np.append(np.arange(mechanism.alphabet.size), -1) if channel is None else _label_code_per_report_symbol(channel)
    )
    parts = []
    for worker, vector in zip(range(len(answers.workers)), worker_answer_codes(answers), strict=False):
        label = label_of[mechanism.perturb(vector, source)]
        task = np.flatnonzero(label >= 0)
        parts.append(
            ReportChunk(task.astype(np.int32), np.full(len(task), worker, np.int32), label[task].astype(np.int16))
        )
        if progress is not None:
            progress(worker + 1, len(answers.workers))
    return _concatenated_columns(parts)


def _concatenated_columns(
    parts: Iterable[ReportChunk],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int16]]:
    """Return the concatenated columns of the parts."""
    task, worker, label = (np.concatenate(column) for column in zip(*parts, strict=True))
    return task, worker, label


def _label_code_per_report_symbol(channel: Channel) -> NDArray[np.int64]:
    """Return the label code of each report symbol, -1 for NULL, with an extra entry for a public NULL cell."""
    names = channel.report_alphabet.names
    codes = [-1 if name == NULL else names.index(name) for name in channel.outputs]
    return np.array([*codes, -1])


def _non_null_probability_per_input(channel: Channel) -> list[Fraction]:
    """Return the exact probability of a non-NULL report, for each input symbol."""
    null = channel.null_output
    return [
        Fraction(channel.denominator - (0 if null is None else row[null]), channel.denominator) for row in channel.rows
    ]


def _require_answers_of_mechanism(answers: Reports, mechanism: Mechanism) -> None:
    if mechanism.sends != "symbols":
        raise SettingsError(
            "only mechanisms that send one symbol per task can be simulated here",
            value=mechanism.name,
            hint="Call the mechanism's perturb for each worker.",
        )
    names = None if answers.alphabet is None else answers.alphabet.names
    if names != mechanism.alphabet.names:
        raise ReportsError(
            f"the answers must be coded in the mechanism's labels {mechanism.alphabet.names}",
            examples=str(names),
            hint="Read the answers with alphabet=mechanism.alphabet.",
        )
    require_single_answers(answers)


def require_single_answers(answers: Reports) -> None:
    """Raise ReportsError if a worker answers a task twice."""
    repeated = (answers.task[1:] == answers.task[:-1]) & (answers.worker[1:] == answers.worker[:-1])
    if repeated.any():
        raise ReportsError(
            f"one cell sends one report, but {repeated_pairs_text(int(repeated.sum()), 'answer')}",
            hint=one_of(
                "keep one answer of each worker to a task",
                advice("choose {duplicates}", duplicates="first"),
                advice("{duplicates}", duplicates="last"),
            ),
        )


def _refuse_too_many_reports(answers: Reports, channel: Channel) -> None:
    expected = expected_report_count(answers, channel)
    if expected > MAX_REPORTS:
        raise SettingsError(
            f"at most {MAX_REPORTS} reports are simulated in memory",
            value=round(expected),
            hint="Use fewer tasks, a larger epsilon or public participation.",
        )
