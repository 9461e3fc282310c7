"""Release methods of Huai et al. (2019): Algorithm 1 as published, without any guarantee, and a corrected version.

`HuaiPublished` is the paper reproduction; its exact epsilon is infinite. `HuaiCorrected` has the same kernel densities
and privacy test with public weights, bandwidths and bounds, one attempt per record, and a public uniform draw in place
of every failed candidate and of a share of all records. It works on a public grid, in integers.
Proofs: docs/explanation/synthesis/paper-reproduction.md.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Literal, final

import numpy as np

from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis.claims import Claims, Floats
from crowdveil.synthesis.discrete_noise import Integers, uniform_below
from crowdveil.synthesis.huai2019 import accounting
from crowdveil.synthesis.huai2019.accounting import NO_GUARANTEE, WeightProfile
from crowdveil.synthesis.huai2019.candidates import (
    MAX_CELLS,
    CandidateSampler,
    GridCandidateSampler,
    IntegerPrivacyTest,
    PrivacyTest,
    Progress,
    integer_weights,
    kernel_table,
)
from crowdveil.synthesis.huai2019.kernel_density import KERNELS, Bandwidth
from crowdveil.synthesis.huai2019.weights import Weighting
from crowdveil.synthesis.private.release_steps import require_public_inputs
from crowdveil.synthesis.release import SECURE, Curve, Release, Withheld, number_workers

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
        _check_settings(self.records, self.kernel)
        if self.attempts < 1:
            raise SettingsError("attempts must be at least 1", value=self.attempts)

    def release(self, claims: Claims, source: Source = SECURE, *, progress: Progress | None = None) -> Release:
        """Return synthetic claims for every task with at least k claims.

        Raises:
            SettingsError: bandwidths are shares of bounds that were not given, or public weights fit no worker list.
        """
        sampler = self.densities(claims)
        task = trial_tasks(claims, self.test, self.records)
        value = sampler.until_pass(task, self.attempts, source, progress=progress)
        return _to_release(
            self.name, claims, self.test, self.records, task, value, self._curves(claims, sampler), source
        )

    def densities(self, claims: Claims) -> CandidateSampler:
        """Return the sampler with the weighted densities of the claims; not for release."""
        width, kernel = self.bandwidth.for_tasks(claims), KERNELS[self.kernel]
        weight = self.weighting.claim_weights(claims, width, kernel)
        return CandidateSampler(claims=claims, weight=weight, bandwidth=width, kernel=kernel, test=self.test)

    def _curves(self, claims: Claims, sampler: CandidateSampler) -> tuple[Curve, ...]:
        profile = WeightProfile.from_claims(claims, sampler.weight, self.test.k)
        claimed = accounting.published_claim(self.test, profile)
        reason = "; ".join(_data_dependence(claims, self.bandwidth, self.weighting) or (REJECTION, FLOATING_POINT))
        return (
            Curve(unit="cell", exact=NO_GUARANTEE, claimed=claimed, reason=reason),
            Curve(unit="worker", exact=NO_GUARANTEE, reason=reason),
        )


SHARE_STEPS = 1 << 20
"""The share of public draws is a multiple of one over this number."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HuaiCorrected:
    """One tested candidate per record, replaced by a public draw if it fails, or with probability `public_share`.

    (epsilon, delta)-private per record. Small deltas need many claims close together: k well above
    ln(1 / delta) / epsilon0. `Histogram` needs fewer claims.

    Attributes:
        records: synthetic records per task; each costs the whole epsilon again.
        test: k, gamma and epsilon0; the noise is discrete Laplace.
        kernel: "gaussian" or "epanechnikov".
        bandwidth: public: "given" or a share of given bounds; from one cell to the width of the bounds.
        weighting: "uniform" or "public".
        public_share: probability that a record is a public draw from the start, in (0, 1).
        cells: number of equal cells between the bounds; a record is the centre of one of them.
    """

    name: ClassVar[str] = "huai-corrected"
    records: int = 1
    test: PrivacyTest = field(default_factory=lambda: PrivacyTest(k=100, gamma=2.0, epsilon0=0.2))
    kernel: KernelName = "gaussian"
    bandwidth: Bandwidth = field(default_factory=lambda: Bandwidth(rule="share", width=0.05))
    weighting: Weighting = field(default_factory=lambda: Weighting(kind="uniform"))
    public_share: float = 0.05
    cells: int = 4096

    def __post_init__(self) -> None:
        _check_settings(self.records, self.kernel)
        if not 0 < self.public_share < 1:
            raise SettingsError("public_share must be in (0, 1)", value=self.public_share)
        if not 2 <= self.cells <= MAX_CELLS:
            raise SettingsError(f"cells must be from 2 to {MAX_CELLS}", value=self.cells)

    def release(self, claims: Claims, source: Source = SECURE) -> Release:
        """Return centres of cells within the bounds for every task with at least k claims.

        Raises:
            SettingsError: weights, bandwidths, bounds or the number of claims follow from the claims, so that no finite
                epsilon holds; a bandwidth is narrower than a cell or wider than the bounds.
        """
        bounds = () if claims.public_bounds else ("bounds follow from the claims",)
        accounting.refuse_data_dependence((*_data_dependence(claims, self.bandwidth, self.weighting), *bounds))
        require_public_inputs(claims, "public")
        sampler = self.sampler(claims)
        task = trial_tasks(claims, self.test, self.records)
        cell = self._draw_cells(sampler, task, source)
        # Everything below is a function of cells and public numbers.
        low, high = claims.low[task], claims.high[task]
        value = low + (high - low) * ((cell + 0.5) / self.cells)
        return _to_release(self.name, claims, self.test, self.records, task, value, self._curves(sampler), source)

    def sampler(self, claims: Claims) -> GridCandidateSampler:
        """Return the sampler of candidates on the grid; errors as `release`."""
        width = self.bandwidth.for_tasks(claims)
        cells, table = np.unique(width / (claims.high - claims.low) * self.cells, return_inverse=True)
        kernel = KERNELS[self.kernel]
        return GridCandidateSampler(
            claims=claims,
            cells=self.cells,
            weight=integer_weights(self.weighting.claim_weights(claims, width, kernel), claims),
            tables=tuple(kernel_table(kernel, float(one), self.test.gamma) for one in cells),
            table=table.astype(np.int64),
            test=IntegerPrivacyTest(self.test),
        )

    @property
    def _exact_share(self) -> Fraction:
        """The share of public draws as it is used, rounded up unless that gives 1."""
        return Fraction(min(math.ceil(self.public_share * SHARE_STEPS), SHARE_STEPS - 1), SHARE_STEPS)

    def _draw_cells(self, sampler: GridCandidateSampler, task: Integers, source: Source) -> Integers:
        """Return the cell of every record, shape (records,)."""
        candidate, passed = sampler.attempt(task, source)
        share = self._exact_share
        public = uniform_below(np.full(len(task), SHARE_STEPS), source) < int(share * SHARE_STEPS)
        drawn = uniform_below(np.full(len(task), self.cells), source)
        return np.where(passed & ~public, np.clip(candidate, 0, self.cells - 1), drawn)

    def _curves(self, sampler: GridCandidateSampler) -> tuple[Curve, ...]:
        claims = sampler.claims
        profile = WeightProfile.from_claims(claims, sampler.weight, self.test.k)
        one = accounting.single_candidate(sampler.test, profile)
        cell = accounting.composed(accounting.replaced_failures(one, profile, float(self._exact_share)), self.records)
        worker = accounting.per_worker(cell, claims, claims.per_task >= self.test.k)
        return (
            Curve(unit="cell", exact=accounting.rounded_up(cell)),
            Curve(unit="worker", exact=accounting.rounded_up(worker)),
        )


def trial_tasks(claims: Claims, test: PrivacyTest, records: int) -> Integers:
    """Return the task of every requested record, ascending: `records` for each task with at least k claims."""
    return np.repeat(np.flatnonzero(claims.per_task >= test.k), records)


def _check_settings(records: int, kernel: str) -> None:
    if records < 1:
        raise SettingsError("records must be at least 1", value=records)
    if kernel not in KERNELS:
        raise SettingsError(f"kernel must be one of {', '.join(KERNELS)}", value=kernel)


def _data_dependence(claims: Claims, bandwidth: Bandwidth, weighting: Weighting) -> tuple[str, ...]:
    """Return one clause for every setting that is computed from the claims; empty if none is."""
    reasons = [] if weighting.public else [f"{weighting.kind} weights follow from the claims"]
    reasons += [] if bandwidth.public(claims) else ["bandwidths follow from the claims"]
    return tuple(reasons)


def _to_release(
    method: str,
    claims: Claims,
    test: PrivacyTest,
    records: int,
    task: Integers,
    value: Floats,
    curves: tuple[Curve, ...],
    source: Source,
) -> Release:
    """Return the records with synthetic workers and the withheld ones; `value` is NaN where a trial failed."""
    released = ~np.isnan(value)
    small = int((claims.per_task < test.k).sum())
    failed = task[~released]
    withheld = (
        Withheld(f"fewer than k = {test.k} claims", small, small * records),
        Withheld("no candidate passed the test within the attempts", len(np.unique(failed)), len(failed)),
    )
    return Release(
        method=method,
        task=task[released].astype(np.int32),
        worker=number_workers(task[released]),
        value=value[released],
        tasks=claims.tasks,
        curves=curves,
        withheld=tuple(note for note in withheld if note.tasks),
        simulation=source.simulation,
    )
