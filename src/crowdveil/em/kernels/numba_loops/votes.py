"""Compiled loops for workers with one weight each: soft-max of weighted votes, votes, agreement, means.

A code is worker << bits | symbol. `interleaved`, flat [worker, 2], holds each worker's weight and agreement (posterior
sum of the labels that the worker sent) in one cache line.
Factories compile for `static_labels` labels, or for any number if that is 0.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import njit

from crowdveil.em.kernels.jit import compile_with_numba
from crowdveil.em.kernels.numba_loops.layout import BATCH, INDEX, PREFETCH_DISTANCE, prefetch
from crowdveil.em.kernels.numba_loops.special_functions import (
    FAST,
    LANE_STRIDE,
    add_log_normalizers,
    log_normalizer_sum,
    set_gold_probabilities,
    softmax_batch,
    sum_gold_scores,
    write_posteriors,
)

ROWS_AHEAD = 32
"""Reports between the one whose row is prefetched and the one that is added, where both are of one small block."""


@cache
def compiled_coin_e_step(static_labels: int) -> Any:
    """Return the compiled E-step of the one-coin model for a block."""

    @compile_with_numba(fastmath=FAST)
    def step(layout: Any, codes: Any, bits: Any, interleaved: Any, initial: Any, gold: Any, posterior: Any) -> Any:
        """Fill the posterior with the soft-max of weighted votes, and add it to the agreement.

        Args:
            layout: task at each position, position of each task, reports at each position; shapes (tasks,).
            codes, bits: worker << bits | label of each report, in the order of positions; PREFETCH_DISTANCE zeros
                follow, so that prefetching needs no bound check.
            interleaved: weights, and agreement, which is added to.
            initial: scores before any vote, shape (labels,).
            gold: known label of each task or -1; empty if none is known.
            posterior: flat [task, label], replaced.

        Returns:
            The sum of the logarithms of the normalizers, and the largest change of a posterior.
        """
        labels = static_labels if static_labels > 0 else len(initial)
        lanes, logs, products = np.zeros(labels * LANE_STRIDE), np.zeros(BATCH), np.ones(BATCH)
        maximum, total, inverse = np.empty(BATCH), np.empty(BATCH), np.empty(BATCH)
        order, positions, lengths = layout
        likelihood, max_change, offset = 0.0, 0.0, INDEX(0)
        for start in range(0, len(order), BATCH):
            size = min(BATCH, len(order) - start)
            after = _add_up_votes_of_batch(
                start, size, lengths, codes, offset, bits, interleaved, initial, lanes, labels, posterior
            )
            if len(gold):
                likelihood += sum_gold_scores(start, size, positions, gold, lanes)
            softmax_batch(lanes, labels, maximum, total, inverse)
            add_log_normalizers(start, size, order, gold, maximum, total, logs, products)
            if len(gold):
                set_gold_probabilities(start, size, positions, gold, lanes, labels)
            max_change = max(max_change, write_posteriors(start, size, positions, lanes, posterior, labels))
            _add_posteriors_to_agreement(start, size, lengths, codes, offset, bits, lanes, interleaved)
            offset = after
        return likelihood + log_normalizer_sum(logs, products), max_change

    return step


@compile_with_numba()
def interleave_zeros(weight: Any, interleaved: Any) -> None:
    """Fill `interleaved` with weights and zero sums."""
    for worker in range(INDEX(len(weight))):
        interleaved[INDEX(2) * worker] = weight[worker]
        interleaved[INDEX(2) * worker + INDEX(1)] = 0.0


@compile_with_numba()
def add_symbol_weights(pointers: Any, worker: Any, symbol: Any, weight: Any, symbols: Any, totals: Any) -> None:
    """Add the weights of the workers who sent each symbol to `totals`, flat [task, symbol], in the reports' order."""
    for task in range(len(pointers) - 1):
        row = INDEX(task) * INDEX(symbols)
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            totals[row + INDEX(symbol[report])] += weight[INDEX(worker[report])]


@compile_with_numba()
def add_other_vote_shares(pointers: Any, worker: Any, symbol: Any, weight: Any, least: Any, sums: Any) -> None:
    """Add the vote shares of a task's other reports to the row of each report, [worker * symbols + symbol, symbol].

    A report counts 0 where the weight of the others is at most `least`.
    """
    symbols, last = INDEX(sums.shape[1]), INDEX(len(worker) - 1)
    totals, flat = np.zeros(symbols), sums.ravel()
    for task in range(len(pointers) - 1):
        first, stop, total = INDEX(pointers[task]), INDEX(pointers[task + 1]), 0.0
        totals[:] = 0.0
        for report in range(first, stop):
            own = weight[INDEX(worker[report])]
            totals[INDEX(symbol[report])] += own
            total += own
            ahead = min(report + INDEX(ROWS_AHEAD), last)
            prefetch(flat, (INDEX(worker[ahead]) * symbols + INDEX(symbol[ahead])) * symbols)
        for report in range(first, stop if stop - first > 1 else first):
            own, sent = weight[INDEX(worker[report])], INDEX(symbol[report])
            if total - own <= least:
                continue
            share, row = 1 / (total - own), (INDEX(worker[report]) * symbols + sent) * symbols
            for k in range(symbols):
                flat[row + k] += share * totals[k]
            flat[row + sent] -= share * own


@compile_with_numba()
def add_worker_agreement(pointers: Any, worker: Any, symbol: Any, posterior: Any, symbols: Any, agreement: Any) -> None:
    """Add the posterior, flat [task, symbol], of each report's symbol to its worker's agreement, shape (workers,)."""
    for task in range(len(pointers) - 1):
        row = INDEX(task) * INDEX(symbols)
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            agreement[INDEX(worker[report])] += posterior[row + INDEX(symbol[report])]


@compile_with_numba()
def fill_weighted_means(
    pointers: Any, worker: Any, value: Any, weight: Any, gold: Any, rounding: Any, truth: Any, squares: Any
) -> float:
    """Fill the tasks' weighted means and add up the workers' squared residuals; return the largest change.

    Args:
        pointers: to each task's reports, shape (tasks + 1,).
        worker, value: of each report.
        weight: of each worker, shape (workers,).
        gold: known truth of each task, nan where unknown.
        rounding: relative residuals up to this count as 0.
        truth: shape (tasks,), replaced; nan for tasks without weight.
        squares: sums of squared residuals, added to, shape (workers,).
    """
    max_change = 0.0
    for task in range(len(pointers) - 1):
        reports = range(INDEX(pointers[task]), INDEX(pointers[task + 1]))
        total, weighted = 0.0, 0.0
        for report in reports:
            own = weight[INDEX(worker[report])]
            total += own
            weighted += own * value[report]
        task_mean = weighted / total if total > 0 else np.nan
        task_mean = task_mean if np.isnan(gold[task]) else gold[task]
        change = abs(task_mean - truth[task])
        max_change = change if change > max_change else max_change
        truth[task] = task_mean
        for report in reports:
            difference = value[report] - task_mean
            if abs(difference) > rounding * abs(value[report]):
                squares[INDEX(worker[report])] += difference * difference
    return max_change


@njit(nogil=True, forceinline=True)
def _add_up_votes_of_batch(
    start: Any,
    size: Any,
    lengths: Any,
    codes: Any,
    offset: Any,
    bits: Any,
    interleaved: Any,
    initial: Any,
    lanes: Any,
    labels: Any,
    posterior: Any,
) -> Any:
    """Add up the votes of a batch in `lanes` and prefetch its posteriors; return the offset behind its last report."""
    shift, mask = INDEX(bits), INDEX((1 << bits) - 1)
    for k in range(labels):
        for b in range(BATCH):
            lanes[k * LANE_STRIDE + b] = initial[k]
    for b in range(INDEX(size)):
        end = offset + INDEX(lengths[INDEX(start) + b])
        prefetch(posterior, (INDEX(start) + b) * INDEX(labels))
        for report in range(offset, end):
            prefetch(interleaved, (INDEX(codes[report + INDEX(PREFETCH_DISTANCE)]) >> shift) * INDEX(2))
            code = INDEX(codes[report])
            lanes[(code & mask) * INDEX(LANE_STRIDE) + b] += interleaved[(code >> shift) * INDEX(2)]
        offset = end
    return offset


@njit(nogil=True, forceinline=True)
def _add_posteriors_to_agreement(
    start: Any, size: Any, lengths: Any, codes: Any, offset: Any, bits: Any, lanes: Any, interleaved: Any
) -> None:
    """Add the posteriors of a batch's symbols to the agreement of the workers who sent them."""
    shift, mask = INDEX(bits), INDEX((1 << bits) - 1)
    for b in range(INDEX(size)):
        end = offset + INDEX(lengths[INDEX(start) + b])
        for report in range(offset, end):
            code = INDEX(codes[report])
            interleaved[(code >> shift) * INDEX(2) + INDEX(1)] += lanes[(code & mask) * INDEX(LANE_STRIDE) + b]
        offset = end
