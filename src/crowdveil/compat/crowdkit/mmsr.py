"""M-MSR with the interface and the random start of crowd-kit, on pairs of workers with a common task."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.compat.crowdkit.answer_table import COLUMNS, AnswerTable, NotFittedError, read_answers
from crowdveil.compat.crowdkit.majority_vote import MajorityVote
from crowdveil.estimators.voting.mmsr import Agreement, agreement, signs, trimmed_means
from crowdveil.estimators.voting.worker_pairs import pairs_of_block

if TYPE_CHECKING:
    import pandas as pd


@dataclass(eq=False)
class MMSR:
    """Skills by robust rank-one completion of the workers' agreement, then one weighted vote.

    Attributes:
        n_iter: largest number of iterations.
        tol: stop when the completed matrix changes by less than this (Frobenius norm).
        random_state: seed of the start.
        labels_: label by task.
        skills_: log-odds of a right answer by worker.
        scores_: votes weighted by skills over the size of their sum, by task and label.
        loss_history_: change in each iteration.
    """

    n_iter: int = 10000
    tol: float = 1e-10
    random_state: int | None = 0
    labels_: "pd.Series" = field(init=False, repr=False)
    skills_: "pd.Series" = field(init=False, repr=False)
    scores_: "pd.DataFrame" = field(init=False, repr=False)
    loss_history_: list[float] = field(init=False, repr=False)

    def fit(self, data: "pd.DataFrame") -> Self:
        """Set `skills_`.

        Raises:
            KeyError: a column is missing.
            ReportsError: a value is missing.
        """
        table = read_answers(data[COLUMNS])
        workers, others = len(table.workers), max(len(table.labels) - 1, 1)
        pairs = pairs_of_block(table.block, workers)
        entries = agreement(pairs, workers, others + 1)
        known = np.bincount(entries.row, minlength=workers) > 0
        margin = min(1 / np.sqrt(len(table.tasks)), 0.5)
        skill = np.clip(self._sizes(entries, table, margin) * signs(entries, workers), margin - 1 / others, 1 - margin)
        skill[~known] = skill[known].mean() if known.any() else 1 - margin
        right = (skill * others + 1) / (others + 1)
        self.skills_ = table.by_worker(np.log(right * others / (1 - right)), "skill")
        return self

    def predict(self, data: "pd.DataFrame") -> "pd.Series":
        """Return `labels_` of the answers; errors as `MajorityVote.fit`, NotFittedError before `fit`."""
        return self._apply(data).labels_

    def predict_score(self, data: "pd.DataFrame") -> "pd.DataFrame":
        """Return `scores_` of the answers; errors as `predict`."""
        return self._apply(data).scores_

    def fit_predict(self, data: "pd.DataFrame") -> "pd.Series":
        """Fit, and return `labels_` of the same answers."""
        return self.fit(data).predict(data)

    def fit_predict_score(self, data: "pd.DataFrame") -> "pd.DataFrame":
        """Fit, and return `scores_` of the same answers."""
        return self.fit(data).predict_score(data)

    def _apply(self, data: "pd.DataFrame") -> Self:
        if not hasattr(self, "skills_"):
            raise NotFittedError("MMSR has no skills yet: call fit first.")
        vote = MajorityVote().fit(data, self.skills_)
        self.labels_, self.scores_ = vote.labels_, vote.probas_
        return self

    def _sizes(self, entries: Agreement, table: AnswerTable, smallest: float) -> NDArray[np.float64]:
        """Return |s| of each worker by alternating trimmed means, shape (workers,)."""
        degree = np.bincount(entries.row, minlength=len(table.workers))
        trimmed = max(int(degree.min()) // 2 - 1, 0)
        first = np.random.RandomState(self.random_state).uniform(size=len(degree))
        u, v, size = first, first, np.abs(entries.value)
        self.loss_history_ = []
        for _ in range(self.n_iter):
            before = u, v
            v = trimmed_means(entries.row, size / np.where(u > 0, u, smallest)[entries.column], v, trimmed)
            u = trimmed_means(entries.row, size / np.where(v > 0, v, smallest)[entries.column], u, trimmed)
            self.loss_history_.append(product_change(u, v, *before))
            if self.loss_history_[-1] < self.tol:
                break
        return np.asarray(u * np.sqrt(np.linalg.norm(v) / np.linalg.norm(u)))


def product_change(
    u: NDArray[np.float64], v: NDArray[np.float64], u_before: NDArray[np.float64], v_before: NDArray[np.float64]
) -> float:
    """Return the Frobenius norm of u v^T - u_before v_before^T without the matrix."""
    du, dv = u - u_before, v - v_before
    square = (du @ du) * (v @ v) + (u_before @ u_before) * (dv @ dv) + 2 * (du @ u_before) * (v @ dv)
    return float(np.sqrt(np.maximum(square, 0.0)))
