"""Release method of Huai et al. (2019), Algorithm 1 as published, without any guarantee: its exact epsilon is infinite.

Proofs: docs/explanation/synthesis/paper-reproduction.md.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal, final

import numpy as np
from experiments.papers.huai2019.algorithm1 import accounting
from experiments.papers.huai2019.algorithm1.accounting import WeightProfile
from experiments.papers.huai2019.algorithm1.candidates import CandidateSampler, PrivacyTest, Progress
from experiments.papers.huai2019.algorithm1.kernel_density import KERNELS, Bandwidth
from experiments.papers.huai2019.algorithm1.weights import Weighting

from crowdveil.channels.guarantee import Guarantee
from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.discrete_noise import Integers
from crowdveil.synthesis.release import SECURE, Release, Withheld

KernelName = Literal["gaussian", "epanechnikov"]
FLOATING_POINT = "records are floating-point numbers, each of which only few seeds can give"
REJECTION = "the loop releases the density given that the test passed: delta is at least a claim's weight per record"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HuaiPublished:
    """Algorithm 1 as published: candidates are drawn until one passes the privacy test, `records` times per task.

    NO GUARANTEE: the exact epsilon is infinite. With the defaults, those of the paper where it gives any, weights and
    bandwidths follow from the claims. With public ones, records are still floating-point numbers that reveal their
    seed, and the curve of the loop is nearly worthless even in exact arithmetic (see
    docs/explanation/synthesis/paper-reproduction.md).

    Attributes:
        records: synthetic records per task, m.
        test: k, gamma and epsilon0.
        kernel: "gaussian" or "epanechnikov".
        bandwidth: rule or public width.
        weighting: rule for the weights of the claims.
        attempts: largest number of candidates per record; the paper's loop has no limit.
    """

    name: ClassVar[str] = "huai-published"
    records: int = 30
    test: PrivacyTest = field(default_factory=PrivacyTest)
    kernel: KernelName = "gaussian"
    bandwidth: Bandwidth = field(default_factory=Bandwidth)
    weighting: Weighting = field(default_factory=Weighting)
    attempts: int = 1000

    def __post_init__(self) -> None:
        if self.records < 1 or self.attempts < 1:
            raise SettingsError("records and attempts must be at least 1", value=(self.records, self.attempts))
        if self.kernel not in KERNELS:
            raise SettingsError(f"kernel must be one of {', '.join(KERNELS)}", value=self.kernel)

    def release(self, claims: Claims, source: Source = SECURE, *, progress: Progress | None = None) -> Release:
        """Return synthetic claims for every task with at least k claims.

        Raises:
            SettingsError: bandwidths are shares of bounds that were not given.
        """
        sampler = self.densities(claims)
        task = trial_tasks(claims, self.test, self.records)
        value = sampler.until_pass(task, self.attempts, source, progress=progress)
        released = ~np.isnan(value)
        small = int((claims.per_task < self.test.k).sum())
        failed = task[~released]
        withheld = (
            Withheld(f"fewer than k = {self.test.k} claims", small, small * self.records),
            Withheld("no candidate passed the test within the attempts", len(np.unique(failed)), len(failed)),
        )
        return Release(
            method=self.name,
            task=task[released].astype(np.int32),
            value=value[released],
            tasks=claims.tasks,
            guarantees=self._guarantees(claims, sampler),
            withheld=tuple(note for note in withheld if note.tasks),
            simulation=source.simulation,
        )

    def densities(self, claims: Claims) -> CandidateSampler:
        """Return the sampler with the weighted densities of the claims; not for release."""
        width, kernel = self.bandwidth.for_tasks(claims), KERNELS[self.kernel]
        weight = self.weighting.claim_weights(claims, width, kernel)
        return CandidateSampler(claims=claims, weight=weight, bandwidth=width, kernel=kernel, test=self.test)

    def _guarantees(self, claims: Claims, sampler: CandidateSampler) -> tuple[Guarantee, Guarantee]:
        """Return that no epsilon holds, and the one that the paper claims for a claim."""
        profile = WeightProfile.from_claims(claims, sampler.weight, self.test.k)
        claimed = accounting.smallest_epsilon(accounting.published_claim(self.test, profile))
        reason = "; ".join(_data_dependence(claims, self.bandwidth, self.weighting) or (REJECTION, FLOATING_POINT))
        return (
            Guarantee(epsilon=math.inf, participation="public", claimed=claimed, reason=reason),
            Guarantee(epsilon=math.inf, unit="worker", participation="public", reason=reason),
        )


def trial_tasks(claims: Claims, test: PrivacyTest, records: int) -> Integers:
    """Return the task of every requested record, ascending: `records` for each task with at least k claims."""
    return np.repeat(np.flatnonzero(claims.per_task >= test.k), records)


def _data_dependence(claims: Claims, bandwidth: Bandwidth, weighting: Weighting) -> tuple[str, ...]:
    """Return one clause for every setting that is computed from the claims; empty if none is."""
    reasons = [] if weighting.kind == "uniform" else [f"{weighting.kind} weights follow from the claims"]
    reasons += [] if bandwidth.public(claims) else ["bandwidths follow from the claims"]
    return tuple(reasons)
