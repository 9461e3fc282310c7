"""Estimate: truths with their uncertainty, worker qualities, and the state for warm starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.answers.frames import OriginalColumns, as_pandas, as_polars, as_same_kind
from crowdveil.answers.identifiers import Identifiers, LazyIdentifiers, identifiers_as_arrow
from crowdveil.answers.reports import Reports
from crowdveil.arguments import did_you_mean
from crowdveil.channels.alphabet import Alphabet, abbreviate_names
from crowdveil.display.counts import number_of
from crowdveil.display.html import Html, notebook_card, table
from crowdveil.display.svg_pictures import count_bars, interval_chart, share_histogram
from crowdveil.em.fit_state import FitState
from crowdveil.em.gold import CrossValidation
from crowdveil.em.kernels.numpy_backend import row_maxima
from crowdveil.em.plots import bar_plot, confusion_plot, histogram_of_shares, interval_plot
from crowdveil.errors import SettingsError

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.axes import Axes

TIE = 1e-9
"""Difference of posteriors below which labels are tied."""
CHUNK_TASKS, WRITTEN_TASKS = 1 << 18, 1 << 17
"""Tasks summed together, and written together, to bound memory: columns with names need 100 bytes per task."""
LARGE_ERROR = 1e6
NORMAL_QUANTILE = 1.6449
"""Half of the width of a normal distribution's 90 % interval, in standard deviations."""


StopReason = Literal["tolerance", "settled", "set", "limit"]
"""Values of `Estimate.stopped`."""
ENDINGS: dict[StopReason, str] = {
    "tolerance": "converged in {}",
    "settled": "settled in {}: more steps would change less than 1 truth in 10,000",
    "set": "stopped after {}, fixed by the method",
    "limit": "NOT converged in {}: raise max_steps",
}
"""Sentences on the end of a fit."""
Rows = Literal["tasks", "workers"]
"""Rows of a frame of results."""
TASK_COLUMNS = (
    *("tasks", "posterior", "reports_per_task", "low", "high"),
    *("decision", "expected_cost", "undecided", "gold"),
)
"""Attributes of an estimate with a row for each task."""
SHOWN_TASKS = 10
"""Tasks in a notebook's table and picture."""
PLOTTED = 40
"""Tasks or workers in a plot of intervals; evenly chosen by their number if there are more."""


@dataclass(frozen=True, eq=False)
class WorkerTable:
    """Estimated qualities of workers; all arrays are in worker order.

    Attributes:
        quality: shape (workers,).
        quality_name: "ability" (probability of answering correctly) or "weight" (scalar trust).
        ability_low, ability_high: the 5 % and 95 % posterior quantiles of the ability, if the model has them.
        sigma: standard deviation of the worker's errors in units of the answers, if the model has one.
        sigma_low, sigma_high: the 5 % and 95 % posterior quantiles of sigma.
        bias: mean error of the worker in units of the answers, where the method fitted biases.
        independent: probability that the worker's answers do not depend on the truth, where the method learns it.
        copied: largest share of answers in common with another worker beyond independent work; None without any.
        confusion: P(answer | truth), indexed [worker, truth, answer], if the model has one.
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
    bias: NDArray[np.float64] | None = None
    independent: NDArray[np.float64] | None = None
    copied: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        """Return the number of workers, and what is estimated of them."""
        found = [name for name, value in vars(self).items() if isinstance(value, np.ndarray) and name != "quality"]
        return f"<WorkerTable: {', '.join([self.quality_name, *found])} of {len(self.quality):,} workers>"


@dataclass(frozen=True, slots=True)
class Baseline:
    """Best constant answer under the posterior, which an informative estimate must beat.

    Attributes:
        constant: the label (or number) with the smallest expected error for all tasks.
        expected_error: expected share of tasks on which the constant is wrong (mean absolute error for numbers).
        estimate_error: the same for the estimate itself.
        moved: number of tasks whose truth differs from the constant, which is not among the tied labels.
        tied: number of tasks on which the constant ties with another label.
        gold: number of tasks with a known truth, which are left out of the others.
    """

    constant: str
    expected_error: float
    estimate_error: float | None
    moved: int
    tied: int = 0
    gold: int = 0

    def __str__(self) -> str:
        if not self.gold:
            return self._comparison_with_constant_text
        tasks = "1 gold task is" if self.gold == 1 else f"{self.gold:,} gold tasks are"
        return f"{self._comparison_with_constant_text} {tasks} left out."

    @property
    def _comparison_with_constant_text(self) -> str:
        if not self.moved:
            if not self.tied:
                return f"No truth differs from the constant {self.constant}."
            count = number_of(self.tied, "task")
            return f"No truth clearly differs from the constant {self.constant} ({count} tied)."
        truths = "1 truth differs" if self.moved == 1 else f"{self.moved} truths differ"
        own = "" if self.estimate_error is None else f"; this estimate: {self._own_error_text(self.estimate_error)}"
        constant = self._constant_error_text(self.expected_error)
        return f"Always answering {self.constant}: expected {constant}{own}. {truths}."

    def _constant_error_text(self, error: float) -> str:
        return f"{error_percent(error)} wrong"

    def _own_error_text(self, error: float) -> str:
        return error_percent(error)


class NumericBaseline(Baseline):
    """Best constant number; errors are mean absolute errors."""

    __slots__ = ()

    def _constant_error_text(self, error: float) -> str:
        return f"mean error {error_text(error, 3)}"

    def _own_error_text(self, error: float) -> str:
        return error_text(error, 3)


def error_percent(share: float) -> str:
    """Return an error as a percentage with one decimal; a small one is not written as 0 %."""
    return "< 0.1 %" if share < 0.001 else f"{100 * round(float(share), 3):.1f} %"


def error_text(error: float, decimals: int) -> str:
    """Return an error as text with this number of decimals; with six digits if it is a million or more."""
    return f"{error:.{decimals}f}" if abs(error) < LARGE_ERROR else f"{error:.6g}"


@dataclass(frozen=True, eq=False, match_args=False)
class Estimate:
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
        steps: number of steps.
        stopped: why the fit ended: "tolerance": the last step changed no posterior by more than the tolerance;
            "settled": further steps are expected to change fewer than one truth in ten thousand; "set": the number of
            steps is part of the method; "limit": `max_steps` ran out.
        channel_used: whether the channel was in the likelihood.
        gold_unknown: number of gold tasks that are not among the tasks.
        low, high: the 5 % and 95 % quantiles of each truth's posterior, shape (tasks,), for numbers whose estimator has
            a posterior; else None.
        probabilistic: False if the method gives labels without probabilities: `confidence` is then None, and
            the columns of probabilities are empty.
        task_parameters: estimates of parameters that each task has of its own, by name, each of shape (tasks,).
        state: learned parameters, for `fit(..., warm_start=)`; None without an EM loop.
        original: names and types of the columns of the frame of answers; None for other sources.
        decision: label code of each truth, shape (tasks,), where costs decide (`inference.scores.decisions`); None
            for the most probable labels.
        expected_cost: expected cost of each decision, shape (tasks,); None without costs.
        undecided: tasks whose truth stays empty, shape (tasks,); None if there are none.
        gold: tasks whose truth was known and guided the fit, shape (tasks,); None if there are none.
        cross_validation: what fits without a gold task say of it; None without enough gold.

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
    log_likelihoods: tuple[float, ...] = ()
    steps: int = 1
    channel_used: bool = False
    gold_unknown: int = 0
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
    gold: NDArray[np.bool_] | None = None
    cross_validation: CrossValidation | None = None

    @property
    def converged(self) -> bool:
        """Whether the fit ended for another reason than the limit of steps."""
        return self.stopped != "limit"

    @property
    def gold_used(self) -> int:
        """Number of gold tasks that guided the fit."""
        return 0 if self.gold is None else int(self.gold.sum())

    @property
    def known_truths(self) -> dict[str, Any] | None:
        """Known truth, a label or a number, by task name; None if there was none."""
        if self.gold is None:
            return None
        truths: NDArray[Any] = self.posterior[self.gold]
        if self.categorical and self.alphabet is not None:
            truths = np.array(self.alphabet.names)[truths.argmax(axis=1)]
        return dict(zip(map(str, self.tasks[self.gold].tolist()), truths.tolist(), strict=True))

    @property
    def categorical(self) -> bool:
        """Whether truths are labels."""
        return self.posterior.ndim == 2

    def part(self, first: int, stop: int) -> Self:
        """Return the estimate of the tasks first .. stop-1, with all workers; nothing is copied."""
        return self._estimate_of_tasks(slice(first, stop))

    @cached_property
    def without_gold(self) -> Self:
        """The estimate of the tasks whose truth was not known, with all workers: expected errors are theirs."""
        return self if self.gold is None else replace(self._estimate_of_tasks(np.flatnonzero(~self.gold)), gold=None)

    def _estimate_of_tasks(self, tasks: slice | NDArray[np.int64]) -> Self:
        """Return the estimate of some tasks, with all workers."""
        columns = {name: getattr(self, name) for name in TASK_COLUMNS}
        own = self.task_parameters and {name: column[tasks] for name, column in self.task_parameters.items()}
        kept: dict[str, Any] = {name: None if column is None else column[tasks] for name, column in columns.items()}
        return replace(self, task_parameters=own, **kept)

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
        for tasks in _task_ranges(len(codes)):
            codes[tasks] = winners(self.posterior[tasks]).argmax(axis=1)
        return codes

    @cached_property
    def confidence(self) -> NDArray[np.float64] | None:
        """Posterior probability of each truth, shape (tasks,); None for numbers, and where the method has none."""
        if not self.categorical or not self.probabilistic:
            return None
        if self.decision is None:
            return row_maxima(self.posterior)
        return self.posterior[np.arange(len(self.posterior)), self.decision]

    @cached_property
    def baseline(self) -> Baseline:
        """Best constant answer for the tasks without gold, for comparison; for all tasks if each has gold."""
        if self.gold is not None:
            if not self.gold.all():
                return replace(self.without_gold.baseline, gold=self.gold_used)
            return replace(replace(self, gold=None).baseline, estimate_error=None)
        if not self.categorical or self.alphabet is None:
            return numeric_baseline(self.posterior, self.low, self.high)
        parts = [self.posterior[tasks] for tasks in _task_ranges(len(self.posterior))]
        mean = np.sum([part.sum(axis=0) for part in parts], axis=0) / len(self.posterior)
        best = int(mean.argmax())
        own = 1 - sum(float(row_maxima(part).sum()) for part in parts) / len(self.posterior)
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
    def intervals_narrower_than_scale(self) -> bool:
        """False if at least half of the numbers have a 90 % interval as wide as the scale."""
        if self.categorical or self.alphabet is None:
            return True
        low, high = self.without_gold.low, self.without_gold.high
        return low is None or high is None or not np.median(high - low) >= np.ptp(self.alphabet.values)

    def tasks_columns(self) -> dict[str, Identifiers]:
        """Return columns task, truth; low and high of an interval; for labels confidence, `probability_<label>` each
        n_tied_labels; reports; and gold if some truths were known. Without probabilities these columns are nan."""
        return self._task_frame_columns(self.truth)

    def _task_frame_columns(self, truth: Identifiers) -> dict[str, Identifiers]:
        columns: dict[str, Identifiers] = {"task": self.tasks, "truth": truth}
        columns |= {name: ends for name, ends in (("low", self.low), ("high", self.high)) if ends is not None}
        if self.alphabet is not None and self.categorical:
            nothing = np.full(len(self.posterior), np.nan)
            columns["confidence"] = nothing if self.confidence is None else self.confidence
            for label, name in enumerate(self.alphabet.names):
                columns[f"probability_{name}"] = self.posterior[:, label] if self.probabilistic else nothing
            columns["n_tied_labels"] = self.winners.sum(axis=1)
            columns |= {} if self.expected_cost is None else {"expected_cost": self.expected_cost}
        columns |= dict(self.task_parameters or {}) | {"reports": self.reports_per_task}
        return columns if self.gold is None else columns | {"gold": self.gold}

    def workers_columns(self) -> dict[str, Identifiers]:
        """Return columns worker, ability or weight, intervals, sigma, bias and participation if known, and reports."""
        columns: dict[str, Identifiers] = {"worker": self.worker_names, self.workers.quality_name: self.workers.quality}
        for name in ("ability_low", "ability_high", "sigma", "sigma_low", "sigma_high", "bias", "participation"):
            column: NDArray[np.float64] | None = getattr(self.workers, name)
            if column is not None:
                columns[name] = column
        return columns | {"reports": self.reports_per_worker}

    def tasks_frame(self) -> pa.Table:
        """Return `tasks_columns` as an Arrow table; nan becomes null."""
        if self.alphabet is None or not self.categorical:
            return _arrow_table(self.tasks_columns())
        return self._tasks_table_with_original_labels(pa.array(self.alphabet.names))

    def _tasks_table_with_original_labels(self, labels: Any) -> pa.Table:
        """Return `tasks_columns` with labels from an Arrow array; Arrow looks them up five times faster than numpy."""
        truth = labels.take(pa.array(self.decisions, mask=self.undecided))
        return _arrow_table(self._task_frame_columns(LazyIdentifiers(pa.chunked_array([truth]))))

    def workers_frame(self) -> pa.Table:
        """Return `workers_columns` as an Arrow table; nan becomes null."""
        return _arrow_table(self.workers_columns())

    def __str__(self) -> str:
        """Return the size of the estimate, and its error beside that of the best constant."""
        return "\n".join([f"Estimate by {self.method}", *self._summary_lines()])

    def __repr__(self) -> str:
        """Return the method and the size of the estimate."""
        return f"<Estimate by {self.method}: {self._summary_lines()[0]}>"

    def _summary_lines(self) -> list[str]:
        ending = ENDINGS[self.stopped].format(number_of(self.steps, "step"))
        size = f"{len(self.tasks):,} tasks, {len(self.worker_names):,} workers, {ending}"
        known = [] if self.cross_validation is None else [str(self.cross_validation)]
        return [size, str(self.baseline), *known, *(["Read through the channel."] if self.channel_used else [])]

    def _repr_html_(self) -> str:
        """Return the first truths for a notebook, the best constant, and a picture of all truths."""
        first = self.part(0, min(SHOWN_TASKS, len(self.tasks)))
        columns = {name: column for name, column in first.tasks_columns().items() if not name.startswith("probab")}
        rows = [
            tuple(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row)
            for row in zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
        ]
        shown = table(tuple(columns), rows, total=len(self.tasks))
        return notebook_card(
            f"Estimate by {self.method}", self._summary_lines(), shown, self._confidence_or_numbers_picture(first)
        )

    def _confidence_or_numbers_picture(self, first: Self) -> Html:
        """Return the confidence of the tasks without gold, or the numbers of the first ones."""
        if self.alphabet is not None and self.categorical:
            confidence = self.without_gold.confidence
            if confidence is not None:
                counts = np.histogram(confidence, bins=10, range=(0, 1))[0].tolist()
                return share_histogram(None, "Tasks by confidence", counts, "tasks")
            counts = np.bincount(self.winners.argmax(axis=1), minlength=self.alphabet.size).tolist()
            return count_bars(None, "Tasks by inferred truth", self.alphabet.names, counts)
        low, high = (first.posterior if ends is None else ends for ends in (first.low, first.high))
        columns = [map(str, first.tasks), *(column.tolist() for column in (first.posterior, low, high))]
        rows = [row for row in zip(*columns, strict=True) if np.isfinite(row[1:]).all()]
        return interval_chart(None, "Inferred numbers" + (" with 90 % intervals" if self.low is not None else ""), rows)

    def to_arrow(self, rows: Rows = "tasks") -> pa.Table:
        """Return tasks or workers as an Arrow table: names and types of the frame of answers, the columns of
        `tasks_columns` or `workers_columns`.

        Raises:
            SettingsError: other rows than "tasks" and "workers".
        """
        if rows not in ("tasks", "workers"):
            raise SettingsError("rows must be 'tasks' or 'workers'", value=rows, hint="Such as to_pandas('workers').")
        values = self._label_values() if rows == "tasks" else None
        whole = self.tasks_frame if rows == "tasks" else self.workers_frame
        table = whole() if values is None else self._tasks_table_with_original_labels(values)
        return table if self.original is None else self.original.restore_identifiers(table)[0]

    def _label_values(self) -> Any:
        """Return the labels in their original type as an Arrow array; None for numbers, or if there is no such type."""
        if self.original is None or self.alphabet is None or not self.categorical:
            return None
        return self.original.label_values(self.alphabet.names)

    def to_pandas(self, rows: Rows = "tasks") -> pandas.DataFrame:
        """Return `to_arrow` as a pandas frame; raises SettingsError without pandas."""
        return as_pandas(self.to_arrow(rows))

    def to_polars(self, rows: Rows = "tasks") -> polars.DataFrame:
        """Return `to_arrow` as a Polars frame; raises SettingsError without Polars."""
        return as_polars(self.to_arrow(rows))

    def to_frame(self, like: Any, rows: Rows = "tasks", *, columns: Sequence[str] | None = None) -> Any:
        """Return tasks or workers as the kind of frame of the answers.

        Args:
            like: the answers; `Reports` for an Arrow table.
            rows: "tasks" or "workers".
            columns: names of the columns after the first one; None for all.
        """
        table = self.to_arrow(rows)
        table = table if columns is None else table.select([table.column_names[0], *columns])
        if isinstance(like, Reports) or self.original is None:
            return table
        sources = {table.column_names[0]: self.original.task if rows == "tasks" else self.original.worker}
        if "truth" in table.column_names and self._label_values() is not None:
            sources["truth"] = self.original.label_name
        return as_same_kind(like, table, sources)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the confidence of the tasks without gold, or numbers with their intervals, and return the axes.

        Args:
            ax: matplotlib axes to draw on; None for those of a new figure.

        Raises:
            SettingsError: matplotlib is not installed.
        """
        if not self.categorical or self.alphabet is None:
            low, high = ((self.posterior if ends is None else ends) for ends in (self.low, self.high))
            return interval_plot(ax, *_evenly_chosen_rows(self.tasks, self.posterior, low, high), "truth")
        confidence = self.without_gold.confidence
        return (
            self.plot_truths(ax)
            if confidence is None
            else histogram_of_shares(ax, confidence.tolist(), "confidence", "tasks")
        )

    def plot_truths(self, ax: Axes | None = None) -> Axes:
        """Draw the number of tasks by inferred label, and return the axes; arguments and errors as `plot`.

        Raises:
            SettingsError: an estimate of numbers.
        """
        if not self.categorical or self.alphabet is None:
            raise SettingsError("a count by label needs an estimate of labels", value=self.method, hint="Use plot().")
        counts = np.bincount(self.winners.argmax(axis=1), minlength=self.alphabet.size)
        return bar_plot(ax, self.alphabet.names, counts.tolist(), "tasks")

    def plot_workers(self, ax: Axes | None = None) -> Axes:
        """Draw the quality of workers with its interval, and return the axes; arguments and errors as `plot`."""
        found, quality = self.workers, self.workers.quality
        low, high = (quality if end is None else end for end in (found.ability_low, found.ability_high))
        return interval_plot(ax, *_evenly_chosen_rows(self.worker_names, quality, low, high), found.quality_name)

    def plot_confusion(self, worker: Any, ax: Axes | None = None) -> Axes:
        """Draw P(answer | truth) of a worker, and return the axes; arguments and errors as `plot`.

        Raises:
            SettingsError: an unknown worker, or a method without confusion matrices.
        """
        confusion, names = self.workers.confusion, [str(name) for name in self.worker_names]
        if confusion is None or self.alphabet is None or confusion.shape[2] != self.alphabet.size:
            raise SettingsError(f"{self.method} estimates no confusion matrices", value=worker)
        if str(worker) not in names:
            hint = did_you_mean(worker, names) or f"There are {abbreviate_names(names)}."
            raise SettingsError("there must be such a worker", value=worker, hint=hint)
        return confusion_plot(ax, self.alphabet.names, confusion[names.index(str(worker))].tolist())


def winners(posterior: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the labels that share the highest posterior, indexed [task, label]."""
    found = np.empty(posterior.shape, dtype=bool)
    for tasks in _task_ranges(len(posterior)):
        part = posterior[tasks]
        found[tasks] = part >= row_maxima(part)[:, None] - TIE
    return found


def _task_ranges(tasks: int) -> Iterator[slice]:
    return (slice(first, first + CHUNK_TASKS) for first in range(0, tasks, CHUNK_TASKS))


def _arrow_table(columns: Mapping[str, Identifiers]) -> pa.Table:
    return pa.table({name: identifiers_as_arrow(column) for name, column in columns.items()})


def numeric_baseline(
    truth: NDArray[np.float64], low: NDArray[np.float64] | None, high: NDArray[np.float64] | None
) -> Baseline:
    """Return the median of numbers as the best constant, with mean absolute errors expected from their 90 % intervals.

    Posteriors count as normal distributions as wide as the intervals. Without intervals, or with an unknown one, the
    error of the numbers is unknown, and that of the constant is their mean distance from it.
    """
    known = np.isfinite(truth)
    middle = float(np.median(truth[known])) if known.any() else 0.0
    distance, own = np.abs(truth[known] - middle), None
    moved = int((distance > 1e-9 * min(1.0, np.abs(truth[known]).max(initial=0.0))).sum())
    if low is not None and high is not None and known.any() and np.isfinite((high - low)[known]).all():
        from scipy.special import erf  # the import is slow

        deviation = np.maximum((high - low)[known] / (2 * NORMAL_QUANTILE), np.finfo(float).tiny)
        ratio = np.minimum(distance, LARGE_ERROR * deviation) / deviation
        distance = deviation * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + distance * erf(ratio / np.sqrt(2))
        own = float(deviation.mean() * np.sqrt(2 / np.pi))
    return NumericBaseline(f"{middle:g}", float(distance.mean()) if known.any() else 0.0, own, moved)


def _evenly_chosen_rows(names: Any, *columns: Any) -> tuple[list[str], list[list[float]]]:
    """Return names and rows of finite numbers in ascending order of the first one, at most `PLOTTED`."""
    table = np.column_stack(columns)
    order = [int(row) for row in np.argsort(table[:, 0], kind="stable") if np.isfinite(table[row]).all()]
    chosen = [
        order[place] for place in np.unique(np.linspace(0, max(len(order) - 1, 0), PLOTTED).astype(int))[: len(order)]
    ]
    return [str(names[row]) for row in chosen], table[chosen].tolist()
