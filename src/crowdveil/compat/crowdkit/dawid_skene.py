"""Dawid-Skene with the interface of crowd-kit: maximum likelihood from a majority-vote start, no pseudo-counts.

The loss is the evidence lower bound per answer, with the class prior once per task:
    sum_t sum_z q_t(z) (log p(z) + sum_i log e_i(y_it | z) - log q_t(z)).
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.compat.crowdkit.answer_table import COLUMNS, AnswerTable, FitsAndPredicts, load_pandas, read_answers
from crowdveil.compat.crowdkit.initial_errors import add_initial_errors
from crowdveil.em.gold import one_hot_gold
from crowdveil.em.kernels.interface import ScoreTables

if TYPE_CHECKING:
    import pandas as pd

LEAST = 1e-10
"""Lower bound of sums and probabilities."""


@dataclass(eq=False)
class EmResults(FitsAndPredicts):
    """Settings and results of EM.

    Attributes:
        n_iter: largest number of iterations; 0 is the majority vote.
        tol: stop when the loss rises by less than this.
        initial_error_strategy: use of `initial_error`: "assign" replaces the first error matrices, "addition" adds to
            the expected counts behind them; None ignores it.
        labels_: label by task.
        probas_: posterior by task and label.
        priors_: class prior.
        errors_: P(answer | truth), rows (worker, answer) that occur, a column per truth.
        loss_history_: loss after each iteration; it never falls, but for rounding.
    """

    n_iter: int = 100
    tol: float = 1e-5
    initial_error_strategy: Literal["assign", "addition"] | None = None
    labels_: "pd.Series" = field(init=False, repr=False)
    probas_: "pd.DataFrame" = field(init=False, repr=False)
    priors_: "pd.Series" = field(init=False, repr=False)
    errors_: "pd.DataFrame" = field(init=False, repr=False)
    loss_history_: list[float] = field(init=False, repr=False)

    def _set_empty(self) -> Self:
        """Set the results of no answers."""
        pandas = load_pandas()
        self.probas_, self.errors_ = pandas.DataFrame(), pandas.DataFrame()
        self.priors_ = pandas.Series(dtype=float, name="prior")
        self.labels_ = pandas.Series(dtype=float, name="agg_label")
        return self

    def _set(self, table: AnswerTable, posterior: NDArray[np.float64], errors: NDArray[np.float64]) -> Self:
        """Set the results; `errors` is indexed [worker, answer, truth], nan for answers that do not occur."""
        pandas = load_pandas()
        self.probas_ = table.by_task_and_label(posterior)
        self.labels_ = table.label_series(posterior)
        self.priors_ = pandas.Series(posterior.mean(axis=0), table.labels.rename("label"), name="prior")
        worker, answer = np.nonzero(~np.isnan(errors[:, :, 0]))
        names = [table.workers.take(worker), table.labels.take(answer)]
        rows = pandas.MultiIndex.from_arrays(names, names=["worker", "label"])
        self.errors_ = pandas.DataFrame(errors[worker, answer], rows, table.labels.rename(None))
        return self

    def _settled(self, loss: float) -> bool:
        """Record a loss, and return whether it rose by less than the tolerance."""
        self.loss_history_.append(loss)
        return len(self.loss_history_) > 1 and loss - self.loss_history_[-2] < self.tol


@dataclass(eq=False)
class DawidSkene(EmResults):
    """Error matrix per worker and a learned class prior; attributes as in `EmResults`."""

    def fit(
        self,
        data: "pd.DataFrame",
        true_labels: "pd.Series | None" = None,
        initial_error: "pd.DataFrame | None" = None,
    ) -> Self:
        """Fit to answers.

        Args:
            data: answers, with the columns task, worker and label.
            true_labels: known labels by task, certain in every iteration.
            initial_error: error matrices or counts before the data, rows (worker, label), a column per truth;
                columns that are no label of the data do not count.

        Raises:
            KeyError: a column is missing.
            ReportsError: a value is missing.
            SettingsError: `initial_error` breaks a rule of its strategy.
        """
        frame = data[COLUMNS]
        if not len(frame):
            return self._set_empty()
        table = read_answers(frame, true_labels)
        gold = table.gold(true_labels)
        posterior = one_hot_gold(table.shares(), gold)
        sums = table.coded.confusion_sums(posterior)
        seen = _seen(table)
        counts = np.where(seen, sums.reshape(*seen.shape[:2], -1), np.nan)
        errors = normalize(add_initial_errors(counts, table, initial_error, self.initial_error_strategy))
        self.loss_history_ = []
        for _ in range(self.n_iter):
            prior = np.maximum(posterior.mean(axis=0), LEAST)
            scores = np.log(errors).reshape(-1, len(prior))
            tables = ScoreTables(np.nan_to_num(scores), np.log(prior)[None])
            step = table.coded.confusion_step(tables, np.zeros(len(posterior), np.int64), gold)
            posterior = step.posterior
            counts = np.where(seen, step.by_row.reshape(counts.shape), np.nan)
            errors = normalize(counts)
            if self._settled((float(np.nansum(counts * np.log(errors))) + class_part(posterior)) / len(table)):
                break
        return self._set(table, posterior, errors)


def _seen(table: AnswerTable) -> NDArray[np.bool_]:
    """Return which labels each worker gave, shape (workers, labels, 1)."""
    seen = np.zeros((len(table.workers), len(table.labels), 1), dtype=bool)
    seen[table.worker, table.label] = True
    return seen


def normalize(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return counts, [worker, answer, truth], over their sums by answer; nan stays and counts as nothing."""
    least = np.maximum(counts, LEAST)
    return np.asarray(least / np.nansum(least, axis=1, keepdims=True))


def class_part(posterior: NDArray[np.float64]) -> float:
    """Return sum_t sum_z q_t(z) (log p(z) - log q_t(z)) for the class prior p, the mean of q, [task, label]."""
    entropy = -float((posterior * np.log(np.maximum(posterior, LEAST))).sum())
    return entropy + float(posterior.sum(axis=0) @ np.log(np.maximum(posterior.mean(axis=0), LEAST)))
