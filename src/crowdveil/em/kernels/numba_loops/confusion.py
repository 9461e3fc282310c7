"""How steeply the likelihood of reports climbs with the ability of those who sent them, compiled.

Workers with a table each, compiled: gather scores, soft-max, scatter sums in one pass over a block.

Counts by worker and symbol, compiled.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import njit

from crowdveil.em.kernels.numba_loops.layout import AHEAD, BATCH, INDEX, ask_for
from crowdveil.em.kernels.numba_loops.softmax import (
    FAST,
    LANES,
    know,
    known_scores,
    log_of_totals,
    softmax_batch,
    write_shares,
)
from crowdveil.jit.kernel import kernel


@cache
def table_step(fixed: int) -> Any:
    """Return the compiled step for that number of labels, 0 for any."""

    @kernel(fastmath=FAST)
    def step(layout: Any, codes: Any, pairs: Any, first: Any, group: Any, gold: Any, filled: Any) -> Any:
        """Fill arrays from the posteriors of all tasks.

        Args:
            layout: task at each place, place of each task, reports at each place; shapes (tasks,).
            codes: table row of each report, in the order of places.
            pairs: log-odds against the first label, then sums, which are filled; flat [row, 2, other label].
            first: log-odds before any report, [group, other label].
            group: group of each task; empty if there is one.
            gold: known label of each task or -1; empty if none is known.
            filled: posterior, flat [task, label], which is written over; by_truth, [group, label].

        Returns:
            The log-likelihood, less the logarithms of the first label, and the largest change of a posterior.
        """
        others = fixed - 1 if fixed > 0 else first.shape[1]
        order, places, lengths = layout
        lanes, top, total, inverse = np.zeros((others + 1) * LANES), np.empty(BATCH), np.empty(BATCH), np.empty(BATCH)
        batch = np.zeros(BATCH * others)
        likelihood, moved, at = 0.0, 0.0, INDEX(0)
        for begin in range(0, len(order), BATCH):
            held = min(BATCH, len(order) - begin)
            _begin(begin, held, order, first, group, batch, others)
            after = _gather(begin, held, lengths, codes, at, pairs, batch, others)
            for b in range(BATCH):
                lanes[b] = 0.0
                for k in range(others):
                    lanes[(k + 1) * LANES + b] = batch[b * others + k]
            if len(gold):
                likelihood += known_scores(begin, held, places, gold, lanes)
            softmax_batch(lanes, others + 1, top, total, inverse)
            likelihood += log_of_totals(begin, held, order, gold, top, total)
            if len(gold):
                know(begin, held, places, gold, lanes, others + 1)
            moved = max(moved, write_shares(begin, held, places, lanes, filled[0], others + 1))
            _total(begin, held, order, group, lanes, filled[1], others + 1)
            for b in range(BATCH):
                for k in range(others):
                    batch[b * others + k] = lanes[(k + 1) * LANES + b]
            _scatter(begin, held, lengths, codes, at, batch, pairs, others)
            at = after
        return likelihood, moved

    return step


@cache
def table_sums(fixed: int) -> Any:
    """Return the compiled sums at given posteriors for that number of labels, 0 for any."""

    @kernel(fastmath=FAST)
    def sums_of(layout: Any, codes: Any, posterior: Any, pairs: Any) -> None:
        """Add each task's posterior, [task, label], to the sums of its reports' rows, flat [row, 2, other label]."""
        others = fixed - 1 if fixed > 0 else posterior.shape[1] - 1
        batch = np.zeros(BATCH * others)
        order, _, lengths = layout
        at = INDEX(0)
        for begin in range(0, len(order), BATCH):
            held = min(BATCH, len(order) - begin)
            _ask_for_batch(begin, held, lengths, codes, at, pairs, others)
            for b in range(held):
                for k in range(others):
                    batch[b * others + k] = posterior[begin + order[begin + b], k + 1]
            at = _scatter(begin, held, lengths, codes, at, batch, pairs, others)

    return sums_of


@kernel()
def table_squares(layout: Any, codes: Any, table: Any, posterior: Any, labels: Any, squares: Any) -> None:
    """Add to each row the squared means of its reports; table and posterior are flat, [.., label]."""
    order, _, lengths = layout
    width, at = INDEX(labels), INDEX(0)
    for place in range(len(order)):
        task = INDEX(place - place % BATCH + order[place])
        own, end = task * width, at + INDEX(lengths[place])
        for report in range(at, end):
            row = INDEX(codes[report])
            mean = 0.0
            for k in range(width):
                mean += table[row * width + k] * posterior[own + k]
            squares[row] += mean * mean
        at = end


@njit(nogil=True, fastmath=FAST, forceinline=True)
def _begin(begin: Any, held: Any, order: Any, first: Any, group: Any, batch: Any, others: Any) -> None:
    """Fill a batch, flat [task, other label], with the scores before any report."""
    for b in range(held):
        of = group[begin + order[begin + b]] if len(group) else 0
        for k in range(others):
            batch[b * others + k] = first[of, k]


@njit(nogil=True, fastmath=FAST, forceinline=True)
def _gather(begin: Any, held: Any, lengths: Any, codes: Any, at: Any, pairs: Any, batch: Any, others: Any) -> Any:
    """Add up the scores of a batch, whose first report is `at`; return where its reports end."""
    width, last = INDEX(others), INDEX(len(codes) - 1)
    for b in range(INDEX(held)):
        end = at + INDEX(lengths[INDEX(begin) + b])
        for report in range(at, end):
            ask_for(pairs, INDEX(codes[min(report + INDEX(AHEAD), last)]) * INDEX(2) * width)
            row = INDEX(codes[report]) * INDEX(2) * width
            for k in range(width):
                batch[b * width + k] += pairs[row + k]
        at = end
    return at


@njit(nogil=True, forceinline=True)
def _ask_for_batch(begin: Any, held: Any, lengths: Any, codes: Any, at: Any, pairs: Any, others: Any) -> None:
    """Ask for the rows of all reports of a batch, whose first report is `at`."""
    end = at
    for b in range(INDEX(held)):
        end += INDEX(lengths[INDEX(begin) + b])
    for report in range(at, end):
        ask_for(pairs, INDEX(codes[report]) * INDEX(2) * INDEX(others))


@njit(nogil=True, fastmath=FAST, forceinline=True)
def _scatter(begin: Any, held: Any, lengths: Any, codes: Any, at: Any, batch: Any, pairs: Any, others: Any) -> Any:
    """Add the shares of a batch, whose first report is `at`, to the rows of its reports; return where they end."""
    width = INDEX(others)
    for b in range(INDEX(held)):
        end = at + INDEX(lengths[INDEX(begin) + b])
        for report in range(at, end):
            row = (INDEX(codes[report]) * INDEX(2) + INDEX(1)) * width
            for k in range(width):
                pairs[row + k] += batch[b * width + k]
        at = end
    return at


@njit(nogil=True, fastmath=FAST, forceinline=True)
def _total(begin: Any, held: Any, order: Any, group: Any, lanes: Any, by_truth: Any, labels: Any) -> None:
    """Add up the shares of a batch by group of tasks."""
    for b in range(held if len(group) else 0):
        for k in range(labels):
            by_truth[group[begin + order[begin + b]], k] += lanes[k * LANES + b]
    for k in range(0 if len(group) else labels):
        total = 0.0
        for b in range(held):
            total += lanes[k * LANES + b]
        by_truth[0, k] += total


@cache
def begin_rows(fixed: int) -> Any:
    """Return the compiled beginning of a step for that number of labels, 0 for any."""

    @kernel()
    def begin(table: Any, counts: Any, labels: Any, pairs: Any) -> Any:
        """Fill pairs, flat [row, 2, other label], with log-odds against the first label, and sums of 0.

        Args:
            table: logarithms, flat [row, label].
            counts: reports of each row.
            labels: how many there are.
            pairs: to be filled.

        Returns:
            The first label's logarithms, summed over reports.
        """
        width = INDEX(fixed if fixed > 0 else labels)
        others, level = width - INDEX(1), 0.0
        for row in range(INDEX(len(counts))):
            first = table[row * width]
            level += counts[row] * first
            for k in range(others):
                pairs[INDEX(2) * row * others + k] = table[row * width + k + INDEX(1)] - first
                pairs[(INDEX(2) * row + INDEX(1)) * others + k] = 0.0
        return level

    return begin


@cache
def end_rows(fixed: int) -> Any:
    """Return the compiled end of a step for that number of labels, 0 for any."""

    @kernel()
    def end(counts: Any, pairs: Any, labels: Any, full: Any) -> None:
        """Fill `full`, flat [row, label], from the sums in pairs: the first label has what the others leave."""
        width = INDEX(fixed if fixed > 0 else labels)
        others = width - INDEX(1)
        for row in range(INDEX(len(counts))):
            rest = float(counts[row])
            for k in range(others):
                share = pairs[(INDEX(2) * row + INDEX(1)) * others + k]
                rest -= share
                full[row * width + k + INDEX(1)] = share
            full[row * width] = max(rest, 0.0)

    return end


@kernel()
def count_cells(worker: Any, symbol: Any, symbols: Any, counts: Any) -> None:
    """Add one to counts, flat [worker, symbol], for each report."""
    wide = INDEX(symbols)
    for report in range(INDEX(len(worker))):
        counts[INDEX(worker[report]) * wide + INDEX(symbol[report])] += 1.0


@cache
def squares_of_slopes(fixed: int) -> Any:
    """Return the compiled sums for that number of labels, 0 for any."""

    @kernel(fastmath=FAST)
    def add_up(columns: Any, posterior: Any, rows: Any, labels: Any, first: Any, stop: Any, squares: Any) -> None:
        """Add the squared slopes of the reports on tasks first .. stop-1 to `squares`, shape (workers,).

        Args:
            columns: where each task's reports begin, and worker and label of each report.
            posterior: flat [task, label].
            rows: what each label takes from the slope if it is the truth, and what it adds to that if it is the
                report too; flat [worker, 2, label].
            labels: how many there are.
        """
        pointers, worker, label = columns
        width, last = INDEX(fixed if fixed > 0 else labels), INDEX(len(worker) - 1)
        for task in range(INDEX(first), INDEX(stop)):
            own = task * width
            for report in range(INDEX(pointers[task]), INDEX(pointers[task + INDEX(1)])):
                ask_for(rows, INDEX(worker[min(report + INDEX(AHEAD), last)]) * INDEX(2) * width)
                row, said = INDEX(worker[report]) * INDEX(2) * width, INDEX(label[report])
                slope = posterior[own + said] * rows[row + width + said]
                for k in range(width):
                    slope -= posterior[own + k] * rows[row + k]
                squares[INDEX(worker[report])] += slope * slope

    return add_up
