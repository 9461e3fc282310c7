"""Aggregators with the names of `crowdkit.aggregation` over crowdveil's own methods; needs pandas.

They read the columns task, worker and label. Repeated answers of a worker to a task all count; missing values are
refused. Tasks, workers and labels are sorted in every result, and a tie goes to the first label.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from crowdveil.data.reports import Reports
from crowdveil.registry import ESTIMATOR_ENTRIES

if TYPE_CHECKING:
    import pandas as pd


@dataclass(eq=False)
class Aggregator:
    """Method of truth inference as a mutable object with the results of `fit`.

    Attributes:
        n_iter: largest number of steps; None for that of the method.
        tol: change of a posterior below which the fit ends; None for that of the method.
        labels_: label by task.
        probas_: posterior by task and label; nan where the method has none.
        skills_: ability, or weight, by worker.
    """

    method: ClassVar[str]
    n_iter: int | None = None
    tol: float | None = None
    labels_: "pd.Series" = field(init=False, repr=False)
    probas_: "pd.DataFrame" = field(init=False, repr=False)
    skills_: "pd.Series" = field(init=False, repr=False)

    def fit(self, data: "pd.DataFrame", true_labels: "pd.Series | None" = None) -> Self:
        """Fit to answers.

        Args:
            data: columns task, worker and label.
            true_labels: known labels by task.

        Raises:
            ReportsError: a column or a value is missing, or a known label is no label of the answers.
            SettingsError: a setting that the method refuses, or pandas is not installed.
        """
        stated: Any = {"kind": "categorical", "duplicates": "all"}
        reports = Reports.from_frame(data, task="task", worker="worker", label="label", **stated)
        gold = None if true_labels is None else true_labels.dropna().to_dict()
        estimate = self._estimator().fit(reports, gold=gold)
        tasks, workers = (estimate.to_pandas(rows).set_index(rows[:-1]) for rows in ("tasks", "workers"))
        self.labels_ = tasks["truth"].rename("agg_label")
        self.skills_ = workers.iloc[:, 0].rename("skill")
        self.probas_ = tasks.filter(regex="^probability_").set_axis(_labels_in_original_type(reports), axis=1)
        return self

    def fit_predict(self, data: "pd.DataFrame", true_labels: "pd.Series | None" = None) -> "pd.Series":
        """Fit and return `labels_`; arguments and errors as `fit`."""
        return self.fit(data, true_labels).labels_

    def fit_predict_proba(self, data: "pd.DataFrame", true_labels: "pd.Series | None" = None) -> "pd.DataFrame":
        """Fit and return `probas_`; arguments and errors as `fit`."""
        return self.fit(data, true_labels).probas_

    def _estimator(self) -> Any:
        given = {"max_steps": self.n_iter, "tolerance": self.tol}
        return replace(
            ESTIMATOR_ENTRIES[self.method].import_class()(), **{k: v for k, v in given.items() if v is not None}
        )


def _labels_in_original_type(reports: Reports) -> Any:
    """Return the labels in the type of the column that they were read from."""
    assert reports.alphabet is not None
    assert reports.original is not None
    values = reports.original.label_values(reports.alphabet.names)
    return list(reports.alphabet.names) if values is None else values.to_pylist()


class MajorityVote(Aggregator):
    """`crowdveil.estimators.MajorityVote`."""

    method = "majority-vote"


class Wawa(Aggregator):
    """`crowdveil.estimators.Wawa`."""

    method = "wawa"


class ZeroBasedSkill(Aggregator):
    """`crowdveil.estimators.ZeroBasedSkill`."""

    method = "zero-based-skill"


class GoldMajorityVote(Aggregator):
    """`crowdveil.estimators.GoldMajorityVote`."""

    method = "gold-majority-vote"


class DawidSkene(Aggregator):
    """`crowdveil.estimators.DawidSkene`."""

    method = "dawid-skene"


class OneCoinDawidSkene(Aggregator):
    """`crowdveil.estimators.OneCoin`."""

    method = "one-coin"


class KOS(Aggregator):
    """`crowdveil.estimators.Kos`."""

    method = "kos"


class MACE(Aggregator):
    """`crowdveil.estimators.Mace`."""

    method = "mace"


class GLAD(Aggregator):
    """`crowdveil.estimators.Glad`."""

    method = "glad"
