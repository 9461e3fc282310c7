"""Workers with a table each, compiled: gather scores, soft-max, scatter sums in one pass over a block.

Tables hold log-odds against the first label, one column less than there are labels; so do the sums. Both stand side by
side in one row of `pairs`: for five labels that is one line of the cache, fetched once for both. The number of labels
is known when the code is compiled, so that its loops are unrolled.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import njit

from crowdveil.estimators.kernels.loops.softmax import BATCH, FAST, log_of_totals, share_out

INDEX = np.uintp


@cache
def table_step(fixed: int) -> Any:
    """Return the compiled step for that number of labels, 0 for any."""

    @njit(cache=True, nogil=True, fastmath=FAST)
    def step(layout: Any, codes: Any, pairs: Any, first: Any, group: Any, gold: Any, filled: Any) -> Any:
        """Fill arrays from the posteriors of all tasks.

        Args:
            layout: local task at each place, its first report and its number of reports; shapes (tasks,).
            codes: table row of each report.
            pairs: log-odds against the first label, then sums, which are filled; flat [row, 2, other label].
            first: log-odds before any report, [group, other label].
            group: group of each task; empty if there is one.
            gold: known label of each task or -1; empty if none is known.
            filled: posterior, flat [task, label]; by_truth, [group, label].

        Returns:
            The log-likelihood, less the logarithms of the first label.
        """
        others = fixed - 1 if fixed > 0 else first.shape[1]
        lanes = np.zeros((others + 1, BATCH))
        batch = np.zeros((BATCH, others))
        likelihood = 0.0
        for begin in range(0, len(layout[0]), BATCH):
            held = min(BATCH, len(layout[0]) - begin)
            _gather(begin, held, layout, codes, pairs, first, group, batch, others)
            for k in range(others):
                for b in range(BATCH):
                    lanes[k + 1, b] = batch[b, k]
            totals = share_out(lanes, others)
            likelihood += log_of_totals(totals, held, begin, layout[0], gold, batch)
            if len(gold):
                _know(begin, held, layout[0], gold, lanes, others)
            _write(begin, held, layout[0], group, lanes, filled[0], filled[1], others)
            _scatter(begin, held, layout, codes, lanes, batch, pairs, others)
        return likelihood

    return step


@cache
def table_sums(fixed: int) -> Any:
    """Return the compiled sums at given posteriors for that number of labels, 0 for any."""

    @njit(cache=True, nogil=True, fastmath=FAST)
    def sums_of(layout: Any, codes: Any, posterior: Any, pairs: Any) -> None:
        """Add each task's posterior, [task, label], to the sums of its reports' rows, flat [row, 2, other label]."""
        others = fixed - 1 if fixed > 0 else posterior.shape[1] - 1
        lanes = np.zeros((others + 1, BATCH))
        batch = np.zeros((BATCH, others))
        for begin in range(0, len(layout[0]), BATCH):
            held = min(BATCH, len(layout[0]) - begin)
            for b in range(held):
                for k in range(others + 1):
                    lanes[k, b] = posterior[layout[0][begin + b], k]
            _scatter(begin, held, layout, codes, lanes, batch, pairs, others)

    return sums_of


@njit(cache=True, nogil=True)
def table_squares(
    pointers: Any, worker: Any, codes: Any, table: Any, posterior: Any, labels: Any, squares: Any
) -> None:
    """Add to each worker the squared means of the rows of his reports; table and posterior are flat, [.., label]."""
    width = INDEX(labels)
    for task in range(len(pointers) - 1):
        own = INDEX(task) * width
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            row = INDEX(codes[report]) * width
            mean = 0.0
            for k in range(width):
                mean += table[row + INDEX(k)] * posterior[own + INDEX(k)]
            squares[INDEX(worker[report])] += mean * mean


@njit(nogil=True, fastmath=FAST, forceinline=True)
def _gather(
    begin: Any, held: Any, layout: Any, codes: Any, pairs: Any, first: Any, group: Any, batch: Any, others: Any
) -> None:
    """Add up the scores of a batch, [task, other label]."""
    order, starts, lengths = layout
    width = INDEX(2 * others)
    for b in range(held):
        at = begin + b
        of = group[order[at]] if len(group) else 0
        for k in range(others):
            batch[b, k] = first[of, k]
        start = INDEX(starts[at])
        for report in range(INDEX(lengths[at])):
            row = INDEX(codes[start + INDEX(report)]) * width
            for k in range(others):
                batch[b, k] += pairs[row + INDEX(k)]


@njit(nogil=True, fastmath=FAST, forceinline=True)
def _know(begin: Any, held: Any, order: Any, gold: Any, lanes: Any, others: Any) -> None:
    """Make the shares of gold tasks certain."""
    for b in range(held):
        known = gold[order[begin + b]]
        if known >= 0:
            for k in range(others + 1):
                lanes[k, b] = 0
            lanes[known, b] = 1


@njit(nogil=True, fastmath=FAST, forceinline=True)
def _write(
    begin: Any, held: Any, order: Any, group: Any, lanes: Any, posterior: Any, by_truth: Any, others: Any
) -> None:
    """Write the posteriors of a batch, and add them up by group of tasks."""
    stride = INDEX(others + 1)
    for b in range(held):
        row = INDEX(order[begin + b]) * stride
        for k in range(others + 1):
            posterior[row + INDEX(k)] = lanes[k, b]
    if len(group):
        for b in range(held):
            for k in range(others + 1):
                by_truth[group[order[begin + b]], k] += lanes[k, b]
    else:
        for k in range(others + 1):
            total = 0.0
            for b in range(held):
                total += lanes[k, b]
            by_truth[0, k] += total


@njit(nogil=True, fastmath=FAST, forceinline=True)
def _scatter(begin: Any, held: Any, layout: Any, codes: Any, lanes: Any, batch: Any, pairs: Any, others: Any) -> None:
    """Add the shares of a batch, first label left out, to the rows of its reports."""
    _, starts, lengths = layout
    width = INDEX(2 * others)
    for k in range(others):
        for b in range(BATCH):
            batch[b, k] = lanes[k + 1, b]
    for b in range(held):
        start = INDEX(starts[begin + b])
        for report in range(INDEX(lengths[begin + b])):
            row = INDEX(codes[start + INDEX(report)]) * width + INDEX(others)
            for k in range(others):
                pairs[row + INDEX(k)] += batch[b, k]


@njit(cache=True, nogil=True)
def weigh(counts: Any, level: Any) -> float:
    """Return the sum of counts times level; a library's product would start threads of its own."""
    total = 0.0
    for row in range(len(counts)):
        total += counts[row] * level[row]
    return total


@njit(cache=True, nogil=True)
def fill_pairs(odds: Any, others: Any, pairs: Any) -> None:
    """Fill pairs, flat [row, 2, other label], with odds, flat [row, other label], and sums of 0."""
    for row in range(len(odds) // others):
        for k in range(others):
            pairs[2 * row * others + k] = odds[row * others + k]
            pairs[(2 * row + 1) * others + k] = 0.0


@njit(cache=True, nogil=True)
def fill_first(counts: Any, pairs: Any, others: Any, full: Any) -> None:
    """Fill `full`, flat [row, label], from the sums in pairs: the first label has what the others leave."""
    for row in range(len(counts)):
        rest = float(counts[row])
        for k in range(others):
            rest -= pairs[(2 * row + 1) * others + k]
            full[row * (others + 1) + k + 1] = pairs[(2 * row + 1) * others + k]
        full[row * (others + 1)] = max(rest, 0.0)
