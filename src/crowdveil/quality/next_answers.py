"""Next answers to buy, from reports: a fit, the likelihood of one more report, and the choice of pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.evidence import Evidence
from crowdveil.answers.identifiers import immutable_identifiers, index_of
from crowdveil.answers.ingest.column_readers import ReportColumns
from crowdveil.answers.reports import Reports
from crowdveil.channels.channel import Channel, retained_share
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.em.estimate import Estimate
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators.confusion.truth_tables import ERROR_CORRELATION
from crowdveil.estimators.hierarchical_dawid_skene import HierarchicalDawidSkene
from crowdveil.hints import advice
from crowdveil.inference.infer import Inference
from crowdveil.inference.panel.fit import refuse_unmappable_answers
from crowdveil.quality.answer_selection import FIRST_REPORTS, CrowdState, NextAnswers, next_answers

EVEN_SHARES = 3
"""Default bound on the answers of a worker, in even shares of the budget."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Purchase:
    """Answers to buy with their names.

    Attributes:
        estimate: fit on which the gains rest.
        workers: names of all workers who can be asked.
        chosen: answers, in the order of choice; workers are codes of `workers`.
        per_worker: largest number of answers of a worker.
        budget: number of answers that were asked for.
        epsilon_per_answer: epsilon of each further report through the channel; None without a channel.
    """

    estimate: Estimate
    workers: tuple[str, ...]
    chosen: NextAnswers
    per_worker: int
    budget: int
    epsilon_per_answer: float | None

    def columns(self) -> dict[str, NDArray[np.generic]]:
        """Return columns task, worker, expected_gain, information, reports (of the task so far), and reason."""
        task, gain = self.chosen.task, self.chosen.expected_gain
        return {
            "task": np.array([str(self.estimate.tasks[code]) for code in task.tolist()], dtype=np.str_),
            "worker": np.array([self.workers[code] for code in self.chosen.worker.tolist()], dtype=np.str_),
            "expected_gain": gain,
            "information": self.chosen.information,
            "reports": np.asarray(self.estimate.reports_per_task)[task],
            "reason": np.array(
                list(map(self._two_most_probable_labels_text, task.tolist(), gain.tolist())), dtype=np.str_
            ),
        }

    def _two_most_probable_labels_text(self, task: int, gain: float) -> str:
        """Return the two most probable labels of a task with their probabilities, and whether one answer is enough."""
        alphabet, posterior = self.estimate.alphabet, self.estimate.posterior[task]
        assert alphabet is not None
        first, second = np.argsort(-posterior, kind="stable")[:2].tolist()
        few = "few answers; " if self.estimate.reports_per_task[task] < FIRST_REPORTS else ""
        shares = (f"{alphabet.names[label]} {posterior[label]:.0%}".replace("%", " %") for label in (first, second))
        return few + " or ".join(shares) + ("" if gain else "; several answers can change it, one cannot")


def choose_next(
    inference: Inference, workers: Sequence[Any] | None = None, *, budget: int, per_worker: int | None = None
) -> Purchase:
    """Return the answers to buy, at most one for each task; tasks with a known truth are left out.

    Args:
        inference: of the reports so far; `require_next_answer` has passed them.
        workers: names of the workers who can be asked; new ones count as an average worker. None for all of the
            reports.
        budget: number of answers.
        per_worker: largest number of answers of a worker; by default three even shares of the budget.

    Raises:
        SettingsError: a method without probabilities or worker abilities, several channels, or all cells are used.
    """
    estimate, evidence = inference.estimate, inference.evidence
    channel = channel_of_further_reports(evidence)
    listed = estimate.worker_names.tolist() if workers is None else workers
    names = tuple(dict.fromkeys(map(str, listed)))
    bound = per_worker or max(1, -(-EVEN_SHARES * budget // max(1, len(names))))
    correlation = _assumed_error_correlation(evidence, inference.estimator)
    state = _crowd_state_of_named_workers(estimate, names, channel, correlation)
    return Purchase(
        estimate=estimate,
        workers=names,
        chosen=next_answers(
            state,
            _asked_cells_as_reports(evidence, names),
            budget=budget,
            tasks=_tasks_without_gold(estimate),
            per_worker=bound,
        ),
        per_worker=bound,
        budget=budget,
        epsilon_per_answer=None if channel is None else channel.epsilon,
    )


def _tasks_without_gold(estimate: Estimate) -> NDArray[np.int64]:
    """Return the codes of the tasks whose truth is not known.

    Raises:
        SettingsError: there are none.
    """
    if estimate.gold is None:
        return np.arange(len(estimate.tasks))
    if estimate.gold.all():
        raise SettingsError(
            "a task to ask must have no known truth",
            value=f"{estimate.gold_used:,} of them known",
            hint="Leave gold out, or give answers to other tasks too.",
        )
    return np.flatnonzero(~estimate.gold)


def require_next_answer(evidence: Evidence, gold: Mapping[Any, Any] | None = None) -> None:
    """Refuse reports after which no answer can be chosen; arguments and errors as `choose_next`."""
    channel_of_further_reports(evidence)
    if evidence.truths:
        refuse_unmappable_answers(evidence, gold)
    elif evidence.channel is None and evidence.reports.alphabet is None:
        raise SettingsError(
            "next answers are chosen for labels only, these are numbers",
            value="numbers",
            hint="The columns interval_low and interval_high of truths.csv show which numbers are uncertain; "
            + advice("with labels of their own ({truths}), answers can be chosen.", truths=["no", "yes"]),
        )


def channel_of_further_reports(evidence: Evidence) -> Channel | None:
    """Return the channel of further reports, None for answers; refuse where there is none or no cell is left."""
    channel = evidence.channel
    if isinstance(channel, ChannelTable):
        raise SettingsError("gains are computed for one channel, not for a table of them", value=channel.mechanism)
    if channel is not None and channel.protects_participation and evidence.assignment is None:
        raise SettingsError(
            "every worker has reported on every task: there is no further answer to ask",
            value=f"participation {channel.participation}",
            hint="Ask more workers in a separate collection, or assign tasks (crowdveil data assign).",
        )
    if channel is None and evidence.collection is not None:
        raise ReportsError(
            "gains from protected reports need their channel",
            source="reports",
            examples=evidence.no_channel_reason,
            hint="Keep certificate.json and crowd.json next to the reports.",
        )
    return channel


def _assumed_error_correlation(evidence: Evidence, estimator: object) -> float:
    if evidence.truths:
        return ERROR_CORRELATION
    return estimator.error_correlation if isinstance(estimator, HierarchicalDawidSkene) else 0.0


def _crowd_state_of_named_workers(
    estimate: Estimate, names: tuple[str, ...], channel: Channel | None, correlation: float
) -> CrowdState:
    """Return the state of the crowd with these workers."""
    confusion, rates = _confusion_matrices(estimate), estimate.workers.participation
    place = index_of(estimate.worker_names, dict.fromkeys(names))
    average = np.average(confusion, axis=0, weights=np.maximum(estimate.reports_per_worker, 1))
    matrices = np.stack([confusion[place[name]] if name in place else average for name in names])
    rate = np.array([1.0 if rates is None or name not in place else rates[place[name]] for name in names])
    retention = 1.0 if channel is None or channel.is_identity else retained_share(channel)
    return CrowdState(
        posterior=estimate.posterior,
        reports=np.asarray(estimate.reports_per_task) * retention**2,
        likelihood=_report_likelihoods(matrices, rate, channel),
        error_correlation=correlation,
    )


def _confusion_matrices(estimate: Estimate) -> NDArray[np.float64]:
    """Return P(answer | truth), indexed [worker, truth, answer]; from abilities, errors are even over labels.

    Raises:
        SettingsError: numbers, or a method without probabilities or without abilities.
    """
    if estimate.workers.confusion is not None and estimate.probabilistic:
        return estimate.workers.confusion
    if not estimate.categorical or not estimate.probabilistic or estimate.workers.quality_name != "ability":
        raise SettingsError(
            "gains need labels, and a method with probabilities and abilities of workers",
            value=estimate.method,
            hint="Use the method hierarchical-dawid-skene.",
        )
    labels = estimate.posterior.shape[1]
    ability = np.nan_to_num(estimate.workers.quality, nan=1 / labels)[:, None, None]
    return np.asarray(ability * np.eye(labels) + (1 - ability) * (1 - np.eye(labels)) / (labels - 1))


def _report_likelihoods(
    confusion: NDArray[np.float64], participation: NDArray[np.float64], channel: Channel | None
) -> NDArray[np.float64]:
    """Return P(report | truth), indexed [worker, truth, report]; with protected participation NULL is an answer."""
    if channel is None:
        return confusion
    if channel.protects_participation:
        rate = participation[:, None, None]
        silent = np.broadcast_to(1 - rate, (*confusion.shape[:2], 1))
        confusion = np.concatenate((rate * confusion, silent), axis=2)
    return np.asarray(confusion @ channel.probabilities)


def _asked_cells_as_reports(evidence: Evidence, names: tuple[str, ...]) -> Reports:
    """Return the cells that were asked, as reports whose workers are `names`."""
    reports, assignment = evidence.reports, evidence.assignment
    place = index_of(immutable_identifiers(np.array(names)), dict.fromkeys(map(str, reports.workers.tolist())))
    code = np.array([place.get(str(name), -1) for name in reports.workers.tolist()], dtype=np.int64)
    if assignment is None:
        task, worker = np.asarray(reports.task), np.asarray(reports.worker)
    else:
        cells = assignment.recoded_cells(np.asarray(reports.tasks), np.asarray(reports.workers))
        task, worker = np.divmod(cells, len(reports.workers))
    if evidence.skipped is not None:
        skipped = _skipped_cells(evidence.skipped, reports)
        task, worker = np.append(task, skipped[0]), np.append(worker, skipped[1])
    known = code[worker] >= 0
    kept = task[known].astype(np.int32), code[worker][known].astype(np.int32)
    return Reports(*kept, np.zeros(len(kept[0])), reports.tasks, np.array(names))


def _skipped_cells(skipped: ReportColumns, reports: Reports) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the codes of task and worker of the cells that a worker left without an answer."""
    found = []
    for column, identifiers in ((skipped.task, reports.tasks), (skipped.worker, reports.workers)):
        names = [str(name) for name in column.names.tolist()]
        place = index_of(immutable_identifiers(np.asarray(identifiers)), dict.fromkeys(names))
        found.append(np.array([place.get(name, -1) for name in names], dtype=np.int64)[column.codes])
    known = (found[0] >= 0) & (found[1] >= 0)
    return found[0][known], found[1][known]
