"""Incremental EM (Neal and Hinton 1998): one step on a few tasks, with sums over the last posteriors of all tasks.

An update subtracts the tasks' earlier contributions to the sums and adds the new ones. It costs the reports of these
tasks, and the confusion matrices of their workers (of all workers behind a channel, which share its base rates).
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.data.blocks import Block
from crowdveil.em.deconvolution import frequencies_of_counts
from crowdveil.em.estimate import WorkerTable
from crowdveil.em.gold import one_hot_gold
from crowdveil.em.kernels import encode, softmax
from crowdveil.em.model import GoldBlock, Summary
from crowdveil.estimators.confusion.model import ConfusionEstimator, CrowdStatistics
from crowdveil.estimators.confusion.parameters import TINY, CrowdParameters, fit_participation_prior

WARM_UP = 15
"""Mean reports per worker up to which posteriors are vote shares: with fewer reports, EM can lock into a label-switched
solution."""


class Rows(NamedTuple):
    """Reports of a few tasks in task order: codes of workers and symbols, shape (reports,), and the index of each
    task's first report, shape (tasks + 1,)."""

    worker: NDArray[np.int64]
    symbol: NDArray[np.int64]
    pointers: NDArray[np.int64]

    @property
    def task(self) -> NDArray[np.int64]:
        """Index of each report's task among these tasks."""
        return np.repeat(np.arange(len(self.pointers) - 1), np.diff(self.pointers))


class OnlineCrowd:
    """Parameters and sufficient statistics of the workers of a stream; memory grows with their number only.

    Attributes:
        estimator: model and pseudo-counts.
        summary: summary of an empty stream: labels, symbols, channel and public prior.
        workers, tasks: numbers seen so far.
        warm: whether the warm-up is over, however few reports there are.
        sums: posterior sums by worker and symbol, indexed [worker * symbols + symbol, truth].
        by_truth: posterior sums over tasks, shape (labels,).
        counts: reports by worker and symbol.
    """

    def __init__(self, estimator: ConfusionEstimator, summary: Summary) -> None:
        self.estimator, self.summary = estimator, summary
        self.workers = self.tasks = self._reporting = 0
        self.warm = False
        labels, symbols = summary.labels, summary.symbols
        self.sums, self.by_truth = np.zeros((0, labels)), np.zeros(labels)
        self.counts = np.zeros((0, symbols))
        self._totals = np.zeros(symbols)
        self._confusion, self._participation = np.zeros((0, labels, labels)), np.zeros(0)
        self._class_prior: NDArray[np.float64] | None = None

    def count(self, rows: Rows, workers: int, tasks: int) -> None:
        """Count new reports; `workers` and `tasks` are the new totals."""
        met = self.workers
        self.workers, self.tasks = workers, tasks
        self.sums = grown_to(self.sums, workers * self.summary.symbols)
        self.counts = grown_to(self.counts, workers)
        self._confusion = grown_to(self._confusion, workers)
        self._participation = grown_to(self._participation, workers)
        senders = np.unique(rows.worker)
        self._reporting += int((self.counts[senders].sum(axis=1) == 0).sum())
        np.add.at(self.counts, (rows.worker, rows.symbol), 1.0)
        self._totals += np.bincount(rows.symbol, minlength=len(self._totals))
        if met < workers:
            pool, ability = self._parameters(np.zeros(0, dtype=np.int64)).pool, self.estimator.anchor_ability
            guess = ability * np.eye(self.summary.labels) + (1 - ability) * pool.label_shares
            self._confusion[met:workers], self._participation[met:workers] = guess, pool.participation

    def retract(self, rows: Rows, posterior: NDArray[np.float64]) -> None:
        """Subtract the contributions of tasks with these last posteriors from the sums."""
        np.subtract.at(self.sums, self._row(rows), posterior[rows.task])
        self.by_truth -= posterior.sum(axis=0)

    def update(self, rows: Rows, gold: NDArray[np.int64]) -> NDArray[np.float64]:
        """Take one EM step on tasks that are not in the sums; return their posteriors, indexed [task, label].

        Args:
            rows: all kept reports on the tasks.
            gold: label codes of known truths, shape (tasks,); NO_GOLD where unknown.
        """
        posterior = self.infer(rows, gold)
        self.add(rows, posterior, posterior.sum(axis=0))
        return posterior

    def infer(self, rows: Rows, gold: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the posteriors of tasks, indexed [task, label], without an update; arguments as in `update`."""
        touched = self._touched(rows)
        parameters = self.estimator.precompute(self._parameters(touched, tasks=len(gold)))
        local = np.searchsorted(touched, rows.worker).astype(np.int32)
        block = Block(0, len(gold), rows.pointers, local, rows.symbol.astype(np.int16))
        coded = encode(block, len(touched), self.summary.symbols, compiled=False)
        return self.estimator.e_step(GoldBlock(block, gold, coded), parameters).posterior

    def predict(self, rows: Rows, earlier: NDArray[np.float64], gold: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the posteriors after new reports on tasks with these earlier posteriors, both [task, label]."""
        touched = self._touched(rows)
        parameters = self._parameters(touched)
        logs = parameters.log_reports()[np.searchsorted(touched, rows.worker), :, rows.symbol]
        scores = np.log(np.maximum(earlier, TINY))
        np.add.at(scores, rows.task, logs)
        return one_hot_gold(softmax(scores)[0], gold)

    def add(self, rows: Rows, posterior: NDArray[np.float64], by_truth: NDArray[np.float64]) -> None:
        """Add the contributions of tasks to the sums, `by_truth` to those over tasks, and re-estimate their workers."""
        np.add.at(self.sums, self._row(rows), posterior[rows.task])
        self.by_truth += by_truth
        touched = self._touched(rows)
        before = self._parameters(touched)
        if before.pool.noise:
            before = replace(before, dirichlet_prior=self.estimator.update_prior(before))
        found = self.estimator.m_step(self._statistics(touched), before)
        self._confusion[touched], self._participation[touched] = found.confusion, found.participation
        self._class_prior = found.class_prior

    def table(self) -> WorkerTable:
        """Return the worker table."""
        workers = np.arange(self.workers)
        return self.estimator.worker_table(self._statistics(workers), self._parameters(workers))

    @property
    def per_worker(self) -> NDArray[np.int64]:
        """Reports of each worker, shape (workers,)."""
        return self.counts[: self.workers].sum(axis=1).astype(np.int64)

    def _row(self, rows: Rows) -> NDArray[np.int64]:
        return rows.worker * self.summary.symbols + rows.symbol

    def _touched(self, rows: Rows) -> NDArray[np.int64]:
        """Return the codes of the workers that an update changes, ascending."""
        return np.unique(rows.worker) if self.summary.model.is_identity else np.arange(self.workers)

    def _statistics(self, touched: NDArray[np.int64]) -> CrowdStatistics:
        symbols, labels = self.summary.symbols, self.summary.labels
        sums = self.sums[: self.workers * symbols].reshape(-1, symbols, labels)[touched]
        # Additions and subtractions may leave a rounding error below zero.
        return CrowdStatistics(np.maximum(sums, 0.0).transpose(0, 2, 1), np.maximum(self.by_truth, 0.0)[None], np.nan)

    def _parameters(self, touched: NDArray[np.int64], tasks: int = 0) -> CrowdParameters:
        """Return the parameters of some workers for a block of `tasks` tasks, with base rates of all reports."""
        model = replace(
            self.summary.model,
            worker_group=np.zeros(len(touched), dtype=np.int64),
            task_group=np.zeros(tasks, dtype=np.int64),
        )
        # Of a single channel, every worker sends NULL on every task unless a report is listed.
        silent = np.full(model.implicit_null_count, float(self.tasks * self.workers)) - self._totals @ model.replaces()
        counts = np.concatenate((self._totals, silent))
        pool = frequencies_of_counts(
            counts, model, tasks=max(self.tasks, 1), perturbed=self.summary.channel is not None
        )
        summary = replace(
            self.summary,
            tasks=self.tasks,
            workers=len(touched),
            per_worker=self.counts[touched].sum(axis=1).astype(np.int64),
            symbol_counts=self.counts[touched],
            known_model=model,
        )
        prior = pool.label_shares if self._class_prior is None else self._class_prior
        estimator, everyone = self.estimator, self.counts[: self.workers]
        implicit_counts = np.full(model.implicit_null_count, float(self.tasks)) - everyone @ model.replaces()
        least = estimator.shrinkage * pool.noise / pool.participation
        return CrowdParameters(
            summary=summary,
            pool=pool,
            dirichlet_prior=estimator.dirichlet_prior(pool, estimator.anchor_ability),
            participation_pseudo_counts=fit_participation_prior(
                np.concatenate((everyone, implicit_counts), axis=1), pool, least
            ),
            confusion=self._confusion[touched],
            participation=self._participation[touched],
            class_prior=prior if summary.prior is None else summary.prior,
            is_initial=not self.warm and bool(self._totals.sum() < WARM_UP * self._reporting),
        )


def grown_to(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """Return an array of at least that many rows, filled up with zeros; it grows by doubling."""
    if rows <= len(array):
        return array
    larger = np.zeros((max(rows, 2 * len(array)), *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger
