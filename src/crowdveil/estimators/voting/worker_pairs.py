"""Agreement of pairs of workers on their common tasks, as sums over tasks; only pairs with a common task are held."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.data.reports import Block

CHUNK_PAIRS = 1 << 22
"""Pairs of reports that are listed together, to bound memory."""


@dataclass(frozen=True, eq=False)
class WorkerPairs:
    """Common tasks of pairs of workers; a sum of two has the pairs of both.

    Attributes:
        pair: first worker * workers + second worker, ascending, first < second; shape (pairs,).
        counts: common tasks, and common tasks with the same answer; indexed [pair, 2].
    """

    pair: NDArray[np.int64]
    counts: NDArray[np.float64]

    @classmethod
    def none(cls) -> Self:
        """Return no pair."""
        return cls(np.zeros(0, np.int64), np.zeros((0, 2)))

    @classmethod
    def of(cls, pair: NDArray[np.int64], same: NDArray[np.bool_]) -> Self:
        """Return the sums of listed pairs, as of `listed_pairs`."""
        key = np.sort(2 * pair + same)
        first = np.flatnonzero(np.diff(key >> 1, prepend=-1))
        common, equal = np.diff(first, append=len(key)), np.add.reduceat(key & 1, first)
        return cls(key[first] >> 1, np.stack((common, equal), axis=1).astype(float))

    def __add__(self, other: "WorkerPairs | int") -> "WorkerPairs":
        """Return the sum by pair; 0 is no pair."""
        if not isinstance(other, WorkerPairs) or not len(other.pair):
            return self
        return WorkerPairs(*_summed(np.append(self.pair, other.pair), np.append(self.counts, other.counts, axis=0)))

    __radd__ = __add__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the counts."""
        return np.array(self.counts, dtype=dtype)


def pairs_of_block(block: Block, workers: int) -> WorkerPairs:
    """Return the pairs of workers who answered a task of the block; a worker's repeated answers are no pair."""
    found = WorkerPairs.none()
    for tasks in _chunks(block):
        found = found + WorkerPairs.of(*listed_pairs(block.slice_tasks(tasks), workers))
    return found


def _chunks(block: Block) -> Iterator[slice]:
    """Yield ranges of tasks with about `CHUNK_PAIRS` pairs of reports."""
    lengths = np.diff(block.pointers)
    pairs = np.cumsum(lengths * (lengths - 1) // 2)
    first = 0
    while first < block.tasks:
        before = int(pairs[first - 1]) if first else 0
        stop = max(first + 1, int(np.searchsorted(pairs, before + CHUNK_PAIRS)))
        yield slice(first, stop)
        first = stop


def listed_pairs(block: Block, workers: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return each pair of reports on one task by its pair of workers, and whether the two are equal."""
    lengths = np.diff(block.pointers)
    place = np.arange(len(block.worker)) - np.repeat(block.pointers[:-1], lengths)
    later = np.repeat(lengths, lengths) - 1 - place
    one = np.repeat(np.arange(len(block.worker)), later)
    other = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(later) - later, later)
    first, second, same = block.worker[one], block.worker[other], block.value[one] == block.value[other]
    pair, apart = first.astype(np.int64) * workers + second, first != second
    return (pair, same) if apart.all() else (pair[apart], same[apart])


def _summed(pair: NDArray[np.int64], counts: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return each pair once, and its summed counts."""
    names, place = np.unique(pair, return_inverse=True)
    sums = [np.bincount(place, weights=column, minlength=len(names)) for column in counts.T]
    return names, np.stack(sums, axis=1).astype(float)
