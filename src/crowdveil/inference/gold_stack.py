"""Gold combines methods: a cross-fitted stack of the default, guided by gold, with EBCC, one-coin and the vote.

    P(k | t) ~ exp(sum_r a_r log max(p_r(t, k), FLOOR) + b_k),   a_r ~ N(mean_r, WEIGHT_DEVIATION^2),
    b_k ~ N(0, BIAS_DEVIATION^2)

is fitted twice: to all members, with mean_r = 1/2 for the default and 1/2 shared by the others, and to the default
alone, with the mean 1. The result is the mean of both. The default's posterior of a gold task is that of a fit without
its fold (of `FOLDS`), so that no known truth is scored by a fit that it guided; that of other tasks is from the fit to
all gold. The other members are fitted without gold.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.data.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.em.estimator import Estimator
from crowdveil.em.gold import align_gold, one_hot_gold
from crowdveil.em.kernels.table_and_report_reductions import CHUNK_NUMBERS
from crowdveil.estimators import ESTIMATORS
from crowdveil.estimators.hierarchical_dawid_skene import HierarchicalDawidSkene
from crowdveil.evaluation.gold_draw import warnings_if_gold_not_random
from crowdveil.evaluation.stacking import (
    FLOOR,
    Regression,
    clause_on_further_gold_needed,
    cross_validation_and_gain_text,
    features_with_weights_by_label,
    fit_regression,
    warning_if_gold_worsens_log_loss,
)

MIN_GOLD, FOLDS = 20, 5
"""Smallest number of gold tasks with reports that are stacked, and number of folds."""
WEIGHT_DEVIATION, BIAS_DEVIATION = 0.3, 0.5
STACKED_METHODS = ("hierarchical-dawid-skene", "ordinal-dawid-skene")
"""Methods that are combined with others."""
EBCC, EBCC_NUMBERS, EBCC_CELLS = "ebcc", 1_000_000, 1_000_000
"""Slow member; reports times labels, and cells of all confusion matrices, up to which it is fitted."""


class Stacked(NamedTuple):
    """Estimate combined by gold, what gold did in one line, warnings, and the steps of the other fits."""

    estimate: Estimate
    line: str
    notes: tuple[str, ...]
    steps: int


class Members(NamedTuple):
    """Members, the default first: posteriors of gold tasks, [task, label, member], of all tasks, and steps of fits."""

    names: tuple[str, ...]
    known: NDArray[np.float64]
    others: list[NDArray[np.float64]]
    steps: int


def estimate_stacked_with_gold(
    estimator: Estimator[Any, Any], reports: Reports, inputs: dict[str, Any], estimate: Estimate
) -> Stacked | None:
    """Return the estimate with the posterior of the stack; None for other methods, or with too little gold.

    Args:
        estimator: default for labels.
        reports: over all tasks and workers.
        inputs: arguments of `Estimator.fit` other than the reports.
        estimate: fit of the estimator to all gold.
    """
    if not inputs["gold"] or estimator.name not in STACKED_METHODS:
        return None
    gold = align_gold(reports, inputs["gold"], estimate.alphabet, numeric=False)
    reported = np.asarray(estimate.reports_per_task)[gold.tasks] > 0
    at, truths = gold.tasks[reported], gold.truths[reported]
    if len(at) < MIN_GOLD:
        return None
    inputs = {name: value for name, value in inputs.items() if name != "warm_start"} | {"progress": None}
    fold = np.random.default_rng(0).permutation(len(at)) % FOLDS
    plain = estimator.fit(reports, **inputs | {"gold": None})
    # The votes are a member of their own: the default enters without its share of them.
    own = replace(estimator, vote_share=0.0) if isinstance(estimator, HierarchicalDawidSkene) else estimator
    guided = estimate if own == estimator else own.fit(reports, **inputs)
    members = _posteriors_of_stack_members(own, reports, inputs, at, fold)
    rows = _member_log_posteriors_and_biases(members.known)
    fits = _regressions_on_all_and_default_member(rows, truths)
    posterior = _combined(fits, [guided.posterior, *members.others], np.asarray(estimate.reports_per_task))
    codes = gold.truths_of_tasks(0, len(posterior))
    crossed = _cross_fitted_gold_posterior(rows, truths, fold)
    check, gain = cross_validation_and_gain_text(crossed, truths, plain.posterior[at])
    line = _stack_weights_line(members.names, fits, len(at)) + gain
    if EBCC not in members.names:
        line += f"; {EBCC} is left out of so many reports, workers or labels"
    unlike = warnings_if_gold_not_random(plain, at)
    check = replace(check, random=False if unlike else None)
    return Stacked(
        replace(estimate, posterior=one_hot_gold(posterior, codes), cross_validation=check),
        line,
        (*unlike, *warning_if_gold_worsens_log_loss(crossed, plain.posterior[at], truths)),
        plain.steps + members.steps,
    )


def _posteriors_of_stack_members(
    estimator: Estimator[Any, Any],
    reports: Reports,
    inputs: dict[str, Any],
    at: NDArray[np.int64],
    fold: NDArray[np.int64],
) -> Members:
    """Return the posteriors of all members: of the default those of gold tasks from fits without their fold."""
    crossed = []
    for number in range(FOLDS):
        held = {str(reports.tasks[code]) for code in at[fold == number].tolist()}
        rest = {task: truth for task, truth in inputs["gold"].items() if str(task) not in held}
        crossed.append(estimator.fit(reports, **inputs | {"gold": rest}))
    guided = np.stack([one.posterior[at] for one in crossed])[fold, np.arange(len(at))]
    labels = guided.shape[1]
    methods: list[Estimator[Any, Any]] = [ESTIMATORS[name]() for name in ("one-coin", "majority-vote")]
    if len(reports) * labels <= EBCC_NUMBERS and len(reports.workers) * labels**2 <= EBCC_CELLS:
        methods.insert(0, ESTIMATORS[EBCC]())
    if not isinstance(estimator, HierarchicalDawidSkene):
        methods.insert(0, HierarchicalDawidSkene(vote_share=0.0))
    others = []
    for method in methods:
        own = inputs | {"gold": None} | ({} if method.capabilities.uses_history else {"history": None})
        others.append(method.fit(reports, **own))
    names = (estimator.name, *(method.name for method in methods))
    known = np.stack([guided, *(other.posterior[at] for other in others)], axis=2)
    steps = sum(one.steps for one in (*crossed, *others))
    return Members(names, known, [other.posterior for other in others], steps)


def _member_log_posteriors_and_biases(posteriors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return features [task, label, feature]: log posteriors of the members, [task, label, member], and biases."""
    biases = features_with_weights_by_label(np.ones((len(posteriors), 1)), posteriors.shape[1])
    return np.concatenate([np.log(np.maximum(posteriors, FLOOR)), biases], axis=2)


def _regressions_on_all_and_default_member(
    rows: NDArray[np.float64], truths: NDArray[np.int64]
) -> tuple[Regression, Regression]:
    """Return the regression on all members, and on the default alone, whose other weights are 0."""
    labels = rows.shape[1]
    others = rows.shape[2] - labels - 1
    mean = np.concatenate([[0.5], np.full(others, 0.5 / others), np.zeros(labels)])
    deviation = np.repeat([WEIGHT_DEVIATION, BIAS_DEVIATION], [1 + others, labels])
    everything = fit_regression(rows, truths, mean=mean, deviation=deviation)
    own = np.delete(np.arange(rows.shape[2]), np.arange(1, 1 + others))
    alone = fit_regression(rows[:, :, own], truths, mean=np.eye(len(own))[0], deviation=deviation[own])
    weights = np.zeros(rows.shape[2])
    weights[own] = alone.weights
    return everything, Regression(weights, alone.effective)


def _mean_regression_probabilities(fits: tuple[Regression, ...], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.mean([fit.probabilities(rows) for fit in fits], axis=0))


def _combined(
    fits: tuple[Regression, ...], posteriors: list[NDArray[np.float64]], reports: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the stacked posterior, [task, label]; tasks without reports keep that of the default."""
    combined = posteriors[0].copy()
    step = max(1, CHUNK_NUMBERS // (combined.shape[1] * (len(posteriors) + combined.shape[1])))
    for first in range(0, len(combined), step):
        tasks = first + np.flatnonzero(reports[first : first + step])
        combined[tasks] = _mean_regression_probabilities(
            fits, _member_log_posteriors_and_biases(np.stack([one[tasks] for one in posteriors], axis=2))
        )
    return combined


def _stack_weights_line(names: tuple[str, ...], fits: tuple[Regression, Regression], known: int) -> str:
    """Return the weights of the members, and the number of further gold tasks that would determine them."""
    weights = np.mean([fit.weights[: len(names)] for fit in fits], axis=0)
    shown = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(names, weights, strict=True))
    return f"{known:,} tasks weigh {shown}; {clause_on_further_gold_needed(fits[0].effective, known)}"


def _cross_fitted_gold_posterior(
    rows: NDArray[np.float64], truths: NDArray[np.int64], fold: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the posterior of gold tasks by the other folds, [task, label]."""
    crossed = np.empty(rows.shape[:2])
    for number in range(FOLDS):
        held = fold == number
        crossed[held] = _mean_regression_probabilities(
            _regressions_on_all_and_default_member(rows[~held], truths[~held]), rows[held]
        )
    return crossed
