"""Mode `substituted`: one candidate per record and a public draw in its place where it fails, sound.

Huai et al.'s own density and test, with what their accounting needs: known weights, bandwidths and bounds, one attempt,
and failures that nobody can see, because a failed candidate is replaced by a uniform draw from the public bounds, and a
share of all records are such draws from the start. All of it on a public grid, in integers (`grid_candidates`).
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, final

import numpy as np

from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis import accounting
from crowdveil.synthesis.accounting import WeightProfile
from crowdveil.synthesis.bandwidth import Bandwidth
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.grid_candidates import MOST_CELLS, GridSampler, integer_weights, kernel_table
from crowdveil.synthesis.integer_noise import Integers, uniform_below
from crowdveil.synthesis.kernels import KERNELS
from crowdveil.synthesis.privacy_test import GeometricTest, PrivacyTest
from crowdveil.synthesis.release import SECURE, Curve, Release
from crowdveil.synthesis.sampled import KernelName, check_settings, data_dependence, gather, trials
from crowdveil.synthesis.weights import Weighting

SHARE_STEPS = 1 << 20
"""The share of public draws is a multiple of one over this."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Substituted:
    """One tested candidate per record, a public draw if it fails or by the public share.

    Small deltas need many claims close together: k well above ln(1 / delta) / epsilon0. The histogram needs fewer.

    Attributes:
        records: synthetic records for each task; each costs the whole epsilon again.
        test: k, gamma and epsilon0; the noise is two-sided geometric.
        kernel: "gaussian" or "epanechnikov".
        bandwidth: public: "given" or a share of given bounds; at least one cell and at most the width of the bounds.
        weighting: "uniform" or "public".
        public_share: share of records that are public draws from the start, in (0, 1).
        cells: equal parts of the bounds; a record is the centre of one of them.
    """

    name: ClassVar[str] = "substituted"
    records: int = 1
    test: PrivacyTest = field(default_factory=lambda: PrivacyTest(k=100, gamma=2.0, epsilon0=0.2))
    kernel: KernelName = "gaussian"
    bandwidth: Bandwidth = field(default_factory=lambda: Bandwidth(rule="share", width=0.05))
    weighting: Weighting = field(default_factory=lambda: Weighting(kind="uniform"))
    public_share: float = 0.05
    cells: int = 4096

    def __post_init__(self) -> None:
        check_settings(self.records, self.kernel)
        if not 0 < self.public_share < 1:
            raise SettingsError("public_share must be in (0, 1)", value=self.public_share)
        if not 2 <= self.cells <= MOST_CELLS:
            raise SettingsError(f"cells must be from 2 to {MOST_CELLS}", value=self.cells)

    def release(self, claims: Claims, source: Source = SECURE) -> Release:
        """Return centres of cells within the bounds for every task with at least k claims.

        Raises:
            SettingsError: weights, bandwidths or bounds follow from the claims, so that no finite epsilon holds; a
                bandwidth is narrower than a cell or wider than the bounds.
        """
        bounds = () if claims.public_bounds else ("bounds follow from the claims",)
        accounting.require_public((*data_dependence(claims, self.bandwidth, self.weighting), *bounds))
        sampler = self.sampler(claims)
        task = trials(claims, self.test, self.records)
        cell = self._cells(sampler, task, source)
        # From here on there are numbers of cells and public numbers only.
        low, high = claims.low[task], claims.high[task]
        value = low + (high - low) * ((cell + 0.5) / self.cells)
        return gather(self.name, claims, self.test, self.records, task, value, self._curves(sampler), source)

    def sampler(self, claims: Claims) -> GridSampler:
        """Return the densities on the grid; errors as `release`."""
        width = self.bandwidth.of(claims)
        cells, table = np.unique(width / (claims.high - claims.low) * self.cells, return_inverse=True)
        kernel = KERNELS[self.kernel]
        return GridSampler(
            claims=claims,
            cells=self.cells,
            weight=integer_weights(self.weighting.of(claims, width, kernel), claims),
            tables=tuple(kernel_table(kernel, float(one), self.test.gamma) for one in cells),
            table=table.astype(np.int64),
            test=GeometricTest(self.test),
        )

    @property
    def _share(self) -> Fraction:
        """The share of public draws as it is used, rounded up where there is room."""
        return Fraction(min(math.ceil(self.public_share * SHARE_STEPS), SHARE_STEPS - 1), SHARE_STEPS)

    def _cells(self, sampler: GridSampler, task: Integers, source: Source) -> Integers:
        """Draw the cell of every record."""
        candidate, passed = sampler.attempt(task, source)
        steps = uniform_below(np.full(len(task), SHARE_STEPS), source)
        public = steps < self._share.numerator * (SHARE_STEPS // self._share.denominator)
        drawn = uniform_below(np.full(len(task), self.cells), source)
        return np.where(passed & ~public, np.clip(candidate, 0, self.cells - 1), drawn)

    def _curves(self, sampler: GridSampler) -> tuple[Curve, ...]:
        claims = sampler.claims
        profile = WeightProfile.of(claims, sampler.weight, self.test.k)
        one = accounting.single_candidate(sampler.test, profile)
        cell = accounting.repeated(accounting.substituted(one, profile, float(self._share)), self.records)
        worker = accounting.per_worker(cell, claims, claims.per_task >= self.test.k)
        return (
            Curve(unit="cell", exact=accounting.rounded_up(cell)),
            Curve(unit="worker", exact=accounting.rounded_up(worker)),
        )
