"""Stacking of answers: known truths regressed on the answers and on the posterior of their tables.

The log posterior of gold tasks is that of a fit without their fold. The answers enter as the mean standardized answer,
and that of each worker with `MIN_GOLD_ANSWERS` answers on gold tasks; as shares where they have no order. Deviations of
the workers' weights and of the biases are averaged over, weighted by the likelihood of held-out gold.

Without enough gold a share of each probability is the mean of P(truth | answer) over the answers of the task, each read
by itself, so that judges who share mistakes are less certain.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.gold import NO_GOLD
from crowdveil.estimators.confusion.truth_tables import (
    Answers,
    TruthTables,
    fit_truth_tables,
    posterior_by_ranks,
    posterior_from_gold,
)
from crowdveil.inference.panel.members import FOLDS, MAX_WORKERS, answer_error_probability
from crowdveil.inference.stacking import fit_regression, further_gold_clause, label_features

MIN_STACKED = 20
"""Smallest number of gold tasks with answers that the answers are stacked with."""
MIN_GOLD_ANSWERS = 10
"""Smallest number of a worker's answers on gold tasks for weights of their own."""
DEVIATIONS, BIAS_DEVIATIONS = (0.1, 0.3, 1.0), (0.35, 1.0)
"""Prior standard deviations of the workers' weights, for answers to a task that sum to unit variance, and of biases.

A wide bias lets gold correct the shares of truths that are rare, which the tables overestimate; where a truth has no
gold, whose share is then unknown, the bias is narrow.
"""
SHARED_DEVIATION = 0.7
POSTERIOR_MEAN, POSTERIOR_DEVIATION = 0.5, 0.3
"""Priors of the weights that workers share, and of the weight of the log posterior."""
SINGLE_SHARE = 0.2
"""Weight of answers read by themselves in probabilities without gold, as of the votes in the default for labels."""
LEAST_PROBABILITY = 1e-4
AT_ONCE = 4096
"""Tasks whose features are held together."""


class StackedAnswers(NamedTuple):
    """Truths by the tables, or by their stack with the answers.

    Attributes:
        tables: fit of the tables.
        posterior: of all tasks, [task, truth].
        held: of gold tasks with answers, by the other folds; None if the answers are not stacked.
        line: weight of the tables, and how many more gold tasks would help; empty if not stacked.
    """

    tables: TruthTables
    posterior: NDArray[np.float64]
    held: NDArray[np.float64] | None = None
    line: str = ""


def fit_stacked(answers: Answers, known: NDArray[np.int64], truths: int, ordered: bool) -> StackedAnswers:
    """Return the fit of the tables, stacked with the answers if there are `MIN_STACKED` gold tasks with answers."""
    fit = _fit_from_gold_or_order(answers, known, truths, ordered)
    answered = np.bincount(answers.task, minlength=answers.shape[0]) > 0
    gold = np.flatnonzero((known != NO_GOLD) & answered)
    if len(gold) < max(MIN_STACKED, FOLDS):
        return StackedAnswers(fit, posterior_with_single_answers(answers, fit))
    posterior, fold = fit.posterior.copy(), fold_of_each_task(known)
    for held in range(FOLDS):
        others = _fit_from_gold_or_order(answers, np.where(fold == held, NO_GOLD, known), truths, ordered)
        posterior[fold == held] = others.posterior[fold == held]
    features = _stacking_features_of_tasks(answers, posterior, gold, ordered)
    return StackedAnswers(fit, *_stacked_posterior_and_line(features, known, gold, fold))


def posterior_with_single_answers(answers: Answers, fit: TruthTables) -> NDArray[np.float64]:
    """Return the posterior of the tables with `SINGLE_SHARE` of answers read by themselves, [task, truth]."""
    tasks, errors = answers.shape[0], answer_error_probability(answers, fit.tables, fit.class_prior)
    number = np.bincount(answers.task, minlength=tasks)
    readings = 1 - errors[answers.worker, :, answers.answer]
    sums = np.stack([np.bincount(answers.task, column, tasks) for column in readings.T], axis=1)
    share = SINGLE_SHARE * (number > 0)[:, None]
    return np.asarray((1 - share) * fit.posterior + share * sums / np.maximum(number, 1)[:, None])


def fold_of_each_task(known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the fold of each task, shape (tasks,): gold tasks of each truth in turn, -1 for others."""
    fold = np.full(len(known), -1)
    order = np.argsort(known, kind="stable")[(known == NO_GOLD).sum() :]
    fold[order] = np.arange(len(order)) % FOLDS
    return fold


def _fit_from_gold_or_order(answers: Answers, known: NDArray[np.int64], truths: int, ordered: bool) -> TruthTables:
    """Return the fit that starts from gold if it has every truth, or the answers no order; else from their order."""
    complete = len(np.unique(known[known != NO_GOLD])) == truths
    from_gold = complete or not ordered
    start = posterior_from_gold(answers, known, truths) if from_gold else posterior_by_ranks(answers, truths)
    return fit_truth_tables(answers, start, known)


@dataclass(frozen=True, eq=False)
class _Features:
    """Features of all tasks: log posterior, [task, truth], columns of all workers (ones first), and of each one."""

    logs: NDArray[np.float64]
    shared: NDArray[np.float64]
    own: NDArray[np.float64]

    def features_of_tasks(self, tasks: Any) -> NDArray[np.float64]:
        """Return the features of some tasks, [task, truth, feature]."""
        columns = np.concatenate((self.shared[tasks], self.own[tasks]), axis=1)
        logs = self.logs[tasks]
        return np.concatenate((logs[:, :, None], label_features(columns, logs.shape[1])), axis=2)

    def weight_priors(self, deviation: float, bias: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return means and standard deviations of the weights, from those of workers and biases."""
        each = np.repeat((SHARED_DEVIATION, deviation), (self.shared.shape[1], self.own.shape[1]))
        each[0] = bias
        deviations = np.append(POSTERIOR_DEVIATION, np.tile(each, self.logs.shape[1]))
        means = np.zeros(len(deviations))
        means[0] = POSTERIOR_MEAN
        return means, deviations


def _stacking_features_of_tasks(
    answers: Answers, posterior: NDArray[np.float64], gold: NDArray[np.int64], ordered: bool
) -> _Features:
    logs = np.log(np.maximum(posterior, LEAST_PROBABILITY))
    tasks, workers, size = answers.shape
    number = np.bincount(answers.task, minlength=tasks)
    ones = np.ones((tasks, 1))
    if not ordered:
        cells = np.bincount(answers.task * size + answers.answer, minlength=tasks * size).reshape(tasks, size)
        shares = cells / np.maximum(number, 1)[:, None]
        return _Features(logs, np.concatenate((ones, shares), axis=1), np.zeros((tasks, 0)))
    score = _standardized_by_worker(answers)
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


def _standardized_by_worker(answers: Answers) -> NDArray[np.float64]:
    """Return each answer's code less the worker's mean, in the worker's standard deviations; shape (answers,)."""
    workers, value = answers.shape[1], answers.answer.astype(float)
    number = np.maximum(np.bincount(answers.worker, minlength=workers), 1)
    centred = value - (np.bincount(answers.worker, value, workers) / number)[answers.worker]
    deviation = np.sqrt(np.bincount(answers.worker, centred**2, workers) / number)
    return np.asarray(centred / np.maximum(deviation, 1e-9)[answers.worker])


def _stacked_posterior_and_line(
    features: _Features, known: NDArray[np.int64], gold: NDArray[np.int64], fold: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
    """Return the stacked posterior of all tasks, [task, truth], that of gold tasks without their fold, and the line."""
    on_gold, truths = features.features_of_tasks(gold), known[gold]
    complete = len(np.unique(truths)) == features.logs.shape[1]
    priors = list(product(DEVIATIONS, BIAS_DEVIATIONS if complete else BIAS_DEVIATIONS[:1]))
    held = np.zeros((len(priors), len(gold), features.logs.shape[1]))
    fits = []
    for place, deviations in enumerate(priors):
        mean, spread = features.weight_priors(*deviations)
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
        columns = features.features_of_tasks(part)
        posterior[part] = sum(weight * fit.probabilities(columns) for weight, fit in zip(weights, fits, strict=True))
    effective = float(weights @ [fit.effective for fit in fits])
    of_tables = float(weights @ [fit.weights[0] for fit in fits])
    own = f" and answers of {features.own.shape[1]:,} workers by regression" if features.own.shape[1] else ""
    needed = further_gold_clause(effective, len(gold))
    line = f"{len(gold):,} gold tasks set the weights: truth tables {of_tables:.2f}{own}; {needed}"
    return posterior, np.einsum("d,dtk->tk", weights, held), line
