"""Confidence of answers: gold or withheld answers measure whether it informs, and only then is it used.

Each worker becomes two: the answers above the worker's own median of confidence, and the others. The fit of these
halves learns how right each is, so that it does not matter how high a worker's confidences are, or if they mislead. It
gives the truths if it is better by `ERRORS` standard errors: known truths are more probable in it, or withheld answers
are predicted better. It must be better than the plain fit and than halves drawn at random, whose matrices are shrunk as
much. No measure reads the confidence of the answer that is predicted: it may tell which label was given, and not
whether it is right.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.evidence import Evidence
from crowdveil.answers.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.em.estimator import Estimator
from crowdveil.em.gold import align_gold
from crowdveil.errors import SettingsError
from crowdveil.estimators.hierarchical_dawid_skene import HierarchicalDawidSkene
from crowdveil.hints import advice
from crowdveil.inference.gold_stack import MIN_GOLD
from crowdveil.inference.methods import AnyEstimator
from crowdveil.inference.plain_fit import Fit, fit
from crowdveil.inference.stacking import FLOOR, log_losses

FOLDS, ERRORS, TINY = 5, 2.0, 1e-12
"""Parts of the answers that are withheld in turn; standard errors by which confidence must help; least one."""


@dataclass(frozen=True, kw_only=True)
class Gain:
    """Mean gain of log probability in nats, and its standard error over tasks."""

    mean: float
    error: float

    @classmethod
    def of_gains_on_tasks(cls, gains: NDArray[np.float64], task: NDArray[np.integer]) -> Self:
        """Return the mean of gains, where those on one task may depend on each other."""
        mean, tasks = float(gains.mean()), len(np.unique(task))
        squares = float((np.bincount(task, gains - mean) ** 2).sum())
        return cls(mean=mean, error=(tasks / max(tasks - 1, 1) * squares) ** 0.5 / len(gains))

    @property
    def errors(self) -> float:
        """The gain in standard errors."""
        return self.mean / max(self.error, TINY)

    def __str__(self) -> str:
        return f"{self.mean:+.4f} nats (standard error {self.error:.4f})"


@dataclass(frozen=True, kw_only=True)
class Worth:
    """What confidence is worth by one measure.

    Attributes:
        over_plain, over_random: gains over the plain fit, and over halves drawn at random.
        measured: on what, in words.
    """

    over_plain: Gain
    over_random: Gain
    measured: str

    @property
    def informs(self) -> bool:
        """Whether both gains are clear."""
        return min(self.over_plain.errors, self.over_random.errors) > ERRORS

    @property
    def misleads(self) -> bool:
        """Whether there is a clear loss."""
        return min(self.over_plain.errors, self.over_random.errors) < -ERRORS

    def __str__(self) -> str:
        return f"gain {self.over_plain} {self.measured}; {self.over_random} against halves drawn at random"


def require_plain_answers(evidence: Evidence, **given: Any) -> None:
    """Refuse confidences beside protected reports, truths with labels of their own, a history or a saved fit.

    Args:
        evidence: nothing is refused if it has no confidences.
        given: history and saved fit, by argument; None where there is none.
    """
    if evidence.confidences is None:
        return
    if evidence.channel is not None or evidence.collection is not None:
        raise SettingsError(
            "confidences need plain answers: no guarantee covers confidences of protected reports",
            value="protected reports",
            hint=advice("Leave {weight} out."),
        )
    others = {"truths": evidence.truths or None} | given
    for name, value in others.items():
        if value is not None:
            rule = "truths with labels of their own, a history and a saved fit cannot be combined with confidences"
            raise SettingsError(rule, value=name, hint=advice("Leave it or {weight} out."))


def refuse_method_without_confidence(estimator: AnyEstimator, evidence: Evidence) -> None:
    """Refuse another method than that of halves of workers, if there are confidences."""
    if evidence.confidences is not None and not isinstance(estimator, HierarchicalDawidSkene):
        raise SettingsError(
            f"only {HierarchicalDawidSkene.name} uses confidences, and only for labels",
            value=estimator.name,
            hint=advice("Leave {weight} out, or leave the method out if these are labels."),
        )


def refuse_saved_confidences(evidence: Evidence) -> None:
    """Refuse to save a fit beside confidences, which it does not hold."""
    if evidence.confidences is not None:
        rule = "a fit with confidences cannot be saved: a saved fit does not hold them"
        raise SettingsError(rule, value="a saved fit", hint=advice("Leave it or {weight} out."))


def fit_with_informing_confidence(plain: Fit, evidence: Evidence, inputs: dict[str, Any]) -> Fit:
    """Return the plain fit, with the truths that use confidences if these inform, and a note on what they are worth.

    Args:
        plain: fit without confidences.
        evidence: answers; without confidences the fit is returned as it is.
        inputs: as of `plain_fit.fit`.
    """
    reports, confidences = evidence.reports, evidence.confidences
    if confidences is None:
        return plain
    sure = answers_above_own_median(confidences, len(reports.workers))
    obstacle = _obstacle(plain, reports, sure)
    if obstacle:
        return _with_note(plain, f"The confidence of answers is not used: {obstacle}.")
    worths = _worths(plain.estimator, reports, sure, inputs)
    measured = "; ".join(map(str, worths))
    if not worths[-1].informs:
        return _with_note(
            plain, (f"The confidence of answers is not used, because it was not shown to help: {measured}.")
        )
    halves = replace(evidence, observed=as_two_workers(reports, sure), confidences=None)
    found = fit(plain.estimator, halves, inputs)
    note = f"The confidence of answers is used for the truths, not for the quality of workers: {measured}."
    return _with_note(_with_plain_workers(found, plain), note)


def _obstacle(plain: Fit, reports: Reports, sure: NDArray[np.bool_]) -> str:
    """Return why confidence cannot be measured; empty if it can."""
    if plain.copied:
        return "workers answer as others do"
    if sure.all():
        return "no worker's confidences differ"
    if np.count_nonzero(reports.per_task) < MIN_GOLD:
        return f"fewer than {MIN_GOLD} tasks have answers, too few to tell what it is worth"
    return ""


def _with_note(found: Fit, note: str) -> Fit:
    return replace(found, notes=(*found.notes, note))


def _with_plain_workers(found: Fit, plain: Fit) -> Fit:
    """Return the fit of halves, with the workers of the plain fit in place of the halves, and the steps of both."""
    own = plain.estimate
    estimate = replace(
        found.estimate,
        worker_names=own.worker_names,
        workers=own.workers,
        reports_per_worker=own.reports_per_worker,
        state=None,
    )
    return replace(found, estimate=estimate, steps_before=found.steps_before + plain.steps_before + own.steps)


def answers_above_own_median(confidences: Reports, workers: int) -> NDArray[np.bool_]:
    """Return whether each answer is above the median of its worker, or at it if none is above; shape (reports,)."""
    worker, number = confidences.worker, confidences.value
    ordered = number[np.lexsort((number, worker))]
    counts = np.bincount(worker, minlength=workers)
    first = np.minimum(np.cumsum(counts) - counts, len(ordered) - 1)
    middle = first + np.maximum(counts - 1, 0) // 2, first + np.maximum(counts, 1) // 2
    median = (ordered[middle[0]] + ordered[np.minimum(middle[1], len(ordered) - 1)]) / 2
    above = number > median[worker]
    flat = np.bincount(worker, above, workers) == 0
    return above | (flat[worker] & (number >= median[worker]))


def as_two_workers(reports: Reports, sure: NDArray[np.bool_]) -> Reports:
    """Return the same answers of workers of whom each is two: worker i is 2 i for unsure, 2 i + 1 for sure answers."""
    block = reports.rows.block(0, len(reports.tasks))
    names = np.array([f"{name}{half}" for name in reports.workers.tolist() for half in ("-", "+")], dtype=object)
    worker = (2 * block.worker + sure).astype(np.int32)
    task = block.task.astype(np.int32)
    fields = reports.alphabet, reports.asked, reports.original
    return Reports(task, worker, block.value, reports.tasks, names, *fields)


def _worths(
    estimator: Estimator[Any, Any], reports: Reports, sure: NDArray[np.bool_], inputs: dict[str, Any]
) -> list[Worth]:
    """Return the worth on gold, if there is enough, and unless that is clear on withheld answers; the last decides."""
    found, gold = [], inputs["gold"]
    inputs = inputs | {"gold": None, "progress": None}
    halves = sure, _drawn_at_random(sure, reports)
    if gold:
        known = align_gold(reports, gold, reports.alphabet, numeric=False)
        answered = np.asarray(reports.per_task)[known.tasks] > 0
        if np.count_nonzero(answered) >= MIN_GOLD:
            fits = [estimator.fit(reports, **inputs)]
            fits += [estimator.fit(as_two_workers(reports, one), **inputs) for one in halves]
            found.append(_worth_on_gold(fits, known.tasks[answered], known.truths[answered]))
    if not found or not (found[0].informs or found[0].misleads):
        found.append(_worth_on_withheld_answers(estimator, reports, halves, inputs))
    return found


def _drawn_at_random(sure: NDArray[np.bool_], reports: Reports) -> NDArray[np.bool_]:
    """Return as many sure answers of each worker, drawn at random."""
    worker, drawn = reports.worker, np.empty_like(sure)
    number = np.random.default_rng(0).permutation(len(sure))
    drawn[np.lexsort((number, worker))] = sure[np.argsort(worker, kind="stable")]
    return drawn


def _worth_on_gold(fits: list[Estimate], at: NDArray[np.int64], truths: NDArray[np.int64]) -> Worth:
    """Return the gain in log probability of the known truths of tasks, which guided no fit.

    Args:
        fits: plain, of halves by confidence, and of random halves.
        at: tasks with known truths.
        truths: their codes.
    """
    known = [one.posterior[at] for one in fits]
    plain, halves, random = (-log_losses(one, truths) for one in known)
    right = [float((one.argmax(axis=1) == truths).mean()) for one in known]
    task, constant = np.arange(len(at)), np.bincount(truths).max() / len(truths)
    return Worth(
        over_plain=Gain.of_gains_on_tasks(halves - plain, task),
        over_random=Gain.of_gains_on_tasks(halves - random, task),
        measured=f"a task on {len(at):,} known truths (share of right truths {right[1]:.3f} with it, "
        f"{right[0]:.3f} without it, {constant:.3f} for the best constant)",
    )


def _worth_on_withheld_answers(
    estimator: Estimator[Any, Any],
    reports: Reports,
    halves: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    inputs: dict[str, Any],
) -> Worth:
    """Return the gain in log probability of answers that are withheld in turn, without their own confidence.

    `halves` are the sure answers, and random ones.
    """
    block = reports.rows.block(0, len(reports.tasks))
    within = np.arange(len(reports)) - block.pointers[block.task]
    fold, logs = (within + block.task) % FOLDS, np.zeros((3, len(reports)))
    for number in np.unique(fold).tolist():
        held = fold == number
        task, worker = block.task[~held].astype(np.int32), block.worker[~held]
        rest = Reports(
            task, worker, block.value[~held], reports.tasks, reports.workers, reports.alphabet, reports.asked
        )
        at = block.task[held], block.worker[held], block.value[held]
        plain = estimator.fit(rest, **inputs)
        logs[0, held] = _log_probabilities(plain.posterior, plain.workers.confusion, *at)
        for place, half in enumerate(halves, 1):
            found = estimator.fit(as_two_workers(rest, half[~held]), **inputs)
            logs[place, held] = _log_probabilities(found.posterior, _joined_confusion(found), *at)
    return Worth(
        over_plain=Gain.of_gains_on_tasks(logs[1] - logs[0], block.task),
        over_random=Gain.of_gains_on_tasks(logs[1] - logs[2], block.task),
        measured="an answer, in the prediction of withheld answers",
    )


def _joined_confusion(halves: Estimate) -> NDArray[np.float64]:
    """Return the confusion matrices of workers whose answers are of unknown confidence, [worker, truth, answer]."""
    confusion = halves.workers.confusion
    assert confusion is not None
    counts = halves.reports_per_worker.reshape(-1, 2) + 1e-9
    shares = counts / counts.sum(axis=1, keepdims=True)
    return np.einsum("wh,whza->wza", shares, confusion.reshape(len(shares), 2, *confusion.shape[1:]))


def _log_probabilities(
    posterior: NDArray[np.float64],
    confusion: NDArray[np.float64] | None,
    task: NDArray[np.integer],
    worker: NDArray[np.integer],
    value: NDArray[np.integer],
) -> NDArray[np.float64]:
    """Return the log probability of answers, from the posterior of their tasks and the matrices of their workers."""
    assert confusion is not None
    return np.asarray(np.log(np.maximum((posterior[task] * confusion[worker, :, value]).sum(axis=1), FLOOR)))
