"""One-coin Dawid-Skene with the interface of crowd-kit: one skill per worker and a learned class prior."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.compat.crowdkit.answer_table import COLUMNS, AnswerTable, read_answers
from crowdveil.compat.crowdkit.dawid_skene import LEAST, EmResults, class_part

if TYPE_CHECKING:
    import pandas as pd


@dataclass(eq=False)
class OneCoinDawidSkene(EmResults):
    """P(right) per worker, wrong answers uniform; attributes as in `EmResults`, and `skills_`, P(right) by worker."""

    skills_: "pd.Series" = field(init=False, repr=False)

    def fit(self, data: "pd.DataFrame") -> Self:
        """Fit to answers (columns task, worker, label).

        Raises:
            KeyError: a column is missing.
            ReportsError: a value is missing.
        """
        frame = data[COLUMNS]
        if not len(frame):
            return self._set_empty()
        table = read_answers(frame)
        coded, gold = table.coded, np.full(len(table.tasks), -1, np.int64)
        posterior = table.shares()
        skill = coded.agreement_sums(posterior) / coded.worker_counts
        self.loss_history_ = []
        for _ in range(self.n_iter):
            right, wrong = rates(skill, len(table.labels))
            prior = np.maximum(posterior.mean(axis=0), LEAST)
            step = coded.one_coin_step(np.log(right) - np.log(wrong), np.log(prior), gold)
            posterior, skill = step.posterior, step.agreement / coded.worker_counts
            right, wrong = rates(skill, len(table.labels))
            answers = coded.worker_counts * (skill * np.log(right) + (1 - skill) * np.log(wrong))
            if self._settled((float(answers.sum()) + class_part(posterior)) / len(table)):
                break
        self.skills_ = table.by_worker(skill, "skill")
        return self._set(table, posterior, error_matrices(table, skill))


def rates(skill: NDArray[np.float64], labels: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return P(right) and P(one wrong label), inside (0, 1)."""
    wrong = (1 - skill) / max(labels - 1, 1)
    return np.clip(skill, LEAST, 1 - LEAST), np.clip(wrong, LEAST, 1 - LEAST)


def error_matrices(table: AnswerTable, skill: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(answer | truth), [worker, answer, truth], nan for answers that do not occur."""
    labels = len(table.labels)
    right, wrong = rates(skill, labels)
    errors = np.full((len(skill), labels, labels), np.nan)
    errors[table.worker, table.label] = wrong[table.worker, None]
    errors[table.worker, table.label, table.label] = right[table.worker]
    return errors
