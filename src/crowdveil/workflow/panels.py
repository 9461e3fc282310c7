"""Truths with labels of their own, inferred from answers on another scale: scores of judges, grades of annotators.

Without gold, tables P(answer | truth) are fitted from the order of the answers (`estimators.confusion.truth_tables`).
Gold that has every truth starts them. With `MIN_STACKED` gold tasks the result is a multinomial regression of gold on
the log posterior of the tables, for gold tasks from a fit without their fold, and on the answers: the mean standardized
answer, and that of each worker with `MIN_GOLD_ANSWERS` answers on gold tasks; shares of answers where they have no
order. The deviation of the workers' weights is averaged over `DEVIATIONS`, weighted by the likelihood of held-out gold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.em.estimate import Estimate, WorkerTable
from crowdveil.em.gold import NO_GOLD, align_gold, one_hot_gold
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators.confusion.truth_tables import (
    Answers,
    TruthTables,
    fit_truth_tables,
    start_from_gold,
    start_from_order,
    tables_of,
)
from crowdveil.evaluation.panel import (
    FOLDS,
    MAX_TASKS,
    MAX_WORKERS,
    SHOWN_PAIRS,
    Panel,
    alike_pairs,
    best_worker,
    codes_of,
    effective_number,
    error_correlations,
    errors_by_truth,
)
from crowdveil.evaluation.stacking import by_label, fit_regression
from crowdveil.workflow.evidence import Evidence

MIN_STACKED = 20
"""Smallest number of gold tasks with answers that the answers are stacked with."""
MIN_GOLD_ANSWERS = 10
"""Smallest number of a worker's answers on gold tasks for weights of their own."""
MAX_GRADES, BINS = 24, 10
"""Largest number of different answers with a column each in the tables, and equal parts of more numbers."""
DEVIATIONS = (0.1, 0.3, 1.0)
"""Prior standard deviations of the workers' weights, for answers to a task that sum to unit variance."""
SHARED_DEVIATION, POSTERIOR_MEAN, POSTERIOR_DEVIATION = 0.7, 0.5, 0.3
"""Prior of the biases and weights that workers share, and of the weight of the log posterior."""
LEAST_PROBABILITY = 1e-4
AT_ONCE = 4096
"""Tasks whose features are held together."""
CONFIDENCE = "probabilities are fitted to {} gold tasks, if these are drawn at random"
UNCHECKED = "errors of two answers to a task have an assumed correlation of 0.25; the true one is unknown without gold"


@dataclass(frozen=True, eq=False)
class PanelFit:
    """Truths of a panel of workers, and its dependence.

    Attributes:
        estimate: truths, and abilities: the expected share of right truths when each answer is read by itself.
        panel: dependence of the workers.
        known: truths that guided the fit, by task.
        confidence: assumption behind the probabilities.
    """

    estimate: Estimate
    panel: Panel
    known: Mapping[Any, Any]
    confidence: str


def check_truths(truths: Sequence[str]) -> Categories:
    """Return the truths as labels.

    Raises:
        SettingsError: fewer than two, repeated, or no texts.
    """
    if isinstance(truths, str):
        raise SettingsError("truths must be a list of labels", value=truths, hint='Such as ["no", "yes"].')
    return Categories(tuple(map(str, truths)), ordered=True)


def fit_panel(
    evidence: Evidence, truths: Sequence[str], *, gold: Mapping[Any, Any] | None = None, scale: Scale | None = None
) -> PanelFit:
    """Return truths that are not labels of the answers.

    Args:
        evidence: answers: numbers, grades or labels; or reports of a channel.
        truths: labels of the truths; with ordered answers, low answers first.
        gold: truth by task name.
        scale: range of free numbers.

    Raises:
        SettingsError: truths that are none, that no answer maps to, or a channel that is not read.
        ReportsError: fewer than two workers, numbers outside the scale, or gold that is unknown.
    """
    labels = check_truths(truths)
    reports = evidence.reports
    if int((reports.per_worker > 0).sum()) < 2:
        raise ReportsError(
            "a panel needs answers of two workers or more",
            examples=f"{int((reports.per_worker > 0).sum())} worker",
            hint="Leave --truths out: the answers of one worker are read as they are.",
        )
    answers, ordered = coded_answers(evidence, scale)
    aligned = align_gold(reports, gold, labels, numeric=False)
    known = aligned.of(0, len(reports.tasks))
    _check_mapping(labels, answers, known, ordered)
    fit, posterior, held = _fit(answers, known, labels.size, ordered)
    stacked = held is not None
    final = one_hot_gold(posterior, known)
    tables, prior = tables_of(answers, final)
    names = list(map(str, np.asarray(reports.workers).tolist()))
    panel = _panel(answers, known, final, stacked, names)
    if held is not None:
        panel = _with_accuracy(panel, answers, known, held, names)
    quality = (prior[:, None] * tables).max(axis=1).sum(axis=1)
    estimate = Estimate(
        method="stacked-truth-tables" if stacked else "truth-tables",
        alphabet=labels,
        tasks=reports.tasks,
        posterior=final,
        reports_per_task=reports.per_task,
        worker_names=reports.workers,
        workers=WorkerTable(np.where(reports.per_worker > 0, quality, np.nan), "ability"),
        reports_per_worker=reports.per_worker,
        log_likelihoods=(),
        steps=fit.steps,
        converged=fit.converged,
        channel_used=evidence.channel is not None,
        gold_used=aligned.used,
        gold_unknown=aligned.unknown,
        stopped="tolerance" if fit.converged else "limit",
        original=reports.original,
    )
    confidence = CONFIDENCE.format(len(held)) if held is not None else UNCHECKED
    return PanelFit(estimate, panel, gold or {}, confidence)


def coded_answers(evidence: Evidence, scale: Scale | None) -> tuple[Answers, bool]:
    """Return the answers as codes in their order, and whether they have one.

    Numbers, and labels that are all numbers, are ordered by value; more than `MAX_GRADES` of them are cut into `BINS`
    parts with equally many answers.
    """
    reports, channel = evidence.reports, evidence.channel
    if channel is not None:
        return _coded_reports(evidence), evidence.reports.alphabet is not None and evidence.reports.alphabet.ordered
    numbers, ordered = reports.numbers, True
    alphabet = reports.alphabet
    if isinstance(alphabet, Categories) and not alphabet.ordered:
        try:
            numbers = np.array([float(name) for name in alphabet.names])[reports.value]
        except ValueError:
            ordered = False
    if scale is not None:
        _refuse_outside(numbers, scale)
    values, codes = np.unique(numbers, return_inverse=True)
    if ordered and len(values) > MAX_GRADES:
        edges = np.unique(np.quantile(numbers, np.arange(1, BINS) / BINS))
        codes = np.searchsorted(edges, numbers, side="right")
    return _answers(evidence, codes.astype(np.int64), int(codes.max()) + 1), ordered


def _answers(evidence: Evidence, codes: NDArray[np.int64], size: int, channel: Any = None) -> Answers:
    reports = evidence.reports
    shape = (len(reports.tasks), len(reports.workers), size)
    return Answers(reports.task.astype(np.int64), reports.worker.astype(np.int64), codes, shape, channel)


def _coded_reports(evidence: Evidence) -> Answers:
    """Return reports with their channel; refuse one whose reports are not answers of listed cells."""
    channel = evidence.channel
    plain = isinstance(channel, Channel) and not channel.protects_participation
    if not plain or evidence.assignment is not None or channel.report_alphabet != channel.alphabet:
        raise SettingsError(
            "truths other than the answers are read through channels whose reports are answers, with public "
            "participation, alike for all workers",
            value=getattr(channel, "mechanism", channel),
            hint="Infer the answers' own labels (without --truths), or read reports as answers (--no-certificate).",
        )
    size = channel.alphabet.size
    table = channel.probabilities[:size, :size]
    return _answers(evidence, evidence.reports.value.astype(np.int64), size, table)


def _refuse_outside(numbers: NDArray[np.float64], scale: Scale) -> None:
    outside = (numbers < scale.low) | (numbers > scale.high)
    if outside.any():
        raise ReportsError(
            f"scores must be on the scale from {scale.low:g} to {scale.high:g}",
            examples=f"{numbers[outside][0]:g}, and {int(outside.sum()) - 1:,} others",
            hint="Correct these scores, leave them out, or give a wider --scale.",
        )


def _check_mapping(labels: Categories, answers: Answers, known: NDArray[np.int64], ordered: bool) -> None:
    """Refuse truths that neither gold nor the order of the answers connects with answers."""
    absent = [name for code, name in enumerate(labels.names) if not (known == code).any()]
    if not absent or (ordered and labels.size <= answers.shape[2]):
        return
    raise SettingsError(
        "every truth needs answers that map to it: gold of each truth, or ordered answers, at least as many as truths",
        value=", ".join(absent),
        hint="Give gold tasks of these truths (--gold), the order of the answers (--labels low,...,high --ordered), or "
        "leave these truths out.",
    )


def _fit(
    answers: Answers, known: NDArray[np.int64], truths: int, ordered: bool
) -> tuple[TruthTables, NDArray[np.float64], NDArray[np.float64] | None]:
    """Return the fit of the tables, the posterior, and that of gold tasks by the other folds; None if not stacked."""
    fit = _guided(answers, known, truths, ordered)
    answered = np.bincount(answers.task, minlength=answers.shape[0]) > 0
    gold = np.flatnonzero((known != NO_GOLD) & answered)
    if len(gold) < max(MIN_STACKED, FOLDS):
        return fit, fit.posterior, None
    posterior, fold = fit.posterior.copy(), folds_of(known)
    for held in range(FOLDS):
        others = _guided(answers, np.where(fold == held, NO_GOLD, known), truths, ordered)
        posterior[fold == held] = others.posterior[fold == held]
    features = _features(answers, posterior, gold, ordered)
    return fit, *_stack(features, known, gold, fold)


def folds_of(known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the fold of each task, shape (tasks,): gold tasks of each truth in turn, -1 for others."""
    fold = np.full(len(known), -1)
    order = np.argsort(known, kind="stable")[(known == NO_GOLD).sum() :]
    fold[order] = np.arange(len(order)) % FOLDS
    return fold


def _guided(answers: Answers, known: NDArray[np.int64], truths: int, ordered: bool) -> TruthTables:
    """Return the fit that starts from gold if it has every truth, or the answers no order; else from their order."""
    complete = len(np.unique(known[known != NO_GOLD])) == truths
    from_gold = complete or not ordered
    start = start_from_gold(answers, known, truths) if from_gold else start_from_order(answers, truths)
    return fit_truth_tables(answers, start, known)


@dataclass(frozen=True, eq=False)
class _Features:
    """Features of all tasks: the log posterior, [task, truth], columns that workers share, and columns of workers."""

    logs: NDArray[np.float64]
    shared: NDArray[np.float64]
    own: NDArray[np.float64]

    def of(self, tasks: Any) -> NDArray[np.float64]:
        """Return the features of some tasks, [task, truth, feature]."""
        columns = np.concatenate((self.shared[tasks], self.own[tasks]), axis=1)
        logs = self.logs[tasks]
        return np.concatenate((logs[:, :, None], by_label(columns, logs.shape[1])), axis=2)

    def prior(self, deviation: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return means and standard deviations of the weights."""
        each = np.repeat((SHARED_DEVIATION, deviation), (self.shared.shape[1], self.own.shape[1]))
        deviations = np.append(POSTERIOR_DEVIATION, np.tile(each, self.logs.shape[1]))
        means = np.zeros(len(deviations))
        means[0] = POSTERIOR_MEAN
        return means, deviations


def _features(answers: Answers, posterior: NDArray[np.float64], gold: NDArray[np.int64], ordered: bool) -> _Features:
    logs = np.log(np.maximum(posterior, LEAST_PROBABILITY))
    tasks, workers, size = answers.shape
    number = np.bincount(answers.task, minlength=tasks)
    ones = np.ones((tasks, 1))
    if not ordered:
        cells = np.bincount(answers.task * size + answers.answer, minlength=tasks * size).reshape(tasks, size)
        shares = cells / np.maximum(number, 1)[:, None]
        return _Features(logs, np.concatenate((ones, shares), axis=1), np.zeros((tasks, 0)))
    score = _standardized(answers)
    mean = np.bincount(answers.task, score, tasks) / np.maximum(number, 1)
    mean /= max(float(mean.std()), 1e-9)
    on_gold = np.isin(answers.task, gold)
    counts = np.bincount(answers.worker[on_gold], minlength=workers)
    column = np.full(workers, -1)
    kept = np.argsort(-counts, kind="stable")[:MAX_WORKERS]
    kept = kept[counts[kept] >= MIN_GOLD_ANSWERS]
    column[kept] = np.arange(len(kept))
    listed = column[answers.worker] >= 0
    own = np.zeros((tasks, len(kept)))
    own[answers.task[listed], column[answers.worker[listed]]] = score[listed]
    own /= np.sqrt(max(float((own[gold] != 0).sum(axis=1).mean()), 1.0))
    return _Features(logs, np.column_stack((ones, mean)), own)


def _standardized(answers: Answers) -> NDArray[np.float64]:
    """Return each answer's code less the worker's mean, in the worker's standard deviations; shape (answers,)."""
    workers, value = answers.shape[1], answers.answer.astype(float)
    number = np.maximum(np.bincount(answers.worker, minlength=workers), 1)
    centred = value - (np.bincount(answers.worker, value, workers) / number)[answers.worker]
    deviation = np.sqrt(np.bincount(answers.worker, centred**2, workers) / number)
    return np.asarray(centred / np.maximum(deviation, 1e-9)[answers.worker])


def _stack(
    features: _Features, known: NDArray[np.int64], gold: NDArray[np.int64], fold: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the stacked posterior of all tasks, [task, truth], and that of gold tasks without their fold."""
    on_gold, truths = features.of(gold), known[gold]
    held = np.zeros((len(DEVIATIONS), len(gold), features.logs.shape[1]))
    fits = []
    for place, deviation in enumerate(DEVIATIONS):
        mean, spread = features.prior(deviation)
        for one in range(FOLDS):
            train, test = fold[gold] != one, fold[gold] == one
            fit = fit_regression(on_gold[train], truths[train], mean=mean, deviation=spread)
            held[place, test] = fit.probabilities(on_gold[test])
        fits.append(fit_regression(on_gold, truths, mean=mean, deviation=spread))
    likelihood = np.log(np.maximum(held[:, np.arange(len(gold)), truths], LEAST_PROBABILITY)).sum(axis=1)
    weights = np.exp(likelihood - likelihood.max())
    weights /= weights.sum()
    posterior = np.empty_like(features.logs)
    for first in range(0, len(posterior), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        columns = features.of(part)
        posterior[part] = sum(weight * fit.probabilities(columns) for weight, fit in zip(weights, fits, strict=True))
    return posterior, np.einsum("d,dtk->tk", weights, held)


def _panel(
    answers: Answers, known: NDArray[np.int64], posterior: NDArray[np.float64], from_gold: bool, names: list[str]
) -> Panel:
    """Return the dependence of the workers with the most answers, on the first tasks and all gold tasks."""
    counts = np.bincount(answers.worker, minlength=answers.shape[1])
    kept = np.sort(np.argsort(-counts, kind="stable")[:MAX_WORKERS])
    kept = kept[counts[kept] > 0]
    tables, prior = tables_of(answers, posterior)
    tables = tables[kept]
    read = (np.arange(len(known)) < MAX_TASKS) | (known != NO_GOLD)
    codes = codes_of(answers, kept)[read]
    errors = errors_by_truth(answers, tables, prior)
    correlation, common = error_correlations(codes, errors, posterior[read])
    alike = alike_pairs(correlation, common, [names[code] for code in kept])
    if from_gold:
        certain = one_hot_gold(np.zeros_like(posterior), known)[read]
        correlation, common = error_correlations(codes, errors, certain)
    effective, mean = effective_number(correlation, common)
    return Panel(
        workers=len(kept),
        effective=effective,
        correlation=mean,
        from_gold=from_gold,
        alike=len(alike),
        pairs=tuple(alike[:SHOWN_PAIRS]),
    )


def _with_accuracy(
    panel: Panel, answers: Answers, known: NDArray[np.int64], held: NDArray[np.float64], names: list[str]
) -> Panel:
    """Return the panel with the cross-validated accuracies of its best worker and of the result."""
    best = best_worker(answers, known, folds_of(known), held.shape[1])
    answered = np.bincount(answers.task, minlength=len(known)) > 0
    right = held.argmax(axis=1) == known[(known != NO_GOLD) & answered]
    panel = replace(panel, stacked_accuracy=float(right.mean()))
    return panel if best is None else replace(panel, best_worker=names[best[0]], best_accuracy=best[1])
