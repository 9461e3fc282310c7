"""Trust in workers, learned privately: how far, on average, a worker's claims lie from the tasks' places.

A claim is used twice, for its task's place and in its worker's sum; both are private, and so is what follows. Weights
favour workers who agree with the others: they suit a reader who wants the reliable workers' density, not that of all.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crowdveil.randomness import Source
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.discrete_noise import Integers, budget, two_sided_geometric, two_sided_geometric_variance
from crowdveil.synthesis.private.location import finest_level, kinds, locate
from crowdveil.synthesis.private.noisy_counts import Positions, positions

Floats = NDArray[np.float64]

SPREAD_SHARE, SUM_SHARE = 0.1, 0.4
"""Parts of the budget for the common spread and the workers' sums; places get the rest."""
STEPS = 16
"""Steps of a distance, which counts up to one spread."""
TRUSTED = 0.1
"""Workers nearer than this quantile have full weight: the nearest of all may be so by noise."""


def learn_weights(claims: Claims, used: NDArray[np.bool_], epsilon: Fraction, source: Source) -> Floats:
    """Return the weight of every worker, in (0, 1], epsilon-private for a claim that is replaced; shape (workers,).

    Args:
        claims: of all tasks, within public bounds; who claimed is public.
        used: which claims count, shape (claims,).
        epsilon: what one claim may lose.
        source: of randomness.
    """
    rows = np.flatnonzero(claims.per_task > 0)
    here = positions(claims, rows, used.astype(np.int64))
    for_spread, for_sums = (budget(float(epsilon) * share) for share in (SPREAD_SHARE, SUM_SHARE))
    for_places = float(epsilon - for_spread - for_sums)
    finest = finest_level(here, for_spread, source)
    level = kinds(np.maximum(here.counted, 1) * for_places, finest)[1]
    place = np.empty(len(rows))
    for fine in np.unique(level):
        mine = np.flatnonzero(level == fine)
        part = positions(claims, rows[mine], used.astype(np.int64))
        place[mine] = locate(part, int(fine), for_places, source)
    distance = distances(here, place, np.ldexp(np.ones(len(rows)), -level))
    exact = np.bincount(claims.worker, weights=distance * used, minlength=len(claims.workers)).astype(np.int64)
    noisy = exact + two_sided_geometric(STEPS / for_sums, len(exact), source)
    counted = np.bincount(claims.worker[used], minlength=len(claims.workers)).astype(np.float64)
    return _weights(noisy / STEPS, counted, two_sided_geometric_variance(STEPS / for_sums) / STEPS**2)


def distances(claims: Positions, place: Floats, spread: Floats) -> Integers:
    """Return the distance of every claim from its task's place in steps, 0 .. STEPS, shape (claims,)."""
    apart = np.abs(claims.place - place[claims.task]) / spread[claims.task]
    return np.ceil(np.minimum(apart, 1.0) * STEPS).astype(np.int64)


def _weights(total: Floats, counted: Floats, variance: float) -> Floats:
    """Turn noisy sums into weights: mean distances, drawn to the common mean as far as they are noise, inverted."""
    count = np.maximum(counted, 1.0)
    mean = np.clip(total.sum() / max(counted.sum(), 1.0), 1.0 / STEPS, 1.0)
    own = total / count
    error = variance / count**2 + mean**2 / count
    between = max(float(np.average((own - mean) ** 2 - error, weights=1.0 / error)), 0.0)
    settled = np.clip(mean + (own - mean) * between / (between + error), 0.25 / STEPS, 1.0)
    near = float(np.quantile(settled, TRUSTED)) if len(settled) else 1.0
    return np.minimum(near / settled, 1.0) ** 2
