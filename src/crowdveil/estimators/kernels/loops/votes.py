"""Workers with one number each, compiled: gather votes, elect or soft-max, scatter agreement in one pass over a block.

Codes hold worker << bits | symbol. As in `tables`, the number of labels is known when the code is compiled, and what is
read and what is summed of a worker stand side by side: his weight and his agreement.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import njit

from crowdveil.estimators.kernels.loops.softmax import BATCH, FAST, log_of_totals, share_out

INDEX = np.uintp


@cache
def coin_step(fixed: int) -> Any:
    """Return the compiled step of workers with one ability, for that number of labels, 0 for any."""

    @njit(cache=True, nogil=True, fastmath=FAST)
    def step(layout: Any, codes: Any, bits: Any, pairs: Any, first: Any, gold: Any, posterior: Any) -> Any:
        """Fill posterior, flat [task, label], and agreement from soft-maxed votes.

        Args:
            layout: local task at each place, its first report and its number of reports; shapes (tasks,).
            codes, bits: worker << bits | label of each report.
            pairs: what a vote of each worker adds to its label's score, and his agreement, to be filled; (workers, 2).
            first: scores before any vote, shape (labels,).
            gold: known label of each task or -1; empty if none is known.
            posterior: to be filled.

        Returns:
            The sum of the logarithms of the normalisers.
        """
        others = fixed - 1 if fixed > 0 else len(first) - 1
        lanes = np.zeros((others + 1, BATCH))
        votes = np.zeros((BATCH, others + 1))
        scores = np.zeros((BATCH, others))
        likelihood = 0.0
        for begin in range(0, len(layout[0]), BATCH):
            held = min(BATCH, len(layout[0]) - begin)
            _gather(begin, held, layout, codes, bits, pairs, first, votes, others)
            for b in range(held):
                likelihood += votes[b, 0]
                for k in range(others):
                    scores[b, k] = votes[b, k + 1] - votes[b, 0]
            for k in range(others):
                for b in range(BATCH):
                    lanes[k + 1, b] = scores[b, k]
            totals = share_out(lanes, others)
            likelihood += log_of_totals(totals, held, begin, layout[0], gold, scores)
            for k in range(others + 1):
                for b in range(BATCH):
                    votes[b, k] = lanes[k, b]
            _scatter(begin, held, layout, codes, bits, votes, gold, posterior, pairs, others)
        return likelihood

    return step


@cache
def election(fixed: int) -> Any:
    """Return the compiled election by weighted votes, for that number of labels, 0 for any."""

    @njit(cache=True, nogil=True)
    def step(layout: Any, codes: Any, bits: Any, pairs: Any, tie: Any, first: Any, gold: Any, posterior: Any) -> None:
        """Fill posterior, flat [task, label], and agreement: labels within `tie` share a task.

        Other arguments as in `coin_step`; sums are taken in the order of the reports, to the same last digit.
        """
        others = fixed - 1 if fixed > 0 else len(first) - 1
        votes = np.zeros((BATCH, others + 1))
        for begin in range(0, len(layout[0]), BATCH):
            held = min(BATCH, len(layout[0]) - begin)
            _gather(begin, held, layout, codes, bits, pairs, first, votes, others)
            for b in range(held):
                best = votes[b, 0]
                for k in range(1, others + 1):
                    best = max(best, votes[b, k])
                elected = 0
                for k in range(others + 1):
                    votes[b, k] = 1.0 if votes[b, k] >= best - tie else 0.0
                    elected += votes[b, k] > 0
                for k in range(others + 1):
                    votes[b, k] /= elected
            _scatter(begin, held, layout, codes, bits, votes, gold, posterior, pairs, others)

    return step


@njit(cache=True, nogil=True)
def vote_totals(layout: Any, codes: Any, bits: Any, weight: Any, symbols: Any, totals: Any) -> None:
    """Add up the weights of the workers who sent each symbol, in the order of the reports; flat [task, symbol]."""
    order, starts, lengths = layout
    shift, mask = INDEX(bits), INDEX((1 << bits) - 1)
    for at in range(len(order)):
        row, start = INDEX(order[at]) * INDEX(symbols), INDEX(starts[at])
        for report in range(INDEX(lengths[at])):
            code = INDEX(codes[start + INDEX(report)])
            totals[row + (code & mask)] += weight[code >> shift]


@njit(cache=True, nogil=True)
def agreement_sums(layout: Any, codes: Any, bits: Any, posterior: Any, symbols: Any, agreement: Any) -> None:
    """Add up, for each worker, what the posterior, flat [task, symbol], gives to the symbols sent."""
    order, starts, lengths = layout
    shift, mask = INDEX(bits), INDEX((1 << bits) - 1)
    for at in range(len(order)):
        row, start = INDEX(order[at]) * INDEX(symbols), INDEX(starts[at])
        for report in range(INDEX(lengths[at])):
            code = INDEX(codes[start + INDEX(report)])
            agreement[code >> shift] += posterior[row + (code & mask)]


@njit(nogil=True, forceinline=True)
def _gather(
    begin: Any, held: Any, layout: Any, codes: Any, bits: Any, pairs: Any, first: Any, votes: Any, others: Any
) -> None:
    """Add up the votes of a batch, [task, label]."""
    _, starts, lengths = layout
    shift, mask = INDEX(bits), INDEX((1 << bits) - 1)
    for b in range(held):
        for k in range(others + 1):
            votes[b, k] = first[k]
        start = INDEX(starts[begin + b])
        for report in range(INDEX(lengths[begin + b])):
            code = INDEX(codes[start + INDEX(report)])
            votes[b, code & mask] += pairs[code >> shift, 0]


@njit(nogil=True, forceinline=True)
def _scatter(
    begin: Any,
    held: Any,
    layout: Any,
    codes: Any,
    bits: Any,
    shares: Any,
    gold: Any,
    posterior: Any,
    pairs: Any,
    others: Any,
) -> None:
    """Write the shares of a batch, gold tasks certain, and add them to the agreement of those who said so."""
    order, starts, lengths = layout
    shift, mask = INDEX(bits), INDEX((1 << bits) - 1)
    for b in range(held):
        task = order[begin + b]
        if len(gold) and gold[task] >= 0:
            for k in range(others + 1):
                shares[b, k] = 1.0 if gold[task] == k else 0.0
        row = INDEX(task) * INDEX(others + 1)
        for k in range(others + 1):
            posterior[row + INDEX(k)] = shares[b, k]
        start = INDEX(starts[begin + b])
        for report in range(INDEX(lengths[begin + b])):
            code = INDEX(codes[start + INDEX(report)])
            pairs[code >> shift, 1] += shares[b, code & mask]
