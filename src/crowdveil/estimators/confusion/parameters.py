"""What is known of a crowd whose workers have confusion tables, and how that shows in reports.

Workers of a few kinds, each with one confusion table: who may be of which kind, and how that shows in reports.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.deconvolution import AnswerFrequencies
from crowdveil.em.kernels import ScoreTables, floored_log, use_compiled
from crowdveil.em.model import Summary

TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Mixture:
    """Kinds of workers and what is known of everybody's kind.

    Attributes:
        tables: P(answer | truth, answered) of each kind, indexed [kind, truth, label], rows sum to 1.
        expected: share of each kind among workers before anything is known, shape (kinds,), sums to 1.
        shares: the same as learned.
        responsibility: P(kind) of each worker, indexed [worker, kind], rows sum to 1.
    """

    tables: NDArray[np.float64]
    expected: NDArray[np.float64]
    shares: NDArray[np.float64]
    responsibility: NDArray[np.float64]

    def confusion(self) -> NDArray[np.float64]:
        """Return every worker's mean table, indexed [worker, truth, label]."""
        return np.tensordot(self.responsibility, self.tables, axes=1)

    def reports(
        self, everything: NDArray[np.float64], participation: NDArray[np.float64]
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Yield for each kind P(report | truth) of its answers and of every worker who were of it.

        Args:
            everything: P(report | input), indexed [input, report]; NULL is the last input where it is protected.
            participation: shape (workers,).

        Yields:
            Indexed [truth, report], and [worker, truth, report]: the first times participation, and NULL's reports.
        """
        labels = self.tables.shape[2]
        answering = participation[:, None, None]
        silent = (1 - answering) * everything[labels] if len(everything) > labels else np.zeros(1)
        for table in self.tables:
            answered = table @ everything[:labels]
            yield answered, answering * answered + silent

    def log_reports(self, everything: NDArray[np.float64], participation: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log P(report | truth), averaged over each worker's kinds, indexed [worker, truth, report]."""
        logs = np.zeros((len(participation), self.tables.shape[1], everything.shape[1]))
        for kind, (_, seen) in enumerate(self.reports(everything, participation)):
            logs += self.responsibility[:, kind, None, None] * np.log(np.maximum(seen, TINY))
        return logs

    def divergence(self) -> float:
        """Return the sum over workers of the Kullback-Leibler divergence of their kinds from the learned shares."""
        own = self.responsibility
        return float((own * (np.log(np.maximum(own, TINY)) - np.log(self.shares))).sum())


@dataclass(frozen=True, slots=True, eq=False)
class CrowdParameters:
    """The crowd as far as it is known.

    Attributes:
        summary, pool: counts of the reports, and what they alone say.
        anchor: Dirichlet pseudo-answers of each worker's confusion, indexed [truth, label].
        pseudo_cells: Beta pseudo-cells, at the pool's rate, of each worker's participation.
        confusion: P(answer | truth, answered), indexed [worker, truth, label], rows sum to 1.
        participation: P(answered), shape (workers,); all 1 where participation is public.
        class_prior: P(truth), shape (labels,).
        at_start: True before the first M-step: the posterior is then the share of votes.
        mixture: who may be of which kind, where confusions are averages over kinds of workers; else None.
        tables: the score tables that follow from all this, where they have been worked out.
        held: steps for which the class prior stays as it is, before it is learned.
    """

    summary: Summary
    pool: AnswerFrequencies
    anchor: NDArray[np.float64]
    pseudo_cells: float
    confusion: NDArray[np.float64]
    participation: NDArray[np.float64]
    class_prior: NDArray[np.float64]
    at_start: bool
    mixture: Mixture | None = None
    tables: ScoreTables | None = None
    held: int = 0

    def inputs(self) -> NDArray[np.float64]:
        """P(input symbol | truth), indexed [worker, truth, input]; NULL last where it is protected."""
        if not self.pool.protected:
            return self.confusion
        answered = self.participation[:, None, None] * self.confusion
        null = np.broadcast_to((1 - self.participation)[:, None, None], (*answered.shape[:2], 1))
        return np.concatenate([answered, null], axis=2)

    def score_tables(self) -> ScoreTables:
        """Return what a report adds to its task's scores, and the scores of all-NULL tasks under the class prior."""
        model, labels = self.pool.model, self.confusion.shape[1]
        logs, nulls = np.split(self.log_reports(), [model.symbols], axis=2)
        base = np.zeros((model.task_groups, labels))
        if model.silent:
            for group in range(model.task_groups):
                base[group] = np.einsum("ws,wzs->z", model.silent_workers(group), nulls)
            logs = logs - nulls @ model.replaces().T
        table = np.ascontiguousarray(logs.transpose(0, 2, 1)).reshape(-1, labels)
        return ScoreTables(table, base + np.log(self.class_prior))

    def log_reports(self) -> NDArray[np.float64]:
        """Return log P(report | truth), averaged over what is left open about a worker, [worker, truth, report]."""
        everything = self.pool.model.everything
        if self.mixture is not None:
            return self.mixture.log_reports(everything, self.participation)
        if not self.pool.model.is_identity:
            return np.log(np.maximum(self.inputs() @ everything, TINY))
        compiled = use_compiled(int(self.summary.per_worker.sum()))
        return floored_log(self.confusion, TINY, compiled=compiled)
