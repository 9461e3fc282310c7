"""THE loop of inference: expect over blocks, merge, maximize, stop; and the contract every estimator keeps.

An estimator is a frozen value of settings with small pure functions. Parameters are small and shared by all blocks,
statistics are sums over reports: so blocks may later be worked on in threads, from disk or on other machines.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimate import Estimate, WorkerTable
from crowdveil.estimators.kernels import incidence
from crowdveil.labels import Alphabet, Scale
from crowdveil.reports import Block, Reports

NO_GOLD = -1
Progress = Callable[[int, float], None]
"""Called after every step with its number and the largest change of a posterior."""


@dataclass(frozen=True, eq=False)
class Summary:
    """What a fit knows before it looks at single reports.

    Attributes:
        alphabet: the labels that truths are inferred in, None for free numbers.
        symbols: how many non-NULL symbols a report can be; not the labels where a channel sends blocks of them.
        tasks, workers: how many there are, those without reports included.
        per_worker: non-NULL reports of each worker, shape (workers,).
        symbol_counts: non-NULL reports of each worker by symbol, indexed [worker, symbol]; empty for free numbers.
        channel: what the reports went through; None if reports are to be read as answers.
        prior: public prior over labels, shape (labels,), sums to 1; None if it is to be learned or is not used.
    """

    alphabet: Alphabet | None
    symbols: int
    tasks: int
    workers: int
    per_worker: NDArray[np.int64]
    symbol_counts: NDArray[np.float64]
    channel: Channel | None
    prior: NDArray[np.float64] | None

    @property
    def labels(self) -> int:
        """Number of labels, 0 for free numbers."""
        return 0 if self.alphabet is None else self.alphabet.size


@dataclass(frozen=True, eq=False)
class GoldBlock:
    """A block with what an estimator needs beside its reports.

    Attributes:
        block: the reports.
        gold: known truth of each local task: label code (or number), shape (tasks,); NO_GOLD (nan) where unknown.
        matrix: the sparse form for categorical kernels, None for numbers.
    """

    block: Block
    gold: NDArray[Any]
    matrix: Any


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
        needs_alphabet: whether free numbers, on no scale, are refused.
        max_steps: largest number of steps.
        tolerance: stop when no posterior (or truth) changes by more than this.
    """

    name: ClassVar[str]
    kind: ClassVar[Literal["categorical", "numeric"]]
    iterative: ClassVar[bool] = True
    reads_channel: ClassVar[bool]
    reads_blocks: ClassVar[bool] = False
    needs_alphabet: ClassVar[bool] = False
    max_steps: int
    tolerance: float

    @abstractmethod
    def start(self, summary: Summary) -> P:
        """Return the first parameters, from counts only."""

    @abstractmethod
    def expect(self, block: GoldBlock, parameters: P) -> Expected[S]:
        """Return statistics and posterior of one block; the only heavy step."""

    @abstractmethod
    def maximize(self, statistics: S, parameters: P) -> P:
        """Return the parameters that follow from merged statistics; `parameters` are those that gave them."""

    @abstractmethod
    def workers(self, statistics: S, parameters: P) -> WorkerTable:
        """Return what was learned about workers."""

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
        channel: Channel | None = None,
        gold: Mapping[Any, Any] | None = None,
        prior: Mapping[str, float] | None = None,
        progress: Progress | None = None,
    ) -> Estimate:
        """Infer the truth of every task and the quality of every worker.

        Args:
            reports: non-NULL reports; its `tasks` and `workers` must list everyone if participation was protected.
            channel: what the reports went through; None reads them as answers.
            gold: known truths by task name (label, or number).
            prior: public prior probability of each label.
            progress: called after every step.

        Raises:
            SettingsError: the estimator cannot use the channel or the prior, or may not take a single step.
            ReportsError: the reports are of the wrong kind or do not match the channel, or a gold truth is no label.
        """
        summary = summarize(self, reports, channel, prior)
        known = align_gold(reports, gold, summary.alphabet, numeric=self.kind == "numeric")
        return run(self, reports, summary, known, progress)


def summarize(
    estimator: Estimator[Any, Any], reports: Reports, channel: Channel | None, prior: Mapping[str, float] | None
) -> Summary:
    """Check that estimator, reports, channel and prior fit together, and count."""
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
    counts = np.zeros((len(reports.workers), reports.labels))
    if reports.alphabet is not None:
        cells = reports.worker.astype(np.int64) * reports.labels + reports.value
        counts = np.bincount(cells, minlength=counts.size).reshape(counts.shape).astype(float)
    alphabet = reports.alphabet if channel is None else channel.alphabet
    return Summary(
        alphabet=alphabet,
        symbols=reports.labels,
        tasks=len(reports.tasks),
        workers=len(reports.workers),
        per_worker=reports.per_worker,
        symbol_counts=counts,
        channel=channel,
        prior=None if prior is None else _prior_vector(alphabet, prior),
    )


def _check_channel(estimator: Estimator[Any, Any], reports: Reports, channel: Channel) -> None:
    if not estimator.reads_channel:
        raise SettingsError(
            f"{estimator.name} cannot put a channel into its likelihood",
            value=channel.mechanism,
            way_out="Use dawid-skene, one-coin or majority-vote, or fit without the channel.",
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
            value=channel.outputs,
            way_out="Use dawid-skene.",
        )
    if channel.null_output is not None:
        _check_null_reports(reports, channel)


def _check_null_reports(reports: Reports, channel: Channel) -> None:
    """Check that the cells without a report can be counted as NULL reports."""
    if channel.participation == "public":
        raise SettingsError(
            "a channel that sends NULL must protect participation, or its NULL reports look like blank cells",
            value=channel.mechanism,
        )
    same_cell = (reports.task[1:] == reports.task[:-1]) & (reports.worker[1:] == reports.worker[:-1])
    if same_cell.any():
        raise ReportsError(
            f"one cell sends one report, but {int(same_cell.sum())} reports repeat a (task, worker) pair",
            way_out="Read the reports with duplicates='first' or 'last'.",
        )


def _prior_vector(alphabet: Alphabet | None, prior: Mapping[str, float]) -> NDArray[np.float64]:
    names = () if alphabet is None else alphabet.names
    if set(prior) != set(names):
        raise SettingsError(f"the prior must give a probability to exactly the labels {names}", value=dict(prior))
    vector = np.array([float(prior[name]) for name in names])
    if not (np.isfinite(vector).all() and (vector > 0).all() and abs(vector.sum() - 1) < 1e-6):
        raise SettingsError("prior probabilities must be positive and sum to 1", value=dict(prior))
    return vector / vector.sum()


def align_gold(
    reports: Reports, gold: Mapping[Any, Any] | None, alphabet: Alphabet | None, *, numeric: bool
) -> tuple[NDArray[Any], int]:
    """Return known truths in task order, and how many gold tasks have no place among the tasks.

    Codes of `alphabet`, which truths are inferred in, with NO_GOLD where unknown; or, if `numeric`, numbers (a label's
    position for categories) with nan.

    Raises:
        ReportsError: a gold truth is not in the alphabet, or not a number.
    """
    read = _gold_reader(alphabet, numeric)
    aligned = np.full(len(reports.tasks), np.nan if numeric else NO_GOLD, dtype=float if numeric else int)
    place = {str(name): code for code, name in enumerate(reports.tasks)}
    unknown = 0
    for task, truth in (gold or {}).items():
        at = place.get(str(task))
        if at is None:
            unknown += 1
            continue
        try:
            aligned[at] = read(truth)
        except (KeyError, TypeError, ValueError) as error:
            known = "a number" if alphabet is None else f"among {alphabet.names}"
            raise ReportsError(f"gold {truth!r} of task {task!r} must be {known}", source="gold") from error
    return aligned, unknown


def _gold_reader(alphabet: Alphabet | None, numeric: bool) -> Callable[[Any], float]:
    """Return what turns one gold truth into a code or a number; raises a KeyError, TypeError or ValueError."""
    if alphabet is None or (numeric and isinstance(alphabet, Scale)):
        return float
    if isinstance(alphabet, Scale):
        # The names, unlike the values, are the floats that people write: 0.3 and not 0.1 * 3.
        codes = {float(name): code for code, name in enumerate(alphabet.names)}
        return lambda truth: codes[float(truth)]
    names = {name: code for code, name in enumerate(alphabet.names)}
    return lambda truth: names[str(truth)]


def run(
    estimator: Estimator[P, S],
    reports: Reports,
    summary: Summary,
    gold: tuple[NDArray[Any], int],
    progress: Progress | None = None,
    first: P | None = None,
) -> Estimate:
    """Iterate to the end over the blocks of the reports, from `first` or the start, and put together what comes out."""
    blocks = [_gold_block(block, gold[0], summary) for block in reports.blocks()]
    end = _iterate(estimator, blocks, estimator.start(summary) if first is None else first, progress)
    return Estimate(
        method=estimator.name,
        alphabet=summary.alphabet,
        tasks=reports.tasks,
        posterior=end.posterior,
        reports_per_task=reports.per_task,
        worker_names=reports.workers,
        workers=estimator.workers(end.statistics, end.parameters),
        reports_per_worker=reports.per_worker,
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
    estimator: Estimator[P, S], blocks: list[GoldBlock], parameters: P, progress: Progress | None
) -> _End[P, S]:
    """Expect, merge and maximize until no posterior moves by more than the tolerance."""
    step, before, trace = 0, None, []
    while True:
        step += 1
        expected = [estimator.expect(block, parameters) for block in blocks]
        statistics = reduce(merge, (part.statistics for part in expected))
        posterior = np.concatenate([part.posterior for part in expected])
        # A task that no number is known for is nan before and after: it has not moved.
        moved = np.inf if before is None else float(np.nan_to_num(np.abs(posterior - before)).max())
        likelihood = estimator.log_likelihood(statistics)
        if likelihood is not None:
            trace.append(likelihood + estimator.log_prior(parameters))
        if progress is not None:
            progress(step, moved)
        converged = moved <= estimator.tolerance or not estimator.iterative
        if converged or step == estimator.max_steps:
            return _End(posterior, _intervals(expected), statistics, parameters, tuple(trace), step, converged)
        before, parameters = posterior, estimator.maximize(statistics, parameters)


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


def one_hot_gold(posterior: NDArray[np.float64], gold: NDArray[np.int64]) -> NDArray[np.float64]:
    """Replace the posterior of each task whose truth is known by certainty; arrays indexed [task, label] and [task]."""
    known = np.flatnonzero(gold >= 0)
    fixed = posterior.copy() if known.size else posterior
    fixed[known] = 0.0
    fixed[known, gold[known]] = 1.0
    return fixed


def _gold_block(block: Block, gold: NDArray[Any], summary: Summary) -> GoldBlock:
    matrix = incidence(block, summary.workers, summary.symbols) if summary.alphabet is not None else None
    return GoldBlock(block, gold[block.first : block.stop], matrix)
