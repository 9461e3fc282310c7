"""Weights of reports from shares of pairs of workers who answer alike: a report counts 1 / (1 + sum of c_ij).

The sum is over the other workers j of the task, c_ij is the share of answers that i and j have in common beyond
independent work (Kish 1965: n answers of which the shares c are common are worth n / (1 + (n - 1) c)).
"""

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.blocks import Block


class PairShares(NamedTuple):
    """Pairs of workers who answer alike.

    Attributes:
        first, second: worker codes, first < second, ascending by both; shape (pairs,).
        share: c, in (0, 1].
        workers: number of all workers.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    share: NDArray[np.float64]
    workers: int

    def weights(self, block: Block) -> NDArray[np.float64]:
        """Return the weight of each report of a block, shape (reports,)."""
        listed = np.zeros(self.workers, dtype=bool)
        listed[self.first] = listed[self.second] = True
        rows = np.flatnonzero(listed[block.worker])
        pointers = np.append(0, np.cumsum(listed[block.worker]))[block.pointers]
        workers, known = block.worker[rows].astype(np.int64), self.first * self.workers + self.second
        total = np.zeros(len(rows))
        for one, other in report_pairs_by_distance(pointers):
            low, high = np.sort((workers[one], workers[other]), axis=0)
            pair = low * self.workers + high
            place = np.minimum(np.searchsorted(known, pair), len(known) - 1)
            share = np.where(known[place] == pair, self.share[place], 0.0)
            total[one] += share
            total[other] += share
        weights = np.ones(len(block.worker))
        weights[rows] = 1 / (1 + total)
        return weights

    def of_workers(self, workers: NDArray[np.int64]) -> Self | None:
        """Return the pairs of some workers, ascending codes, numbered anew; None if there are none."""
        kept = np.isin(self.first, workers) & np.isin(self.second, workers)
        if not kept.any():
            return None
        first, second = (np.searchsorted(workers, one[kept]) for one in (self.first, self.second))
        return type(self)(first, second, self.share[kept], len(workers))

    def largest_share_per_worker(self) -> NDArray[np.float64]:
        """Return the largest c of each worker, 0 for workers without a pair; shape (workers,)."""
        largest = np.zeros(self.workers)
        for side in (self.first, self.second):
            np.maximum.at(largest, side, self.share)
        return largest


def report_pairs_by_distance(
    pointers: NDArray[np.int64],
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the places of the two reports of each pair on one task, neighbours first.

    At a time there are no more pairs than reports, of which each is in at most one as first and in one as second.
    """
    last = np.repeat(pointers[1:], np.diff(pointers)) - 1
    one = np.arange(len(last))
    for distance in count(1):
        one = one[one + distance <= last[one]]
        if not len(one):
            return
        yield one, one + distance
