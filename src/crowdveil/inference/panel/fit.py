"""Truths with labels of their own, inferred from answers on another scale: scores of judges, grades of annotators.

Without gold, tables P(answer | truth) are fitted from the order of the answers (`estimators.confusion.truth_tables`).
Gold that has every truth starts them. With `MIN_STACKED` gold tasks the result is a multinomial regression of gold on
the log posterior of the tables and on the answers (`stacked_answers`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.evidence import Evidence
from crowdveil.arguments import require_list
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.channel import Channel
from crowdveil.em.estimate import Estimate, WorkerTable
from crowdveil.em.gold import NO_GOLD, CrossValidation, align_gold, one_hot_gold
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators.confusion.truth_tables import (
    Answers,
    fit_truth_tables,
    posterior_by_ranks,
    tables_from_posterior,
)
from crowdveil.hints import advice, command_advice
from crowdveil.inference.panel.members import (
    MAX_TASKS,
    MAX_WORKERS,
    SHOWN_PAIRS,
    AlikeWorkers,
    Panel,
    alike_pairs,
    answer_codes_of_workers,
    answer_error_probability,
    best_worker_cross_validated,
    effective_workers,
    error_correlations,
)
from crowdveil.inference.panel.stacked_answers import fit_stacked, fold_of_each_task, posterior_with_single_answers
from crowdveil.inference.stacking import cross_validate_gold, log_loss_warning

MAX_GRADES, BINS = 24, 10
"""Largest number of different answers with a column each in the tables, and equal parts of more numbers."""
CONFIDENCE = "probabilities are fitted to {} gold tasks; they hold only if these tasks were drawn at random"
UNCHECKED = (
    "the errors of two answers to a task are assumed to have a correlation of 0.25; only known truths (gold) can "
    "measure it"
)
UNSETTLED = (
    "NOT CONVERGED after {} steps: the answers barely distinguish the truths. More answers or fewer truths help{}."
)
REVERSED = (
    "The order of truths looks reversed: on {:,} tasks the truths by the order of the answers correlate by {:.2f} "
    "with known truths. {}"
)
REVERSED_DEVIATIONS = 3.0
"""Least number of standard errors, 1 / sqrt(n - 1), by which this correlation is below 0."""
FROM_ORDER = {
    True: "without gold, the half of the tasks with the lower answers begins as {}, the other half as {}",
    False: "without gold, equal parts of the tasks, from low to high answers, begin as {}",
}
"""How truths start where gold does not have all of them, by whether there are two."""


@dataclass(frozen=True, eq=False)
class PanelFit:
    """Truths of a panel of workers, and its dependence.

    Attributes:
        estimate: truths, and abilities: the expected share of right truths when each answer is read by itself.
        panel: dependence of the workers.
        known: truths that guided the fit, by task.
        confidence: assumption behind the probabilities.
        gold_line: what gold did, and how much more would help; None if the answers are not stacked.
        alike: all pairs of workers whose errors are alike, the most correlated first.
        notes: warnings.
    """

    estimate: Estimate
    panel: Panel
    known: Mapping[Any, Any]
    confidence: str
    gold_line: str | None
    alike: tuple[AlikeWorkers, ...]
    notes: tuple[str, ...]


def truths_as_ordered_labels(truths: Sequence[str]) -> Categories:
    """Return the truths as labels.

    Raises:
        SettingsError: fewer than two, repeated, no texts, or a set, which has no order.
    """
    require_list("truths", truths, example='["no", "yes"]')
    return Categories(tuple(map(str, truths)), ordered=True)


def fit_panel(evidence: Evidence, truths: Sequence[str], *, gold: Mapping[Any, Any] | None = None) -> PanelFit:
    """Return truths that are not labels of the answers.

    Args:
        evidence: answers: numbers, grades or labels; or reports of a channel.
        truths: labels of the truths; with ordered answers, low answers first.
        gold: truth by task name.

    Raises:
        SettingsError: truths that are none, that no answer maps to, or a channel that is not read.
        ReportsError: fewer than two workers, or gold that is unknown.
    """
    labels = truths_as_ordered_labels(truths)
    reports = evidence.reports
    if int((reports.per_worker > 0).sum()) < 2:
        raise ReportsError(
            "a panel needs answers of two workers or more",
            examples=f"{int((reports.per_worker > 0).sum())} worker",
            hint=advice("Leave {truths} out: the answers of one worker are read as they are."),
        )
    answers, ordered = code_answers(evidence)
    aligned = align_gold(reports, gold, labels, numeric=False)
    known = aligned.truths_of_tasks(0, len(reports.tasks))
    _require_answers_for_every_truth(labels, answers, known, ordered)
    fit, posterior, held, line = fit_stacked(answers, known, labels.size, ordered)
    stacked = held is not None
    final = one_hot_gold(posterior, known)
    learned = final if stacked else fit.posterior
    tables, prior = tables_from_posterior(answers, learned)
    names = list(map(str, np.asarray(reports.workers).tolist()))
    check, gain, worse = _cross_validated_gain_by_gold(answers, known, held, ordered)
    backwards = _label_order_notes_from_gold(answers, known, labels) if ordered else ()
    check = check if check is None else replace(check, order_reversed=bool(backwards))
    panel, alike = _worker_dependence_and_alike_pairs(answers, known, learned, stacked, names)
    panel = _with_cross_validated_accuracies(panel, answers, known, check, labels.size, names)
    quality = (prior[:, None] * tables).max(axis=1).sum(axis=1)
    estimate = Estimate(
        method="stacked-truth-tables" if stacked else "truth-tables",
        alphabet=labels,
        tasks=reports.tasks,
        posterior=final,
        reports_per_task=reports.per_task,
        worker_names=reports.workers,
        workers=WorkerTable(np.where(reports.per_worker > 0, quality, np.nan), "ability", confusion=tables),
        reports_per_worker=reports.per_worker,
        steps=fit.steps,
        channel_used=evidence.channel is not None,
        gold_unknown=aligned.unknown,
        gold=aligned.mask(len(reports.tasks)),
        cross_validation=check,
        stopped="tolerance" if fit.converged else "limit",
        original=reports.original,
    )
    notes = [] if fit.converged else [UNSETTLED.format(fit.steps, "" if stacked else _more_gold())]
    gold_line = line + gain if stacked else None
    confidence = _assumption_behind_probabilities(labels, known, held)
    return PanelFit(estimate, panel, gold or {}, confidence, gold_line, alike, (*notes, *backwards, *worse))


def _more_gold() -> str:
    """Return the advice of more gold, as a clause."""
    return advice(", or gold of every truth ({gold}, 20 tasks or more)", ", or gold of every truth (20 tasks or more)")


def _label_order_notes_from_gold(answers: Answers, known: NDArray[np.int64], labels: Categories) -> tuple[str, ...]:
    """Return `order_warning` of the gold tasks with answers, by the order of these answers."""
    gold = np.flatnonzero((known != NO_GOLD) & (np.bincount(answers.task, minlength=len(known)) > 0))
    return order_warning(labels.names, posterior_by_ranks(answers, labels.size)[gold], known[gold])


def order_warning(truths: Sequence[str], posterior: NDArray[np.float64], known: NDArray[np.int64]) -> tuple[str, ...]:
    """Return a warning if the order of the answers says the opposite of known truths; empty if it does not.

    Args:
        truths: their labels, in the stated order.
        posterior: of tasks by the order of their answers, [task, truth].
        known: truth codes of these tasks, shape (tasks,).
    """
    place = posterior @ np.arange(len(truths))
    if len(known) < 2 or not (np.ptp(place) and np.ptp(known)):
        return ()
    correlation = float(np.corrcoef(place, known)[0, 1])
    if -correlation * (len(known) - 1) ** 0.5 < REVERSED_DEVIATIONS:
        return ()
    return (REVERSED.format(len(known), correlation, advice("State {truths}.", truths=[*truths[::-1]])),)


def _assumption_behind_probabilities(
    labels: Categories, known: NDArray[np.int64], held: NDArray[np.float64] | None
) -> str:
    """Return the assumption behind the probabilities."""
    confidence = UNCHECKED if held is None else CONFIDENCE.format(len(held))
    if not _truths_without_gold_task(labels, known):
        return confidence
    two = labels.size == 2
    start = FROM_ORDER[two].format(*(labels.names if two else [", ".join(labels.names)]))
    return f"{start}; {confidence}"


def _cross_validated_gain_by_gold(
    answers: Answers, known: NDArray[np.int64], held: NDArray[np.float64] | None, ordered: bool
) -> tuple[CrossValidation | None, str, tuple[str, ...]]:
    """Return the check of gold tasks with answers, the gain by gold in words, and a warning if gold makes it worse.

    Without gold, truths are known by the order of the answers only.

    Args:
        answers: of all workers.
        known: truths of gold tasks.
        held: posterior of gold tasks without their fold; None if the answers are not stacked.
        ordered: whether the answers have an order.
    """
    if held is None:
        return None, "", ()
    gold = np.flatnonzero((known != NO_GOLD) & (np.bincount(answers.task, minlength=len(known)) > 0))
    truths = known[gold]
    if not ordered or held.shape[1] > answers.shape[2]:
        return CrossValidation(len(gold), int((held.argmax(axis=1) == truths).sum())), "", ()
    plain = fit_truth_tables(answers, posterior_by_ranks(answers, held.shape[1]), np.full_like(known, NO_GOLD))
    without = posterior_with_single_answers(answers, plain)[gold]
    return *cross_validate_gold(held, truths, without), log_loss_warning(held, without, truths)


def code_answers(evidence: Evidence) -> tuple[Answers, bool]:
    """Return the answers as codes in their order, and whether they have one.

    Numbers, and labels that are all numbers, are ordered by value; more than `MAX_GRADES` of them are cut into `BINS`
    parts with equally many answers.
    """
    reports, channel = evidence.reports, evidence.channel
    if channel is not None:
        return _answers_behind_channel(
            evidence
        ), evidence.reports.alphabet is not None and evidence.reports.alphabet.ordered
    numbers, ordered = reports.numbers, True
    alphabet = reports.alphabet
    if isinstance(alphabet, Categories) and not alphabet.ordered:
        try:
            numbers = np.array([float(name) for name in alphabet.names])[reports.value]
        except ValueError:
            ordered = False
    values, codes = np.unique(numbers, return_inverse=True)
    if ordered and len(values) > MAX_GRADES:
        edges = np.unique(np.quantile(numbers, np.arange(1, BINS) / BINS))
        codes = np.searchsorted(edges, numbers, side="right")
    return _answers_from_report_codes(evidence, codes.astype(np.int64), int(codes.max()) + 1), ordered


def _answers_from_report_codes(evidence: Evidence, codes: NDArray[np.int64], size: int, channel: Any = None) -> Answers:
    reports = evidence.reports
    shape = (len(reports.tasks), len(reports.workers), size)
    return Answers(reports.task.astype(np.int64), reports.worker.astype(np.int64), codes, shape, channel)


def _answers_behind_channel(evidence: Evidence) -> Answers:
    """Return reports with their channel; refuse one whose reports are not answers of listed cells."""
    channel = evidence.channel
    if (
        not isinstance(channel, Channel)
        or channel.protects_participation
        or evidence.assignment is not None
        or channel.report_alphabet != channel.alphabet
    ):
        raise SettingsError(
            "truths other than the answers are read through channels whose reports are answers, with public "
            "participation, alike for all workers",
            value=getattr(channel, "mechanism", channel),
            hint=f"Infer the answers' own labels{command_advice(', or read reports as answers ({no_certificate})')}.",
        )
    size = channel.alphabet.size
    table = channel.probabilities[:size, :size]
    return _answers_from_report_codes(evidence, evidence.reports.value.astype(np.int64), size, table)


def _require_answers_for_every_truth(
    labels: Categories, answers: Answers, known: NDArray[np.int64], ordered: bool
) -> None:
    """Refuse truths that neither gold nor the order of the answers connects with answers."""
    absent = _truths_without_gold_task(labels, known)
    if not absent or (ordered and labels.size <= answers.shape[2]):
        return
    raise SettingsError(
        "every truth needs answers that map to it: gold of each truth, or ordered answers, at least as many as truths",
        value=", ".join(absent),
        hint="Infer with gold tasks of these truths, give the order of the answers"
        + command_advice(" ({labels}, {ordered})", " (Categories(..., ordered=True))", ordered=True)
        + ", or leave these truths out.",
    )


def refuse_unmappable_answers(evidence: Evidence, gold: Mapping[Any, Any] | None = None) -> None:
    """Refuse answers that need more gold to be mapped to truths; errors as `fit_panel`."""
    (answers, ordered), labels = code_answers(evidence), truths_as_ordered_labels(evidence.truths)
    known = align_gold(evidence.reports, gold, labels, numeric=False).truths_of_tasks(0, len(evidence.reports.tasks))
    _require_answers_for_every_truth(labels, answers, known, ordered)


def _truths_without_gold_task(labels: Categories, known: NDArray[np.int64]) -> list[str]:
    """Return the truths without a gold task."""
    return [name for code, name in enumerate(labels.names) if not (known == code).any()]


def _worker_dependence_and_alike_pairs(
    answers: Answers, known: NDArray[np.int64], posterior: NDArray[np.float64], from_gold: bool, names: list[str]
) -> tuple[Panel, tuple[AlikeWorkers, ...]]:
    """Return the dependence of the workers with the most answers, and all pairs of them that answer alike.

    They are compared on the first tasks and all gold tasks.
    """
    counts = np.bincount(answers.worker, minlength=answers.shape[1])
    kept = np.sort(np.argsort(-counts, kind="stable")[:MAX_WORKERS])
    kept = kept[counts[kept] > 0]
    tables, prior = tables_from_posterior(answers, posterior)
    tables = tables[kept]
    read = (np.arange(len(known)) < MAX_TASKS) | (known != NO_GOLD)
    codes = answer_codes_of_workers(answers, kept)[read]
    errors = answer_error_probability(answers, tables, prior)
    correlation, common = error_correlations(codes, errors, posterior[read])
    alike = alike_pairs(correlation, common, [names[code] for code in kept])
    if from_gold:
        certain = one_hot_gold(np.zeros_like(posterior), known)[read]
        correlation, common = error_correlations(codes, errors, certain)
    effective, mean = effective_workers(correlation, common)
    panel = Panel(
        workers=len(kept),
        effective=effective,
        correlation=mean,
        from_gold=from_gold,
        alike=len(alike),
        pairs=tuple(alike[:SHOWN_PAIRS]),
    )
    return panel, tuple(alike)


def _with_cross_validated_accuracies(
    panel: Panel,
    answers: Answers,
    known: NDArray[np.int64],
    check: CrossValidation | None,
    truths: int,
    names: list[str],
) -> Panel:
    """Return the panel with the cross-validated accuracies of its best worker and of the result, if they are known."""
    if check is None:
        return panel
    best = best_worker_cross_validated(answers, known, fold_of_each_task(known), truths)
    panel = replace(panel, stacked_accuracy=check.right / check.tasks)
    return panel if best is None else replace(panel, best_worker=names[best[0]], best_accuracy=best[1])
