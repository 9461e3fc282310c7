"""Stacking of methods by cross-fitting on gold: the default, guided by gold, EBCC, one-coin and the vote.

    P(k | t) ~ exp(sum_r a_r log max(p_r(t, k), FLOOR) + b_k),   a_r ~ N(mean_r, WEIGHT_DEVIATION^2),
    b_k ~ N(0, BIAS_DEVIATION^2)

is fitted three times: to all members, with mean_r = 1/2 for the default and 1/2 shared by the others; to the default
alone, with the mean 1; and to the result without gold, with the mean 1 and no b, which changes no truth. The result is
their mixture, weighted by held-out gold (`mixture_weights`): gold that shows no gain changes little.
The default's posterior of a gold task is that of a fit without its fold (of `FOLDS`), so that no known truth is scored
by a fit that it guided; that of other tasks is from the fit to all gold. The other members are fitted without gold.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.em.estimator import Estimator
from crowdveil.em.gold import align_gold, one_hot_gold
from crowdveil.em.kernels.reductions import CHUNK_NUMBERS
from crowdveil.estimators import ESTIMATORS
from crowdveil.estimators.hierarchical_dawid_skene import HierarchicalDawidSkene
from crowdveil.inference.gold_draw import nonrandom_gold_warnings
from crowdveil.inference.stacking import (
    FLOOR,
    Regression,
    cross_validate_gold,
    fit_regression,
    further_gold_clause,
    label_features,
    log_loss_warning,
    mixture_weights,
)

MIN_GOLD, FOLDS = 20, 5
"""Smallest number of gold tasks with reports that are stacked, and number of folds."""
WEIGHT_DEVIATION, BIAS_DEVIATION = 0.3, 0.5
PRIOR = np.array([0.15, 0.15, 0.7])
"""Weights of the three fits without gold: of all members, of the default alone, of the result without gold."""
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


class WithoutGold(NamedTuple):
    """Fits that gold does not guide: the result without gold, posteriors of the other members by name, and steps."""

    result: Estimate
    others: dict[str, NDArray[np.float64]]
    steps: int


class Mixture(NamedTuple):
    """Fitted regressions and their weights."""

    fits: tuple[Regression, ...]
    weights: NDArray[np.float64]

    def probabilities(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(label) of tasks, [task, label], from features [task, label, feature]."""
        return np.asarray(
            sum(weight * fit.probabilities(rows) for fit, weight in zip(self.fits, self.weights, strict=True))
        )


def estimate_stacked_with_gold(
    estimator: Estimator[Any, Any],
    reports: Reports,
    inputs: dict[str, Any],
    estimate: Estimate,
    without: WithoutGold | None = None,
) -> Stacked | None:
    """Return the estimate with the posterior of the stack; None for other methods, or with too little gold.

    Args:
        estimator: default for labels.
        reports: over all tasks and workers.
        inputs: arguments of `Estimator.fit` other than the reports.
        estimate: fit of the estimator to all gold.
        without: fits without gold, if they are known.
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
    without = fits_without_gold(estimator, reports, inputs) if without is None else without
    plain = without.result
    # The votes are a member of their own.
    own = replace(estimator, vote_share=0.0) if isinstance(estimator, HierarchicalDawidSkene) else estimator
    guided = estimate if own == estimator else own.fit(reports, **inputs)
    held, steps = _held_out_gold_posterior(own, reports, inputs, at, fold)
    others = [*without.others.values(), plain.posterior]
    rows = _member_log_posteriors_and_biases(np.stack([held, *(other[at] for other in others)], axis=2))
    crossed, mixture = _cross_fitted_mixture(rows, truths, fold)
    posterior = _combined(mixture, [guided.posterior, *others], np.asarray(estimate.reports_per_task))
    codes = gold.truths_of_tasks(0, len(posterior))
    check, gain = cross_validate_gold(crossed, truths, plain.posterior[at])
    line = _stack_weights_line((estimator.name, *without.others), mixture, len(at)) + gain
    if EBCC not in without.others:
        line += f"; {EBCC} is left out: there are too many reports, workers or labels"
    unlike = nonrandom_gold_warnings(plain, at)
    check = replace(check, random=False if unlike else None)
    return Stacked(
        replace(estimate, posterior=one_hot_gold(posterior, codes), cross_validation=check),
        line,
        (*unlike, *log_loss_warning(crossed, plain.posterior[at], truths)),
        without.steps + steps,
    )


def fits_without_gold(estimator: Estimator[Any, Any], reports: Reports, inputs: dict[str, Any]) -> WithoutGold:
    """Return the result without gold and the members that gold does not guide; arguments as in the stack."""
    plain = estimator.fit(reports, **inputs | {"gold": None})
    labels = plain.posterior.shape[1]
    methods: list[Estimator[Any, Any]] = [ESTIMATORS[name]() for name in ("one-coin", "majority-vote")]
    if len(reports) * labels <= EBCC_NUMBERS and len(reports.workers) * labels**2 <= EBCC_CELLS:
        methods.insert(0, ESTIMATORS[EBCC]())
    if not isinstance(estimator, HierarchicalDawidSkene):
        methods.insert(0, HierarchicalDawidSkene(vote_share=0.0))
    fits = {}
    for method in methods:
        own = inputs | {"gold": None} | ({} if method.capabilities.uses_history else {"history": None})
        fits[method.name] = method.fit(reports, **own)
    steps = plain.steps + sum(one.steps for one in fits.values())
    return WithoutGold(plain, {name: one.posterior for name, one in fits.items()}, steps)


def _held_out_gold_posterior(
    estimator: Estimator[Any, Any],
    reports: Reports,
    inputs: dict[str, Any],
    at: NDArray[np.int64],
    fold: NDArray[np.int64],
) -> tuple[NDArray[np.float64], int]:
    """Return the posterior of gold tasks by fits to the other folds of gold, [task, label], and the steps of the fits.

    Args:
        estimator, reports, inputs: as in `estimate_stacked_with_gold`.
        at: codes of gold tasks.
        fold: fold of each, shape (gold tasks,).
    """
    fits = []
    for number in range(FOLDS):
        held = {str(reports.tasks[code]) for code in at[fold == number].tolist()}
        rest = {task: truth for task, truth in inputs["gold"].items() if str(task) not in held}
        fits.append(estimator.fit(reports, **inputs | {"gold": rest}))
    posterior = np.stack([one.posterior[at] for one in fits])[fold, np.arange(len(at))]
    return posterior, sum(one.steps for one in fits)


def _member_log_posteriors_and_biases(posteriors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return features [task, label, feature]: log posteriors of the members, [task, label, member], and biases."""
    biases = label_features(np.ones((len(posteriors), 1)), posteriors.shape[1])
    return np.concatenate([np.log(np.maximum(posteriors, FLOOR)), biases], axis=2)


def _fitted_regressions(rows: NDArray[np.float64], truths: NDArray[np.int64]) -> tuple[Regression, ...]:
    """Return the regressions on all members, on the default alone, and on the result without gold.

    Weights of features that a regression leaves out are 0. The default is the first feature, the result without gold
    the last one before the biases.
    """
    labels = rows.shape[1]
    last = rows.shape[2] - labels - 1
    means = np.zeros((3, rows.shape[2]))
    means[0, :last] = np.append(0.5, np.full(last - 1, 0.5 / (last - 1)))
    means[1, 0] = means[2, last] = 1.0
    biases = range(last + 1, rows.shape[2])
    deviation = np.repeat([WEIGHT_DEVIATION, BIAS_DEVIATION], [last + 1, labels])
    fits = []
    for mean, columns in zip(means, ([*range(last), *biases], [0, *biases], [last]), strict=True):
        found = fit_regression(rows[:, :, columns], truths, mean=mean[columns], deviation=deviation[columns])
        weights = np.zeros(rows.shape[2])
        weights[columns] = found.weights
        fits.append(replace(found, weights=weights))
    return tuple(fits)


def _cross_fitted_mixture(
    rows: NDArray[np.float64], truths: NDArray[np.int64], fold: NDArray[np.int64]
) -> tuple[NDArray[np.float64], Mixture]:
    """Return the posterior of gold tasks by the other folds, [task, label], and the mixture fitted to all gold."""
    held = np.empty((len(PRIOR), *rows.shape[:2]))
    for number in range(FOLDS):
        inside = fold == number
        fits = _fitted_regressions(rows[~inside], truths[~inside])
        held[:, inside] = [fit.probabilities(rows[inside]) for fit in fits]
    crossed = np.empty(rows.shape[:2])
    for number in range(FOLDS):
        inside = fold == number
        weights = mixture_weights(held[:, ~inside], truths[~inside], PRIOR)
        crossed[inside] = np.einsum("m,mtk->tk", weights, held[:, inside])
    return crossed, Mixture(_fitted_regressions(rows, truths), mixture_weights(held, truths, PRIOR))


def _combined(
    mixture: Mixture, posteriors: list[NDArray[np.float64]], reports: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the stacked posterior, [task, label]; tasks without reports keep that of the default."""
    combined = posteriors[0].copy()
    step = max(1, CHUNK_NUMBERS // (combined.shape[1] * (len(posteriors) + combined.shape[1])))
    for first in range(0, len(combined), step):
        tasks = first + np.flatnonzero(reports[first : first + step])
        combined[tasks] = mixture.probabilities(
            _member_log_posteriors_and_biases(np.stack([one[tasks] for one in posteriors], axis=2))
        )
    return combined


def _stack_weights_line(names: tuple[str, ...], mixture: Mixture, known: int) -> str:
    """Return the weights of the members, and the number of further gold tasks that would determine them."""
    stacked = mixture.weights[:2] / mixture.weights[:2].sum()
    weights = stacked @ [fit.weights[: len(names)] for fit in mixture.fits[:2]]
    shown = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(names, weights, strict=True))
    return (
        f"{known:,} gold tasks set the weights: {shown}; {100 * mixture.weights[2]:.0f} % of the result is "
        "that without gold; "
        f"{further_gold_clause(mixture.fits[0].effective, known)}"
    )
