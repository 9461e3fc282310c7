"""Mode `published`: Algorithm 1 of Huai et al. as printed, a reproduction that protects nobody, as its curve says."""

from dataclasses import dataclass, field
from typing import ClassVar, final

from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis import accounting
from crowdveil.synthesis.accounting import NOTHING, WeightProfile
from crowdveil.synthesis.bandwidth import Bandwidth
from crowdveil.synthesis.candidates import Progress, Sampler
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.global_weights import Progress as WeightProgress
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

FLOATS = "records are floating-point numbers, each of which only few seeds can give"
LOOP = "the loop releases the density given that the test was passed: delta is at least a claim's weight per record"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Weighted kernel densities, candidates drawn until one passes the privacy test, `records` for each task.

    The exact epsilon is infinite. With the defaults, those of the paper where it names any, weights and bandwidths
    follow from the claims; with public ones records are still floating-point numbers that tell their seed, and even in
    exact arithmetic the curve of the loop would be worth little (`accounting.until_pass`).

    Attributes:
        records: synthetic records for each task, m.
        test: k, gamma and epsilon0.
        kernel: "gaussian" or "epanechnikov".
        bandwidth: rule or public width.
        weighting: how claims are weighted.
        attempts: candidates drawn for one record at most; the paper's loop has no end.
    """

    name: ClassVar[str] = "published"
    records: int = 30
    test: PrivacyTest = field(default_factory=PrivacyTest)
    kernel: KernelName = "gaussian"
    bandwidth: Bandwidth = field(default_factory=Bandwidth)
    weighting: Weighting = field(default_factory=Weighting)
    attempts: int = 1000

    def __post_init__(self) -> None:
        check_settings(self.records, self.kernel)
        if self.attempts < 1:
            raise SettingsError("attempts must be at least 1", value=self.attempts)

    def release(
        self,
        claims: Claims,
        source: Source = SECURE,
        *,
        progress: Progress | None = None,
        weight_progress: WeightProgress | None = None,
    ) -> Release:
        """Return synthetic claims for every task with at least k claims.

        Args:
            claims: as the curator holds them.
            source: secure unless told otherwise.
            progress: called after every round of attempts with the records that are done and their number.
            weight_progress: called after every step of the global weights.

        Raises:
            SettingsError: bandwidths as shares of bounds that were not given, or public weights of another crowd.
        """
        sampler = self.densities(claims, progress=weight_progress)
        task = trials(claims, self.test, self.records)
        value = sampler.until_pass(task, self.attempts, source, progress=progress)
        return gather(self.name, claims, self.test, self.records, task, value, self._curves(claims, sampler), source)

    def densities(self, claims: Claims, *, progress: WeightProgress | None = None) -> Sampler:
        """Return the weighted densities that records are drawn from, for pictures and comparisons; not for release."""
        return build_sampler(claims, self.test, self.kernel, self.bandwidth, self.weighting, progress=progress)

    def _curves(self, claims: Claims, sampler: Sampler) -> tuple[Curve, ...]:
        profile = WeightProfile.of(claims, sampler.weight, self.test.k)
        claimed = accounting.published_claim(self.test, profile)
        why = "; ".join(data_dependence(claims, self.bandwidth, self.weighting) or (LOOP, FLOATS))
        return (
            Curve(unit="cell", exact=NOTHING, claimed=claimed, reason=why),
            Curve(unit="worker", exact=NOTHING, reason=why),
        )
