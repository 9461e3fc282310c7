"""Saddle points of the likelihood: perturbed restarts of small fits whose result rounding errors would decide.

If the reports have a symmetry (two groups of workers of the same size who contradict one another), EM from the votes
keeps it in exact arithmetic, and may pass a point from which several optima of the same likelihood can be reached. The
parameters after the first step are therefore changed by a tiny amount in opposite directions: if the fits end in
different optima, the likeliest is the result, and optima that are equally likely are averaged.
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
"""Largest number of reports that is checked: only small tables are symmetric by chance; a check costs two fits."""
MIN_STEPS = 3
"""Least number of steps of a fit that depends on its parameters: the votes, then two with parameters."""
RELATIVE_CHANGE = 1e-6
"""Relative change of the parameters: far above rounding errors, far too small to leave a proper optimum."""
MIN_DIFFERENCE = 1e-3
"""Difference of a posterior probability from which on two optima are different."""
MAX_UNCHANGED_PAIRS, MAX_PAIRS = 12, 40
"""Pairs of opposite directions without a new optimum after which the search stops, and pairs at most; the search stops
after the first pair if both fits end where the original did."""
TIED = 1e-7
"""Log-likelihoods closer than this, in units of one plus their size, are equal."""
LOWEST, HIGHEST = ("ability_low", "sigma_low"), ("ability_high", "sigma_high")


def jittered(table: NDArray[np.float64], direction: float, number: int) -> NDArray[np.float64]:
    """Return positive numbers with a relative change of `RELATIVE_CHANGE` at most.

    One number, chosen by `number`, gets the full change; the others get pseudo-random ones, a hundred times smaller.
    """
    along = np.random.default_rng(number).uniform(-0.01, 0.01, table.size)
    along[np.random.default_rng(0).permutation(table.size)[number % table.size]] = 1.0
    return np.asarray(table * (1 + direction * RELATIVE_CHANGE * along.reshape(table.shape)))


def resolve_saddle(result: FitResult[Any, Any], initial: Any, data: FitInput) -> FitResult[Any, Any]:
    """Return the result of a fit, or where rounding errors chose it, the likeliest end or the mean of tied ones.

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
    ends, unchanged = [result], 0
    for seed in range(MAX_PAIRS):
        new = 0
        for direction in (1.0, -1.0):
            found = run_em(model, model.jitter(first, direction, seed), data)
            if all(_differ(found, other) for other in ends):
                ends.append(found)
                new += 1
        unchanged = 0 if new else unchanged + 1
        if len(ends) == 1 or unchanged == MAX_UNCHANGED_PAIRS:
            break
    return _likeliest(ends)


def _differ(one: FitResult[Any, Any], other: FitResult[Any, Any]) -> bool:
    return bool(np.abs(one.tasks.posterior - other.tasks.posterior).max() > MIN_DIFFERENCE)


def _likeliest(ends: Sequence[FitResult[Any, Any]]) -> FitResult[Any, Any]:
    """Return the likeliest of several different ends; the mean of those that are equally likely."""
    top = max(end.log_likelihoods[-1] for end in ends)
    tied = [end for end in ends if top - end.log_likelihoods[-1] <= TIED * (1 + abs(top))]
    return tied[0] if len(tied) == 1 else _mean(tied)


def _mean(ends: Sequence[FitResult[Any, Any]]) -> FitResult[Any, Any]:
    """Return the first result with the mean posterior and worker table of all; intervals cover all of theirs."""
    first = ends[0]
    posterior = np.mean([end.tasks.posterior for end in ends], axis=0)
    combined: dict[str, Any] = {}
    for field in fields(WorkerTable):
        held = [getattr(end.workers, field.name) for end in ends]
        if isinstance(held[0], np.ndarray):
            combine: Any = np.min if field.name in LOWEST else np.max if field.name in HIGHEST else np.mean
            combined[field.name] = combine(held, axis=0)
    return replace(first, tasks=first.tasks._replace(posterior=posterior), workers=replace(first.workers, **combined))
