"""Truths of numbers from one weight per worker: the part that CRH, CATD and GTM share.

Each alternates truths given weights with weights given the workers' distances from the truths.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.estimate import WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.model import GoldBlock, MemoryUse, Summary
from crowdveil.errors import SettingsError

ROUNDING = 1e-12
"""Differences up to this share of the number count as 0."""
BYTES_PER_REPORT, MAX_BLOCK_REPORTS = 64, 1 << 23
"""Bytes that an E-step allocates per report, and largest number of reports of a block."""


@dataclass(frozen=True, eq=False)
class WeightParameters:
    """Counts of the reports, and weights, shape (workers,); None before the first step."""

    summary: Summary
    weight: NDArray[np.float64] | None


class Distances(NamedTuple):
    """Each worker's distance from the truths, summed over reports, shape (workers,)."""

    distance: NDArray[np.float64]


class WeightedTruths(Estimator[WeightParameters, Distances]):
    """Start, worker table and state of the methods; subclasses define `weights` and the E-step."""

    state_fields: ClassVar[Mapping[str, StateField]] = {"weight": StateField("real")}

    @abstractmethod
    def weights(self, distance: NDArray[np.float64], summary: Summary) -> NDArray[np.float64]:
        """Return the weights from the distances, shape (workers,); those without reports are not used."""

    def initialize(self, summary: Summary) -> WeightParameters:
        """Return no weights.

        Raises:
            SettingsError: a prior over labels was given.
        """
        if summary.prior is not None:
            raise SettingsError(f"{self.name} uses no prior", value=summary.prior, hint="Fit without it.")
        return WeightParameters(summary, None)

    def m_step(self, statistics: Distances, parameters: WeightParameters) -> WeightParameters:
        """Return the weights from the distances, 0 for a worker without reports."""
        summary = parameters.summary
        weight = self.weights(statistics.distance, summary)
        return replace(parameters, weight=np.where(summary.per_worker > 0, weight, 0.0))

    def worker_table(self, statistics: Distances, parameters: WeightParameters) -> WorkerTable:
        """Return the weights that follow from the last truths; they sum to 1."""
        weight = self.m_step(statistics, parameters).weight
        assert weight is not None
        return WorkerTable(weight / (weight.sum() or 1.0), "weight")

    def memory(self, summary: Summary, parameters: WeightParameters) -> MemoryUse:
        """Return the size of the distances, and of the numbers and distances of a block."""
        reports = min(int(summary.per_worker.sum()), MAX_BLOCK_REPORTS)
        return MemoryUse(summary.workers, per_thread=BYTES_PER_REPORT * reports)

    def log_likelihood(self, statistics: Distances) -> float | None:
        """Return None: the method has no marginal likelihood."""
        return None

    def to_state(self, parameters: WeightParameters) -> Mapping[str, NDArray[np.float64]]:
        """Return the weights; empty before the first M-step."""
        return {} if parameters.weight is None else {"weight": parameters.weight}

    def from_state(self, initial: WeightParameters, state: FitState) -> WeightParameters:
        """Return the weights of the state, their mean for new workers."""
        mean = float(np.nanmean(state.by_worker["weight"]))
        return replace(initial, weight=state.rows("weight", np.full(initial.summary.workers, mean)))


def numbers_of(block: GoldBlock, summary: Summary) -> NDArray[np.float64]:
    """Return the value of each report, shape (reports,)."""
    value = block.block.value
    return np.asarray(value if summary.alphabet is None else summary.alphabet.values[value], dtype=np.float64)


def by_worker(block: GoldBlock, distance: NDArray[np.float64], summary: Summary) -> Distances:
    """Return the distances of the reports, shape (reports,), summed by worker."""
    return Distances(np.bincount(block.block.worker, distance, summary.workers).astype(float))


def with_gold(truth: NDArray[np.float64], gold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the truths, those of gold tasks replaced; shape (tasks,)."""
    return np.where(np.isnan(gold), truth, gold)


def differences(block: GoldBlock, numbers: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return number minus truth of each report, 0 where only rounding differs; shape (reports,)."""
    found = numbers - truth[block.block.task]
    found[np.abs(found) <= ROUNDING * np.abs(numbers)] = 0.0
    return found
