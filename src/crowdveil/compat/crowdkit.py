"""Aggregators with the names of `crowdkit.aggregation` over crowdveil's own methods; needs pandas.

They read the columns task, worker (or performer) and label. Repeated answers of a worker to a task all count; missing
values are refused. Tasks, workers and labels are sorted in every result, and a tie goes to the first label.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from crowdveil.answers.reports import Reports
from crowdveil.arguments import require_choice, require_number, require_whole_number
from crowdveil.em.estimate import Estimate
from crowdveil.errors import SettingsError
from crowdveil.hints import advising_own_arguments
from crowdveil.registry import ESTIMATOR_ENTRIES

if TYPE_CHECKING:
    import pandas as pd

ROLES = ("task", "worker", "label")
"""Columns that are read if a frame has them; a frame without one of them has another usual name for it."""


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

    @advising_own_arguments
    def fit(self, data: "pd.DataFrame", true_labels: "pd.Series | None" = None) -> Self:
        """Fit to answers.

        Args:
            data: columns task, worker and label.
            true_labels: known labels by task.

        Raises:
            ReportsError: a column or a value is missing, or a known label is no label of the answers.
            SettingsError: a setting that the method refuses, or pandas is not installed.
        """
        reports = _reports_of(data)
        gold = None if true_labels is None else true_labels.dropna().to_dict()
        self._keep(reports, self._estimator().fit(reports, gold=gold))
        return self

    def fit_predict(self, data: "pd.DataFrame", true_labels: "pd.Series | None" = None) -> "pd.Series":
        """Fit and return `labels_`; arguments and errors as `fit`."""
        return self.fit(data, true_labels).labels_

    def fit_predict_proba(self, data: "pd.DataFrame", true_labels: "pd.Series | None" = None) -> "pd.DataFrame":
        """Fit and return `probas_`; arguments and errors as `fit`."""
        return self.fit(data, true_labels).probas_

    def _keep(self, reports: Reports, estimate: Estimate) -> None:
        """Set the results from an estimate."""
        tasks, workers = (_indexed(estimate.to_pandas(rows)) for rows in ("tasks", "workers"))
        self.labels_ = tasks["truth"].rename("agg_label")
        self.skills_ = workers.iloc[:, 0].rename("skill")
        self.probas_ = tasks.filter(regex="^probability_").set_axis(_labels_in_original_type(reports), axis=1)

    def _estimator(self) -> Any:
        if self.n_iter is not None:
            require_whole_number("n_iter", self.n_iter, least=1)
        if self.tol is not None:
            require_number("tol", self.tol)
        given = {"max_steps": self.n_iter, "tolerance": self.tol}
        return replace(
            ESTIMATOR_ENTRIES[self.method].import_class()(), **{k: v for k, v in given.items() if v is not None}
        )


def _reports_of(data: "pd.DataFrame") -> Reports:
    """Return the answers in a frame; columns are those of `ROLES`, or have another usual name."""
    columns = list(getattr(data, "columns", ()))
    stated: Any = {role: role for role in ROLES if role in columns}
    options: Any = {"kind": "categorical", "duplicates": "all"}
    return Reports.from_frame(data, **stated, **options)


def _indexed(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a frame by its first column, the names of tasks or workers."""
    return frame.set_index(frame.columns[0])


def _labels_in_original_type(reports: Reports) -> Any:
    """Return the labels in the type of the column that they were read from."""
    assert reports.alphabet is not None
    assert reports.original is not None
    values = reports.original.label_values(reports.alphabet.names)
    return list(reports.alphabet.names) if values is None else values.to_pylist()


@dataclass(eq=False)
class WeightedVote(Aggregator):
    """Method whose label of a task is that with the most weight of workers."""

    @advising_own_arguments
    def predict(self, data: "pd.DataFrame") -> "pd.Series":
        """Return the label by task in other answers, in which the workers of `fit` have the weights `skills_`.

        Raises:
            ReportsError: as `fit`.
            SettingsError: nothing was fitted, or a worker has no weight.
        """
        return _weighted_votes(data, self._fitted_skills())[1]

    @advising_own_arguments
    def predict_proba(self, data: "pd.DataFrame") -> "pd.DataFrame":
        """Return the share of the weight of each label by task; arguments and errors as `predict`."""
        return _weighted_votes(data, self._fitted_skills())[0]

    def _fitted_skills(self) -> "pd.Series":
        if not hasattr(self, "skills_"):
            raise SettingsError("predict needs the skills of a fit", value=None, hint="Call fit(data) first.")
        return self.skills_


def _weighted_votes(
    data: "pd.DataFrame", skills: "pd.Series", missing: str = "error", default: float | None = None
) -> "tuple[pd.DataFrame, pd.Series, pd.Series]":
    """Return the share of the weight of each label by task, the label by task, and each worker's agreement with it.

    Args:
        data: answers.
        skills: weight by worker.
        missing: whether a worker without a weight is refused ("error"), does not count ("ignore"), or has the default.
        default: that weight.
    """
    import pandas as pd

    reports = _reports_of(data)
    estimate = ESTIMATOR_ENTRIES["majority-vote"].import_class()().fit(reports)
    tasks, workers = (_indexed(estimate.to_pandas(rows)).index for rows in ("tasks", "workers"))
    weights = np.array(pd.to_numeric(skills.reindex(workers)), dtype=float)
    absent = np.isnan(weights)
    if absent.any() and missing == "error":
        raise SettingsError(
            "every worker needs a weight",
            value=list(map(str, workers[absent][:5])),
            hint="Leave out the answers of workers without one; MajorityVote(on_missing_skill='ignore') does so, and "
            "'value' gives them default_skill.",
        )
    weights[absent] = default if missing == "value" else 0
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise SettingsError("a weight must be a finite number from 0", value=weights.min(), hint="Rescale the weights.")
    task, worker, label = (np.asarray(codes) for codes in (reports.task, reports.worker, reports.value))
    names = _labels_in_original_type(reports)
    scores = np.zeros((len(tasks), len(names)))
    np.add.at(scores, (task, label), weights[worker])
    total = scores.sum(axis=1, keepdims=True)
    shares = np.divide(scores, total, out=np.full_like(scores, 1 / len(names)), where=total > 0)
    best = scores.argmax(axis=1)
    answers = np.bincount(worker, minlength=len(workers))
    agreement = np.bincount(worker, weights=best[task] == label, minlength=len(workers)) / answers
    return (
        pd.DataFrame(shares, index=tasks, columns=names),
        pd.Series(np.array(names, dtype=object)[best], index=tasks, name="agg_label").infer_objects(),
        pd.Series(agreement, index=workers, name="skill"),
    )


@dataclass(eq=False)
class MajorityVote(Aggregator):
    """`crowdveil.estimators.MajorityVote`; with weights of workers, the label with the most weight.

    Attributes:
        on_missing_skill: whether a worker without a weight is refused ("error"), does not count ("ignore"), or has the
            weight `default_skill` ("value").
        default_skill: that weight.
    """

    method = "majority-vote"
    on_missing_skill: str = field(default="error", kw_only=True)
    default_skill: float | None = field(default=None, kw_only=True)

    @advising_own_arguments
    def fit(self, data: "pd.DataFrame", skills: "pd.Series | None" = None) -> Self:
        """Fit to answers; errors as `Aggregator.fit`.

        Args:
            data: columns task, worker and label.
            skills: weight by worker; without them each answer counts one.
        """
        choices = ("error", "ignore", "value")
        require_choice("on_missing_skill", self.on_missing_skill, choices, hint="'value' needs default_skill.")
        if self.on_missing_skill == "value":
            require_number("default_skill", self.default_skill)
        if skills is None:
            return super().fit(data)
        self.probas_, self.labels_, self.skills_ = _weighted_votes(
            data, skills, self.on_missing_skill, self.default_skill
        )
        return self


class Wawa(WeightedVote):
    """`crowdveil.estimators.Wawa`."""

    method = "wawa"


class ZeroBasedSkill(WeightedVote):
    """`crowdveil.estimators.ZeroBasedSkill`."""

    method = "zero-based-skill"


class GoldMajorityVote(WeightedVote):
    """`crowdveil.estimators.GoldMajorityVote`."""

    method = "gold-majority-vote"


@dataclass(eq=False)
class DawidSkene(Aggregator):
    """`crowdveil.estimators.DawidSkene`.

    Attributes:
        errors_: P(label | truth), by worker and label, with a column for each truth.
        priors_: share of each label among the posteriors, by label.
    """

    method = "dawid-skene"
    errors_: "pd.DataFrame" = field(init=False, repr=False)
    priors_: "pd.Series" = field(init=False, repr=False)

    def _keep(self, reports: Reports, estimate: Estimate) -> None:
        import pandas as pd

        super()._keep(reports, estimate)
        assert estimate.workers.confusion is not None
        labels, workers = self.probas_.columns, self.skills_.index
        rows = pd.MultiIndex.from_product([workers, labels], names=[workers.name, "label"])
        by_label = estimate.workers.confusion.transpose(0, 2, 1).reshape(-1, len(labels))
        self.errors_ = pd.DataFrame(by_label, index=rows, columns=labels)
        self.priors_ = self.probas_.mean().rename("prior")


@dataclass(eq=False)
class OneCoinDawidSkene(DawidSkene):
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
