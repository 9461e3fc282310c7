"""Release method of Huai et al. (2019), Algorithm 1 as published, without any guarantee: its exact epsilon is infinite.

Proofs: docs/explanation/synthesis/paper-reproduction.md.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal, final

import numpy as np
from experiments.papers.huai2019.algorithm1.accounting import WeightProfile, published_claim, smallest_epsilon
from experiments.papers.huai2019.algorithm1.candidates import CandidateSampler, PrivacyTest
from experiments.papers.huai2019.algorithm1.kernel_density import KERNELS, Bandwidth
from experiments.papers.huai2019.algorithm1.weights import Weighting

from crowdveil.channels.guarantee import Guarantee
from crowdveil.randomness import Source
from crowdveil.synthesis.discrete_noise import Integers
from crowdveil.synthesis.original_claims import Claims
from crowdveil.synthesis.release import Release

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

    def release(self, claims: Claims, source: Source) -> Release:
        """Return synthetic claims, for every task with at least k claims and every trial that passes."""
        sampler, task = self.densities(claims), trial_tasks(claims, self.test, self.records)
        value = sampler.until_pass(task, self.attempts, source).value
        released = ~np.isnan(value)
        return Release(
            method=self.name,
            task=task[released].astype(np.int32),
            value=value[released],
            tasks=claims.tasks,
            guarantees=self._guarantees(claims, sampler),
            withheld=(),
            simulation=source.simulation,
        )

    def densities(self, claims: Claims) -> CandidateSampler:
        """Return the sampler with the weighted densities of the claims; not for release."""
        width, kernel = self.bandwidth.for_tasks(claims), KERNELS[self.kernel]
        weight = self.weighting.claim_weights(claims, width, kernel)
        return CandidateSampler(claims=claims, weight=weight, bandwidth=width, kernel=kernel, test=self.test)

    def _guarantees(self, claims: Claims, sampler: CandidateSampler) -> tuple[Guarantee, Guarantee]:
        """Return that no epsilon holds, and the one that the paper claims for a claim."""
        claimed = smallest_epsilon(
            published_claim(self.test, WeightProfile.from_claims(claims, sampler.weight, self.test.k))
        )
        learned = [] if self.weighting.kind == "uniform" else [f"{self.weighting.kind} weights follow from the claims"]
        learned += [] if self.bandwidth.public else ["bandwidths follow from the claims"]
        reason = "; ".join(learned or (REJECTION, FLOATING_POINT))
        return (
            Guarantee(epsilon=math.inf, participation="public", claimed=claimed, reason=reason),
            Guarantee(epsilon=math.inf, unit="worker", participation="public", reason=reason),
        )


def trial_tasks(claims: Claims, test: PrivacyTest, records: int) -> Integers:
    """Return the task of every requested record, ascending: `records` for each task with at least k claims."""
    return np.repeat(np.flatnonzero(claims.per_task >= test.k), records)
