"""Workers with one number each, compiled: gather votes, elect or soft-max, scatter agreement in one pass over a block.

Codes hold worker << bits | symbol. As in `tables`, the number of labels is known when the code is compiled, and what is
read and what is summed of a worker stand side by side: his weight and his agreement.
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
def coin_step(fixed: int) -> Any:
    """Return the compiled step of workers with one ability, for that number of labels, 0 for any."""

    @kernel(fastmath=FAST)
    def step(layout: Any, codes: Any, bits: Any, pairs: Any, first: Any, gold: Any, posterior: Any) -> Any:
        """Fill posterior, flat [task, label], and agreement from soft-maxed votes.

        Args:
            layout: task at each place, place of each task, reports at each place; shapes (tasks,).
            codes, bits: worker << bits | label of each report, in the order of places, and AHEAD zeros, so that nobody
                has to look for the end of what is asked for ahead.
            pairs: what a vote of each worker adds to its label's score, and his agreement, to be filled; flat
                [worker, 2].
            first: scores before any vote, shape (labels,).
            gold: known label of each task or -1; empty if none is known.
            posterior: to be written over.

        Returns:
            The sum of the logarithms of the normalisers, and the largest change of a posterior.
        """
        labels = fixed if fixed > 0 else len(first)
        lanes, top, total, inverse = np.zeros(labels * LANES), np.empty(BATCH), np.empty(BATCH), np.empty(BATCH)
        order, places, lengths = layout
        likelihood, moved, at = 0.0, 0.0, INDEX(0)
        for begin in range(0, len(order), BATCH):
            held = min(BATCH, len(order) - begin)
            after = _gather(begin, held, lengths, codes, at, bits, pairs, first, lanes, labels, posterior)
            if len(gold):
                likelihood += known_scores(begin, held, places, gold, lanes)
            softmax_batch(lanes, labels, top, total, inverse)
            likelihood += log_of_totals(begin, held, order, gold, top, total)
            if len(gold):
                know(begin, held, places, gold, lanes, labels)
            moved = max(moved, write_shares(begin, held, places, lanes, posterior, labels))
            _scatter(begin, held, lengths, codes, at, bits, lanes, pairs)
            at = after
        return likelihood, moved

    return step


@cache
def election(fixed: int) -> Any:
    """Return the compiled election by weighted votes, for that number of labels, 0 for any."""

    @kernel()
    def step(layout: Any, codes: Any, bits: Any, pairs: Any, tie: Any, first: Any, gold: Any, posterior: Any) -> Any:
        """Fill posterior, flat [task, label], and agreement: labels within `tie` share a task.

        Other arguments as in `coin_step`; sums are taken in the order of the reports, to the same last digit.
        Returns the largest change of a posterior.
        """
        labels = fixed if fixed > 0 else len(first)
        lanes = np.zeros(labels * LANES)
        _, places, lengths = layout
        moved, at = 0.0, INDEX(0)
        for begin in range(0, len(places), BATCH):
            held = min(BATCH, len(places) - begin)
            after = _gather(begin, held, lengths, codes, at, bits, pairs, first, lanes, labels, posterior)
            _elect(lanes, labels, tie)
            if len(gold):
                know(begin, held, places, gold, lanes, labels)
            moved = max(moved, write_shares(begin, held, places, lanes, posterior, labels))
            _scatter(begin, held, lengths, codes, at, bits, lanes, pairs)
            at = after
        return moved

    return step


@kernel()
def beside_zeros(weight: Any, pairs: Any) -> None:
    """Fill pairs, flat [worker, 2], with each weight and a sum of 0."""
    for worker in range(INDEX(len(weight))):
        pairs[INDEX(2) * worker] = weight[worker]
        pairs[INDEX(2) * worker + INDEX(1)] = 0.0


@kernel()
def vote_totals(pointers: Any, worker: Any, symbol: Any, weight: Any, symbols: Any, totals: Any) -> None:
    """Add up the weights of the workers who sent each symbol, in the order of the reports; flat [task, symbol]."""
    for task in range(len(pointers) - 1):
        row = INDEX(task) * INDEX(symbols)
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            totals[row + INDEX(symbol[report])] += weight[INDEX(worker[report])]


@kernel()
def agreement_sums(pointers: Any, worker: Any, symbol: Any, posterior: Any, symbols: Any, agreement: Any) -> None:
    """Add up, for each worker, what the posterior, flat [task, symbol], gives to the symbols sent."""
    for task in range(len(pointers) - 1):
        row = INDEX(task) * INDEX(symbols)
        for report in range(INDEX(pointers[task]), INDEX(pointers[task + 1])):
            agreement[INDEX(worker[report])] += posterior[row + INDEX(symbol[report])]


@njit(nogil=True, forceinline=True)
def _elect(lanes: Any, labels: Any, tie: Any) -> None:
    """Replace votes by the shares of an election."""
    for b in range(BATCH):
        best, elected = lanes[b], 0
        for k in range(1, labels):
            best = max(best, lanes[k * LANES + b])
        for k in range(labels):
            lanes[k * LANES + b] = 1.0 if lanes[k * LANES + b] >= best - tie else 0.0
            elected += lanes[k * LANES + b] > 0
        for k in range(labels):
            lanes[k * LANES + b] /= elected


@njit(nogil=True, forceinline=True)
def _gather(
    begin: Any,
    held: Any,
    lengths: Any,
    codes: Any,
    at: Any,
    bits: Any,
    pairs: Any,
    first: Any,
    lanes: Any,
    labels: Any,
    posterior: Any,
) -> Any:
    """Add up the votes of a batch, whose first report is `at`; return where its reports end.

    The posteriors that are written over later are asked for meanwhile.
    """
    shift, mask = INDEX(bits), INDEX((1 << bits) - 1)
    for k in range(labels):
        for b in range(BATCH):
            lanes[k * LANES + b] = first[k]
    for b in range(INDEX(held)):
        end = at + INDEX(lengths[INDEX(begin) + b])
        ask_for(posterior, (INDEX(begin) + b) * INDEX(labels))
        for report in range(at, end):
            ask_for(pairs, (INDEX(codes[report + INDEX(AHEAD)]) >> shift) * INDEX(2))
            code = INDEX(codes[report])
            lanes[(code & mask) * INDEX(LANES) + b] += pairs[(code >> shift) * INDEX(2)]
        at = end
    return at


@njit(nogil=True, forceinline=True)
def _scatter(begin: Any, held: Any, lengths: Any, codes: Any, at: Any, bits: Any, lanes: Any, pairs: Any) -> None:
    """Add the shares of a batch, whose first report is `at`, to the agreement of those who said so."""
    shift, mask = INDEX(bits), INDEX((1 << bits) - 1)
    for b in range(INDEX(held)):
        end = at + INDEX(lengths[INDEX(begin) + b])
        for report in range(at, end):
            code = INDEX(codes[report])
            pairs[(code >> shift) * INDEX(2) + INDEX(1)] += lanes[(code & mask) * INDEX(LANES) + b]
        at = end
