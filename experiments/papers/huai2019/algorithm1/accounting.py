"""Privacy curves of Algorithm 1 of Huai et al.: (epsilon, delta) over t, proved and claimed.

Neighbours replace one claim of one task; participation is public. The basic curve is that of one candidate whose
failure is not observed, with public weights and bandwidth. The parameter t belongs to the proof, not to the algorithm:
every t gives a valid point. Proofs: docs/explanation/synthesis/paper-reproduction.md.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from experiments.papers.huai2019.algorithm1.candidates import PrivacyTest
from numpy.typing import NDArray

from crowdveil.synthesis.original_claims import Claims

LARGEST_DELTA = 1e-6
"""Largest delta of a claimed epsilon that is read off a curve."""


class CurvePoint(NamedTuple):
    """A pair (epsilon, delta) for which a release is, or is claimed to be, differentially private.

    Attributes:
        epsilon: in nats.
        delta: in [0, 1]; 1 is no guarantee.
        t: parameter of the proof that gives this point, without effect on the release.
    """

    epsilon: float
    delta: float
    t: int


Points = tuple[CurvePoint, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class WeightProfile:
    """Worst case of the claims' weights over all tasks that release.

    Attributes:
        largest: the largest weight.
        leverage: largest weight over the sum of the t smallest other weights of its task, for t = 1 .. k - 1, shape
            (k - 1,); infinity where that sum is 0.
        ratio: largest over smallest weight of a task.
        relative_maximum: number of claims of a task times its largest weight; 1 for uniform weights.
    """

    largest: float
    leverage: NDArray[np.float64]
    ratio: float
    relative_maximum: float

    @classmethod
    def from_claims(cls, claims: Claims, weight: NDArray[np.number], k: int) -> "WeightProfile":
        """Return the profile of the tasks with at least k claims.

        Args:
            claims: of all tasks.
            weight: shape (claims,); need not sum to 1 over a task. Integers are summed exactly.
            k: parameter of the privacy test.
        """
        degree = claims.per_task
        tasks = np.flatnonzero(degree >= k)
        if not len(tasks):
            return cls(largest=0.0, leverage=np.zeros(k - 1), ratio=1.0, relative_maximum=0.0)
        ordered = weight[np.lexsort((weight, claims.task_of_each_claim))]
        ends = np.concatenate((np.zeros(1, dtype=weight.dtype), np.cumsum(ordered)))
        first = claims.pointers[tasks]
        top, bottom = ordered[first + degree[tasks] - 1], ordered[first]
        share = top / (ends[first + degree[tasks]] - ends[first])
        leverage = np.array([_worst_ratio(top, ends[first + t] - ends[first]) for t in range(1, k)])
        return cls(
            largest=float(share.max()),
            leverage=leverage,
            ratio=_worst_ratio(top, bottom),
            relative_maximum=float((degree[tasks] * share).max()),
        )


def single_candidate(test: PrivacyTest, profile: WeightProfile) -> Points:
    """Return the curve of one candidate whose failure is not observed, for t = 1 .. k - 1 (the theorem of the page).

    epsilon = epsilon0 + ln(1 + gamma c / (sum of the t smallest other weights)), delta = c T(t), with c the largest
    weight and T(t) the pass probability with t claims in the bin: exp(-epsilon0 (k - t)) / 2 for Laplace noise.
    """
    return tuple(
        CurvePoint(
            test.epsilon0 + math.log1p(test.gamma * float(profile.leverage[t - 1])),
            profile.largest * probability,
            t,
        )
        for t, probability in enumerate(test.pass_probability(np.arange(1, test.k)).tolist(), start=1)
    )


def published_claim(test: PrivacyTest, profile: WeightProfile) -> Points:
    """Return the curve claimed by Theorem 2 of Huai et al. for Algorithm 1, for any number of records.

    Symbols are missing in the printed formula. This reading reduces, as their Remark 1 requires, to
    epsilon0 + ln(1 + gamma / t) and exp(-epsilon0 (k - t)) for uniform weights:
    epsilon = epsilon0 + ln(1 + gamma c_max / (t c_min)) and delta = n c_max exp(-epsilon0 (k - t)).
    """
    return tuple(
        CurvePoint(
            test.epsilon0 + math.log1p(test.gamma * profile.ratio / t),
            min(1.0, profile.relative_maximum * math.exp(-test.epsilon0 * (test.k - t))),
            t,
        )
        for t in range(1, test.k)
    )


def composed(points: Points, times: int) -> Points:
    """Return the curve of `times` records by basic composition."""
    return tuple(CurvePoint(p.epsilon * times, min(1.0, p.delta * times), p.t) for p in points)


def smallest_epsilon(points: Points, largest_delta: float = LARGEST_DELTA) -> float:
    """Return the smallest epsilon of a curve at a delta up to the largest one, infinity if there is none."""
    return min((p.epsilon for p in points if p.delta <= largest_delta and p.delta < 1), default=math.inf)


def _worst_ratio(above: NDArray[np.number], below: NDArray[np.number]) -> float:
    return math.inf if not (below > 0).all() else float((above / below).max())
