"""Saddle points of the likelihood: perturbed restarts of small fits that rounding errors would decide.

If the reports have a symmetry (two groups of workers of equal size with opposite reports), EM from the votes
keeps it in exact arithmetic, and may pass a point from which several optima of the same likelihood can be reached. The
parameters after the first step are therefore changed by a tiny amount in opposite directions: if the fits converge to
different optima, the one with the highest likelihood is the result; tied optima are averaged.
"""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.estimate import WorkerTable
from crowdveil.em.loop import run_em
from crowdveil.em.model import FitInput, FitResult

MAX_REPORTS = 500
"""Largest number of reports of a checked fit: only small data are symmetric by chance, and a check costs two fits."""
MIN_STEPS = 3
"""Steps below which a fit is not checked: the vote, then two with parameters."""
RELATIVE_CHANGE = 1e-6
"""Relative change of the parameters: far above rounding errors, and too small to leave a strict optimum."""
MIN_DIFFERENCE = 1e-3
"""Difference of a posterior probability above which two optima are different."""
MAX_UNCHANGED_PAIRS, MAX_PAIRS = 12, 40
"""Pairs of opposite directions without a new optimum after which the search stops, and upper bound of pairs; the search
stops after the first pair if both fits converge to the original optimum."""
TIE_TOLERANCE = 1e-7
"""Log-likelihoods that differ by less than this share of one plus their size are equal."""
LOWEST, HIGHEST = ("ability_low", "sigma_low"), ("ability_high", "sigma_high")


def jittered_table(table: NDArray[np.float64], direction: float, number: int) -> NDArray[np.float64]:
    """Return positive numbers with a relative change of `RELATIVE_CHANGE` at most.

    One number, chosen by `number`, gets the full change; the others get pseudo-random ones, a hundred times smaller.
    """
    along = np.random.default_rng(number).uniform(-0.01, 0.01, table.size)
    along[np.random.default_rng(0).permutation(table.size)[number % table.size]] = 1.0
    return np.asarray(table * (1 + direction * RELATIVE_CHANGE * along.reshape(table.shape)))


def restart_from_saddle(result: FitResult[Any, Any], initial: Any, data: FitInput) -> FitResult[Any, Any]:
    """Return the result of a fit; if rounding errors decided it, the best optimum or the mean of tied ones.

    Args:
        result: of the fit.
        initial: parameters that the fit started from.
        data: reports, counts and known truths.
    """
    reports = int(data.summary.per_worker.sum())
    if not result.log_likelihoods or not result.converged or not 0 < reports <= MAX_REPORTS:
        return result
    if result.steps < MIN_STEPS:
        return result
    model: Any = result.model
    first = run_em(replace(model, max_steps=MIN_STEPS - 1), initial, data).parameters
    optima, unchanged = [result], 0
    for seed in range(MAX_PAIRS):
        new = 0
        for direction in (1.0, -1.0):
            restart = run_em(model, model.jitter_parameters(first, direction, seed), data)
            changes = (np.abs(restart.tasks.posterior - one.tasks.posterior).max() for one in optima)
            if all(change > MIN_DIFFERENCE for change in changes):
                optima.append(restart)
                new += 1
        unchanged = 0 if new else unchanged + 1
        if len(optima) == 1 or unchanged == MAX_UNCHANGED_PAIRS:
            break
    return _likeliest_optimum_or_tied_mean(optima)


def _likeliest_optimum_or_tied_mean(optima: Sequence[FitResult[Any, Any]]) -> FitResult[Any, Any]:
    """Return the optimum with the highest likelihood; the mean of tied ones."""
    top = max(optimum.log_likelihoods[-1] for optimum in optima)
    tied = [optimum for optimum in optima if top - optimum.log_likelihoods[-1] <= TIE_TOLERANCE * (1 + abs(top))]
    return tied[0] if len(tied) == 1 else _first_result_with_mean_posterior(tied)


def _first_result_with_mean_posterior(optima: Sequence[FitResult[Any, Any]]) -> FitResult[Any, Any]:
    """Return the first result with the mean posterior and worker table of all; intervals cover all of theirs."""
    first = optima[0]
    posterior = np.mean([optimum.tasks.posterior for optimum in optima], axis=0)
    combined: dict[str, Any] = {}
    for field in fields(WorkerTable):
        held = [getattr(optimum.workers, field.name) for optimum in optima]
        if isinstance(held[0], np.ndarray):
            combine: Any = np.min if field.name in LOWEST else np.max if field.name in HIGHEST else np.mean
            combined[field.name] = combine(held, axis=0)
    return replace(first, tasks=first.tasks._replace(posterior=posterior), workers=replace(first.workers, **combined))
