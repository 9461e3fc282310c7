"""Answers of a pandas frame as integer codes, with the kernels' sums and the frames and series of results."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.data.blocks import Block, InMemoryRows
from crowdveil.data.ingest.sorting import sort_columns, sort_packed
from crowdveil.em.estimate import TIE
from crowdveil.em.kernels.dispatch import encode, use_compiled
from crowdveil.em.kernels.numpy_backend import EncodedBlock
from crowdveil.errors import CrowdveilError, ReportsError

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ["task", "worker", "label"]
MAX_LABELS = np.iinfo(np.int16).max


class NotFittedError(CrowdveilError, ValueError, AttributeError):
    """A result was asked of an aggregator before `fit`."""


class FitsAndPredicts:
    """Results of `fit` in one call."""

    fit: Any
    labels_: "pd.Series"
    probas_: "pd.DataFrame"

    def fit_predict(self, data: "pd.DataFrame", *known: Any, **named: Any) -> "pd.Series":
        """Fit and return `labels_`; arguments and errors as `fit`."""
        labels: pd.Series = self.fit(data, *known, **named).labels_
        return labels

    def fit_predict_proba(self, data: "pd.DataFrame", *known: Any, **named: Any) -> "pd.DataFrame":
        """Fit and return `probas_`; arguments and errors as `fit`."""
        probabilities: pd.DataFrame = self.fit(data, *known, **named).probas_
        return probabilities


def load_pandas() -> Any:
    """Return pandas.

    Raises:
        ImportError: pandas is not installed; the message has the command that installs it.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError("crowdveil.compat.crowdkit needs pandas. Run: pip install 'crowdveil[pandas]'") from error
    return pandas


@dataclass(frozen=True, eq=False)
class AnswerTable:
    """Answers in the caller's order, as codes.

    Attributes:
        tasks, workers, labels: identifiers in code order, sorted where they can be.
        task, worker, label: codes, int32, int32 and int16, shape (answers,).
    """

    tasks: "pd.Index"
    workers: "pd.Index"
    labels: "pd.Index"
    task: NDArray[np.int32]
    worker: NDArray[np.int32]
    label: NDArray[np.int16]

    def __len__(self) -> int:
        """Number of answers."""
        return len(self.task)

    @cached_property
    def _sorted(self) -> tuple[InMemoryRows, bool]:
        """Answers in canonical order, and whether a worker answered a task more than once."""
        sizes = (len(self.tasks), len(self.workers), len(self.labels))
        packed = sort_packed(self.task, self.worker, self.label, sizes)
        if packed is not None:
            return InMemoryRows(packed.task, packed.worker, packed.value, len(self.tasks)), packed.repeats
        task, worker, label = sort_columns(self.task, self.worker, self.label)
        repeats = bool(((task[1:] == task[:-1]) & (worker[1:] == worker[:-1])).any())
        return InMemoryRows(task, worker, label, len(self.tasks)), repeats

    @property
    def has_repeats(self) -> bool:
        """Whether a worker answered a task more than once."""
        return self._sorted[1]

    @property
    def block(self) -> Block:
        """All answers, sorted by task."""
        return self._sorted[0].block(0, len(self.tasks))

    @cached_property
    def coded(self) -> EncodedBlock:
        """All answers, encoded for their sums."""
        return encode(self.block, len(self.workers), len(self.labels), compiled=use_compiled(len(self)))

    @cached_property
    def distinct(self) -> "AnswerTable":
        """The answers without equal ones of a worker to a task."""
        if not self.has_repeats:
            return self
        rows = np.unique(np.stack((self.task, self.worker, self.label.astype(np.int32))), axis=1)
        return AnswerTable(self.tasks, self.workers, self.labels, rows[0], rows[1], rows[2].astype(np.int16))

    def votes(self, weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the sum of the weights of the workers who gave each label, [task, label]; by default of ones."""
        return self.coded.vote_sums(np.ones(len(self.workers)) if weight is None else weight)

    def shares(self, weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return votes over the size of their sum, [task, label]; plain votes where that is 0."""
        votes = self.votes(weight)
        nothing = votes.sum(axis=1) == 0
        if nothing.any():
            votes[nothing] = self.votes()[nothing]
        return votes / np.abs(votes.sum(axis=1, keepdims=True))

    def accuracy(self, truth: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return each worker's share of distinct answers that equal the label codes `truth`, shape (workers,)."""
        coded, one_hot = self.distinct.coded, np.zeros((len(self.tasks), len(self.labels)))
        one_hot[np.arange(len(truth)), truth] = 1.0
        return np.asarray(coded.agreement_sums(one_hot) / coded.worker_counts)

    def gold(self, true_labels: "pd.Series | None") -> NDArray[np.int64]:
        """Return the label code of each task, -1 for unknown, shape (tasks,); the last of several truths counts."""
        codes = np.full(len(self.tasks), -1, dtype=np.int64)
        if true_labels is not None:
            known = true_labels.dropna()
            task = self.tasks.get_indexer(known.index)
            codes[task[task >= 0]] = self.labels.get_indexer(known)[task >= 0]
        return codes

    def by_task_and_label(self, values: NDArray[np.float64]) -> "pd.DataFrame":
        """Return a frame from an array [task, label]."""
        return load_pandas().DataFrame(values, self.tasks.rename("task"), self.labels.rename("label"))

    def label_series(self, values: NDArray[np.float64]) -> "pd.Series":
        """Return the label with the largest value in [task, label]; the first of tied ones."""
        return load_pandas().Series(self.labels.take(winners(values)), self.tasks.rename("task"), name="agg_label")

    def by_worker(self, values: NDArray[np.float64], name: str) -> "pd.Series":
        """Return a series by worker."""
        return load_pandas().Series(values, self.workers.rename("worker"), name=name)


def winners(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the column of each row's largest value; the first of tied ones."""
    largest = values.max(axis=1, keepdims=True)
    return np.argmax(values >= largest - TIE * np.abs(largest), axis=1)


def read_answers(data: "pd.DataFrame", true_labels: "pd.Series | None" = None) -> AnswerTable:
    """Return the answers of a frame with the columns task, worker and label, at least one row.

    Args:
        data: the frame.
        true_labels: known labels by task; those that nobody gave count as labels too.

    Raises:
        KeyError: a column is missing.
        ReportsError: no rows, a missing value, or more than 32767 labels.
    """
    pandas = load_pandas()
    frame = data[COLUMNS]
    if not len(frame):
        raise ReportsError("there must be at least one answer")
    labels = _plain(frame["label"])
    if true_labels is not None:
        known = true_labels[true_labels.index.isin(frame["task"])].dropna()
        unseen = known[~known.isin(labels)]
        labels = pandas.concat([labels, unseen]) if len(unseen) else labels
    coded = [_factorize(column) for column in (_plain(frame["task"]), _plain(frame["worker"]), labels)]
    missing = int(sum((codes < 0).sum() for codes, _ in coded))
    if missing:
        raise ReportsError(f"{missing} values are missing", source="data", hint="Drop the rows: data.dropna().")
    if len(coded[2][1]) > MAX_LABELS:
        raise ReportsError(f"there may be at most {MAX_LABELS} labels", source="data")
    (task, tasks), (worker, workers), (label, names) = coded
    columns = task.astype(np.int32), worker.astype(np.int32), label[: len(frame)].astype(np.int16)
    table = AnswerTable(tasks, workers, names, *columns)
    if table.has_repeats:
        warnings.warn("A worker answered a task more than once; every answer is counted.", UserWarning, stacklevel=3)
    return table


def _plain(column: "pd.Series") -> "pd.Series":
    """Return a categorical column as its values."""
    categories = getattr(column.dtype, "categories", None)
    return column if categories is None else column.astype(categories.dtype)


def _factorize(column: "pd.Series") -> tuple[NDArray[np.intp], "pd.Index"]:
    """Return codes and identifiers, sorted if they can be compared."""
    pandas = load_pandas()
    try:
        codes, names = pandas.factorize(column, sort=True)
    except TypeError:
        codes, names = pandas.factorize(column)
    return codes, pandas.Index(names)
