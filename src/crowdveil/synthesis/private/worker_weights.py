"""Private worker weights from the mean distance of a worker's claims to the locations of their tasks.

Each claim is used twice, for its task's location and in its worker's sum; both are private, and the weights are
post-processing of them. Workers who agree with the others get larger weights, so the released density is that of the
reliable workers rather than of all.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crowdveil.randomness import Source
from crowdveil.synthesis.claims import Claims, Floats, ScaledClaims, scale_claims
from crowdveil.synthesis.discrete_noise import (
    Integers,
    discrete_laplace_variance,
    floor_epsilon,
    sample_discrete_laplace,
)
from crowdveil.synthesis.private.exponential_mechanism import information_groups, select_finest_level, select_locations

SPREAD_SHARE, SUM_SHARE = 0.1, 0.4
"""Shares of the budget for the common spread and for the workers' sums; locations get the rest."""
DISTANCE_STEPS = 16
"""Largest distance of a claim, in steps; one spread or more."""
FULL_WEIGHT_QUANTILE = 0.1
"""Workers nearer than this quantile have weight 1; the nearest worker of all may be so by noise."""


def learn_weights(claims: Claims, used: NDArray[np.bool_], epsilon: Fraction, source: Source) -> Floats:
    """Return the weight of every worker, in (0, 1], epsilon-private for a replaced claim; shape (workers,).

    Args:
        claims: of all tasks, within public bounds; participation is public.
        used: which claims are used, shape (claims,).
        epsilon: privacy loss of one claim.
        source: of randomness.
    """
    rows = np.flatnonzero(claims.per_task > 0)
    scaled = scale_claims(claims, rows, used.astype(np.int64))
    spread_epsilon, sum_epsilon = (floor_epsilon(float(epsilon) * share) for share in (SPREAD_SHARE, SUM_SHARE))
    location_epsilon = float(epsilon - spread_epsilon - sum_epsilon)
    finest = select_finest_level(scaled, spread_epsilon, source)
    level = information_groups(np.maximum(scaled.counted, 1) * location_epsilon, finest)[1]
    location = np.empty(len(rows))
    for one in np.unique(level):
        members = np.flatnonzero(level == one)
        part = scale_claims(claims, rows[members], used.astype(np.int64))
        location[members] = select_locations(part, int(one), location_epsilon, source)
    distance = distances(scaled, location, np.ldexp(np.ones(len(rows)), -level))
    exact = np.bincount(claims.worker, weights=distance * used, minlength=len(claims.workers)).astype(np.int64)
    scale = DISTANCE_STEPS / sum_epsilon
    noisy = exact + sample_discrete_laplace(scale, len(exact), source)
    counted = np.bincount(claims.worker[used], minlength=len(claims.workers)).astype(np.float64)
    return _weights(noisy / DISTANCE_STEPS, counted, discrete_laplace_variance(scale) / DISTANCE_STEPS**2)


def distances(claims: ScaledClaims, location: Floats, spread: Floats) -> Integers:
    """Return the distance of every claim from its task's location, 0 .. DISTANCE_STEPS, shape (claims,)."""
    distance = np.abs(claims.position - location[claims.task]) / spread[claims.task]
    return np.ceil(np.minimum(distance, 1.0) * DISTANCE_STEPS).astype(np.int64)


def _weights(total: Floats, counted: Floats, variance: float) -> Floats:
    """Return weights from noisy sums: inverse squared mean distances, shrunk towards the common mean; (workers,)."""
    count = np.maximum(counted, 1.0)
    mean = np.clip(total.sum() / max(counted.sum(), 1.0), 1.0 / DISTANCE_STEPS, 1.0)
    own = total / count
    error = variance / count**2 + mean**2 / count
    between = max(float(np.average((own - mean) ** 2 - error, weights=1.0 / error)), 0.0)
    shrunk = np.clip(mean + (own - mean) * between / (between + error), 0.25 / DISTANCE_STEPS, 1.0)
    near = float(np.quantile(shrunk, FULL_WEIGHT_QUANTILE)) if len(shrunk) else 1.0
    return np.minimum(near / shrunk, 1.0) ** 2
