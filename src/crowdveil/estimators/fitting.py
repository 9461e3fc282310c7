"""THE loop of inference: expect over blocks, merge, maximize, stop; and the contract every estimator keeps.

An estimator is a frozen value of settings with small pure functions. Parameters are small and shared by all blocks,
statistics are sums over reports: so blocks may later be worked on in threads, from disk or on other machines.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import repeat
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.assignment import Assignment
from crowdveil.channel import Channel
from crowdveil.channel_table import ChannelTable
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimate import Estimate, WorkerTable
from crowdveil.estimators.gold import NO_GOLD, align_gold
from crowdveil.estimators.kernels import CodedBlock, block_reports, encode, side_by_side, thread_count, use_compiled
from crowdveil.estimators.premises import check_null_reports, prior_vector
from crowdveil.estimators.report_model import ReportModel, report_model
from crowdveil.labels import Alphabet
from crowdveil.reports import Block, Reports

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
    per_task: NDArray[np.int64]
    per_worker: NDArray[np.int64]
    symbol_counts: NDArray[np.float64]
    channel: Channel | ChannelTable | None
    known_model: ReportModel | None
    prior: NDArray[np.float64] | None

    @property
    def labels(self) -> int:
        """Number of labels, 0 for free numbers."""
        return 0 if self.alphabet is None else self.alphabet.size

    @property
    def model(self) -> ReportModel:
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
    """

    block: Block
    gold: NDArray[Any]
    coded: CodedBlock


P = TypeVar("P")
S = TypeVar("S", bound=tuple[Any, ...])


class Expected(NamedTuple, Generic[S]):
    """What one block yields: sums to merge, and the posterior of its own tasks (indexed [task, label], or [task]).

    `interval`, indexed [task, end], holds the 5 % and 95 % quantiles of numbers where the estimator has them.
    """

    statistics: S
    posterior: NDArray[np.float64]
    interval: NDArray[np.float64] | None = None


class Estimator(ABC, Generic[P, S]):
    """Infers truths and worker qualities from reports.

    Attributes:
        name: the word on the command line.
        kind: what it infers.
        iterative: False where the first expectation is already the result.
        reads_channel: whether `fit` accepts a channel; otherwise reports are read as if they were answers.
        reads_blocks: whether reports may be in other symbols than the labels, such as blocks of them.
        reads_tables: whether the channel may differ by task and worker, and tasks may be assigned.
        needs_alphabet: whether free numbers, on no scale, are refused.
        needs_order: whether labels that are in no order are refused.
        max_steps: largest number of steps.
        tolerance: stop when no posterior (or truth) changes by more than this.
    """

    name: ClassVar[str]
    kind: ClassVar[Literal["categorical", "numeric"]]
    iterative: ClassVar[bool] = True
    reads_channel: ClassVar[bool]
    reads_blocks: ClassVar[bool] = False
    reads_tables: ClassVar[bool] = False
    needs_alphabet: ClassVar[bool] = False
    needs_order: ClassVar[bool] = False
    max_steps: int
    tolerance: float

    @abstractmethod
    def start(self, summary: Summary) -> P:
        """Return the first parameters, from counts only."""

    @abstractmethod
    def expect(self, block: GoldBlock, parameters: P) -> Expected[S]:
        """Return statistics and posterior of one block; the only heavy step."""

    def lean(self, summary: Summary) -> "Estimator[Any, Any]":
        """Return an estimator of the same model that needs less, where the summary allows it."""
        return self

    def prepare(self, parameters: P) -> P:
        """Return the parameters with whatever all blocks of a step share; `expect` does without it, only slower."""
        return parameters

    def cells(self, summary: Summary) -> int:
        """Return how many numbers the statistics of one block hold; blocks should have as many reports at least."""
        return summary.workers

    @abstractmethod
    def maximize(self, statistics: S, parameters: P) -> P:
        """Return the parameters that follow from merged statistics; `parameters` are those that gave them."""

    @abstractmethod
    def workers(self, statistics: S, parameters: P) -> WorkerTable:
        """Return what was learned about workers."""

    def look_back(
        self, table: WorkerTable, blocks: list[GoldBlock], posterior: NDArray[np.float64], end: tuple[S, P]
    ) -> WorkerTable:
        """Return the table of workers with what only single reports can tell; the last step's sums are in `end`."""
        return table

    @abstractmethod
    def log_likelihood(self, statistics: S) -> float | None:
        """Return the marginal log-likelihood of the reports (or a bound that is climbed), None where there is none."""

    def log_prior(self, parameters: P) -> float:
        """Return the log-density of whatever priors `maximize` uses; with it, the traced objective never falls."""
        return 0.0

    def fit(
        self,
        reports: Reports,
        *,
        channel: Channel | ChannelTable | None = None,
        assignment: Assignment | None = None,
        gold: Mapping[Any, Any] | None = None,
        prior: Mapping[str, float] | None = None,
        progress: Progress | None = None,
    ) -> Estimate:
        """Infer the truth of every task and the quality of every worker.

        Args:
            reports: non-NULL reports; its `tasks` and `workers` must list everyone if participation was protected.
            channel: what the reports went through, or which channel each cell went through; None reads them as answers.
            assignment: the cells that report; None if every worker reports on every task.
            gold: known truths by task name (label, or number).
            prior: public prior probability of each label.
            progress: called after every step.

        Raises:
            SettingsError: the estimator cannot use the channel or the prior, or may not take a single step.
            ReportsError: the reports are of the wrong kind or do not match the channel, or a gold truth is no label.
        """
        coded, summary = summarize(self, reports, channel, assignment, prior)
        known = align_gold(reports, gold, summary.alphabet, numeric=self.kind == "numeric")
        return run(self, coded, summary, known, progress)


def summarize(
    estimator: Estimator[Any, Any],
    reports: Reports,
    channel: Channel | ChannelTable | None,
    assignment: Assignment | None,
    prior: Mapping[str, float] | None,
) -> tuple[Reports, Summary]:
    """Check that all these fit together, and count; the reports come back by symbol."""
    if estimator.max_steps < 1:
        raise SettingsError("max_steps must be at least 1", value=estimator.max_steps)
    if not len(reports.tasks):
        raise ReportsError("there is no task", way_out="List the tasks, or give at least one report.")
    if estimator.kind == "categorical" and reports.alphabet is None:
        raise ReportsError(
            f"{estimator.name} needs labels, these are numbers", way_out="Use a numeric method, or give labels."
        )
    if estimator.needs_alphabet and reports.alphabet is None:
        raise ReportsError(
            f"{estimator.name} needs numbers on a scale, these are on none",
            way_out="Read them with alphabet=Scale(low, high, step).",
        )
    if channel is not None:
        _check_channel(estimator, reports, channel)
    if assignment is not None and not estimator.reads_tables:
        raise SettingsError(
            f"{estimator.name} reads no assignment",
            value=f"{len(assignment):,} assigned cells",
            way_out="Use dawid-skene or one-coin.",
        )
    alphabet = reports.alphabet if channel is None else channel.alphabet
    if estimator.needs_order and alphabet is not None and not alphabet.ordered:
        raise ReportsError(
            f"{estimator.name} needs ordered labels, {alphabet.names} are in no order",
            way_out="Say that they are ordered (Categories(..., ordered=True), --ordered), or use dawid-skene.",
        )
    coded, model = reports, None
    if estimator.reads_channel and alphabet is not None:
        coded, model = report_model(channel or Channel.identity(alphabet, "public"), reports, assignment)
    return coded, Summary(
        alphabet=alphabet,
        symbols=coded.labels,
        tasks=len(reports.tasks),
        workers=len(reports.workers),
        per_task=reports.per_task,
        per_worker=reports.per_worker,
        symbol_counts=_symbol_counts(coded),
        channel=channel,
        known_model=model,
        prior=None if prior is None else prior_vector(alphabet, prior),
    )


def _symbol_counts(reports: Reports) -> NDArray[np.float64]:
    """Return each worker's reports by symbol, indexed [worker, symbol]; no symbol for free numbers."""
    counts = np.zeros(len(reports.workers) * reports.labels)
    for block in reports.blocks() if reports.labels else ():
        cells = block.worker.astype(np.int64) * reports.labels + block.value
        counts += np.bincount(cells, minlength=len(counts))
    return counts.reshape(-1, reports.labels) if reports.labels else np.zeros((len(reports.workers), 0))


def _check_channel(estimator: Estimator[Any, Any], reports: Reports, channel: Channel | ChannelTable) -> None:
    if not estimator.reads_channel:
        raise SettingsError(
            f"{estimator.name} cannot put a channel into its likelihood",
            value=channel.mechanism,
            way_out="Use dawid-skene, one-coin or majority-vote, or fit without the channel.",
        )
    if isinstance(channel, ChannelTable) and not estimator.reads_tables:
        raise SettingsError(
            f"{estimator.name} reads one channel, not a table of them",
            value=channel.mechanism,
            way_out="Use dawid-skene or one-coin.",
        )
    sent = channel.report_alphabet
    if reports.alphabet is None or reports.alphabet.names != sent.names:
        known = () if reports.alphabet is None else reports.alphabet.names
        raise ReportsError(
            f"the certificate speaks of the reports {sent.names}, these reports of {known}",
            way_out="Give the certificate that was written with these reports.",
        )
    if sent.names != channel.alphabet.names and not estimator.reads_blocks:
        raise SettingsError(
            f"{estimator.name} needs reports in the answers' own labels",
            value=sent.names,
            way_out="Use dawid-skene.",
        )
    for one in channel.channels if isinstance(channel, ChannelTable) else (channel,):
        if one.null_output is not None:
            check_null_reports(reports, one)


def run(
    estimator: Estimator[Any, Any],
    reports: Reports,
    summary: Summary,
    gold: tuple[NDArray[Any], int],
    progress: Progress | None = None,
    first: Any = None,
    ended: Callable[[Any], None] | None = None,
) -> Estimate:
    """Iterate over the blocks of the coded reports to the end, from `first` or the start; put the result together.

    `ended` is told the parameters that the last posterior follows from.
    """
    estimator = estimator.lean(summary) if first is None else estimator
    compiled = use_compiled(len(reports))
    size = block_reports(len(reports), estimator.cells(summary), compiled=compiled)
    blocks = [_gold_block(block, gold[0], summary, compiled=compiled) for block in reports.blocks(size)]
    parameters = estimator.start(summary) if first is None else first
    end = _iterate(estimator, blocks, parameters, progress, thread_count() if compiled else 1)
    if ended is not None:
        ended(end.parameters)
    table = estimator.workers(end.statistics, end.parameters)
    return Estimate(
        method=estimator.name,
        alphabet=summary.alphabet,
        tasks=reports.tasks,
        posterior=end.posterior,
        reports_per_task=summary.per_task,
        worker_names=reports.workers,
        workers=estimator.look_back(table, blocks, end.posterior, (end.statistics, end.parameters)),
        reports_per_worker=summary.per_worker,
        log_likelihoods=end.trace,
        steps=end.steps,
        converged=end.converged,
        channel_used=summary.channel is not None,
        gold_used=_known(gold[0]),
        gold_unknown=gold[1],
        low=None if end.interval is None else end.interval[:, 0],
        high=None if end.interval is None else end.interval[:, 1],
    )


class _End(NamedTuple, Generic[P, S]):
    """Where the loop ended: the last posterior with the parameters it follows from, and the trace of all steps."""

    posterior: NDArray[np.float64]
    interval: NDArray[np.float64] | None
    statistics: S
    parameters: P
    trace: tuple[float, ...]
    steps: int
    converged: bool


def _iterate(
    estimator: Estimator[P, S], blocks: list[GoldBlock], parameters: P, progress: Progress | None, threads: int
) -> _End[P, S]:
    """Expect, merge and maximize until no posterior moves by more than the tolerance."""
    step, trace = 0, []
    before: list[NDArray[np.float64]] = []
    with side_by_side(threads) as each:
        while True:
            step += 1
            ready = estimator.prepare(parameters)
            expected = list(each(estimator.expect, blocks, repeat(ready)))
            statistics = reduce(merge, (part.statistics for part in expected))
            posteriors = [part.posterior for part in expected]
            moved = max(each(_change, blocks, posteriors, before)) if before else np.inf
            likelihood = estimator.log_likelihood(statistics)
            if likelihood is not None:
                trace.append(likelihood + estimator.log_prior(ready))
            if progress is not None:
                progress(step, moved)
            converged = moved <= estimator.tolerance or not estimator.iterative
            if converged or step == estimator.max_steps:
                posterior, intervals = np.concatenate(posteriors), _intervals(expected)
                return _End(posterior, intervals, statistics, parameters, tuple(trace), step, converged)
            before, parameters = posteriors, estimator.maximize(statistics, parameters)


def _change(block: GoldBlock, new: NDArray[np.float64], old: NDArray[np.float64]) -> float:
    """Return the largest change of a posterior (or truth) of the block."""
    return block.coded.largest_change(new, old)


def _intervals(expected: list[Expected[Any]]) -> NDArray[np.float64] | None:
    """Put the blocks' intervals together, where there are any."""
    parts = [part.interval for part in expected if part.interval is not None]
    return np.concatenate(parts) if parts else None


def _known(gold: NDArray[Any]) -> int:
    """Count the tasks whose truth is given."""
    return int(np.isfinite(gold).sum()) if gold.dtype.kind == "f" else int((gold != NO_GOLD).sum())


def merge(a: S, b: S) -> S:
    """Add two tuples of statistics, field by field."""
    return type(a)(*(x + y for x, y in zip(a, b, strict=True)))


def _gold_block(block: Block, gold: NDArray[Any], summary: Summary, *, compiled: bool) -> GoldBlock:
    points = None if summary.alphabet is None else summary.alphabet.values
    coded = encode(block, summary.workers, summary.symbols, points, compiled=compiled)
    return GoldBlock(block, gold[block.first : block.stop], coded)
