"""Majority vote with the interface of crowd-kit."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.compat.crowdkit.answer_table import (
    COLUMNS,
    AnswerTable,
    FitsAndPredicts,
    load_pandas,
    read_answers,
    winners,
)
from crowdveil.errors import ReportsError, SettingsError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(eq=False)
class MajorityVote(FitsAndPredicts):
    """Shares of votes, plain or weighted by skills; the first of tied labels wins.

    Attributes:
        default_skill: skill of workers without one, under "value".
        on_missing_skill: "error", "ignore" (drop the answers of workers without skill) or "value".
        labels_: label by task.
        probas_: share of votes by task and label; votes over the size of their sum where skills are negative.
        skills_: share of each worker's answers that equal `labels_`.
    """

    default_skill: float | None = None
    on_missing_skill: str = "error"
    labels_: "pd.Series" = field(init=False, repr=False)
    probas_: "pd.DataFrame" = field(init=False, repr=False)
    skills_: "pd.Series" = field(init=False, repr=False)

    def fit(self, data: "pd.DataFrame", skills: "pd.Series | None" = None) -> Self:
        """Fit to answers (columns task, worker, label), with skills by worker.

        Raises:
            KeyError: a column is missing.
            ReportsError: a value is missing; or a worker (under "ignore": all workers of a task) has no skill.
            SettingsError: settings that contradict one another.
        """
        frame = data[COLUMNS]
        if not len(frame):
            pandas = load_pandas()
            self.labels_ = pandas.Series([], dtype="O", name="agg_label")
            self.probas_, self.skills_ = pandas.DataFrame(), pandas.Series(dtype=float, name="skill")
            return self
        table, weight = read_answers(frame), None
        if skills is not None:
            table, weight = self._weighted(frame, table, skills)
        shares = table.shares(weight)
        self.probas_ = table.by_task_and_label(shares)
        self.labels_ = table.label_series(shares)
        self.skills_ = table.by_worker(table.accuracy(winners(shares)), "skill")
        return self

    def _weighted(
        self, frame: "pd.DataFrame", table: AnswerTable, skills: "pd.Series"
    ) -> tuple[AnswerTable, NDArray[np.float64]]:
        """Return the answers that count, and the weight of each of their workers."""
        if self.on_missing_skill not in ("error", "ignore", "value"):
            raise SettingsError('on_missing_skill must be "error", "ignore" or "value"', value=self.on_missing_skill)
        if (self.default_skill is not None) != (self.on_missing_skill == "value"):
            raise SettingsError('default_skill goes with on_missing_skill="value"', value=self.default_skill)
        weight = skills.reindex(table.workers).to_numpy(dtype=float, copy=True)
        without = np.isnan(weight)
        if self.on_missing_skill == "value":
            weight[without] = self.default_skill
            return table, weight
        if not without.any():
            return table, weight
        rows = without[table.worker]
        if self.on_missing_skill == "error":
            raise ReportsError(
                f"{int(rows.sum())} answers have a worker without skill",
                source="skills",
                hint='Set on_missing_skill to "ignore" or "value".',
            )
        lost = len(table.tasks) - len(np.unique(table.task[~rows]))
        if lost:
            raise ReportsError(f"{lost} tasks have no worker with a skill", source="skills")
        return read_answers(frame[~rows]), weight[~without]
