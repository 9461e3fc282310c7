"""What Algorithm 1 of Huai et al. really promises: (epsilon, delta) over t, for every way of handling failures.

Neighbours replace one claim of one task; who claimed is public. Everything starts from one candidate of which only a
passing record is seen, with weights and bandwidth known beforehand; the proofs are in
`docs/explanation/synthesis/paper-reproduction.md`.
The parameter t belongs to the proof, not to the algorithm: every t gives a valid point.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.huai2019.sampler import GeometricTest, PrivacyTest
from crowdveil.synthesis.release import CurvePoint

Points = tuple[CurvePoint, ...]
NOTHING: Points = (CurvePoint(math.inf, 0.0),)
"""The curve of a release that promises nothing."""
ROUNDED_UP = 1 + 2.0**-40
"""Factor that covers the floating-point errors of all formulas here, each a few units in the last place."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WeightProfile:
    """What the accountant needs to know of the weights, the worst over all tasks that release.

    Attributes:
        largest: the largest weight.
        leverage: for t = 1 .. k - 1, the largest weight over the sum of the t smallest other weights of its task, shape
            (k - 1,); infinity where that sum is 0.
        imbalance: the largest over the smallest weight of a task.
        crowding: a task's number of claims times its largest weight; 1 for uniform weights.
    """

    largest: float
    leverage: NDArray[np.float64]
    imbalance: float
    crowding: float

    @classmethod
    def of(cls, claims: Claims, weight: NDArray[np.number], k: int) -> "WeightProfile":
        """Profile the tasks with at least k claims; `weight` has shape (claims,).

        Weights that are integers are added up exactly; they need not sum to 1 over a task.
        """
        degree = claims.per_task
        tasks = np.flatnonzero(degree >= k)
        if not len(tasks):
            return cls(largest=0.0, leverage=np.zeros(k - 1), imbalance=1.0, crowding=0.0)
        ordered = weight[np.lexsort((weight, claims.task))]
        ends = np.concatenate((np.zeros(1, dtype=weight.dtype), np.cumsum(ordered)))
        first = claims.pointers[tasks]
        top, bottom = ordered[first + degree[tasks] - 1], ordered[first]
        share = top / (ends[first + degree[tasks]] - ends[first])
        leverage = np.array([_worst_ratio(top, ends[first + t] - ends[first]) for t in range(1, k)])
        return cls(
            largest=float(share.max()),
            leverage=leverage,
            imbalance=_worst_ratio(top, bottom),
            crowding=float((degree[tasks] * share).max()),
        )


def single_candidate(test: PrivacyTest | GeometricTest, profile: WeightProfile) -> Points:
    """Return the curve of one candidate if its failure is never seen: the theorem, for t = 1 .. k - 1.

    epsilon = epsilon0 + ln(1 + gamma c / (sum of the t smallest other weights)), delta = c T(t), with c the largest
    weight and T(t) the probability to pass with t claims in the bin: exp(-epsilon0 (k - t)) / 2 for Laplace noise.
    """
    return tuple(
        CurvePoint(
            test.epsilon0 + math.log1p(test.gamma * float(profile.leverage[t - 1])),
            profile.largest * chance,
            t,
        )
        for t, chance in enumerate(test.pass_probability(np.arange(1, test.k)).tolist(), start=1)
    )


def published_claim(test: PrivacyTest, profile: WeightProfile) -> Points:
    """Return what Theorem 2 of Huai et al. says of Algorithm 1, however many records it releases.

    Symbols are share in our copy. This reading reduces, as their Remark 1 demands, to epsilon0 + ln(1 + gamma / t) and
    exp(-epsilon0 (k - t)) for uniform weights: epsilon = epsilon0 + ln(1 + gamma c_max / (t c_min)) and
    delta = n c_max exp(-epsilon0 (k - t)).
    """
    return tuple(
        CurvePoint(
            test.epsilon0 + math.log1p(test.gamma * profile.imbalance / t),
            min(1.0, profile.crowding * math.exp(-test.epsilon0 * (test.k - t))),
            t,
        )
        for t in range(1, test.k)
    )


def failures_seen(points: Points, profile: WeightProfile, attempts: int = 1) -> Points:
    """Return the curve of a fixed number of attempts of which everyone sees how many failed.

    A failure tells of the claim that caused it: each attempt adds the largest weight to delta.
    """
    return repeated(tuple(p._replace(delta=min(1.0, p.delta + profile.largest)) for p in points), attempts)


def until_pass(points: Points, test: PrivacyTest, profile: WeightProfile, attempts: int | None = None) -> Points:
    """Return the curve of one record drawn again and again until it passes, or until `attempts` have failed.

    The record has the density conditional on passing. A candidate passes with probability T(1) at least, as its seed
    is in its own bin, so that delta_1 is at most the share w = c exp(epsilon0 (t - 1)) of it, c the largest weight. For
    w < 1 that gives (2 epsilon, (exp(2 epsilon) + exp(epsilon)) w / (1 - w)), never below delta = 2 c. A cap adds
    (1 + exp(2 epsilon)) (1 - T(1))^attempts.
    """
    never = 0.0 if attempts is None else math.exp(attempts * math.log1p(-float(test.pass_probability(1))))
    return tuple(_conditional(point, test, profile, never) for point in points)


def substituted(points: Points, profile: WeightProfile, public_share: float) -> Points:
    """Return the curve of one attempt in whose place, on failure, a public draw is released that nobody can tell apart.

    A share of all records is public draws from the start, so that one more failure changes little:
    (max(epsilon, ln(1 + (1 - share) c / share)), (1 - share) delta), c the largest weight.
    """
    if not 0 < public_share < 1:
        raise SettingsError("the share of public draws must be in (0, 1)", value=public_share)
    failing = math.log1p((1 - public_share) * profile.largest / public_share)
    return tuple(CurvePoint(max(point.epsilon, failing), (1 - public_share) * point.delta, point.t) for point in points)


def repeated(points: Points, times: int) -> Points:
    """Return the curve of `times` releases about the same claim: m records, or the tasks of one worker."""
    if times < 1:
        raise SettingsError("a release happens at least once", value=times)
    return tuple(CurvePoint(p.epsilon * times, min(1.0, p.delta * times), p.t) for p in points)


def rounded_up(points: Points) -> Points:
    """Return the points with epsilon and delta raised above any floating-point error in them, underflow included."""
    return tuple(
        CurvePoint(p.epsilon * ROUNDED_UP, min(1.0, max(p.delta * ROUNDED_UP, sys.float_info.min)), p.t) for p in points
    )


def grouped(points: Points, size: int) -> Points:
    """Return the curve for neighbours that differ in `size` claims of one task (a worker's repeated claims)."""
    if size < 1:
        raise SettingsError("a group has at least one claim", value=size)
    return tuple(
        CurvePoint(p.epsilon * size, min(1.0, p.delta * sum(_exp(p.epsilon * i) for i in range(size))), p.t)
        for p in points
    )


def per_worker(points: Points, claims: Claims, tasks: NDArray[np.bool_]) -> Points:
    """Return the curve for all claims of one worker together, `points` being that of one claim.

    Args:
        points: of everything a task releases.
        claims: all of them; the worker with the most claims decides.
        tasks: which release anything, shape (tasks,).
    """
    mine = tasks[claims.task]
    pair = claims.task[mine] * np.int64(len(claims.workers)) + claims.worker[mine]
    worker = np.unique(pair) % max(len(claims.workers), 1)
    most = int(np.bincount(worker).max(initial=0))
    return repeated(grouped(points, claims.largest_repeat), most) if most else points


def require_public(reasons: Sequence[str]) -> None:
    """Refuse what has no finite epsilon.

    Raises:
        SettingsError: `reasons` is not empty.
    """
    if reasons:
        raise SettingsError(
            "a finite epsilon needs weights, bandwidth and bounds that are known without looking at the claims",
            value="; ".join(reasons),
            hint="Give them, or use mode published, which promises nothing.",
        )


def _conditional(point: CurvePoint, test: PrivacyTest, profile: WeightProfile, never: float) -> CurvePoint:
    t = 1 if point.t is None else point.t
    share = profile.largest * _exp(test.epsilon0 * (t - 1))
    double = 2 * point.epsilon
    if share >= 1:
        return CurvePoint(double, 1.0, point.t)
    delta = (_exp(double) + _exp(point.epsilon)) * share / (1 - share) + (1 + _exp(double)) * never
    return CurvePoint(double, min(1.0, delta), point.t)


def _worst_ratio(above: NDArray[np.number], below: NDArray[np.number]) -> float:
    return math.inf if not (below > 0).all() else float((above / below).max())


def _exp(number: float) -> float:
    """Return the exponential, infinity where it does not fit."""
    return math.exp(number) if number < 709 else math.inf
