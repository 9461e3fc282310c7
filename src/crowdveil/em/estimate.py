"""Estimate: truths with their uncertainty, worker qualities, and the state for warm starts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet
from crowdveil.data.frames import OriginalColumns
from crowdveil.data.identifiers import ArrowIdentifiers, Identifiers, as_arrow
from crowdveil.em.estimate_views import EstimateViews, StopReason

TIE = 1e-9
"""Difference of posteriors below which labels are tied."""
CHUNK_TASKS, WRITTEN_TASKS = 1 << 18, 1 << 17
"""Tasks summed together, and written together, to bound memory: columns with names need 100 bytes per task."""
FEW_LABELS = 8
LARGE_ERROR = 1e6
NORMAL_QUANTILE = 1.6449
"""Half of the width of a normal distribution's 90 % interval, in standard deviations."""


@dataclass(frozen=True, eq=False)
class WorkerTable:
    """Estimated qualities of workers; all arrays are in worker order.

    Attributes:
        quality: shape (workers,).
        quality_name: "ability" (probability of answering correctly) or "weight" (scalar trust).
        ability_low, ability_high: the 5 % and 95 % posterior quantiles of the ability, if the model has them.
        sigma: standard deviation of the worker's errors in units of the answers, if the model has one.
        sigma_low, sigma_high: the 5 % and 95 % posterior quantiles of sigma.
        confusion: P(answer | truth), indexed [worker, truth, label], if the model has one.
        participation: estimated share of answered tasks, if participation was protected.
    """

    quality: NDArray[np.float64]
    quality_name: str
    confusion: NDArray[np.float64] | None = None
    participation: NDArray[np.float64] | None = None
    sigma: NDArray[np.float64] | None = None
    sigma_low: NDArray[np.float64] | None = None
    sigma_high: NDArray[np.float64] | None = None
    ability_low: NDArray[np.float64] | None = None
    ability_high: NDArray[np.float64] | None = None


class StateField(NamedTuple):
    """Declaration of one array of a `FitState`.

    Attributes:
        values: range: "distribution" (the last axis sums to 1), "probability" or "real".
        by_worker: whether the first axis is workers.
    """

    values: Literal["distribution", "probability", "real"]
    by_worker: bool = True


@dataclass(frozen=True, eq=False)
class FitState:
    """Learned parameters that another fit of the same method can start from.

    Attributes:
        method: name of the estimator.
        workers: names, in the order of the rows of `by_worker`.
        by_worker: arrays whose first axis is workers, by name; empty if nothing was learned.
        shared: other arrays, by name.
    """

    method: str
    workers: Identifiers
    by_worker: Mapping[str, NDArray[np.float64]]
    shared: Mapping[str, NDArray[np.float64]]

    def aligned(self, workers: Identifiers) -> Self:
        """Return the state with rows in the order of other worker names, nan for workers who are not in it."""
        row = {str(name): place for place, name in enumerate(self.workers.tolist())}
        found = np.array([row.get(str(name), -1) for name in workers.tolist()], dtype=np.int64)
        arrays = {name: np.array(array[found], dtype=float) for name, array in self.by_worker.items()}
        for array in arrays.values():
            array[found < 0] = np.nan
        return replace(self, workers=workers, by_worker=arrays)

    def rows(self, name: str, default: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return an array by worker, with the rows of `default` for workers who are not in the state.

        Raises:
            LookupError: there is no such array.
            ValueError: it has another shape.
        """
        if self.by_worker[name].shape != default.shape:
            raise ValueError(f"{name} has the shape {self.by_worker[name].shape}")
        return np.where(np.isnan(self.by_worker[name]), default, self.by_worker[name])


@dataclass(frozen=True, slots=True)
class Baseline:
    """Best constant answer under the posterior, which an informative estimate must beat.

    Attributes:
        constant: the label (or number) with the smallest expected error for all tasks.
        expected_error: expected share of tasks on which the constant is wrong (mean absolute error for numbers).
        estimate_error: the same for the estimate itself.
        moved: number of tasks whose truth differs from the constant, which is not among the tied labels.
        tied: number of tasks on which the constant ties with another label.
    """

    constant: str
    expected_error: float
    estimate_error: float | None
    moved: int
    tied: int = 0

    def __str__(self) -> str:
        if not self.moved:
            if not self.tied:
                return f"No truth differs from the constant {self.constant}."
            count = "1 task" if self.tied == 1 else f"{self.tied} tasks"
            return f"No truth clearly differs from the constant {self.constant} ({count} tied)."
        truths = "1 truth differs" if self.moved == 1 else f"{self.moved} truths differ"
        own = "" if self.estimate_error is None else f", the estimate {error_text(self.estimate_error, 3)}"
        constant = f"Constant {self.constant}: expected error {error_text(self.expected_error, 3)}"
        return f"{constant}{own}; {truths} from it."


def error_text(error: float, decimals: int) -> str:
    """Return an error as text with this number of decimals; with six digits if it is a million or more."""
    return f"{error:.{decimals}f}" if abs(error) < LARGE_ERROR else f"{error:.6g}"


@dataclass(frozen=True, eq=False)
class Estimate(EstimateViews):
    """Truths and worker qualities inferred from reports.

    Attributes:
        method: the estimator's name.
        alphabet: the labels; None for free numbers.
        tasks: task names in code order.
        posterior: categorical: indexed [task, label], rows sum to 1 (shares of the winning labels if
            `probabilistic` is False); numeric: the truth of each task, shape (tasks,),
            NaN for tasks without information.
        reports_per_task: shape (tasks,).
        worker_names, workers, reports_per_worker: names, qualities and report counts, in worker order.
        log_likelihoods: after each step, or a lower bound of it; never falls. Empty where the method has no likelihood.
        steps, converged: number of steps, and whether the fit ended for another reason than the limit of steps.
        stopped: why the fit ended: "tolerance": the last step changed no posterior by more than the tolerance;
            "settled": further steps are expected to change fewer than one truth in ten thousand; "set": the number of
            steps is part of the method; "limit": `max_steps` ran out.
        channel_used: whether the channel was in the likelihood.
        gold_used, gold_unknown: gold tasks that guided the fit, and those that are not among the tasks.
        low, high: the 5 % and 95 % quantiles of each truth's posterior, shape (tasks,), for numbers whose estimator has
            a posterior; else None.
        probabilistic: False if the method gives labels without probabilities: `confidence` is then None, and
            the columns of probabilities are empty.
        task_parameters: estimates of parameters that each task has of its own, by name, each of shape (tasks,).
        state: learned parameters, for `fit(..., warm_start=)`; None without an EM loop.
        original: names and types of the columns of the frame of answers; None for other sources.
        decision: label code of each truth, shape (tasks,), where costs decide (`evaluation.decisions`); None for the
            most probable labels.
        expected_cost: expected cost of each decision, shape (tasks,); None without costs.
        undecided: tasks whose truth stays empty, shape (tasks,); None if there are none.

    >>> from crowdveil import MajorityVote
    >>> estimate = MajorityVote().fit({"task": [1, 1, 1, 2, 2, 2], "worker": [*"abcabc"], "label": [*"yynnnn"]})
    >>> estimate.truth.tolist(), estimate.confidence.round(2).tolist()
    (['y', 'n'], [0.67, 1.0])
    """

    method: str
    alphabet: Alphabet | None
    tasks: Identifiers
    posterior: NDArray[np.float64]
    reports_per_task: NDArray[np.integer]
    worker_names: Identifiers
    workers: WorkerTable
    reports_per_worker: NDArray[np.int64]
    log_likelihoods: tuple[float, ...]
    steps: int
    converged: bool
    channel_used: bool
    gold_used: int
    gold_unknown: int
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    probabilistic: bool = True
    task_parameters: Mapping[str, NDArray[np.float64]] | None = None
    state: FitState | None = None
    stopped: StopReason = "tolerance"
    original: OriginalColumns | None = None
    decision: NDArray[np.int64] | None = None
    expected_cost: NDArray[np.float64] | None = None
    undecided: NDArray[np.bool_] | None = None

    @property
    def categorical(self) -> bool:
        """Whether truths are labels."""
        return self.posterior.ndim == 2

    def part(self, first: int, stop: int) -> Self:
        """Return the estimate of the tasks first .. stop-1, with all workers; nothing is copied."""
        tasks = slice(first, stop)
        return replace(
            self,
            tasks=self.tasks[tasks],
            posterior=self.posterior[tasks],
            reports_per_task=self.reports_per_task[tasks],
            low=None if self.low is None else self.low[tasks],
            high=None if self.high is None else self.high[tasks],
            task_parameters=self.task_parameters and {n: column[tasks] for n, column in self.task_parameters.items()},
            decision=None if self.decision is None else self.decision[tasks],
            expected_cost=None if self.expected_cost is None else self.expected_cost[tasks],
            undecided=None if self.undecided is None else self.undecided[tasks],
        )

    def parts(self) -> Iterator[Self]:
        """Yield the estimate in parts of `WRITTEN_TASKS` tasks, at least one: columns of all tasks take memory."""
        for first in range(0, max(len(self.posterior), 1), WRITTEN_TASKS):
            yield self.part(first, min(first + WRITTEN_TASKS, len(self.posterior)))

    @cached_property
    def winners(self) -> NDArray[np.bool_]:
        """Labels that share the highest posterior, indexed [task, label]; several per row if tied."""
        return winners(self.posterior)

    @cached_property
    def truth(self) -> NDArray[Any]:
        """Truth of each task, shape (tasks,): the decided label, empty text where undecided, or the number."""
        if self.alphabet is None or not self.categorical:
            return self.posterior
        truth = np.array(self.alphabet.names)[self.decisions]
        return truth if self.undecided is None else np.where(self.undecided, "", truth)

    @property
    def decisions(self) -> NDArray[np.int64]:
        """Label code of each truth, shape (tasks,): by default the most probable label, the first of tied ones."""
        if self.decision is not None:
            return self.decision
        codes = np.empty(len(self.posterior), dtype=np.int64)
        for tasks in _ranges(len(codes)):
            codes[tasks] = winners(self.posterior[tasks]).argmax(axis=1)
        return codes

    @cached_property
    def confidence(self) -> NDArray[np.float64] | None:
        """Posterior probability of each truth, shape (tasks,); None for numbers, and where the method has none."""
        if not self.categorical or not self.probabilistic:
            return None
        if self.decision is None:
            return _highest(self.posterior)
        return self.posterior[np.arange(len(self.posterior)), self.decision]

    @cached_property
    def baseline(self) -> Baseline:
        """Best constant answer, for comparison."""
        if not self.categorical or self.alphabet is None:
            return numeric_baseline(self.posterior, self.low, self.high)
        parts = [self.posterior[tasks] for tasks in _ranges(len(self.posterior))]
        mean = np.sum([part.sum(axis=0) for part in parts], axis=0) / len(self.posterior)
        best = int(mean.argmax())
        own = 1 - sum(float(_highest(part).sum()) for part in parts) / len(self.posterior)
        moved = tied = 0
        for part in parts:
            highest = winners(part)
            moved += int((~highest[:, best]).sum())
            tied += int((highest[:, best] & (highest.sum(axis=1) > 1)).sum())
        return Baseline(
            constant=self.alphabet.names[best],
            expected_error=1 - float(mean[best]),
            estimate_error=own if self.probabilistic else None,
            moved=moved,
            tied=tied,
        )

    @property
    def identified(self) -> bool:
        """False if at least half of the numbers have a 90 % interval as wide as the scale."""
        if self.categorical or self.alphabet is None or self.low is None or self.high is None:
            return True
        return not np.median(self.high - self.low) >= np.ptp(self.alphabet.values)

    def tasks_columns(self) -> dict[str, Identifiers]:
        """Return columns task, truth; low and high of an interval; for labels confidence, `probability_<label>` each
        and n_tied_labels; and reports. Confidence and probabilities are nan where the method has none."""
        return self._columns(self.truth)

    def _columns(self, truth: Identifiers) -> dict[str, Identifiers]:
        columns: dict[str, Identifiers] = {"task": self.tasks, "truth": truth}
        columns |= {name: ends for name, ends in (("low", self.low), ("high", self.high)) if ends is not None}
        if self.alphabet is not None and self.categorical:
            nothing = np.full(len(self.posterior), np.nan)
            columns["confidence"] = nothing if self.confidence is None else self.confidence
            for label, name in enumerate(self.alphabet.names):
                columns[f"probability_{name}"] = self.posterior[:, label] if self.probabilistic else nothing
            columns["n_tied_labels"] = self.winners.sum(axis=1)
            columns |= {} if self.expected_cost is None else {"expected_cost": self.expected_cost}
        return columns | dict(self.task_parameters or {}) | {"reports": self.reports_per_task}

    def workers_columns(self) -> dict[str, Identifiers]:
        """Return columns worker, ability or weight, intervals, sigma and participation where estimated, and reports."""
        columns: dict[str, Identifiers] = {"worker": self.worker_names, self.workers.quality_name: self.workers.quality}
        for name in ("ability_low", "ability_high", "sigma", "sigma_low", "sigma_high", "participation"):
            column: NDArray[np.float64] | None = getattr(self.workers, name)
            if column is not None:
                columns[name] = column
        return columns | {"reports": self.reports_per_worker}

    def tasks_frame(self) -> pa.Table:
        """Return `tasks_columns` as an Arrow table; nan becomes null."""
        if self.alphabet is None or not self.categorical:
            return _table(self.tasks_columns())
        # Arrow looks names up by code five times faster than it converts an array of text.
        truth = pa.array(self.alphabet.names).take(pa.array(self.decisions, mask=self.undecided))
        return _table(self._columns(ArrowIdentifiers(pa.chunked_array([truth]))))

    def workers_frame(self) -> pa.Table:
        """Return `workers_columns` as an Arrow table; nan becomes null."""
        return _table(self.workers_columns())


def winners(posterior: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the labels that share the highest posterior, indexed [task, label]."""
    found = np.empty(posterior.shape, dtype=bool)
    for tasks in _ranges(len(posterior)):
        part = posterior[tasks]
        found[tasks] = part >= _highest(part)[:, None] - TIE
    return found


def _highest(posterior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the maximum of each row; few columns are ten times faster column by column."""
    return reduce(np.maximum, posterior.T) if posterior.shape[1] <= FEW_LABELS else posterior.max(axis=1)


def _ranges(tasks: int) -> Iterator[slice]:
    return (slice(first, first + CHUNK_TASKS) for first in range(0, tasks, CHUNK_TASKS))


def _table(columns: Mapping[str, Identifiers]) -> pa.Table:
    return pa.table({name: as_arrow(column) for name, column in columns.items()})


def numeric_baseline(
    truth: NDArray[np.float64], low: NDArray[np.float64] | None, high: NDArray[np.float64] | None
) -> Baseline:
    """Return the median of numbers as the best constant, with mean absolute errors expected from their 90 % intervals.

    Posteriors count as normal distributions as wide as the intervals. Without intervals the error of the numbers is
    unknown, and that of the constant is their mean distance from it.
    """
    known = np.isfinite(truth)
    middle = float(np.median(truth[known])) if known.any() else 0.0
    distance, own = np.abs(truth[known] - middle), None
    moved = int((distance > 1e-9).sum())
    if low is not None and high is not None and known.any():
        from scipy.special import erf  # the import is slow

        deviation = np.maximum((high - low)[known] / (2 * NORMAL_QUANTILE), np.finfo(float).tiny)
        ratio = np.minimum(distance, LARGE_ERROR * deviation) / deviation
        distance = deviation * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + distance * erf(ratio / np.sqrt(2))
        own = float(deviation.mean() * np.sqrt(2 / np.pi))
    return Baseline(f"{middle:g}", float(distance.mean()) if known.any() else 0.0, own, moved)
