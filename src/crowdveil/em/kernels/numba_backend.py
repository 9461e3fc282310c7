"""Blocks in the form that compiled loops read; imported only where a table is large enough to be worth it."""

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.data.reports import Block
from crowdveil.em.kernels.interface import MeanStep, ScoreTables, TableStep, VoteStep
from crowdveil.em.kernels.numba_loops import confusion as table_loops
from crowdveil.em.kernels.numba_loops import layout, means, votes
from crowdveil.em.kernels.numba_loops.layout import AHEAD

LINE = 8
"""Numbers in a line of the cache."""
_OWN = threading.local()
UNROLLED_LABELS = 8
"""Up to so many labels code is compiled for this number of labels; above it, for any."""


@dataclass(frozen=True, eq=False)
class CompiledBlock:
    """A block by compiled loops; methods as in `CodedBlock`, attributes as in `PlainBlock`."""

    block: Block
    workers: int
    symbols: int
    points: NDArray[np.float64] | None = None

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The number of each report, shape (reports,)."""
        return self.block.value if self.points is None else self.points[self.block.value]

    @cached_property
    def layout(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int32]]:
        """Task at each place and place of each task, both within a batch; reports at each place; shapes (tasks,)."""
        order, places = np.empty((2, self.block.tasks), np.uint8)
        lengths = np.empty(self.block.tasks, np.int32)
        layout.order_by_length(self.block.pointers, order, places, lengths)
        return order, places, lengths

    @cached_property
    def table_codes(self) -> NDArray[np.unsignedinteger]:
        """worker * symbols + symbol of each report, in the order of places."""
        codes = _unsigned(len(self.block.worker), self.workers * self.symbols)
        layout.table_codes(*self._in_order, self.block.worker, self.block.value, self.symbols, codes)
        return codes

    @property
    def _in_order(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The task at each place, and where each task's reports begin in the block."""
        return self.layout[0], self.block.pointers

    @cached_property
    def table_counts(self) -> NDArray[np.int32]:
        """Reports of each worker by symbol, shape (workers * symbols,)."""
        counts = np.zeros(self.workers * self.symbols, np.int32)
        layout.count_codes(self.table_codes, counts)
        return counts

    @cached_property
    def bits(self) -> int:
        """Binary digits that a symbol needs."""
        return max(self.symbols - 1, 1).bit_length()

    @cached_property
    def vote_codes(self) -> NDArray[np.unsignedinteger]:
        """worker << bits | symbol of each report, in the order of places; AHEAD zeros follow."""
        codes = _unsigned(len(self.block.worker) + AHEAD, self.workers << self.bits)
        codes[-AHEAD:] = 0
        layout.vote_codes(*self._in_order, self.block.worker, self.block.value, self.bits, codes)
        return codes

    @cached_property
    def answers(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Worker and number of each report, in the order of places."""
        columns = np.empty_like(self.block.worker), np.empty(len(self.block.worker))
        layout.rows_in_order(*self._in_order, self.block.worker, columns[0])
        layout.rows_in_order(*self._in_order, self.numbers, columns[1])
        return columns

    @cached_property
    def worker_counts(self) -> NDArray[np.int64]:
        """Reports of each worker, shape (workers,)."""
        return np.bincount(self.block.worker, minlength=self.workers)

    def table_step(
        self,
        tables: ScoreTables,
        group: NDArray[np.int64],
        gold: NDArray[np.int64],
        before: NDArray[np.float64] | None = None,
    ) -> TableStep:
        """Soft-max the scores of each task and sum what follows."""
        groups, labels = tables.first.shape
        posterior, by_truth = self._over(before, labels), np.zeros((groups, labels))
        pairs = _room(2 * len(self.table_counts) * (labels - 1))
        likelihood = table_loops.begin_rows(_unrolled(labels))(tables.table.ravel(), self.table_counts, labels, pairs)
        from_votes, moved = table_loops.table_step(_unrolled(labels))(
            self.layout,
            self.table_codes,
            pairs,
            tables.first[:, 1:] - tables.first[:, :1],
            _groups(group, groups),
            _known(gold),
            (posterior.reshape(-1), by_truth),
        )
        likelihood += from_votes
        sizes = np.bincount(group, minlength=groups) if groups > 1 else np.array([self.block.tasks])
        likelihood += float(sizes @ tables.first[:, 0])
        sums = self._with_first(pairs, labels)
        return TableStep(posterior, sums, by_truth, likelihood, moved if posterior is before else None)

    def table_sums(self, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum a posterior by the rows of each task's reports."""
        labels = posterior.shape[1]
        pairs = _room(2 * len(self.table_counts) * (labels - 1))
        pairs.fill(0.0)
        table_loops.table_sums(_unrolled(labels))(self.layout, self.table_codes, posterior, pairs)
        return self._with_first(pairs, labels)

    def squares(self, table: NDArray[np.float64], posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up, for each worker, the squared means of a report's row under its task's posterior."""
        sums, flat = np.zeros(len(table)), np.ascontiguousarray(posterior).ravel()
        table_loops.table_squares(self.layout, self.table_codes, table.ravel(), flat, table.shape[1], sums)
        return sums.reshape(-1, self.symbols).sum(axis=1)

    def coin_step(
        self,
        weight: NDArray[np.float64],
        first: NDArray[np.float64],
        gold: NDArray[np.int64],
        before: NDArray[np.float64] | None = None,
    ) -> VoteStep:
        """Soft-max weighted votes."""
        posterior, pairs = self._over(before, len(first)), _beside_zeros(weight)
        normaliser, moved = votes.coin_step(_unrolled(len(first)))(
            self.layout, self.vote_codes, self.bits, pairs, first, _known(gold), posterior.reshape(-1)
        )
        return VoteStep(posterior, pairs[1::2].copy(), normaliser, moved if posterior is before else None)

    def election(
        self,
        weight: NDArray[np.float64],
        tie: float,
        labels: int,
        gold: NDArray[np.int64],
        before: NDArray[np.float64] | None = None,
    ) -> VoteStep:
        """Elect the label with most votes."""
        posterior, pairs = self._over(before, labels), _beside_zeros(weight)
        moved = votes.election(_unrolled(labels))(
            self.layout,
            self.vote_codes,
            self.bits,
            pairs,
            tie,
            np.zeros(labels),
            _known(gold),
            posterior.reshape(-1),
        )
        return VoteStep(posterior, pairs[1::2].copy(), 0.0, moved if posterior is before else None)

    def vote_sums(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up the weights of the workers who sent each symbol."""
        sums = np.zeros(self.block.tasks * self.symbols)
        votes.vote_totals(self.block.pointers, self.block.worker, self.block.value, weight, self.symbols, sums)
        return sums.reshape(-1, self.symbols)

    def agreement(self, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up what a posterior gives to the symbols that each worker sent."""
        sums = np.zeros(self.workers)
        flat = np.ascontiguousarray(posterior).ravel()
        votes.agreement_sums(self.block.pointers, self.block.worker, self.block.value, flat, self.symbols, sums)
        return sums

    def mean_step(
        self,
        weight: NDArray[np.float64],
        rounding: float,
        gold: NDArray[np.float64],
        before: NDArray[np.float64] | None = None,
    ) -> MeanStep:
        """Average the numbers."""
        truth, pairs = np.empty(self.block.tasks) if before is None else before, _beside_zeros(weight)
        known = gold if not np.isnan(gold).all() else gold[:0]
        moved = means.mean_step(self.layout, *self.answers, pairs, known, rounding, truth)
        return MeanStep(truth, pairs[1::2].copy(), moved if truth is before else None)

    def largest_change(self, new: NDArray[np.float64], old: NDArray[np.float64]) -> float:
        """Return the largest difference of two posteriors."""
        return float(means.largest_change(new.ravel(), old.ravel()))

    def _over(self, before: NDArray[np.float64] | None, labels: int) -> NDArray[np.float64]:
        """Return where to write a posterior, [task, label]: over the one before, if that lies row by row."""
        return np.empty((self.block.tasks, labels)) if before is None or not before.flags.c_contiguous else before

    def _with_first(self, pairs: NDArray[np.float64], labels: int) -> NDArray[np.float64]:
        """Return sums indexed [row, label] from those in pairs, which lack the first label."""
        full = np.empty((len(self.table_counts), labels))
        table_loops.end_rows(_unrolled(labels))(self.table_counts, pairs, labels, full.ravel())
        return full


def _unrolled(labels: int) -> int:
    """Return the number of labels to compile for, 0 for any."""
    return labels if labels <= UNROLLED_LABELS else 0


def _beside_zeros(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each weight with a sum of 0 beside it, flat [worker, 2]; until the thread's next step."""
    pairs = _room(2 * len(weight))
    votes.beside_zeros(weight, pairs)
    return pairs


def _room(size: int) -> NDArray[np.float64]:
    """Return the thread's own room for numbers, which begins where a line of the cache does.

    It is kept from call to call: getting so much memory from the system anew takes longer than filling it.
    """
    room: NDArray[np.float64] | None = getattr(_OWN, "room", None)
    if room is None or len(room) != size + LINE:
        room = _OWN.room = np.empty(size + LINE)
    begin = -(room.ctypes.data // room.itemsize) % LINE
    return room[begin : begin + size]


def _unsigned(reports: int, codes: int) -> NDArray[np.unsignedinteger]:
    """Return room for a code below `codes` per report, in half the memory where it fits."""
    return np.empty(reports, dtype=np.uint32 if codes <= 2**32 else np.uint64)


def _groups(group: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    return group if groups > 1 else np.empty(0, dtype=np.int64)


def _known(gold: NDArray[Any]) -> NDArray[Any]:
    return gold if (gold >= 0).any() else gold[:0]
