"""Kernels by numpy and scipy: for small data, and the reference of the compiled kernels.

A categorical block is a sparse 0/1 matrix M with one row per task and one column per (worker, symbol).
Scores of tasks are M @ table, sums of posteriors by row are M.T @ posterior.
"""

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from crowdveil.answers.reports import Block
from crowdveil.em.gold import one_hot_gold

LEAST_WEIGHT = 1e-12
"""Weight of other votes up to which a report counts as without others."""
FEW_COLUMNS = 7
"""Columns up to which a matrix is reduced column by column: ten times faster, with the same bits."""


@dataclass(frozen=True, slots=True)
class Discount:
    """Exponent of a task's likelihoods and prior, for reports whose errors are correlated within a task.

    n reports are worth n / (1 + (n - 1) correlation) independent ones, so the scores of a task with n listed reports
    are divided by 1 + correlation max(n information - 1, 0).

    Attributes:
        correlation: of the errors of two answers to one task, at least 0.
        information: answers that one report is worth, in [0, 1]; 1 without noise.
    """

    correlation: float
    information: float = 1.0

    def exponents(self, reports: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the factor of each task's scores from its number of listed reports, shape (tasks,)."""
        return 1 / (1 + self.correlation * np.maximum(self.information * reports - 1.0, 0.0))


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """Log-likelihood tables of an E-step, shared by all blocks.

    Attributes:
        report_scores: log P(report | truth), indexed [worker * symbols + symbol, label].
        initial_scores: scores before any report (prior, implicit NULL), indexed [task group, label].
        discount: factor of the scores of each task; None for 1.
    """

    report_scores: NDArray[np.float64]
    initial_scores: NDArray[np.float64]
    discount: Discount | None = None


class TableStep(NamedTuple):
    """Posterior, [task, label]; its sums over the reports of each table row, [row, label], and over the tasks of each
    group, [group, label]; the log-likelihood, gold tasks at their known label.

    `change` is the largest change from the previous posterior if that was overwritten, else None."""

    posterior: NDArray[np.float64]
    by_row: NDArray[np.float64]
    by_truth: NDArray[np.float64]
    log_likelihood: float
    change: float | None = None


class VoteStep(NamedTuple):
    """Posterior, [task, label]; its sum over the labels that each worker sent, shape (workers,); and the sum of the
    tasks' log-normalizers (of a gold task: its label's score), 0 for a plurality vote. `change` as in `TableStep`."""

    posterior: NDArray[np.float64]
    agreement: NDArray[np.float64]
    log_normaliser: float
    change: float | None = None


class MeanStep(NamedTuple):
    """Weighted means, shape (tasks,); sums of squared residuals, shape (workers,); `change` as in `TableStep`."""

    truth: NDArray[np.float64]
    squares: NDArray[np.float64]
    change: float | None = None


@dataclass(frozen=True, eq=False)
class EncodedBlock:
    """A block encoded for its sums, once per fit; here by numpy and scipy.

    Attributes:
        block: the reports.
        workers, symbols: numbers of workers and symbols; 0 symbols for numbers off a scale.
        points: value of each symbol; None if reports are numbers.
        weights: weight of each report in scores, sums of posteriors and weighted votes, shape (reports,); None for 1.

    Arguments of several methods:
        gold: label codes, -1 for unknown; or numbers, nan for unknown; shape (tasks,); gold posteriors are
            certain.
        group: group of each task, shape (tasks,).
        previous: posterior or means of an earlier step, which may be overwritten.
    """

    block: Block
    workers: int
    symbols: int
    points: NDArray[np.float64] | None = None
    weights: NDArray[np.float64] | None = None

    @cached_property
    def report_values(self) -> NDArray[np.float64]:
        """Value of each report, shape (reports,): the number, or the grid point or position of its symbol."""
        return self.block.value if self.points is None else self.points[self.block.value]

    @cached_property
    def reports_as_sparse_matrix(self) -> Any:
        """The block as a sparse matrix, indexed [task, worker * symbols + symbol]."""
        # 32-bit indices, where they suffice, save memory and up to a quarter of the time of the two products.
        narrow = max(self.workers * self.symbols, len(self.block.worker)) < 2**31
        width = np.int32 if narrow else np.int64
        columns = self.block.worker.astype(width) * self.symbols + self.block.value
        weights = np.ones(len(columns)) if self.weights is None else self.weights
        parts = (weights, columns, self.block.pointers.astype(width))
        return csr_array(parts, shape=(self.block.tasks, self.workers * self.symbols))

    @cached_property
    def worker_symbol_counts(self) -> NDArray[np.integer]:
        """Reports of each worker by symbol, shape (workers * symbols,)."""
        rows = self.block.worker.astype(np.int64) * self.symbols + self.block.value
        return np.bincount(rows, minlength=self.workers * self.symbols)

    @cached_property
    def worker_counts(self) -> NDArray[np.int64]:
        """Reports of each worker, shape (workers,)."""
        return np.bincount(self.block.worker, minlength=self.workers)

    def confusion_step(
        self,
        tables: ScoreTables,
        group: NDArray[np.int64],
        gold: NDArray[np.int64],
        previous: NDArray[np.float64] | None = None,
    ) -> TableStep:
        """Return the posterior, the soft-max of each task's scores, and its sums."""
        scores = self.reports_as_sparse_matrix @ tables.report_scores + tables.initial_scores[group]
        if tables.discount is not None:
            scores *= tables.discount.exponents(np.diff(self.block.pointers))[:, None]
        posterior, likelihood = _softmax_with_gold(scores, gold)
        by_truth = np.array([posterior[group == one].sum(axis=0) for one in range(len(tables.initial_scores))])
        return TableStep(posterior, self.table_row_sums(posterior), by_truth, likelihood)

    def table_row_sums(self, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of a posterior, [task, label], over the reports of each table row; indexed [row, label]."""
        return self.reports_as_sparse_matrix.T @ posterior

    def add_other_vote_sums(self, weight: NDArray[np.float64], sums: NDArray[np.float64]) -> None:
        """Add the sums over the reports of each table row of the vote shares of the task's other reports.

        A report without others counts 0.

        Args:
            weight: of a vote of each worker, shape (workers,).
            sums: indexed [row, label], for symbols that are labels.
        """
        votes, own = self.symbol_weights(weight), weight[self.block.worker]
        own = own if self.weights is None else own * self.weights
        others = row_sums(votes)[self.block.task] - own
        alone = (np.diff(self.block.pointers) < 2)[self.block.task] | (others <= LEAST_WEIGHT)
        share = np.where(alone, 0.0, 1.0 if self.weights is None else self.weights) / np.where(alone, 1.0, others)
        matrix = self.reports_as_sparse_matrix
        found = csr_array((share, matrix.indices, matrix.indptr), shape=matrix.shape).T @ votes
        row = self.block.worker.astype(np.int64) * self.symbols + self.block.value
        rows = np.arange(len(found))
        found[rows, rows % self.symbols] -= weight_totals_by_code(row, share * own, len(found))
        sums += np.maximum(found, 0.0)

    def squared_scores(self, table: NDArray[np.float64], posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each worker's sum over reports of (posterior mean of the report's row of `table`)^2."""
        row = self.block.worker.astype(np.int64) * self.symbols + self.block.value
        means = np.einsum("rz,rz->r", table[row], posterior[self.block.task])
        return weight_totals_by_code(self.block.worker, means**2, self.workers)

    def one_coin_step(
        self,
        weight: NDArray[np.float64],
        initial: NDArray[np.float64],
        gold: NDArray[np.int64],
        previous: NDArray[np.float64] | None = None,
    ) -> VoteStep:
        """Return the soft-max of weighted votes plus initial scores, shape (labels,)."""
        posterior, normaliser = _softmax_with_gold(self.symbol_weights(weight) + initial, gold)
        return VoteStep(posterior, self.agreement_sums(posterior), normaliser)

    def weighted_plurality_vote(
        self,
        weight: NDArray[np.float64],
        tie_margin: float,
        gold: NDArray[np.int64],
    ) -> VoteStep:
        """Return the weighted plurality vote; labels within `tie_margin` of the most votes share the task equally."""
        votes = self.symbol_weights(weight)
        winners = votes >= votes.max(axis=1, keepdims=True) - tie_margin
        posterior = one_hot_gold(winners / winners.sum(axis=1, keepdims=True), gold)
        return VoteStep(posterior, self.agreement_sums(posterior), 0.0)

    def symbol_weights(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the summed weights of the workers who sent each symbol, indexed [task, symbol]."""
        cell, own = self.block.task * self.symbols + self.block.value, weight[self.block.worker]
        own = own if self.weights is None else own * self.weights
        return weight_totals_by_code(cell, own, self.block.tasks * self.symbols).reshape(-1, self.symbols)

    def agreement_sums(self, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of a posterior, [task, symbol], over the symbols that each worker sent, shape (workers,)."""
        return weight_totals_by_code(self.block.worker, posterior[self.block.task, self.block.value], self.workers)

    def reduce_weighted_means(
        self,
        weight: NDArray[np.float64],
        rounding: float,
        gold: NDArray[np.float64],
        previous: NDArray[np.float64] | None = None,
    ) -> MeanStep:
        """Return weighted means of numbers; relative residuals up to `rounding` count as 0."""
        task, shares = self.block.task, weight[self.block.worker]
        total = weight_totals_by_code(task, shares, self.block.tasks)
        truth = np.full(self.block.tasks, np.nan)
        np.divide(
            weight_totals_by_code(task, shares * self.report_values, self.block.tasks),
            total,
            out=truth,
            where=total > 0,
        )
        truth = np.where(np.isnan(gold), truth, gold)
        difference = self.report_values - truth[task]
        difference[np.abs(difference) <= rounding * np.abs(self.report_values)] = 0.0
        return MeanStep(truth, weight_totals_by_code(self.block.worker, difference**2, self.workers))


def largest_change(new: NDArray[np.float64], old: NDArray[np.float64]) -> float:
    """Return the largest absolute difference of two posteriors, nan ignored."""
    return float(np.nan_to_num(np.abs(new - old)).max())


def weight_totals_by_code(code: NDArray[Any], weight: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the summed weights of the reports by code 0 .. size - 1, shape (size,)."""
    return np.bincount(code, weights=weight, minlength=size).astype(float)


def softmax(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the soft-max of each row, and the log-normalizer of each row."""
    maximum = row_maxima(scores)
    weights = np.exp(scores - maximum[:, None])
    total = row_sums(weights)
    return weights / total[:, None], maximum + np.log(total)


def row_maxima(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return the maximum of each row, shape (rows,)."""
    return reduce(np.maximum, matrix.T) if 0 < matrix.shape[1] <= FEW_COLUMNS else matrix.max(axis=1)


def row_sums(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of each row, shape (rows,)."""
    return reduce(np.add, matrix.T) if 0 < matrix.shape[1] <= FEW_COLUMNS else matrix.sum(axis=1)


def _softmax_with_gold(scores: NDArray[np.float64], gold: NDArray[np.int64]) -> tuple[NDArray[np.float64], float]:
    """Return posteriors, gold tasks certain, and the sum of log-normalizers (of a gold task: its label's score)."""
    posterior, total = softmax(scores)
    known = np.flatnonzero(gold >= 0)
    total[known] = scores[known, gold[known]]
    return one_hot_gold(posterior, gold), float(total.sum())
