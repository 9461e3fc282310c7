"""Kernels by loops that numba compiles; imported for large data only.

Processor time of numpy over that of the loop, one thread, half a million answers of 10,000 workers, 5 and 2 labels
(a quarter of a million for `confusion_step`, `table_row_sums`): `confusion_step` 4.3 and 4.7,
`one_coin_step` 6.9 and 6.4, `symbol_weights` 3.5 and 6.5, `agreement_sums` 4.0 and 13, `squared_scores` 5.5
and 8.7, `reduce_weighted_means` 4.7 and 5.4. `table_row_sums` gains 1.2 and 1.9, and saves the
memory of numpy's sparse matrix.
"""

import threading
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.kernels.numba_loops import confusion as table_loops
from crowdveil.em.kernels.numba_loops import layout, votes
from crowdveil.em.kernels.numba_loops.layout import PREFETCH_DISTANCE
from crowdveil.em.kernels.numpy_backend import LEAST_WEIGHT, EncodedBlock, MeanStep, ScoreTables, TableStep, VoteStep

CACHE_LINE_NUMBERS = 8
"""Doubles in a cache line."""
_THREAD_LOCAL = threading.local()
UNROLLED_LABELS = 8
"""Largest number of labels for which loops over labels are unrolled."""


class NumbaBlock(EncodedBlock):
    """An `EncodedBlock` by compiled loops; memory layout as in `numba_loops.layout`."""

    @cached_property
    def batch_order(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int32]]:
        """Task at each position, position of each task, reports at each position; shapes (tasks,)."""
        order, positions = np.empty((2, self.block.tasks), np.uint8)
        lengths = np.empty(self.block.tasks, np.int32)
        layout.fill_batch_order(self.block.pointers, order, positions, lengths)
        return order, positions, lengths

    @cached_property
    def table_codes(self) -> NDArray[np.unsignedinteger]:
        """worker * symbols + symbol of each report, in the order of positions; PREFETCH_DISTANCE zeros follow."""
        codes = _code_array(len(self.block.worker) + PREFETCH_DISTANCE, self.workers * self.symbols)
        codes[-PREFETCH_DISTANCE:] = 0
        layout.table_codes(*self._task_order_and_pointers, self.block.worker, self.block.value, self.symbols, codes)
        return codes

    @property
    def _task_order_and_pointers(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Task at each position, and pointers to each task's reports."""
        return self.batch_order[0], self.block.pointers

    @cached_property
    def worker_symbol_counts(self) -> NDArray[np.integer]:
        """Reports of each worker by symbol, shape (workers * symbols,)."""
        counts = np.zeros(self.workers * self.symbols, np.int32)
        layout.count_symbols(self.block.worker, self.block.value, self.symbols, counts)
        return counts

    @cached_property
    def bits_per_symbol(self) -> int:
        """Bits of a symbol."""
        return max(self.symbols - 1, 1).bit_length()

    @cached_property
    def packed_report_codes(self) -> NDArray[np.unsignedinteger]:
        """worker << bits | symbol of each report, in the order of positions; PREFETCH_DISTANCE zeros follow."""
        codes = _code_array(len(self.block.worker) + PREFETCH_DISTANCE, self.workers << self.bits_per_symbol)
        codes[-PREFETCH_DISTANCE:] = 0
        layout.table_codes(
            *self._task_order_and_pointers, self.block.worker, self.block.value, 1 << self.bits_per_symbol, codes
        )
        return codes

    def confusion_step(
        self,
        tables: ScoreTables,
        group: NDArray[np.int64],
        gold: NDArray[np.int64],
        previous: NDArray[np.float64] | None = None,
    ) -> TableStep:
        """Return the posterior, the soft-max of each task's scores, and its sums."""
        groups, labels = tables.initial_scores.shape
        posterior, by_truth = self._new_or_reused_posterior_array(previous, labels), np.zeros((groups, labels))
        interleaved = _thread_local_aligned_buffer(2 * len(self.worker_symbol_counts) * (labels - 1))
        likelihood = table_loops.compiled_log_odds_fill(_labels_to_unroll_or_zero(labels))(
            tables.report_scores.ravel(), self.worker_symbol_counts, labels, interleaved
        )
        from_others, change = table_loops.compiled_confusion_e_step(_labels_to_unroll_or_zero(labels))(
            self.batch_order,
            self.table_codes,
            interleaved,
            tables.initial_scores[:, 1:] - tables.initial_scores[:, :1],
            _group_or_empty_if_one_group(group, groups),
            _gold_or_empty(gold),
            self._score_factor_by_position(tables),
            (posterior.reshape(-1), by_truth),
        )
        likelihood += from_others
        sizes = np.bincount(group, minlength=groups) if groups > 1 else np.array([self.block.tasks])
        likelihood += float(sizes @ tables.initial_scores[:, 0])
        sums = self._sums_with_first_label(interleaved, labels)
        return TableStep(posterior, sums, by_truth, likelihood, change if posterior is previous else None)

    def table_row_sums(self, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of a posterior over the reports of each table row."""
        labels = posterior.shape[1]
        interleaved = _thread_local_aligned_buffer(2 * len(self.worker_symbol_counts) * (labels - 1))
        table_loops.clear_sums(self.worker_symbol_counts, labels - 1, interleaved)
        table_loops.compiled_confusion_sums(_labels_to_unroll_or_zero(labels))(
            self.batch_order, self.table_codes, posterior, interleaved
        )
        return self._sums_with_first_label(interleaved, labels)

    def add_other_vote_sums(self, weight: NDArray[np.float64], sums: NDArray[np.float64]) -> None:
        """Add the sums of the vote shares of other reports by table row."""
        votes.add_other_vote_shares(
            self.block.pointers, self.block.worker, self.block.value, weight, LEAST_WEIGHT, sums
        )

    def squared_scores(self, table: NDArray[np.float64], posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each worker's sum of squared posterior means of report rows."""
        sums, flat = np.zeros(len(table)), np.ascontiguousarray(posterior).ravel()
        table_loops.add_squared_mean_scores(
            self.batch_order, self.table_codes, table.ravel(), flat, table.shape[1], sums
        )
        return sums.reshape(-1, self.symbols).sum(axis=1)

    def one_coin_step(
        self,
        weight: NDArray[np.float64],
        initial: NDArray[np.float64],
        gold: NDArray[np.int64],
        previous: NDArray[np.float64] | None = None,
    ) -> VoteStep:
        """Return the soft-max of weighted votes."""
        posterior, interleaved = self._new_or_reused_posterior_array(previous, len(initial)), _with_zero_sums(weight)
        normaliser, change = votes.compiled_coin_e_step(_labels_to_unroll_or_zero(len(initial)))(
            self.batch_order,
            self.packed_report_codes,
            self.bits_per_symbol,
            interleaved,
            initial,
            _gold_or_empty(gold),
            posterior.reshape(-1),
        )
        return VoteStep(posterior, interleaved[1::2].copy(), normaliser, change if posterior is previous else None)

    def symbol_weights(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the summed weights of the workers who sent each symbol."""
        sums = np.zeros(self.block.tasks * self.symbols)
        votes.add_symbol_weights(self.block.pointers, self.block.worker, self.block.value, weight, self.symbols, sums)
        return sums.reshape(-1, self.symbols)

    def agreement_sums(self, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of a posterior over the symbols that each worker sent."""
        sums = np.zeros(self.workers)
        flat = np.ascontiguousarray(posterior).ravel()
        votes.add_worker_agreement(self.block.pointers, self.block.worker, self.block.value, flat, self.symbols, sums)
        return sums

    def reduce_weighted_means(
        self,
        weight: NDArray[np.float64],
        rounding: float,
        gold: NDArray[np.float64],
        previous: NDArray[np.float64] | None = None,
    ) -> MeanStep:
        """Return weighted means of numbers."""
        truth, squares = np.empty(self.block.tasks) if previous is None else previous, np.zeros(self.workers)
        reports = self.block.pointers, self.block.worker, self.report_values
        change = votes.fill_weighted_means(*reports, weight, gold, rounding, truth, squares)
        return MeanStep(truth, squares, change if truth is previous else None)

    def _score_factor_by_position(self, tables: ScoreTables) -> NDArray[np.float64]:
        """Return the factor of the scores of the task at each position; empty without a discount."""
        return np.empty(0) if tables.discount is None else tables.discount.exponents(self.batch_order[2])

    def _new_or_reused_posterior_array(self, previous: NDArray[np.float64] | None, labels: int) -> NDArray[np.float64]:
        """Return the array for the new posterior, [task, label]: the previous one if it is C-contiguous."""
        return np.empty((self.block.tasks, labels)) if previous is None or not previous.flags.c_contiguous else previous

    def _sums_with_first_label(self, interleaved: NDArray[np.float64], labels: int) -> NDArray[np.float64]:
        """Return sums of all labels, [row, label], from the interleaved sums, which lack the first label."""
        sums = np.empty((len(self.worker_symbol_counts), labels))
        table_loops.compiled_label_restore(_labels_to_unroll_or_zero(labels))(
            self.worker_symbol_counts, interleaved, labels, sums.ravel()
        )
        return sums


def _labels_to_unroll_or_zero(labels: int) -> int:
    """Return the number of labels to unroll, 0 for a loop."""
    return labels if labels <= UNROLLED_LABELS else 0


def _with_zero_sums(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights and zero sums, flat [worker, 2], in the thread's buffer: valid until its next step."""
    interleaved = _thread_local_aligned_buffer(2 * len(weight))
    votes.interleave_zeros(weight, interleaved)
    return interleaved


def _thread_local_aligned_buffer(size: int) -> NDArray[np.float64]:
    """Return the thread's buffer, aligned to a cache line.

    It is kept between calls, since mapping new memory is slower than filling it in a step.
    """
    buffer: NDArray[np.float64] | None = getattr(_THREAD_LOCAL, "buffer", None)
    if buffer is None or len(buffer) != size + CACHE_LINE_NUMBERS:
        buffer = _THREAD_LOCAL.buffer = np.empty(size + CACHE_LINE_NUMBERS)
    start = -(buffer.ctypes.data // buffer.itemsize) % CACHE_LINE_NUMBERS
    return buffer[start : start + size]


def _code_array(reports: int, codes: int) -> NDArray[np.unsignedinteger]:
    """Return an array of codes below `codes`, 32 bits each where they suffice, else 64."""
    return np.empty(reports, dtype=np.uint32 if codes <= 2**32 else np.uint64)


def _group_or_empty_if_one_group(group: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    return group if groups > 1 else np.empty(0, dtype=np.int64)


def _gold_or_empty(gold: NDArray[Any]) -> NDArray[Any]:
    return gold if (gold >= 0).any() else gold[:0]
