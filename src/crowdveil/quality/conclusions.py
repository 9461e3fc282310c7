"""Conclusions about all tasks from a random sample of known truths: prevalences, accuracies, differences of workers.

Behind a channel there are prevalences only: whether an answer was right is not observed. So it is where truths have
labels of their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.identifiers import index_of
from crowdveil.answers.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.em.gold import align_gold
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.hints import advice
from crowdveil.inference.given import KnownTruths, errors_naming_gold_source
from crowdveil.inference.gold_draw import (
    nonrandom_gold_warnings,
    require_draw_start,
    tasks_in_draw_order,
)
from crowdveil.inference.infer import Inference
from crowdveil.inference.panel.fit import order_warning
from crowdveil.quality.prediction_powered import (
    IntervalEstimate,
    SampledValues,
    binary_wilson_interval,
    interval_of_mean_difference,
    regression_coefficient,
    rogan_gladen,
    share_interval,
)

MIN_GOLD, MIN_GOLD_ANSWERS = 10, 5
"""Fewest gold tasks for prevalences, and fewest gold tasks that a worker has answered for the worker's accuracy."""
NOT_BEHIND_CHANNEL = "accuracies are left out: behind a channel it is not observed whether an answer was right"
NOT_OF_TRUTHS = "accuracies are left out: truths have labels of their own, so that no answer is right or wrong"
UNKNOWN = IntervalEstimate(float("nan"), float("nan"), float("nan"))


class ConcludedQuantity(NamedTuple):
    """One quantity of all tasks.

    Attributes:
        quantity: "prevalence" of a truth, "accuracy" of a worker, or "difference" of the accuracies of two.
        name: the truth, or the worker.
        other: the second worker, whose accuracy is subtracted; else empty.
        found: estimate and interval from gold and all answers.
        gold: number of gold tasks on which it rests.
        tasks: number of tasks that it is about: all with reports, those of the worker, or those that both answered.
        gold_alone: estimate and interval without the other answers.
        rogan_gladen: prevalence that explains the inferred truths by their errors on gold; else nan.
    """

    quantity: str
    name: str
    other: str
    found: IntervalEstimate
    gold: int
    tasks: int
    gold_alone: IntervalEstimate = UNKNOWN
    rogan_gladen: float = float("nan")


CHOSEN = "a list of tasks that were chosen for a person to decide"


@dataclass(frozen=True, kw_only=True, eq=False)
class Conclusions:
    """Conclusions with what they rest on.

    Attributes:
        rows: prevalences in the order of labels, differences as asked for, accuracies in the order of workers.
        gold: number of gold tasks with reports.
        tasks: number of tasks with reports, about which they speak.
        left_out: number of workers with too few gold answers.
        drawn: how the sample is known to be random.
        notes: warnings.
    """

    rows: tuple[ConcludedQuantity, ...]
    gold: int
    tasks: int
    left_out: int
    drawn: str
    notes: tuple[str, ...]

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the rows as columns; low, high and gold_low, gold_high are the ends of 90 % intervals."""
        rows = self.rows
        named = {
            name: np.array([getattr(row, name) for row in rows], np.str_) for name in ("quantity", "name", "other")
        }
        ends = {
            f"{prefix}{end}": np.array([getattr(getattr(row, kind), end) for row in rows])
            for prefix, kind in (("", "found"), ("gold_", "gold_alone"))
            for end in IntervalEstimate._fields
        }
        counts = {name: np.array([getattr(row, name) for row in rows], np.int64) for name in ("gold", "tasks")}
        return named | ends | counts | {"rogan_gladen": np.array([row.rogan_gladen for row in rows])}


class _GoldTasks(NamedTuple):
    """Gold tasks with reports: codes and truths, shape (gold,); all tasks with reports; and the default's posterior."""

    tasks: NDArray[np.int64]
    truths: NDArray[np.int64]
    everywhere: NDArray[np.int64]
    posterior: NDArray[np.float64]


def conclude_from_drawn_gold(
    inference: Inference,
    gold: KnownTruths,
    *,
    stated_random: bool = False,
    compare: Sequence[tuple[str, str]] = (),
) -> Conclusions:
    """Return the conclusions about all tasks with reports.

    Args:
        inference: truths inferred from the reports without gold.
        gold: known truths of a simple random sample of the tasks with reports; the seed of their draw is checked.
        stated_random: whether the user says that gold is such a sample, where there is no seed.
        compare: pairs of workers whose accuracies are compared on the tasks that both have answered.

    Raises:
        SettingsError: numbers, a method without probabilities, no seed, or an unknown worker.
        ReportsError: too few gold tasks, or gold that was not drawn at random.
    """
    estimate, evidence = inference.estimate, inference.evidence
    if not estimate.categorical or not estimate.probabilistic:
        raise SettingsError(
            "conclusions need labels and a method with probabilities",
            value=estimate.method,
            hint="Use the default method.",
        )
    truths = evidence.in_label_spelling(gold.truths)
    with errors_naming_gold_source(gold):
        known = _enough_gold_with_reports(evidence.reports, estimate, truths)
        drawn = _how_gold_was_drawn(estimate, known, replace(gold, truths=truths), stated_random)
    rows, left_out, notes = _prevalences(estimate, known), 0, evidence.notes
    reason = NOT_BEHIND_CHANNEL if evidence.channel is not None else NOT_OF_TRUTHS if evidence.truths else ""
    if not reason:
        accuracies, left_out = _gold_worker_accuracies(evidence.reports, estimate, known)
        rows += [_accuracy_difference_of_workers(evidence.reports, known, pair) for pair in compare] + accuracies
    elif compare:
        raise SettingsError(reason, value=", ".join(map("/".join, compare)), hint="Leave them out.")
    else:
        notes = (*notes, reason)
    if evidence.truths:
        notes += order_warning(evidence.truths, known.posterior[known.tasks], known.truths)
    return Conclusions(
        rows=tuple(rows),
        gold=len(known.tasks),
        tasks=len(known.everywhere),
        left_out=left_out,
        drawn=drawn,
        notes=notes,
    )


def _enough_gold_with_reports(reports: Reports, estimate: Estimate, gold: Mapping[Any, Any]) -> _GoldTasks:
    aligned = align_gold(reports, gold, estimate.alphabet, numeric=False)
    counts = np.asarray(estimate.reports_per_task)
    kept = counts[aligned.tasks] > 0
    if int(kept.sum()) < MIN_GOLD:
        raise ReportsError(
            f"conclusions need at least {MIN_GOLD} gold tasks with reports",
            source="gold",
            examples=f"{int(kept.sum())} of {len(gold):,}",
            hint="Draw them with draw_gold(...), or `crowdveil data draw-gold`; 50 are a good start.",
        )
    return _GoldTasks(aligned.tasks[kept], aligned.truths[kept], np.flatnonzero(counts), estimate.posterior)


def _how_gold_was_drawn(estimate: Estimate, known: _GoldTasks, gold: KnownTruths, stated: bool) -> str:
    """Return how gold is known to be a random sample; refuse gold that is not."""
    seed = gold.seed
    if seed is not None:
        order = tasks_in_draw_order(estimate.tasks, np.asarray(estimate.reports_per_task), seed)
        require_draw_start({str(task): truth for task, truth in gold.truths.items()}, order, seed)
        return f"the first tasks of the draw with seed {seed}"
    visible = (CHOSEN,) if gold.chosen else nonrandom_gold_warnings(estimate, known.tasks)
    if visible or not stated:
        raise ReportsError(
            "conclusions need gold that was drawn at random from the tasks with reports",
            source="gold",
            examples=visible[0] if visible else "no seed of a draw",
            hint="Draw it with draw_gold(...), or `crowdveil data draw-gold`, whose seed is checked. "
            + advice("If you drew it yourself, say so: {random}. ", random=True)
            + "Gold that looks different from the other tasks is refused anyway.",
        )
    return "at random, as stated; only means were checked"


def _prevalences(estimate: Estimate, known: _GoldTasks) -> list[ConcludedQuantity]:
    assert estimate.alphabet is not None
    posterior, items = known.posterior, len(known.everywhere)
    means = posterior[known.everywhere].mean(axis=0)
    decided = posterior.argmax(axis=1)
    shares = np.bincount(decided[known.everywhere], minlength=posterior.shape[1]) / items
    checks = rogan_gladen(known.truths, decided[known.tasks], shares)
    rows = []
    for label, name in enumerate(estimate.alphabet.names):
        values = (known.truths == label).astype(float)
        sampled = SampledValues(values, posterior[known.tasks, label], float(means[label]), items)
        found, alone = share_interval(sampled), binary_wilson_interval(values, items)
        rows.append(ConcludedQuantity("prevalence", name, "", found, len(values), items, alone, float(checks[label])))
    return rows


class _GoldAnswers(NamedTuple):
    """Answers to gold tasks: worker, whether it is right, and its predicted probability of being right."""

    worker: NDArray[np.int64]
    right: NDArray[np.float64]
    predicted: NDArray[np.float64]


def _gold_worker_accuracies(
    reports: Reports, estimate: Estimate, known: _GoldTasks
) -> tuple[list[ConcludedQuantity], int]:
    """Return the accuracies of workers with enough gold answers, and the number of other workers with answers."""
    workers = len(reports.workers)
    totals, counts, parts = np.zeros(workers), np.zeros(workers, dtype=np.int64), list[_GoldAnswers]()
    truth = np.full(len(reports.tasks), -1)
    truth[known.tasks] = known.truths
    for chunk in reports.chunks():
        predicted = known.posterior[chunk.task, chunk.value]
        totals += np.bincount(chunk.worker, predicted, workers)
        counts += np.bincount(chunk.worker, minlength=workers)
        at = np.flatnonzero(truth[chunk.task] >= 0)
        right = (chunk.value[at] == truth[chunk.task[at]]).astype(float)
        parts.append(_GoldAnswers(chunk.worker[at].astype(np.int64), right, predicted[at]))
    answers = _GoldAnswers(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    given = regression_coefficient(answers.right, answers.predicted)
    pooled = float((answers.right - given * answers.predicted).var())
    order = np.argsort(answers.worker, kind="stable")
    ends = np.searchsorted(answers.worker[order], np.arange(workers + 1))
    rows = []
    for worker in np.flatnonzero(np.diff(ends) >= MIN_GOLD_ANSWERS).tolist():
        own = order[ends[worker] : ends[worker + 1]]
        items = int(counts[worker])
        sampled = SampledValues(answers.right[own], answers.predicted[own], totals[worker] / items, items)
        found, alone = share_interval(sampled, given, pooled), binary_wilson_interval(sampled.values, items)
        rows.append(ConcludedQuantity("accuracy", str(reports.workers[worker]), "", found, len(own), items, alone))
    return rows, int((counts > 0).sum()) - len(rows)


def _accuracy_difference_of_workers(reports: Reports, known: _GoldTasks, pair: tuple[str, str]) -> ConcludedQuantity:
    """Return the difference of the accuracies of two workers on the tasks that both have answered."""
    codes = index_of(reports.workers, dict.fromkeys(pair))
    for name in pair:
        if name not in codes:
            raise SettingsError("a worker to compare must have answers", value=name, hint="Spell it as in the answers.")
    first, second = (_label_of_worker_per_task(reports, codes[name]) for name in pair)
    both = np.flatnonzero((first >= 0) & (second >= 0))
    gold = np.intersect1d(both, known.tasks)
    if pair[0] == pair[1] or len(gold) < MIN_GOLD_ANSWERS:
        raise SettingsError(
            f"a comparison of two workers needs at least {MIN_GOLD_ANSWERS} gold tasks that both have answered",
            value=f"{pair[0]}, {pair[1]}: {len(gold)}",
            hint="Draw more gold tasks, or leave the pair out.",
        )
    predicted = known.posterior[both, first[both]] - known.posterior[both, second[both]]
    truths = known.truths[np.searchsorted(known.tasks, gold)]
    values = (first[gold] == truths) * 1.0 - (second[gold] == truths)
    own = predicted[np.searchsorted(both, gold)]
    sampled = SampledValues(values, own, float(predicted.mean()), len(both))
    nothing = SampledValues(values, np.zeros(len(gold)), 0.0, len(both))
    found = interval_of_mean_difference(sampled, regression_coefficient(values, own))
    return ConcludedQuantity(
        "difference", pair[0], pair[1], found, len(gold), len(both), interval_of_mean_difference(nothing, 0.0)
    )


def _label_of_worker_per_task(reports: Reports, worker: int) -> NDArray[np.int64]:
    """Return the label codes of a worker's answers, -1 without one; the last of several counts; shape (tasks,)."""
    labels = np.full(len(reports.tasks), -1, dtype=np.int64)
    for chunk in reports.chunks():
        own = chunk.worker == worker
        labels[chunk.task[own]] = chunk.value[own]
    return labels
