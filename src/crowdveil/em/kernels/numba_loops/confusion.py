"""Compiled loops for workers with a confusion matrix: E-step, sums and counts, squared scores and slopes.

One pass over a block gathers each task's scores, applies soft-max and scatters its posterior.
A row belongs to one (worker, symbol): row = worker * symbols + symbol.
`interleaved`, flat [row, 2, other label], holds two vectors per row in one cache line: log-odds of the other labels
against the first, and posterior sums of the other labels.
Factories compile for `static_labels` labels, or for any number if that is 0.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import njit

from crowdveil.em.kernels.jit import compile_with_numba
from crowdveil.em.kernels.numba_loops.layout import BATCH, INDEX, PREFETCH_DISTANCE, add_row, prefetch
from crowdveil.em.kernels.numba_loops.special_functions import (
    FAST,
    LANE_STRIDE,
    UNCHECKED_DIVISION,
    add_log_normalizers,
    exp_of_nonpositive_number,
    log_normalizer_sum,
    set_gold_probabilities,
    softmax_batch,
    sum_gold_scores,
    write_posteriors,
)


@cache
def compiled_confusion_e_step(static_labels: int) -> Any:
    """Return the compiled E-step of a block."""
    lanes_of_row = _zero_per_label_after_first(static_labels)

    @compile_with_numba(fastmath=FAST)
    def step(
        layout: Any, codes: Any, interleaved: Any, initial: Any, group: Any, gold: Any, exponents: Any, outputs: Any
    ) -> Any:
        """Fill the posterior and its sums.

        Args:
            layout: task at each position, position of each task, reports at each position; shapes (tasks,).
            codes: table row of each report, in the order of positions, and PREFETCH_DISTANCE more.
            interleaved: log-odds, and sums of posteriors, which are added to.
            initial: log-odds before any report, [group, other label].
            group: group of each task; empty if all tasks are in one group.
            gold: known label of each task or -1; empty if none is known.
            exponents: factor of the scores of the task at each position; empty for 1. With factors, the log-likelihood
                is that of no model.
            outputs: posterior, flat [task, label], which is replaced; its sums, [group, label], which are added to.

        Returns:
            The log-likelihood less the scores of the first label, and the largest change of a posterior.
        """
        others = static_labels - 1 if static_labels > 0 else initial.shape[1]
        order, positions, lengths = layout
        lanes, totals = np.zeros((others + 1) * LANE_STRIDE), np.zeros((others + 1) * LANE_STRIDE)
        maximum, total, inverse = np.empty(BATCH), np.empty(BATCH), np.empty(BATCH)
        batch, logs, products = np.zeros(BATCH * others), np.zeros(BATCH), np.ones(BATCH)
        likelihood, max_change, offset = 0.0, 0.0, INDEX(0)
        for start in range(0, len(order), BATCH):
            size = min(BATCH, len(order) - start)
            _fill_batch_with_initial_scores(start, size, order, initial, group, batch, others)
            after = _add_batch_log_odds(start, size, lengths, codes, offset, interleaved, batch, others, lanes_of_row)
            for b in range(size if len(exponents) else 0):
                for k in range(others):
                    batch[b * others + k] *= exponents[start + b]
            for b in range(BATCH):
                lanes[b] = 0.0
                for k in range(others):
                    lanes[(k + 1) * LANE_STRIDE + b] = batch[b * others + k]
            if len(gold):
                likelihood += sum_gold_scores(start, size, positions, gold, lanes)
            softmax_batch(lanes, others + 1, maximum, total, inverse)
            add_log_normalizers(start, size, order, gold, maximum, total, logs, products)
            if len(gold):
                set_gold_probabilities(start, size, positions, gold, lanes, others + 1)
            max_change = max(max_change, write_posteriors(start, size, positions, lanes, outputs[0], others + 1))
            _add_posteriors_by_task_group(start, size, order, group, lanes, outputs[1], totals, others + 1)
            for b in range(BATCH):
                for k in range(others):
                    batch[b * others + k] = lanes[(k + 1) * LANE_STRIDE + b]
            _add_posteriors_to_rows(start, size, lengths, codes, offset, batch, interleaved, others, lanes_of_row)
            offset = after
        for k in range(others + 1):
            outputs[1][0, k] += totals[k * LANE_STRIDE : k * LANE_STRIDE + BATCH].sum()
        return likelihood + log_normalizer_sum(logs, products), max_change

    return step


@cache
def compiled_confusion_sums(static_labels: int) -> Any:
    """Return the compiled sums of given posteriors."""
    lanes_of_row = _zero_per_label_after_first(static_labels)

    @compile_with_numba(fastmath=FAST)
    def sums_of(layout: Any, codes: Any, posterior: Any, interleaved: Any) -> None:
        """Add each task's posterior, [task, label], to the sums of its reports' rows in `interleaved`."""
        others = static_labels - 1 if static_labels > 0 else posterior.shape[1] - 1
        batch = np.zeros(BATCH * others)
        order, _, lengths = layout
        offset = INDEX(0)
        for start in range(0, len(order), BATCH):
            size = min(BATCH, len(order) - start)
            _prefetch_batch(start, size, lengths, codes, offset, interleaved, others)
            for b in range(size):
                for k in range(others):
                    batch[b * others + k] = posterior[start + order[start + b], k + 1]
            offset = _add_posteriors_to_rows(
                start, size, lengths, codes, offset, batch, interleaved, others, lanes_of_row
            )

    return sums_of


def _zero_per_label_after_first(static_labels: int) -> tuple[int, ...]:
    """Return a tuple as long as a row of `interleaved` if that is known when code is compiled, else an empty one."""
    return (0,) * max(static_labels - 1, 0)


@compile_with_numba()
def add_squared_mean_scores(layout: Any, codes: Any, table: Any, posterior: Any, labels: Any, squares: Any) -> None:
    """Add to each row the squared posterior mean of the table's row over its reports; arguments flat, [..., label]."""
    order, _, lengths = layout
    width, offset = INDEX(labels), INDEX(0)
    for position in range(len(order)):
        task = INDEX(position - position % BATCH + order[position])
        own, end = task * width, offset + INDEX(lengths[position])
        for report in range(offset, end):
            row = INDEX(codes[report])
            mean = 0.0
            for k in range(width):
                mean += table[row * width + k] * posterior[own + k]
            squares[row] += mean * mean
        offset = end


@njit(nogil=True, fastmath=FAST, forceinline=True)
def _fill_batch_with_initial_scores(
    start: Any, size: Any, order: Any, initial: Any, group: Any, batch: Any, others: Any
) -> None:
    """Fill a batch, flat [task, other label], with the scores before any report."""
    for b in range(size):
        row_group = group[start + order[start + b]] if len(group) else 0
        for k in range(others):
            batch[b * others + k] = initial[row_group, k]


@njit(nogil=True, fastmath=FAST, forceinline=True)
def _add_batch_log_odds(
    start: Any,
    size: Any,
    lengths: Any,
    codes: Any,
    offset: Any,
    interleaved: Any,
    batch: Any,
    others: Any,
    lanes_of_row: Any,
) -> Any:
    """Add the log-odds of a batch's reports to its scores; return the offset behind its last report."""
    width = INDEX(others)
    for b in range(INDEX(size)):
        end = offset + INDEX(lengths[INDEX(start) + b])
        for report in range(offset, end):
            prefetch(interleaved, INDEX(codes[report + INDEX(PREFETCH_DISTANCE)]) * INDEX(2) * width)
            row = INDEX(codes[report]) * INDEX(2) * width
            add_row(batch, b * width, interleaved, row, width, lanes_of_row)
        offset = end
    return offset


@njit(nogil=True, forceinline=True)
def _prefetch_batch(
    start: Any, size: Any, lengths: Any, codes: Any, offset: Any, interleaved: Any, others: Any
) -> None:
    """Prefetch the rows of all reports of a batch, which begin at `offset`."""
    end = offset
    for b in range(INDEX(size)):
        end += INDEX(lengths[INDEX(start) + b])
    for report in range(offset, end):
        prefetch(interleaved, INDEX(codes[report]) * INDEX(2) * INDEX(others))


@njit(nogil=True, fastmath=FAST, forceinline=True)
def _add_posteriors_to_rows(
    start: Any,
    size: Any,
    lengths: Any,
    codes: Any,
    offset: Any,
    batch: Any,
    interleaved: Any,
    others: Any,
    lanes_of_row: Any,
) -> Any:
    """Add the posteriors of a batch to the rows of its reports; return the offset behind its last report."""
    width = INDEX(others)
    for b in range(INDEX(size)):
        end = offset + INDEX(lengths[INDEX(start) + b])
        for report in range(offset, end):
            row = (INDEX(codes[report]) * INDEX(2) + INDEX(1)) * width
            add_row(interleaved, row, batch, b * width, width, lanes_of_row)
        offset = end
    return offset


@njit(nogil=True, fastmath=FAST, forceinline=True)
def _add_posteriors_by_task_group(
    start: Any, size: Any, order: Any, group: Any, lanes: Any, group_sums: Any, totals: Any, labels: Any
) -> None:
    """Add the posteriors of a batch to the sums by group of tasks, or, if there is one, position by position."""
    for b in range(size if len(group) else 0):
        for k in range(labels):
            group_sums[group[start + order[start + b]], k] += lanes[k * LANE_STRIDE + b]
    for k in range(INDEX(0 if len(group) else labels)):
        for b in range(INDEX(size)):
            totals[k * INDEX(LANE_STRIDE) + b] += lanes[k * INDEX(LANE_STRIDE) + b]


@cache
def compiled_log_odds_fill(static_labels: int) -> Any:
    """Return the compiled loop that fills `interleaved` before a step."""

    @compile_with_numba()
    def fill(table: Any, counts: Any, labels: Any, interleaved: Any) -> Any:
        """Fill `interleaved` with log-odds and zero sums; return the first label's logarithms, summed over reports.

        Rows without reports are left as they are: no report reads or writes them.

        Args:
            table: logarithms, flat [row, label].
            counts: reports of each row.
            labels: number of labels.
            interleaved: replaced.
        """
        width = INDEX(static_labels if static_labels > 0 else labels)
        others, level = width - INDEX(1), 0.0
        for row in range(INDEX(len(counts))):
            if counts[row] == 0:
                continue
            first = table[row * width]
            level += counts[row] * first
            for k in range(others):
                interleaved[INDEX(2) * row * others + k] = table[row * width + k + INDEX(1)] - first
                interleaved[(INDEX(2) * row + INDEX(1)) * others + k] = 0.0
        return level

    return fill


@compile_with_numba()
def clear_sums(counts: Any, others: Any, interleaved: Any) -> None:
    """Set the sums of `interleaved` to zero in rows with reports."""
    width = INDEX(others)
    for row in range(INDEX(len(counts))):
        for k in range(width if counts[row] else INDEX(0)):
            interleaved[(INDEX(2) * row + INDEX(1)) * width + k] = 0.0


@cache
def compiled_label_restore(static_labels: int) -> Any:
    """Return the compiled loop that reads the sums of `interleaved` after a step."""

    @compile_with_numba()
    def end(counts: Any, interleaved: Any, labels: Any, full: Any) -> None:
        """Fill `full`, flat [row, label], with the sums of rows with reports, and zeros.

        The sum of the first label is the row's count less the others.
        """
        width = INDEX(static_labels if static_labels > 0 else labels)
        others = width - INDEX(1)
        for row in range(INDEX(len(counts))):
            if counts[row] == 0:
                for k in range(width):
                    full[row * width + k] = 0.0
                continue
            rest = float(counts[row])
            for k in range(others):
                posterior_sum = interleaved[(INDEX(2) * row + INDEX(1)) * others + k]
                rest -= posterior_sum
                full[row * width + k + INDEX(1)] = posterior_sum
            full[row * width] = max(rest, 0.0)

    return end


@cache
def compiled_squared_derivative_sums(static_labels: int) -> Any:
    """Return the compiled sums of squared slopes, see `kernels.Slopes`."""

    @compile_with_numba(fastmath=FAST)
    def add_up(columns: Any, posterior: Any, rows: Any, labels: Any, first: Any, stop: Any, squares: Any) -> None:
        """Add the squared slopes of the reports on tasks first .. stop-1 to `squares`, shape (workers,).

        Args:
            columns: pointers to each task's reports, shape (tasks + 1,); worker and label of each report.
            posterior: flat [task, label].
            rows: slopes `wrong` and `right + wrong`, flat [worker, 2, label].
            labels: number of labels.
        """
        pointers, worker, label = columns
        width, last = INDEX(static_labels if static_labels > 0 else labels), INDEX(len(worker) - 1)
        for task in range(INDEX(first), INDEX(stop)):
            own = task * width
            for report in range(INDEX(pointers[task]), INDEX(pointers[task + INDEX(1)])):
                prefetch(rows, INDEX(worker[min(report + INDEX(PREFETCH_DISTANCE), last)]) * INDEX(2) * width)
                row, sent = INDEX(worker[report]) * INDEX(2) * width, INDEX(label[report])
                slope = posterior[own + sent] * rows[row + width + sent]
                for k in range(width):
                    slope -= posterior[own + k] * rows[row + k]
                squares[INDEX(worker[report])] += slope * slope

    return add_up


@cache
def normalize_confusion(static_labels: int) -> Any:
    """Return the compiled M-step of confusion matrices; `static_labels` truths as well."""

    @compile_with_numba(error_model=UNCHECKED_DIVISION)
    def normalize(counts: Any, pseudo: Any, weights: Any, parts: Any, size: Any, shares: Any) -> None:
        """Fill shares with counts plus pseudo-counts over their sum by label; flat [worker, label, truth].

        Args:
            counts: flat [worker, label, truth].
            pseudo: of every worker, flat [label, truth].
            weights: of two matrices of pseudo-counts of each worker, flat [worker, 2]; empty for 0.
            parts: the two matrices, each flat [label, truth].
            size: numbers of labels and truths.
            shares: replaced.
        """
        labels = INDEX(static_labels if static_labels > 0 else size[0])
        truths = INDEX(static_labels if static_labels > 0 else size[1])
        cells, inverse, prior = labels * truths, np.empty(truths), pseudo.copy()
        for row in range(INDEX(0), INDEX(len(counts)), cells):
            own = INDEX(2) * (row // cells)
            for k in range(INDEX(cells if len(weights) else 0)):
                prior[k] = pseudo[k] + weights[own] * parts[0, k] + weights[own + INDEX(1)] * parts[1, k]
            for truth in range(truths):
                inverse[truth] = 0.0
            for label in range(labels):
                for truth in range(truths):
                    cell = label * truths + truth
                    count = counts[row + cell] + prior[cell]
                    shares[row + cell] = count
                    inverse[truth] += count
            for truth in range(truths):
                inverse[truth] = 1 / inverse[truth]
            for label in range(labels):
                for truth in range(truths):
                    shares[row + label * truths + truth] *= inverse[truth]

    return normalize


@cache
def softmax_by_label(static_labels: int) -> Any:
    """Return the compiled soft-max of confusion matrices; `static_labels` truths as well."""

    @compile_with_numba(fastmath=FAST, error_model=UNCHECKED_DIVISION)
    def fill(scores: Any, size: Any, shares: Any) -> None:
        """Fill shares with the soft-max by label of scores; flat [worker, label, truth]."""
        labels = INDEX(static_labels if static_labels > 0 else size[0])
        truths = INDEX(static_labels if static_labels > 0 else size[1])
        cells, most, total = labels * truths, np.empty(truths), np.empty(truths)
        for first in range(INDEX(0), INDEX(len(scores)), cells * INDEX(BATCH)):
            stop = min(first + cells * INDEX(BATCH), INDEX(len(scores)))
            for row in range(first, stop, cells):
                for truth in range(truths):
                    most[truth] = scores[row + truth]
                for cell in range(row, row + cells, truths):
                    for truth in range(truths):
                        most[truth] = max(most[truth], scores[cell + truth])
                for cell in range(row, row + cells, truths):
                    for truth in range(truths):
                        shares[cell + truth] = scores[cell + truth] - most[truth]
            for cell in range(first, stop):
                shares[cell] = exp_of_nonpositive_number(shares[cell])
            for row in range(first, stop, cells):
                for truth in range(truths):
                    total[truth] = 0.0
                for cell in range(row, row + cells, truths):
                    for truth in range(truths):
                        total[truth] += shares[cell + truth]
                for truth in range(truths):
                    total[truth] = 1 / total[truth]
                for cell in range(row, row + cells, truths):
                    for truth in range(truths):
                        shares[cell + truth] *= total[truth]

    return fill
