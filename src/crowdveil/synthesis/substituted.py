"""Mode `substituted`: one candidate per record and a public draw in its place where it fails, sound.

Huai et al.'s own density and test, with what their accounting needs: known weights, bandwidths and bounds, one attempt,
and failures that nobody can see, because a failed candidate is replaced by a uniform draw from the public bounds, and a
share of all records are such draws from the start.
"""

from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np

from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis import accounting
from crowdveil.synthesis.accounting import WeightProfile
from crowdveil.synthesis.bandwidth import Bandwidth
from crowdveil.synthesis.candidates import Sampler, uniforms
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.privacy_test import PrivacyTest
from crowdveil.synthesis.release import SECURE, Curve, Release
from crowdveil.synthesis.sampled import (
    KernelName,
    build_sampler,
    check_settings,
    data_dependence,
    gather,
    trials,
)
from crowdveil.synthesis.weights import Weighting


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Substituted:
    """One tested candidate per record, a public draw if it fails or by the public share.

    Small deltas need many claims close together: k well above ln(1 / delta) / epsilon0. The histogram needs fewer.

    Attributes:
        records: synthetic records for each task; each costs the whole epsilon again.
        test: k, gamma and epsilon0.
        kernel: "gaussian" or "epanechnikov".
        bandwidth: public: "given" or a share of given bounds.
        weighting: "uniform" or "public".
        public_share: share of records that are public draws from the start, in (0, 1).
    """

    name: ClassVar[str] = "substituted"
    records: int = 1
    test: PrivacyTest = field(default_factory=lambda: PrivacyTest(k=100, gamma=2.0, epsilon0=0.2))
    kernel: KernelName = "gaussian"
    bandwidth: Bandwidth = field(default_factory=lambda: Bandwidth(rule="share", width=0.05))
    weighting: Weighting = field(default_factory=lambda: Weighting(kind="uniform"))
    public_share: float = 0.05

    def __post_init__(self) -> None:
        check_settings(self.records, self.kernel)
        if not 0 < self.public_share < 1:
            raise SettingsError("public_share must be in (0, 1)", value=self.public_share)

    def release(self, claims: Claims, source: Source = SECURE) -> Release:
        """Return synthetic claims within the bounds for every task with at least k claims.

        Raises:
            SettingsError: weights, bandwidths or bounds follow from the claims, so that no finite epsilon holds.
        """
        bounds = () if claims.public_bounds else ("bounds follow from the claims",)
        accounting.require_public((*data_dependence(claims, self.bandwidth, self.weighting), *bounds))
        sampler = build_sampler(claims, self.test, self.kernel, self.bandwidth, self.weighting)
        task = trials(claims, self.test, self.records)
        candidate, passed = sampler.attempt(task, source)
        kept = passed & (uniforms(source, len(task)) >= self.public_share)
        low, high = claims.low[task], claims.high[task]
        drawn = low + (high - low) * uniforms(source, len(task))
        value = np.where(kept, np.clip(candidate, low, high), drawn)
        return gather(self.name, claims, self.test, self.records, task, value, self._curves(claims, sampler), source)

    def _curves(self, claims: Claims, sampler: Sampler) -> tuple[Curve, ...]:
        profile = WeightProfile.of(claims, sampler.weight, self.test.k)
        one = accounting.substituted(accounting.single_candidate(self.test, profile), profile, self.public_share)
        cell = accounting.repeated(one, self.records)
        worker = accounting.per_worker(cell, claims, claims.per_task >= self.test.k)
        return Curve(unit="cell", exact=cell), Curve(unit="worker", exact=worker)
