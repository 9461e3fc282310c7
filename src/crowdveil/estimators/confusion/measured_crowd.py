"""Measurements in plain answers before a fit: near-copies, and the first weights of workers.

Near-copies are looked for among workers whose answers depend on the truth: workers who repeat a label agree, too.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.blocks import Block
from crowdveil.answers.reports import Reports
from crowdveil.em.kernels.dispatch import encoded_block_for_kernels
from crowdveil.em.kernels.report_weights import PairShares
from crowdveil.em.model import FitInput, Summary
from crowdveil.estimators.confusion.independent_workers import first_probabilities
from crowdveil.estimators.copies.compared_answers import bytes_to_compare_workers
from crowdveil.estimators.copies.near_copies import find_near_copies

MIN_ANSWERS, PART = 200_000, 5
"""Number of answers from which the first weights are learned from a part of them, and that part: a fifth."""
READ_ANSWERS = 1 << 13
"""Number of answers that are read together."""
BYTES_PER_READ_ANSWER, BYTES_PER_CELL, BYTES_PER_WORKER = 160, 40, 256
"""Upper bounds of the memory of an answer that is read, of a cell of the confusion matrices, and of a worker."""
PARTS = 50
"""Number of ranges of tasks in a sample of the answers."""
MAX_INDEPENDENT = 0.5
"""Probability of independence from which a worker is not compared with others."""


def with_measured_crowd(data: FitInput) -> FitInput:
    """Return the input with near-copies and first weights of workers in its summary."""
    reports, summary = data.reports, data.summary
    independent = first_independence(reports, summary)
    copies = find_near_copies(reports, np.asarray(independent < MAX_INDEPENDENT))
    if copies is not None:
        summary = with_weights_of_copies(reports, summary, copies)
        independent = first_independence(reports, summary)
    return replace(data, summary=replace(summary, independent=independent))


def with_first_weights(data: FitInput) -> FitInput:
    """Return the input with first weights of workers in its summary; copies are not looked for."""
    return replace(data, summary=replace(data.summary, independent=first_independence(data.reports, data.summary)))


def with_copies_and_independence(
    reports: Reports, summary: Summary, all_answers: Summary, workers: NDArray[np.int64]
) -> Summary:
    """Return the summary of some answers with what was measured in all of them.

    Args:
        reports, summary: of some answers.
        all_answers: summary of all answers.
        workers: their codes among all workers, ascending.
    """
    if all_answers.independent is None:
        return summary
    copies = None if all_answers.copies is None else all_answers.copies.of_workers(workers)
    if copies is not None:
        summary = with_weights_of_copies(reports, summary, copies)
    return replace(summary, independent=all_answers.independent[workers])


def with_weights_of_copies(reports: Reports, summary: Summary, copies: PairShares) -> Summary:
    """Return the summary with copies, and with the answers of each worker by label in their weights."""
    counts = np.zeros(summary.symbol_counts.size)
    for block in reports.blocks():
        row = block.worker.astype(np.int64) * summary.symbols + block.value
        counts += np.bincount(row, copies.weights(block), len(counts))
    return replace(summary, copies=copies, weighted_counts=counts.reshape(summary.symbol_counts.shape))


def first_independence(reports: Reports, summary: Summary) -> NDArray[np.float64]:
    """Return the probability of each worker to answer independently of the truth, from the votes of others."""
    frequencies = summary.counted_symbols.sum(axis=0) + 1.0
    return first_probabilities(
        partial(_other_votes, reports, summary),
        summary.workers,
        frequencies / frequencies.sum(),
        compiled=summary.uses_compiled_confusion_fit,
    )


def _other_votes(reports: Reports, summary: Summary, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the vote shares of others, summed over the answers of each worker; [worker, truth, label]."""
    compiled = summary.uses_compiled_confusion_fit
    sums = np.zeros((summary.workers * summary.symbols, summary.symbols))
    for block in evenly_spaced_task_blocks(reports, max(MIN_ANSWERS, len(reports) // PART), READ_ANSWERS):
        coded = encoded_block_for_kernels(block, summary.workers, summary.symbols, compiled=compiled)
        if summary.copies is not None:
            coded = replace(coded, weights=summary.copies.weights(block))
        coded.add_other_vote_sums(weights, sums)
    return sums.reshape(summary.workers, summary.symbols, -1).transpose(0, 2, 1)


def preparation_bytes(summary: Summary) -> int:
    """Return an upper bound of the memory in which near-copies and first weights are found."""
    read = max(READ_ANSWERS, int(np.max(summary.per_task)))
    cells = summary.workers * summary.labels**2
    votes = BYTES_PER_READ_ANSWER * read + BYTES_PER_CELL * cells + BYTES_PER_WORKER * summary.workers
    return max(votes, bytes_to_compare_workers(summary.per_task, summary.workers))


def evenly_spaced_task_blocks(reports: Reports, most_answers: int, block_answers: int | None = None) -> Iterator[Block]:
    """Yield evenly spaced ranges of tasks with about `most_answers` answers; all tasks if there are not more.

    Args:
        reports: the answers.
        most_answers: number of answers from which some are left out.
        block_answers: number of answers of a block, more only of one task; None for one block a range.
    """
    ends, stop, tasks = reports.rows.pointers, 0, len(reports.tasks)
    parts = PARTS if len(reports) > most_answers else 1
    answers = (np.arange(parts) * (len(reports) / parts)).astype(np.int64)
    for following, holding in zip(
        np.searchsorted(ends, answers), np.searchsorted(ends, answers, side="right") - 1, strict=True
    ):
        first = max(stop, int(following if following < tasks else holding))
        if first >= tasks:
            break
        stop = _task_after(ends, first, most_answers // parts)
        while first < stop:
            last = stop if block_answers is None else min(stop, _task_after(ends, first, block_answers))
            yield reports.rows.block(first, last)
            first = last


def _task_after(ends: NDArray[np.int64], first: int, answers: int) -> int:
    """Return the task after as many from the first as have this number of answers, at least one task."""
    return max(first + 1, int(np.searchsorted(ends, ends[first] + answers, side="right")) - 1)
