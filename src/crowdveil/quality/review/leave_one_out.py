"""Truths by the answers of others: posterior of each answer's task without the answer itself.

The answers j of others to a task t have the weights w_j that the default measures before its fit (`measured_crowd`).
With s^2 the chance-corrected agreement of all pairs of answers, in these weights, they say
    Q_ti(z) ~ pi_z prod_j (s [z = x_j] + (1 - s) / K)^w_j,     pi = (p - (1 - s) / K) / s,
p being the weighted shares of labels. N_i[z, x] is the sum of Q_ti(z) over the answers x of worker i.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.blocks import Block
from crowdveil.answers.reports import Reports
from crowdveil.em.estimator import validated_input
from crowdveil.em.kernels.numpy_backend import softmax
from crowdveil.em.kernels.report_weights import PairShares
from crowdveil.estimators.hierarchical_dawid_skene import HierarchicalDawidSkene

LEAST_SKILL, LARGEST_SKILL = 0.05, 0.97
"""Range of s."""
LEAST_WEIGHT = 1e-9
"""Weight of the others on a task below which they say nothing."""
REPORTS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class VotesOfOthers:
    """Answers of each worker by the truths that others say.

    Attributes:
        counts: answers, [worker, label].
        answers: N, [worker, truth, label].
        weights: of each worker as an informed one, shape (workers,).
        frequencies: shares of labels in all answers, shape (labels,).
        copies: pairs of near-copies; None for none.
        copy_weights: mean weight of the answers of each worker that copies leave, shape (workers,).
    """

    counts: NDArray[np.float64]
    answers: NDArray[np.float64]
    weights: NDArray[np.float64]
    frequencies: NDArray[np.float64]
    copies: PairShares | None
    copy_weights: NDArray[np.float64]

    @classmethod
    def of_reports(cls, reports: Reports) -> "VotesOfOthers":
        """Return the answers by the votes of others, for labels, unperturbed."""
        summary = validated_input(HierarchicalDawidSkene(), reports).summary
        assert summary.independent is not None
        informed, copies, counts = 1 - summary.independent, summary.copies, summary.symbol_counts
        answered, weighted = np.maximum(summary.per_worker, 1), summary.counted_symbols
        frequencies, shares = counts.sum(axis=0) + 1.0, informed @ weighted + 1.0
        weighing = _Weighing(reports, informed, copies)
        return cls(
            counts=counts,
            answers=_answers_by_truth(weighing, shares / shares.sum()),
            weights=informed,
            frequencies=frequencies / frequencies.sum(),
            copies=copies,
            copy_weights=np.ones(len(counts)) if copies is None else weighted.sum(axis=1) / answered,
        )


@dataclass(frozen=True, eq=False)
class _Weighing:
    """Answers with the weights of workers and of copies."""

    reports: Reports
    informed: NDArray[np.float64]
    copies: PairShares | None

    def blocks(self) -> Iterator[tuple[Block, NDArray[np.float64]]]:
        """Yield blocks of tasks with the weights of their answers."""
        for block in self.reports.blocks(REPORTS_AT_ONCE):
            weights = self.informed[block.worker]
            yield block, weights if self.copies is None else weights * self.copies.weights(block)

    def votes(self, block: Block, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weight of each label on each task, [task, label]."""
        labels = self.reports.labels
        row = block.task * labels + block.value
        return np.asarray(np.bincount(row, weights, block.tasks * labels).reshape(-1, labels), dtype=np.float64)

    def skill(self) -> float:
        """Return s."""
        equal = compared = 0.0
        for block, weights in self.blocks():
            votes = self.votes(block, weights)
            own = float(weights @ weights)
            equal += float(np.einsum("tx,tx->", votes, votes)) - own
            compared += float((votes.sum(axis=1) ** 2).sum()) - own
        labels = self.reports.labels
        kappa = (labels * equal / max(compared, LEAST_WEIGHT) - 1) / max(labels - 1, 1)
        return float(np.clip(np.sqrt(max(kappa, 0.0)), LEAST_SKILL, LARGEST_SKILL))


def _answers_by_truth(weighing: _Weighing, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return N, [worker, truth, label], from the weighted shares of labels."""
    skill, labels, tasks = weighing.skill(), len(shares), len(weighing.reports.tasks)
    prior = np.maximum((shares - (1 - skill) / labels) / skill, 0.5 / tasks)
    table = np.log(skill * np.eye(labels) + (1 - skill) / labels)
    total = np.zeros((labels, len(weighing.informed) * labels))
    for block, weights in weighing.blocks():
        votes = weighing.votes(block, weights)
        others = votes.sum(axis=1)[block.task] - weights > LEAST_WEIGHT
        scores = (votes @ table + np.log(prior))[block.task] - weights[:, None] * table[block.value]
        truths = softmax(scores)[0] * others[:, None]
        row = block.worker.astype(np.int64) * labels + block.value
        for truth in range(labels):
            total[truth] += np.bincount(row, truths[:, truth], total.shape[1])
    return np.asarray(total.reshape(labels, -1, labels).transpose(1, 0, 2))
