"""The heavy sums by numpy and scipy: for small tables, and as what compiled code is held to.

A categorical block is a sparse matrix with one row per task, one column per (worker, symbol) pair and a one per report.
Scores of all tasks and label sums of all workers are then two products with it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from crowdveil.data.reports import Block
from crowdveil.em.gold import one_hot_gold
from crowdveil.em.kernels.interface import MeanStep, ScoreTables, TableStep, VoteStep


@dataclass(frozen=True, eq=False)
class PlainBlock:
    """A block by numpy and scipy; methods as in `CodedBlock`.

    Attributes:
        block: the reports.
        workers, symbols: how many there are; no symbol for free numbers.
        points: the number of each symbol; None where reports are numbers themselves.
    """

    block: Block
    workers: int
    symbols: int
    points: NDArray[np.float64] | None = None

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The number of each report, shape (reports,)."""
        return self.block.value if self.points is None else self.points[self.block.value]

    @cached_property
    def matrix(self) -> Any:
        """The block as a sparse matrix, indexed [task, worker * symbols + symbol]."""
        # Half the index width, where it is enough, saves memory and up to a quarter of the time of the two products.
        narrow = max(self.workers * self.symbols, len(self.block.worker)) < 2**31
        width = np.int32 if narrow else np.int64
        columns = self.block.worker.astype(width) * self.symbols + self.block.value
        parts = (np.ones(len(columns)), columns, self.block.pointers.astype(width))
        return csr_array(parts, shape=(self.block.tasks, self.workers * self.symbols))

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
        scores = self.matrix @ tables.table + tables.first[group]
        posterior, likelihood = _soften(scores, gold)
        by_truth = np.array([posterior[group == one].sum(axis=0) for one in range(len(tables.first))])
        return TableStep(posterior, self.table_sums(posterior), by_truth, likelihood)

    def table_sums(self, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum a posterior by the rows of each task's reports."""
        return self.matrix.T @ posterior

    def squares(self, table: NDArray[np.float64], posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up, for each worker, the squared means of a report's row under its task's posterior."""
        row = self.block.worker.astype(np.int64) * self.symbols + self.block.value
        means = np.einsum("rz,rz->r", table[row], posterior[self.block.task])
        return totals(self.block.worker, means**2, self.workers)

    def coin_step(
        self,
        weight: NDArray[np.float64],
        first: NDArray[np.float64],
        gold: NDArray[np.int64],
        before: NDArray[np.float64] | None = None,
    ) -> VoteStep:
        """Soft-max weighted votes."""
        posterior, normaliser = _soften(self.vote_sums(weight) + first, gold)
        return VoteStep(posterior, self.agreement(posterior), normaliser)

    def election(
        self,
        weight: NDArray[np.float64],
        tie: float,
        labels: int,
        gold: NDArray[np.int64],
        before: NDArray[np.float64] | None = None,
    ) -> VoteStep:
        """Elect the label with most votes."""
        votes = self.vote_sums(weight)
        elected = votes >= votes.max(axis=1, keepdims=True) - tie
        posterior = one_hot_gold(elected / elected.sum(axis=1, keepdims=True), gold)
        return VoteStep(posterior, self.agreement(posterior), 0.0)

    def vote_sums(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up the weights of the workers who sent each symbol."""
        cell = self.block.task * self.symbols + self.block.value
        return totals(cell, weight[self.block.worker], self.block.tasks * self.symbols).reshape(-1, self.symbols)

    def agreement(self, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up what a posterior gives to the symbols that each worker sent."""
        return totals(self.block.worker, posterior[self.block.task, self.block.value], self.workers)

    def mean_step(
        self,
        weight: NDArray[np.float64],
        rounding: float,
        gold: NDArray[np.float64],
        before: NDArray[np.float64] | None = None,
    ) -> MeanStep:
        """Average the numbers."""
        task, shares = self.block.task, weight[self.block.worker]
        total = totals(task, shares, self.block.tasks)
        truth = np.full(self.block.tasks, np.nan)
        np.divide(totals(task, shares * self.numbers, self.block.tasks), total, out=truth, where=total > 0)
        truth = np.where(np.isnan(gold), truth, gold)
        difference = self.numbers - truth[task]
        difference[np.abs(difference) <= rounding * np.abs(self.numbers)] = 0.0
        return MeanStep(truth, totals(self.block.worker, difference**2, self.workers))

    def largest_change(self, new: NDArray[np.float64], old: NDArray[np.float64]) -> float:
        """Return the largest difference of two posteriors."""
        return float(np.nan_to_num(np.abs(new - old)).max())


def totals(code: NDArray[Any], weight: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Add up the weights of the reports that share a code 0 .. size - 1; shape (size,)."""
    return np.bincount(code, weights=weight, minlength=size).astype(float)


def softmax(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the normalised exponentials of each row and the logarithm of each row's normaliser."""
    top = scores.max(axis=1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(axis=1, keepdims=True)
    return weights / total, (top + np.log(total))[:, 0]


def _soften(scores: NDArray[np.float64], gold: NDArray[np.int64]) -> tuple[NDArray[np.float64], float]:
    """Return posteriors, gold tasks certain, and the sum of log-normalisers, of a gold task its label's score."""
    posterior, total = softmax(scores)
    known = np.flatnonzero(gold >= 0)
    total[known] = scores[known, gold[known]]
    return one_hot_gold(posterior, gold), float(total.sum())
