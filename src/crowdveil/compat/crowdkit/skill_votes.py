"""Votes weighted by worker skills with the interface of crowd-kit: Wawa, Zero-Based Skill, Gold Majority Vote."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from crowdveil.compat.crowdkit.answer_table import COLUMNS, NotFittedError, load_pandas, read_answers, winners
from crowdveil.compat.crowdkit.majority_vote import MajorityVote
from crowdveil.errors import SettingsError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(eq=False)
class FittedSkills:
    """Prediction by votes that fitted skills weight.

    Attributes:
        skills_: skill by worker, after `fit`.
        labels_, probas_: results of the last prediction, as in `MajorityVote`.
    """

    fit: ClassVar[Any]
    labels_: "pd.Series" = field(init=False, repr=False)
    skills_: "pd.Series" = field(init=False, repr=False)
    probas_: "pd.DataFrame" = field(init=False, repr=False)

    def predict(self, data: "pd.DataFrame") -> "pd.Series":
        """Return `labels_` of the answers; errors as `MajorityVote.fit`, NotFittedError before `fit`."""
        return self._apply(data).labels_

    def predict_proba(self, data: "pd.DataFrame") -> "pd.DataFrame":
        """Return `probas_` of the answers; errors as `predict`."""
        return self._apply(data).probas_

    def fit_predict(self, data: "pd.DataFrame", *known: Any, **named: Any) -> "pd.Series":
        """Fit, and return `labels_` of the same answers; arguments and errors as `fit`."""
        fitted: Self = self.fit(data, *known, **named)
        return fitted.predict(data)

    def fit_predict_proba(self, data: "pd.DataFrame", *known: Any, **named: Any) -> "pd.DataFrame":
        """Fit, and return `probas_` of the same answers; arguments and errors as `fit`."""
        fitted: Self = self.fit(data, *known, **named)
        return fitted.predict_proba(data)

    def _apply(self, data: "pd.DataFrame") -> Self:
        if not hasattr(self, "skills_"):
            raise NotFittedError(f"{type(self).__name__} has no skills yet: call fit first.")
        vote = MajorityVote().fit(data, self.skills_)
        self.labels_, self.probas_ = vote.labels_, vote.probas_
        return self


@dataclass(eq=False)
class Wawa(FittedSkills):
    """Votes weighted by agreement with the majority; attributes as in `FittedSkills`."""

    def fit(self, data: "pd.DataFrame") -> Self:
        """Set `skills_` to the shares of answers that equal the majority; errors as `MajorityVote.fit`."""
        self.skills_ = MajorityVote().fit(data).skills_
        return self


@dataclass(eq=False)
class ZeroBasedSkill(FittedSkills):
    """Votes and skills in turn, from skills 1 / K + `eps`.

    Attributes:
        n_iter: number of steps.
        lr_init: learning rate at first.
        lr_steps_to_reduce: steps after which the rate is multiplied by `lr_reduce_factor`.
        lr_reduce_factor: see there.
        eps: initial skill above chance.
    """

    n_iter: int = 100
    lr_init: float = 1.0
    lr_steps_to_reduce: int = 20
    lr_reduce_factor: float = 0.5
    eps: float = 1e-5

    def fit(self, data: "pd.DataFrame") -> Self:
        """Set `skills_`; errors as `MajorityVote.fit`."""
        frame = data[COLUMNS]
        if not len(frame):
            self.skills_ = load_pandas().Series(dtype=float, name="skill")
            return self
        table = read_answers(frame)
        skill, rate = np.full(len(table.workers), 1 / len(table.labels) + self.eps), self.lr_init
        for step in range(1, self.n_iter + 1):
            if step % self.lr_steps_to_reduce == 0:
                rate *= self.lr_reduce_factor
            skill = skill + rate * (table.accuracy(winners(table.shares(skill))) - skill)
        self.skills_ = table.by_worker(skill, "skill")
        return self


@dataclass(eq=False)
class GoldMajorityVote(FittedSkills):
    """Votes weighted by accuracy on tasks with known labels; attributes as in `FittedSkills`."""

    def fit(self, data: "pd.DataFrame", true_labels: "pd.Series") -> Self:
        """Set `skills_` of the workers who answered a task with a known label.

        Args:
            data: answers, with the columns task, worker and label.
            true_labels: known labels by task; a task may have several right ones.

        Raises:
            SettingsError: no answer is to a task with a known label.
            KeyError, ReportsError: as `MajorityVote.fit`.
        """
        frame = data[COLUMNS]
        if not len(frame):
            self.skills_ = load_pandas().Series(dtype=float, name="skill")
            return self
        table, known = read_answers(frame), true_labels.dropna()
        task, label = table.tasks.get_indexer(known.index), table.labels.get_indexer(known)
        right, asked = np.zeros((2, len(table.tasks), len(table.labels)))
        asked[task[task >= 0]] = 1.0
        both = (task >= 0) & (label >= 0)
        right[task[both], label[both]] = 1.0
        answers = table.distinct.coded.agreement_sums(asked)
        if not answers.any():
            raise SettingsError("true_labels must name a task of the data", value=len(known))
        share = np.divide(table.distinct.coded.agreement_sums(right), answers, where=answers > 0, out=answers * 0)
        self.skills_ = table.by_worker(share, "skill")[answers > 0]
        return self
