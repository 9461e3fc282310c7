"""Message passing of Karger, Oh and Shah (NIPS 2011), for any number of labels, on sums per worker.

An answer is the vector a_ij = (e_y - 1/K) / sqrt(1 - 1/K); for two labels +-1 times a constant vector, as in the paper.
Messages between task j and worker i, from y_{i->j} = 1:
    x_{j->i} = sum_{i' != i} a_i'j y_{i'->j},   y_{i->j} = sum_{j' != j} a_ij' . x_{j'->i}.
With the sums X_j = sum_i a_ij y_{i->j} and Y_i = sum_j a_ij . x_{j->i}, and |a_ij| = 1, after t rounds
    y_{i->j} = 1 + sum_{s <= t} (Y_i(s) - a_ij . X_j(s)),
so that no message is stored: the sums of the workers determine those of the tasks. Messages are rescaled in each round.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.estimate import TIE, WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.gold import one_hot_gold
from crowdveil.em.model import EStep, GoldBlock, Summary


@dataclass(frozen=True, eq=False)
class KosParameters:
    """Counts of the reports, and 1 + Y_i(1) + ... + Y_i(s) after each round s = 0, 1, ...; [round, worker]."""

    summary: Summary
    sums: NDArray[np.float64]


class KosStatistics(NamedTuple):
    """Sum over each worker's reports of a_ij . (X_j(t + 1) + X_j(1) + ... + X_j(t)), shape (workers,)."""

    agreement: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Kos(Estimator[KosParameters, KosStatistics]):
    """Rounds of messages; the truth of a task has the largest component of X_j. No probabilities.

    A task whose messages are all 0, as where its workers answered no other task, has the plain votes. The weight of a
    worker is the mean message per answer, at most 1 in size; negative weights are votes against a label.

    Attributes:
        max_steps: largest number of rounds.
        tolerance: stop when no truth changes by more than this.
    """

    name: ClassVar[str] = "kos"
    state_fields: ClassVar[Mapping[str, StateField]] = {"sums": StateField("real")}
    max_steps: int = 20
    tolerance: float = 1e-8

    def initialize(self, summary: Summary) -> KosParameters:
        """Return messages 1."""
        return KosParameters(summary, np.ones((1, summary.workers)))

    def e_step(self, block: GoldBlock, parameters: KosParameters) -> EStep[KosStatistics]:
        """Return the truths by the messages of the last round, and the sums that the next one needs."""
        counts = block.coded.symbol_weights(np.ones(parameters.summary.workers))
        past = np.zeros_like(counts)
        current = past
        for weight in parameters.sums:
            past = past + current
            current = centred_and_scaled(block.coded.symbol_weights(weight)) - centred_and_scaled(
                counts * past
            ) * unit_label_vector_factor(past)
        size = TIE * counts.sum(axis=1, keepdims=True) * np.abs(parameters.sums).max(initial=0.0)
        votes = np.where(np.abs(current).max(axis=1, keepdims=True) > size, current, counts)
        best = votes >= votes.max(axis=1, keepdims=True) - size
        posterior = one_hot_gold(best / best.sum(axis=1, keepdims=True), block.gold)
        agreement = block.coded.agreement_sums((past + current) * unit_label_vector_factor(past))
        return EStep(KosStatistics(agreement), posterior)

    def m_step(self, statistics: KosStatistics, parameters: KosParameters) -> KosParameters:
        """Return the sums with one more round, rescaled to a largest size of 1."""
        last = parameters.sums[-1]
        sums = np.vstack((parameters.sums, last + self._messages_of_next_round(statistics, parameters)))
        return replace(parameters, sums=sums / np.abs(sums).max(initial=1e-300))

    def worker_table(self, statistics: KosStatistics, parameters: KosParameters) -> WorkerTable:
        """Return the mean message of each worker, rescaled; 0 without reports, all 1 if there is no message."""
        mean = self._messages_of_next_round(statistics, parameters) / np.maximum(parameters.summary.per_worker, 1)
        largest = np.abs(mean).max(initial=0.0)
        small = TIE * np.abs(parameters.sums).max(initial=0.0)
        weight = mean / largest if largest > small else np.ones_like(mean)
        return WorkerTable(weight, "weight")

    def to_state(self, parameters: KosParameters) -> Mapping[str, NDArray[np.float64]]:
        """Return the sums of all rounds, indexed [worker, round]."""
        return {"sums": parameters.sums.T}

    def from_state(self, initial: KosParameters, state: FitState) -> KosParameters:
        """Return the sums of the state, their means for new workers."""
        known = state.by_worker["sums"]
        sums = state.worker_rows_or_default("sums", np.broadcast_to(np.nanmean(known, axis=0), known.shape))
        return replace(initial, sums=np.ascontiguousarray(sums.T))

    def _messages_of_next_round(self, statistics: KosStatistics, parameters: KosParameters) -> NDArray[np.float64]:
        """Return Y of the next round, shape (workers,)."""
        return statistics.agreement - parameters.summary.per_worker * parameters.sums[-1]


def unit_label_vector_factor(rows: NDArray[np.float64]) -> float:
    """Return 1 / sqrt(1 - 1/K) for arrays with K columns."""
    return 1 / np.sqrt(1 - 1 / rows.shape[1])


def centred_and_scaled(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sum_i a_ij w_i from sums of w by label, [task, label]: rows minus their mean, scaled."""
    return (rows - rows.mean(axis=1, keepdims=True)) * unit_label_vector_factor(rows)
