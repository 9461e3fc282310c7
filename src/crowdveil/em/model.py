"""Generative model of reports, the interface of the EM loop: initialization, E-step, M-step, state for warm starts.

A model is a frozen value of settings with pure functions. Parameters are small and shared by all blocks of tasks;
statistics are sums over reports. Threads, processes or a cluster can therefore process the blocks.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.reports import Block, Reports
from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.em.estimate import StopReason, WorkerTable
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.gold import Gold
from crowdveil.em.kernels.dispatch import use_compiled
from crowdveil.em.kernels.numpy_backend import EncodedBlock
from crowdveil.em.kernels.report_weights import PairShares
from crowdveil.em.observation_model import ObservationModel
from crowdveil.em.worker_history import EarlierAnswers
from crowdveil.registry import Capabilities

Coordinates = tuple[NDArray[np.float64], ...]
"""Unbounded coordinates of parameters: logarithms of distributions, log-odds of probabilities."""
Progress = Callable[[int, float], None]
"""Called after every step with its number and the largest change of a posterior."""
Checkpoint = Callable[[FitState], None]
"""Called after every step with the learned parameters, from which an interrupted fit goes on."""


@dataclass(frozen=True, eq=False)
class Summary:
    """Counts of the reports, their channel and the public prior: the input of `Model.initialize`.

    Attributes:
        alphabet: the labels that truths are inferred in, None for numbers without a scale.
        symbols: number of symbols that a listed report can be; they differ from labels behind some channels.
        tasks, workers: number of tasks and workers, those without reports included.
        per_task, per_worker: non-NULL reports, shapes (tasks,) and (workers,).
        symbol_counts: listed reports of each worker by symbol, indexed [worker, symbol]; empty for free numbers.
        channel: the channel of the reports; None if reports are read as answers.
        known_model: P(symbol | answer); None if the estimator reads no channel.
        prior: public prior over labels, shape (labels,), sums to 1; None if it is learned or not used.
        history: earlier answers of the workers; None without any.
        copies: pairs of workers whose common answers count less; None for no such pair.
        weighted_counts: `symbol_counts` of reports with the weights of `copies`; None without any.
        independent: first probability of each worker to answer independently of the truth, shape (workers,); None for
            models without such workers.
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
    history: EarlierAnswers | None = None
    copies: PairShares | None = None
    weighted_counts: NDArray[np.float64] | None = None
    independent: NDArray[np.float64] | None = None

    @property
    def labels(self) -> int:
        """Number of labels, 0 for free numbers."""
        return 0 if self.alphabet is None else self.alphabet.size

    @property
    def counted_symbols(self) -> NDArray[np.float64]:
        """Listed reports of each worker by symbol, with weights where there are copies; [worker, symbol]."""
        return self.symbol_counts if self.weighted_counts is None else self.weighted_counts

    @property
    def uses_compiled_confusion_fit(self) -> bool:
        """Whether a fit of confusion matrices runs on compiled code; there is none for reports with weights."""
        return self.copies is None and use_compiled(
            int(self.per_worker.sum()), self.workers * self.symbols * self.labels
        )

    @property
    def model(self) -> ObservationModel:
        """P(symbol | answer), for estimators that read channels."""
        assert self.known_model is not None
        return self.known_model


@dataclass(frozen=True, eq=False)
class FitInput:
    """Validated input of a fit: reports coded by symbol, their counts, and known truths."""

    reports: Reports
    summary: Summary
    gold: Gold


@dataclass(frozen=True, eq=False)
class GoldBlock:
    """A block of tasks with their reports and known truths.

    Attributes:
        block: the reports.
        gold: known truth of each local task: label code (or number), shape (tasks,); NO_GOLD (nan) where unknown.
        coded: the reports in the form that the kernels need.
        before: posterior of the previous step, which `e_step` may overwrite; None in the first step.
    """

    block: Block
    gold: NDArray[Any]
    coded: EncodedBlock
    before: NDArray[np.float64] | None = None


P = TypeVar("P")
S = TypeVar("S", bound=tuple[Any, ...])


class EStep(NamedTuple, Generic[S]):
    """Result of the E-step on one block of tasks.

    Attributes:
        statistics: sums over reports, to be merged over blocks; None after merging.
        posterior: indexed [task, label], or the truth of each task, shape (tasks,).
        interval: 5 % and 95 % quantiles of each truth, indexed [task, end], for numbers with a posterior.
        change: largest change of the posterior if it was written over the previous one, else None.
        task_parameters: estimates of parameters that each task has of its own, indexed [task, parameter], in the order
            of `Model.task_parameters`; None for models without. They may depend on the block and the shared parameters
            only, never on earlier steps (decision 13).
    """

    statistics: S
    posterior: NDArray[np.float64]
    interval: NDArray[np.float64] | None = None
    change: float | None = None
    task_parameters: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class FitResult(Generic[P, S]):
    """Result of the EM loop.

    Attributes:
        model: the fitted model.
        statistics, parameters: of the last step: merged sums, and the parameters that they follow from.
        tasks: posterior, interval and task parameters of all tasks, without statistics.
        workers: worker table.
        log_likelihoods: after each step; empty if the model has no likelihood.
        steps, stopped: number of steps, and why the fit ended, see `Estimate`.
    """

    model: "Model[P, S]"
    statistics: S
    parameters: P
    tasks: EStep[Any]
    workers: WorkerTable
    log_likelihoods: tuple[float, ...]
    steps: int
    stopped: StopReason

    @property
    def converged(self) -> bool:
        """Whether the fit ended for another reason than the limit of steps."""
        return self.stopped != "limit"


class MemoryUse(NamedTuple):
    """Memory that a model needs beyond the reports and posteriors.

    Attributes:
        statistics: numbers in the statistics of one block; blocks have at least as many reports.
        shared: bytes held once, beyond a few copies of the statistics.
        per_thread: bytes of each thread per block, beyond its reports and statistics.
        preparation: bytes of `Model.prepare`, which are given back before the fit.
    """

    statistics: int
    shared: int = 0
    per_thread: int = 0
    preparation: int = 0


class Model(ABC, Generic[P, S]):
    """Generative model: parameters P of the workers, statistics S of the reports.

    Attributes:
        name: name on the command line.
        capabilities: accepted inputs and types of results; registered estimators read theirs from the registry.
        state_fields: arrays of `to_state` by name.
        task_parameters: names of the columns of `EStep.task_parameters`.
        stops_early: whether `max_steps` steps are the method (early stopping), and not a limit that a fit should not
            reach.
        max_steps: largest number of steps.
        tolerance: stop when no posterior (or truth) changes by more than this.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    state_fields: ClassVar[Mapping[str, StateField]] = {}
    task_parameters: ClassVar[tuple[str, ...]] = ()
    stops_early: ClassVar[bool] = False
    max_steps: int
    tolerance: float

    @property
    def known_steps(self) -> int | None:
        """Number of steps of a new fit; None where it depends on the reports."""
        return self.max_steps if self.stops_early or not self.capabilities.iterative else None

    @abstractmethod
    def initialize(self, summary: Summary) -> P:
        """Return initial parameters from counts only."""

    @abstractmethod
    def e_step(self, block: GoldBlock, parameters: P) -> EStep[S]:
        """Return statistics and posterior of one block; the only expensive function."""

    @abstractmethod
    def m_step(self, statistics: S, parameters: P) -> P:
        """Return new parameters from the merged statistics; `parameters` are those of the E-step."""

    @abstractmethod
    def worker_table(self, statistics: S, parameters: P) -> WorkerTable:
        """Return estimates of the workers after the last E-step."""

    def log_likelihood(self, statistics: S) -> float | None:
        """Return the marginal log-likelihood of the reports or a lower bound: `log_likelihood` of the statistics.

        None if the model has none, or none in this step (nan).
        """
        found: float = getattr(statistics, "log_likelihood", math.nan)
        return None if math.isnan(found) else found

    def log_prior(self, parameters: P) -> float:
        """Return the log-density of the priors that `m_step` uses; the traced objective includes it and never falls."""
        return 0.0

    def prepare(self, data: FitInput) -> FitInput:
        """Return the input with what the model measures in the reports before it is initialized."""
        return data

    def initializations(self, data: FitInput) -> tuple[P, ...]:
        """Return initial parameters of several fits, of which the one with the highest log-likelihood is returned."""
        return (self.initialize(data.summary),)

    def simplify(self, summary: Summary) -> "Model[Any, Any]":
        """Return an equivalent cheaper model if the data allow it."""
        return self

    def precompute(self, parameters: P) -> P:
        """Return the parameters with cached values that all blocks of a step share; `e_step` also works without."""
        return parameters

    def larger_model_parameters(self, statistics: S, parameters: P) -> P | None:
        """Return parameters of a larger model with which a converged fit goes on; None if it ends.

        Args:
            statistics, parameters: of the step in which the fit converged.
        """
        return None

    def last_e_step_parameters(self, parameters: P) -> P | None:
        """Return parameters of one last E-step, whose posterior is the result; None if that of the fit is."""
        return None

    def model_for_resumed_fit(self, summary: Summary, state: FitState) -> "Model[P, S]":
        """Return the model with which a fit goes on from a state."""
        return self

    def memory(self, summary: Summary, parameters: P) -> MemoryUse:
        """Return the memory that a fit from these initial parameters needs."""
        return MemoryUse(summary.workers)

    def coordinates(self, parameters: P) -> Coordinates | None:
        """Return unbounded coordinates of what the M-step learns, for accelerated EM; None for plain steps only.

        Arrays are C-contiguous, and none is written to.
        """
        return None

    def from_coordinates(self, parameters: P, coordinates: Coordinates) -> P:
        """Return the parameters with the values that coordinates stand for; the inverse of `coordinates`."""
        return parameters

    def jitter_parameters(self, parameters: P, direction: float, seed: int) -> P:
        """Return parameters with a tiny relative change, to leave saddle points; unchanged without a likelihood."""
        return parameters

    def to_state(self, parameters: P) -> Mapping[str, NDArray[np.float64]]:
        """Return the learned arrays, attributes of the parameters named in `state_fields`; empty before they are."""
        if getattr(parameters, "is_initial", False):
            return {}
        arrays = ((name, getattr(parameters, name, None)) for name in self.state_fields)
        return {name: array for name, array in arrays if array is not None}

    def interrupted_state(self, parameters: P, number: int) -> Mapping[str, NDArray[np.float64]]:
        """Return the arrays of `to_state` after a step that need not be the last; `number` is that of the step."""
        return self.to_state(parameters)

    def from_state(self, initial: P, state: FitState) -> P:
        """Return initial parameters with the learned arrays of a state, whose rows are aligned with the workers.

        Raises:
            LookupError, TypeError, ValueError: the state is not of this model.
        """
        own: Any = initial
        arrays: dict[str, Any] = {
            name: state.worker_rows_or_default(name, getattr(initial, name)) if field.by_worker else state.shared[name]
            for name, field in self.state_fields.items()
        }
        learned = {"is_initial": False} if hasattr(initial, "is_initial") else {}
        return replace(own, **arrays, **learned)

    def credible_intervals(
        self, blocks: Iterable[GoldBlock], posterior: NDArray[np.float64], result: FitResult[P, S]
    ) -> WorkerTable:
        """Return the worker table with intervals; `blocks` allows one extra pass over the reports."""
        return result.workers


def merge(a: S, b: S) -> S:
    """Return the field-by-field sum of two tuples of statistics."""
    return type(a)(*(x + y for x, y in zip(a, b, strict=True)))
