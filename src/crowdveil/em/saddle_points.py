"""Fits that begin on a saddle of the likelihood, where only rounding errors would decide between equally good ends.

Where reports have a symmetry (two groups of workers of the same size who contradict one another), expectation-
maximization from the votes keeps it in exact arithmetic, and may pass a point from which several ends of the same
likelihood can be reached. So the parameters after the first step are moved by a hair, in opposite directions: where
the ends differ, the likeliest end is the result, and ends that are equally likely are averaged.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.estimate import Estimate, WorkerTable
from crowdveil.em.model import Model

MOST_REPORTS = 500
"""Largest table that is checked: symmetric by chance are small ones only, and a check costs two more fits."""
FEWEST_STEPS = 3
"""Steps that a fit takes at least if its parameters matter: the votes, then two with parameters."""
HAIR = 1e-6
"""Relative change of the parameters: far above rounding errors, far below what moves another fit to another end."""
APART = 1e-3
"""Change of a posterior probability from which on ends are different."""
QUIET_PAIRS, MOST_PAIRS = 12, 40
"""Pairs of opposite directions that find no new end before the search stops, and pairs at most; one where the first
pair ends where the fit did."""
TIED = 1e-7
"""Log-likelihoods closer than this, in units of one plus their size, are equal."""
LOWEST, HIGHEST = ("ability_low", "sigma_low"), ("ability_high", "sigma_high")

Run = Callable[[Model[Any, Any], Any], "End"]


class End(NamedTuple):
    """An estimate and the parameters that it follows from."""

    estimate: Estimate
    parameters: Any


def nudge(table: NDArray[np.float64], direction: float, number: int) -> NDArray[np.float64]:
    """Return positive numbers that differ by a relative `HAIR` at most.

    Mostly one number differs, that of the direction; the others follow pseudo-randomly, a hundred times less.
    """
    along = np.random.default_rng(number).uniform(-0.01, 0.01, table.size)
    along[np.random.default_rng(0).permutation(table.size)[number % table.size]] = 1.0
    return np.asarray(table * (1 + direction * HAIR * along.reshape(table.shape)))


def settled(model: Model[Any, Any], start: Any, end: End, run: Run) -> End:
    """Return the end of a fit; where rounding errors chose it, the likeliest end, or the mean of equally likely ones.

    Args:
        model: with its largest number of steps.
        start: parameters that the fit began with; None for those of `start`.
        end: of that fit.
        run: fits a model from parameters, or from its own start.
    """
    reports = int(end.estimate.reports_per_worker.sum())
    if not end.estimate.log_likelihoods or not end.estimate.converged or not 0 < reports <= MOST_REPORTS:
        return end
    if end.estimate.steps < FEWEST_STEPS:
        return end
    early: Any = replace(cast(Any, model), max_steps=FEWEST_STEPS - 1)
    first = run(early, start).parameters
    ends, quiet = [end], 0
    for seed in range(MOST_PAIRS):
        new = 0
        for direction in (1.0, -1.0):
            found = run(model, model.nudged(first, direction, seed))
            if all(_apart(found, other) for other in ends):
                ends.append(found)
                new += 1
        quiet = 0 if new else quiet + 1
        if len(ends) == 1 or quiet == QUIET_PAIRS:
            break
    return _likeliest(ends)


def _apart(one: End, other: End) -> bool:
    return bool(np.abs(one.estimate.posterior - other.estimate.posterior).max() > APART)


def _likeliest(ends: Sequence[End]) -> End:
    """Return the likeliest of several different ends; where several are equally likely, their mean."""
    top = max(end.estimate.log_likelihoods[-1] for end in ends)
    tied = [end for end in ends if top - end.estimate.log_likelihoods[-1] <= TIED * (1 + abs(top))]
    return tied[0] if len(tied) == 1 else End(_mean([end.estimate for end in tied]), tied[0].parameters)


def _mean(estimates: Sequence[Estimate]) -> Estimate:
    """Return the first estimate with the mean posterior and workers of all; intervals cover all of theirs."""
    first = estimates[0]
    posterior = np.mean([one.posterior for one in estimates], axis=0)
    tables = [one.workers for one in estimates]
    combined: dict[str, Any] = {}
    for field in fields(WorkerTable):
        held = [getattr(table, field.name) for table in tables]
        if isinstance(held[0], np.ndarray):
            combine: Any = np.min if field.name in LOWEST else np.max if field.name in HIGHEST else np.mean
            combined[field.name] = combine(held, axis=0)
    return replace(first, posterior=posterior, workers=replace(first.workers, **combined))
