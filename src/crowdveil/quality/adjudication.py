"""Tasks that a person should decide: uncertain truths, and truths against the votes, with reasons and answers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.evidence import Evidence
from crowdveil.answers.ingest.gold_files import PROPOSED
from crowdveil.em.estimate import Estimate
from crowdveil.errors import SettingsError
from crowdveil.inference.infer import Inference

CONFIDENCE = 0.8
"""Confidence below which a person should decide."""
WORKERS_SHOWN = 20
LABELS_SHOWN = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Adjudication:
    """Tasks to decide, the least certain first.

    Attributes:
        estimate: fit that proposes truths.
        below: confidence below which a task is to be decided.
        tasks: their codes.
        found: number of all tasks to decide, of which `tasks` may be the first.
        reasons: why, by task.
        answers: labels with their workers, by task.
        answers_name: column of these: answers, or reports of a channel.
    """

    estimate: Estimate
    below: float
    tasks: NDArray[np.int64]
    found: int
    reasons: tuple[str, ...]
    answers: tuple[str, ...]
    answers_name: str

    def columns(self) -> dict[str, NDArray[np.generic]]:
        """Return columns task, truth (empty, for the decision), proposed truth, confidence, reason and answers."""
        names, confidence = list(map(str, self.estimate.tasks[self.tasks].tolist())), self.estimate.confidence
        assert confidence is not None
        return {
            "task": np.array(names, dtype=np.str_),
            "truth": np.full(len(names), "", dtype=np.str_),
            PROPOSED: np.array(self.estimate.truth[self.tasks], dtype=np.str_),
            "confidence": confidence[self.tasks],
            "reason": np.array(self.reasons, dtype=np.str_),
            self.answers_name: np.array(self.answers, dtype=np.str_),
        }


def tasks_to_decide(inference: Inference, *, below: float = CONFIDENCE, most: int | None = None) -> Adjudication:
    """Return the tasks that a person should decide; tasks with a known truth are left out.

    They are those whose truth has a confidence smaller than `below`, or none, and, of answers without a channel, those
    whose truth has fewer votes than another label, or as many.

    Args:
        inference: of the reports.
        below: the confidence.
        most: largest number of tasks; None for all.

    Raises:
        SettingsError: numbers, or a method without probabilities.
    """
    estimate, evidence = inference.estimate, inference.evidence
    confidence, decided = estimate.confidence, estimate.undecided
    if confidence is None or estimate.alphabet is None:
        raise SettingsError(
            "tasks to decide need labels, and a method with probabilities",
            value=estimate.method,
            hint="Use the method hierarchical-dawid-skene. Of numbers, the columns interval_low and interval_high show "
            "which truths are uncertain.",
        )
    votes = _votes(estimate, evidence)
    against = np.zeros(len(confidence), dtype=bool)
    if votes is not None:
        own = votes[np.arange(len(votes)), estimate.decisions]
        others = votes.copy()
        others[np.arange(len(votes)), estimate.decisions] = -1
        against = (others.max(axis=1) >= own) & (votes.sum(axis=1) > 0)
    uncertain = confidence < below if decided is None else (confidence < below) | decided
    known = np.zeros(len(confidence), dtype=bool) if estimate.gold is None else np.asarray(estimate.gold)
    chosen = np.flatnonzero((uncertain | against) & ~known)
    ordered = chosen[np.lexsort((chosen, confidence[chosen]))][:most]
    return Adjudication(
        estimate=estimate,
        below=below,
        tasks=ordered,
        found=len(chosen),
        reasons=tuple(_reason(estimate, votes, uncertain, against, task) for task in ordered.tolist()),
        answers=_answers_by_task(evidence, ordered),
        answers_name="answers" if evidence.channel is None else "reports",
    )


def _votes(estimate: Estimate, evidence: Evidence) -> NDArray[np.int64] | None:
    """Return the votes indexed [task, label]; None for reports of a channel, and truths with labels of their own."""
    reports = evidence.reports
    if evidence.channel is not None or evidence.truths or reports.alphabet != estimate.alphabet:
        return None
    votes = np.zeros(estimate.posterior.shape, dtype=np.int64)
    np.add.at(votes, (np.asarray(reports.task), np.asarray(reports.value)), 1)
    return votes


def _reason(
    estimate: Estimate,
    votes: NDArray[np.int64] | None,
    uncertain: NDArray[np.bool_],
    against: NDArray[np.bool_],
    task: int,
) -> str:
    """Return why a person should decide a task."""
    assert estimate.alphabet is not None
    names, posterior, found = estimate.alphabet.names, estimate.posterior[task], list[str]()
    if estimate.undecided is not None and estimate.undecided[task]:
        found.append("no truth was decided")
    if uncertain[task]:
        order = np.argsort(-posterior, kind="stable")[:LABELS_SHOWN].tolist()
        found.append("uncertain: " + ", ".join(f"{names[label]} {posterior[label]:.0%}" for label in order))
    if against[task] and votes is not None:
        most = int(votes[task].max())
        tied = int((votes[task] == most).sum()) > 1 and votes[task, estimate.decisions[task]] == most
        counts = ", ".join(f"{names[label]} {votes[task, label]}" for label in np.flatnonzero(votes[task]).tolist())
        found.append(f"{'the votes are tied' if tied else 'against the votes'}: {counts}")
    reports = int(estimate.reports_per_task[task])
    if reports < 2:
        found.append("one answer" if reports else "no answer")
    return "; ".join(found).replace("%", " %")


def _answers_by_task(evidence: Evidence, tasks: NDArray[np.int64]) -> tuple[str, ...]:
    """Return the answers to each task: each label with the workers who gave it."""
    reports = evidence.reports
    place = {task: number for number, task in enumerate(tasks.tolist())}
    given: list[dict[str, list[str]]] = [{} for _ in place]
    rows = np.flatnonzero(np.isin(np.asarray(reports.task), tasks))
    for row in rows.tolist():
        value: Any = reports.value[row]
        label = f"{value:g}" if reports.alphabet is None else str(reports.alphabet.names[int(value)])
        labels = given[place[int(reports.task[row])]]
        labels.setdefault(label, []).append(str(reports.workers[int(reports.worker[row])]))
    return tuple("; ".join(f"{label} ({_listed(workers)})" for label, workers in one.items()) for one in given)


def _listed(workers: list[str]) -> str:
    more = len(workers) - WORKERS_SHOWN
    return ", ".join(workers[:WORKERS_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
