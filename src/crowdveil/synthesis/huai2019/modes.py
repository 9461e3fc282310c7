"""Mode `substituted`: one candidate per record and a public draw in its place where it fails, sound.

Huai et al.'s own density and test, with what their accounting needs: known weights, bandwidths and bounds, one attempt,
and failures that nobody can see, because a failed candidate is replaced by a uniform draw from the public bounds, and a
share of all records are such draws from the start. All of it on a public grid, in integers (`grid_candidates`).

What the modes built on Algorithm 1 share: the densities to sample, the tasks that may release, the bookkeeping.

Mode `published`: Algorithm 1 of Huai et al. as printed, a reproduction that protects nobody, as its curve says.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.discrete_noise import Integers, uniform_below
from crowdveil.synthesis.huai2019 import accounting
from crowdveil.synthesis.huai2019.accounting import NOTHING, WeightProfile
from crowdveil.synthesis.huai2019.bandwidth import Bandwidth
from crowdveil.synthesis.huai2019.grid_candidates import MOST_CELLS, GridSampler, integer_weights, kernel_table
from crowdveil.synthesis.huai2019.kernel_density import KERNELS
from crowdveil.synthesis.huai2019.sampler import GeometricTest, PrivacyTest, Progress, Sampler
from crowdveil.synthesis.huai2019.weights import Progress as WeightProgress
from crowdveil.synthesis.huai2019.weights import Weighting
from crowdveil.synthesis.release import SECURE, Curve, Release, Withheld, fresh_workers

KernelName = Literal["gaussian", "epanechnikov"]


def check_settings(records: int, kernel: str) -> None:
    """Refuse settings that both modes refuse.

    Raises:
        SettingsError: fewer than one record a task, or an unknown kernel.
    """
    if records < 1:
        raise SettingsError("records must be at least 1", value=records)
    if kernel not in KERNELS:
        raise SettingsError(f"kernel must be one of {', '.join(KERNELS)}", value=kernel)


def build_sampler(
    claims: Claims,
    test: PrivacyTest,
    kernel: KernelName,
    bandwidth: Bandwidth,
    weighting: Weighting,
    *,
    progress: WeightProgress | None = None,
) -> Sampler:
    """Return the weighted densities of all tasks, ready to be sampled; `progress` as `Weighting.of`."""
    width = bandwidth.of(claims)
    weight = weighting.of(claims, width, KERNELS[kernel], progress=progress)
    return Sampler(claims=claims, weight=weight, bandwidth=width, kernel=KERNELS[kernel], test=test)


def trials(claims: Claims, test: PrivacyTest, records: int) -> NDArray[np.int64]:
    """Return the task of every record to be made, ascending: `records` for each task with at least k claims."""
    return np.repeat(np.flatnonzero(claims.per_task >= test.k), records)


def data_dependence(claims: Claims, bandwidth: Bandwidth, weighting: Weighting) -> tuple[str, ...]:
    """Return what of the settings is learned from the claims, one clause each; empty if nothing is."""
    found = []
    if not weighting.public:
        found.append(f"{weighting.kind} weights follow from the claims")
    if not bandwidth.public(claims):
        found.append("bandwidths follow from the claims")
    return tuple(found)


def gather(
    mode: str,
    claims: Claims,
    test: PrivacyTest,
    records: int,
    task: NDArray[np.int64],
    value: NDArray[np.float64],
    curves: tuple[Curve, ...],
    source: Source,
) -> Release:
    """Return the records that were made, fresh workers and what was withheld; `value` is NaN where a trial failed."""
    made = ~np.isnan(value)
    small = int((claims.per_task < test.k).sum())
    failed = task[~made]
    notes = (
        Withheld(f"fewer than k = {test.k} claims", small, small * records),
        Withheld("no candidate passed the test within the attempts", len(np.unique(failed)), len(failed)),
    )
    return Release(
        mode=mode,
        task=task[made].astype(np.int32),
        worker=fresh_workers(task[made]),
        value=value[made],
        tasks=claims.tasks,
        curves=curves,
        withheld=tuple(note for note in notes if note.tasks),
        simulation=source.simulation,
    )


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
