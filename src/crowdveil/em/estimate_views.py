"""Views of an estimate: frames of the caller's kind, the card of a notebook, and plots on matplotlib axes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet
from crowdveil.data.frames import OriginalColumns, as_pandas, as_polars, in_kind
from crowdveil.data.identifiers import Identifiers
from crowdveil.data.reports import Reports
from crowdveil.errors import SettingsError
from crowdveil.plotting import bar_plot, confusion_plot, interval_plot, share_plot
from crowdveil.presentation.html import Html, card, table
from crowdveil.presentation.pictures import count_bars, intervals, share_histogram

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.axes import Axes

StopReason = Literal["tolerance", "settled", "set", "limit"]
"""Values of `Estimate.stopped`."""
ENDINGS: dict[StopReason, str] = {
    "tolerance": "converged in {}",
    "settled": "settled in {}: more would change less than 1 truth in 10,000",
    "set": "stopped after {}, the method's own number",
    "limit": "NOT converged in {}: raise max_steps",
}
"""Sentences on the end of a fit."""
Rows = Literal["tasks", "workers"]
"""Rows of a frame of results."""
SHOWN_TASKS = 10
"""Tasks in a notebook's table and picture."""
PLOTTED = 40
"""Tasks or workers in a plot of intervals; evenly chosen by their number if there are more."""


class EstimateViews(ABC):
    """Frames, card and plots of an estimate, whose attributes are described at `Estimate`."""

    method: str
    alphabet: Alphabet | None
    tasks: Identifiers
    posterior: NDArray[np.float64]
    worker_names: Identifiers
    workers: Any
    steps: int
    stopped: StopReason
    channel_used: bool
    low: NDArray[np.float64] | None
    high: NDArray[np.float64] | None
    original: OriginalColumns | None

    @property
    @abstractmethod
    def categorical(self) -> bool:
        """Whether truths are labels."""

    @cached_property
    @abstractmethod
    def winners(self) -> NDArray[np.bool_]:
        """Labels that share the highest posterior, indexed [task, label]."""

    @cached_property
    @abstractmethod
    def confidence(self) -> NDArray[np.float64] | None:
        """Posterior probability of each truth."""

    @cached_property
    @abstractmethod
    def baseline(self) -> Any:
        """Best constant answer."""

    @abstractmethod
    def part(self, first: int, stop: int) -> Any:
        """Return the estimate of some tasks."""

    @abstractmethod
    def tasks_columns(self) -> dict[str, Identifiers]:
        """Return the columns of tasks."""

    @abstractmethod
    def tasks_frame(self) -> pa.Table:
        """Return the columns of tasks as an Arrow table."""

    @abstractmethod
    def workers_frame(self) -> pa.Table:
        """Return the columns of workers as an Arrow table."""

    @property
    def convergence(self) -> str:
        """The number of steps, and why the fit ended, in words."""
        return ENDINGS[self.stopped].format("1 step" if self.steps == 1 else f"{self.steps:,} steps")

    def _repr_html_(self) -> str:
        """Return the first truths for a notebook, the best constant, and a picture of all truths."""
        size = f"{len(self.tasks):,} tasks, {len(self.worker_names):,} workers, {self.convergence}"
        facts = [size, str(self.baseline), *(["Read through the channel."] if self.channel_used else [])]
        first = self.part(0, min(SHOWN_TASKS, len(self.tasks)))
        columns = {name: column for name, column in first.tasks_columns().items() if not name.startswith("probab")}
        rows = [
            tuple(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row)
            for row in zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
        ]
        shown = table(tuple(columns), rows, total=len(self.tasks))
        return card(f"Estimate by {self.method}", facts, shown, self._picture(first))

    def _picture(self, first: Any) -> Html:
        """Return the confidence of all tasks, or the numbers of the first ones."""
        if self.alphabet is not None and self.categorical:
            if self.confidence is not None:
                counts = np.histogram(self.confidence, bins=10, range=(0, 1))[0].tolist()
                return share_histogram(None, "Tasks by confidence", counts, "tasks")
            counts = np.bincount(self.winners.argmax(axis=1), minlength=self.alphabet.size).tolist()
            return count_bars(None, "Tasks by inferred truth", self.alphabet.names, counts)
        low, high = (first.posterior if ends is None else ends for ends in (first.low, first.high))
        columns = [map(str, first.tasks), *(column.tolist() for column in (first.posterior, low, high))]
        rows = [row for row in zip(*columns, strict=True) if np.isfinite(row[1:]).all()]
        return intervals(None, "Inferred numbers" + (" with 90 % intervals" if self.low is not None else ""), rows)

    def to_arrow(self, rows: Rows = "tasks") -> pa.Table:
        """Return tasks or workers as an Arrow table: names and types of the frame of answers, the columns of
        `tasks_columns` or `workers_columns`.

        Raises:
            SettingsError: other rows than "tasks" and "workers".
        """
        if rows not in ("tasks", "workers"):
            raise SettingsError("rows must be 'tasks' or 'workers'", value=rows, hint="Such as to_pandas('workers').")
        table = self.tasks_frame() if rows == "tasks" else self.workers_frame()
        if self.original is None:
            return table
        values = self._label_values() if rows == "tasks" else None
        if values is not None:
            table = table.set_column(1, "truth", values.take(pa.array(self.winners.argmax(axis=1))))
        return self.original.with_identifiers(table, rows)

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
        return in_kind(like, table, sources)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the confidence of all tasks, or numbers with their intervals, and return the axes.

        Args:
            ax: matplotlib axes to draw on; None for those of a new figure.

        Raises:
            SettingsError: matplotlib is not installed.
        """
        if not self.categorical or self.alphabet is None:
            low, high = ((self.posterior if ends is None else ends) for ends in (self.low, self.high))
            return interval_plot(ax, *_evenly(self.tasks, self.posterior, low, high), "truth")
        return (
            self.plot_truths(ax)
            if self.confidence is None
            else share_plot(ax, self.confidence.tolist(), "confidence", "tasks")
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
        return interval_plot(ax, *_evenly(self.worker_names, quality, low, high), found.quality_name)

    def plot_confusion(self, worker: Any, ax: Axes | None = None) -> Axes:
        """Draw P(answer | truth) of a worker, and return the axes; arguments and errors as `plot`.

        Raises:
            SettingsError: an unknown worker, or a method without confusion matrices.
        """
        confusion, names = self.workers.confusion, [str(name) for name in self.worker_names]
        if confusion is None or self.alphabet is None:
            raise SettingsError(f"{self.method} estimates no confusion matrices", value=worker)
        if str(worker) not in names:
            raise SettingsError("there must be such a worker", value=worker, hint="Workers: workers_columns().")
        return confusion_plot(ax, self.alphabet.names, confusion[names.index(str(worker))].tolist())


def _evenly(names: Any, *columns: Any) -> tuple[list[str], list[list[float]]]:
    """Return names and rows of finite numbers in ascending order of the first one, at most `PLOTTED`."""
    table = np.column_stack(columns)
    order = [int(row) for row in np.argsort(table[:, 0], kind="stable") if np.isfinite(table[row]).all()]
    chosen = [
        order[place] for place in np.unique(np.linspace(0, max(len(order) - 1, 0), PLOTTED).astype(int))[: len(order)]
    ]
    return [str(names[row]) for row in chosen], table[chosen].tolist()
