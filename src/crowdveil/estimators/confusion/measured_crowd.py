"""What a fit measures in plain answers before it starts: near-copies, and the first weights of workers.

Near-copies are looked for among workers whose answers depend on the truth: workers who repeat a label agree, too.
"""

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from crowdveil.data.blocks import Block
from crowdveil.data.reports import Reports
from crowdveil.em.deconvolution import frequencies_of_reports
from crowdveil.em.kernels.dispatch import encoded_block_for_kernels
from crowdveil.em.kernels.numpy_backend import EncodedBlock
from crowdveil.em.kernels.report_weights import PairShares
from crowdveil.em.model import FitInput, Summary
from crowdveil.estimators.confusion.independent_workers import first_probabilities
from crowdveil.evaluation.near_copies import find_near_copies

MIN_ANSWERS, PART = 200_000, 5
"""Number of answers from which the first weights are learned from a part of them, and that part: a fifth."""
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
    block = joined(evenly_spaced_task_blocks(reports, max(MIN_ANSWERS, len(reports) // PART)))
    compiled = summary.uses_compiled_confusion_fit
    coded = encoded_block_for_kernels(block, summary.workers, summary.symbols, compiled=compiled)
    if summary.copies is not None:
        coded = replace(coded, weights=summary.copies.weights(block))
    frequencies = frequencies_of_reports(replace(summary, symbol_counts=summary.counted_symbols)).label_shares
    return first_probabilities(partial(_other_votes, coded), summary.workers, frequencies)


def _other_votes(coded: EncodedBlock, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the vote shares of others, summed over the answers of each worker; [worker, truth, label]."""
    return coded.other_vote_sums(weights).reshape(coded.workers, coded.symbols, -1).transpose(0, 2, 1)


def joined(blocks: list[Block]) -> Block:
    """Return the tasks of blocks as one block, numbered anew."""
    if len(blocks) == 1:
        return blocks[0]
    lengths = np.concatenate([np.diff(block.pointers) for block in blocks])
    worker, value = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("worker", "value"))
    return Block(0, len(lengths), np.append(0, np.cumsum(lengths)), worker, value)


def evenly_spaced_task_blocks(reports: Reports, most_answers: int) -> list[Block]:
    """Return evenly spaced ranges of tasks with about `most_answers` answers; all tasks if there are not more."""
    ends, blocks, stop, tasks = reports.rows.pointers, list[Block](), 0, len(reports.tasks)
    parts = PARTS if len(reports) > most_answers else 1
    answers = (np.arange(parts) * (len(reports) / parts)).astype(np.int64)
    for following, holding in zip(
        np.searchsorted(ends, answers), np.searchsorted(ends, answers, side="right") - 1, strict=True
    ):
        first = max(stop, int(following if following < tasks else holding))
        if first >= tasks:
            break
        stop = max(first + 1, int(np.searchsorted(ends, ends[first] + most_answers // parts, side="right")) - 1)
        blocks.append(reports.rows.block(first, stop))
    return blocks
