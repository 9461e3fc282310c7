"""The contract that every model of a crowd keeps, and what passes between a model and the loop of inference.

A model is a frozen value of settings with small pure functions. Parameters are small and shared by all blocks,
statistics are sums over reports: so blocks may be worked on in threads, from disk or on other machines.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.reports import Block
from crowdveil.em.estimate import WorkerTable
from crowdveil.em.kernels import EncodedBlock
from crowdveil.em.memory import NO_EXTRA_MEMORY, ExtraMemory
from crowdveil.em.observation_model import ObservationModel
from crowdveil.registry import Capabilities

Progress = Callable[[int, float], None]
"""Called after every step with its number and the largest change of a posterior."""


@dataclass(frozen=True, eq=False)
class Summary:
    """What a fit knows before it looks at single reports.

    Attributes:
        alphabet: the labels that truths are inferred in, None for free numbers.
        symbols: how many symbols a listed report can be; not the labels where a channel sends blocks of them.
        tasks, workers: how many there are, those without reports included.
        per_task, per_worker: non-NULL reports, shapes (tasks,) and (workers,).
        symbol_counts: listed reports of each worker by symbol, indexed [worker, symbol]; empty for free numbers.
        channel: what the reports went through; None if reports are to be read as answers.
        known_model: how symbols speak of answers; None where the estimator reads no channel.
        prior: public prior over labels, shape (labels,), sums to 1; None if it is to be learned or is not used.
    """

    alphabet: Alphabet | None
    symbols: int
    tasks: int
    workers: int
    per_task: NDArray[np.integer]
    per_worker: NDArray[np.int64]
    symbol_counts: NDArray[np.float64]
    channel: Channel | ChannelTable | None
    known_model: ObservationModel | None
    prior: NDArray[np.float64] | None

    @property
    def labels(self) -> int:
        """Number of labels, 0 for free numbers."""
        return 0 if self.alphabet is None else self.alphabet.size

    @property
    def model(self) -> ObservationModel:
        """How symbols speak of answers, for estimators that read channels."""
        assert self.known_model is not None
        return self.known_model


@dataclass(frozen=True, eq=False)
class GoldBlock:
    """A block with what an estimator needs beside its reports.

    Attributes:
        block: the reports.
        gold: known truth of each local task: label code (or number), shape (tasks,); NO_GOLD (nan) where unknown.
        coded: the form that its sums need.
        before: posterior of the step before, which `e_step` may write over; None where there is none.
    """

    block: Block
    gold: NDArray[Any]
    coded: EncodedBlock
    before: NDArray[np.float64] | None = None


P = TypeVar("P")
S = TypeVar("S", bound=tuple[Any, ...])


class EStep(NamedTuple, Generic[S]):
    """What one block yields: sums to merge, and the posterior of its own tasks (indexed [task, label], or [task]).

    `interval`, indexed [task, end], holds the 5 % and 95 % quantiles of numbers where the estimator has them. `moved`
    is the largest change of the posterior if it was written over the one before, None if it has a place of its own.
    """

    statistics: S
    posterior: NDArray[np.float64]
    interval: NDArray[np.float64] | None = None
    moved: float | None = None


class Model(ABC, Generic[P, S]):
    """What a crowd is taken to be, as the loop needs it: how truths follow from workers, and workers from truths.

    Attributes:
        name: the word on the command line.
        capabilities: accepted inputs and kinds of results; registered estimators read theirs from the registry.
        max_steps: largest number of steps.
        tolerance: stop when no posterior (or truth) changes by more than this.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    max_steps: int
    tolerance: float

    @abstractmethod
    def initialize(self, summary: Summary) -> P:
        """Return the first parameters, from counts only."""

    @abstractmethod
    def e_step(self, block: GoldBlock, parameters: P) -> EStep[S]:
        """Return statistics and posterior of one block; the only heavy step."""

    def simplify(self, summary: Summary) -> "Model[Any, Any]":
        """Return a model of the same crowd that needs less, where the summary allows it."""
        return self

    def nudged(self, parameters: P, direction: float, seed: int) -> P:
        """Return what was learned of workers moved by a hair (see `saddle`); as it is where there is no likelihood."""
        return parameters

    def prepare(self, parameters: P) -> P:
        """Return the parameters with whatever all blocks of a step share; `e_step` does without it, only slower."""
        return parameters

    def cells(self, summary: Summary) -> int:
        """Return how many numbers the statistics of one block hold; blocks should have as many reports at least."""
        return summary.workers

    def beside(self, parameters: P) -> ExtraMemory:
        """Return what fits from these first parameters take beyond what follows from counts and `cells`."""
        return NO_EXTRA_MEMORY

    @abstractmethod
    def m_step(self, statistics: S, parameters: P) -> P:
        """Return the parameters that follow from merged statistics; `parameters` are those that gave them."""

    @abstractmethod
    def workers(self, statistics: S, parameters: P) -> WorkerTable:
        """Return what was learned about workers."""

    def credible_intervals(
        self, table: WorkerTable, blocks: Iterable[GoldBlock], posterior: NDArray[np.float64], end: tuple[S, P]
    ) -> WorkerTable:
        """Return the table of workers with what only single reports can tell; the last step's sums are in `end`."""
        return table

    @abstractmethod
    def log_likelihood(self, statistics: S) -> float | None:
        """Return the marginal log-likelihood of the reports (or a bound that is climbed), None where there is none."""

    def log_prior(self, parameters: P) -> float:
        """Return the log-density of whatever priors `m_step` uses; with it, the traced objective never falls."""
        return 0.0


def merge(a: S, b: S) -> S:
    """Add two tuples of statistics, field by field."""
    return type(a)(*(x + y for x, y in zip(a, b, strict=True)))
