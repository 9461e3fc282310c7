"""Candidates of Algorithm 1 of Huai et al. and their privacy test, in floating point (as published) and in integers.

A seed claim is drawn by weight, a candidate from the kernel at the seed. The candidate passes the randomized test
(Huai et al., section 4.3) if a noisy number of claims in the bin of the seed reaches k. Bins are ranges of the
candidate's density under the kernel of each claim, with ratio gamma.

Floating-point candidates reveal their seed, because only few seeds can give a certain double. The integer version moves
claims to a public grid; kernels are tables of integer masses, and seeds, candidates and the noise of the test are drawn
exactly, so that every probability is a ratio of integers (docs/explanation/synthesis/paper-reproduction.md).
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis.claims import Claims, Floats
from crowdveil.synthesis.discrete_noise import (
    Integers,
    floor_epsilon,
    sample_discrete_laplace,
    uniform_below,
    uniform_floats,
)
from crowdveil.synthesis.huai2019.kernel_density import Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyTest:
    """Privacy test with Laplace noise; parameters are named as in the paper, k and gamma are those of its experiments.

    Attributes:
        k: required number of claims in the bin, at least 1. A task with fewer claims than k releases nothing.
        gamma: ratio of the densities at the ends of a bin, above 1.
        epsilon0: privacy loss of one count, in nats; the paper does not give its value.
    """

    k: int = 5
    gamma: float = 4.0
    epsilon0: float = 1.0

    def __post_init__(self) -> None:
        if self.k < 1:
            raise SettingsError("k must be at least 1", value=self.k)
        if not (math.isfinite(self.gamma) and self.gamma > 1):
            raise SettingsError("gamma must be a number above 1", value=self.gamma)
        if not (math.isfinite(self.epsilon0) and self.epsilon0 > 0):
            raise SettingsError("epsilon0 must be a positive number", value=self.epsilon0)

    def pass_probability(self, count: ArrayLike) -> Floats:
        """Return P(k + Lap(1 / epsilon0) <= count), which grows by a factor of at most exp(epsilon0) per claim."""
        above = self.epsilon0 * (np.asarray(count, dtype=float) - self.k)
        tail = 0.5 * np.exp(-np.abs(above))
        return np.where(above < 0, tail, 1 - tail)

    def bins(self, log_density: ArrayLike) -> Floats:
        """Return the bin of every density, a whole number; infinity for density 0, which is in no bin."""
        return np.floor(-np.asarray(log_density, dtype=float) / math.log(self.gamma))


@dataclass(frozen=True, slots=True)
class IntegerPrivacyTest:
    """Privacy test with exact discrete Laplace noise in place of Laplace noise.

    Attributes:
        settings: k, gamma and epsilon0; epsilon0 is rounded down to a multiple of 2**-20.
    """

    settings: PrivacyTest

    @property
    def k(self) -> int:
        """Required number of claims in the bin."""
        return self.settings.k

    @property
    def gamma(self) -> float:
        """Ratio of the masses at the ends of a bin."""
        return self.settings.gamma

    @property
    def exact_epsilon0(self) -> Fraction:
        """The epsilon0 of the noise, as a fraction.

        Raises:
            SettingsError: it is below 2**-20.
        """
        return floor_epsilon(self.settings.epsilon0)

    @property
    def epsilon0(self) -> float:
        """The epsilon0 of the noise, as a float of the same value."""
        return float(self.exact_epsilon0)

    def pass_probability(self, count: ArrayLike) -> Floats:
        """Return P(count + Z >= k), P(Z = z) proportional to exp(-epsilon0 |z|).

        It and its complement change by a factor of at most exp(epsilon0) per claim.
        """
        missing = self.k - np.asarray(count, dtype=float)
        ratio = math.exp(-self.epsilon0)
        tail = ratio ** np.where(missing > 0, missing, 1 - missing) / (1 + ratio)
        return np.where(missing > 0, tail, 1 - tail)

    def passes(self, count: Integers, source: Source) -> NDArray[np.bool_]:
        """Return whether each candidate passes, drawn exactly; shape as `count`."""
        return count + sample_discrete_laplace(1 / self.exact_epsilon0, len(count), source) >= self.k


Progress = Callable[[int, int], None]
"""Callback with the number of finished records and the number of all records."""
ENTRIES = 1 << 21
"""Densities held in memory at once."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CandidateSampler:
    """Sampler of candidates as published, in floating point.

    Attributes:
        claims: the seeds.
        weight: probability of each claim as seed, shape (claims,), sums to 1 over each task.
        bandwidth: shape (tasks,).
        kernel: of the candidates around their seed.
        test: privacy test.
    """

    claims: Claims
    weight: Floats
    bandwidth: Floats
    kernel: Kernel
    test: PrivacyTest

    @cached_property
    def _cumulative(self) -> Floats:
        """Cumulative weights, shape (claims,), shifted by the task code: task t has values in [t, t + 1]."""
        ends = np.cumsum(self.weight)
        before = np.concatenate(([0.0], ends))[self.claims.pointers[:-1]]
        return self.claims.task + ends - before[self.claims.task]

    def draw(self, task: Integers, source: Source) -> tuple[Integers, Floats]:
        """Return the position of the seed among the claims, and the candidate, of every trial (steps 1 and 2).

        Args:
            task: the trials' tasks, each with a claim, shape (trials,).
            source: of randomness, two words a trial.
        """
        seed = np.searchsorted(self._cumulative, task + uniform_floats(len(task), source), side="left")
        # A sum of many weights may miss its whole number by a few units in the last place.
        seed = np.clip(seed, self.claims.pointers[task], self.claims.pointers[task + 1] - 1)
        noise = self.kernel.quantile(uniform_floats(len(task), source))
        return seed, self.claims.value[seed] + self.bandwidth[task] * noise

    def seeds_in_bin(self, task: Integers, seed: Integers, candidate: Floats) -> Integers:
        """Return the number of claims of the task in the bin of the seed, for every trial; shape (trials,)."""

        def bins(trial: Integers, claim: Integers) -> Floats:
            width = self.bandwidth[task[trial]]
            log_density = self.kernel.log_density((candidate[trial] - self.claims.value[claim]) / width)
            return self.test.bins(log_density - np.log(width))

        return count_in_seed_bin(self.claims, task, seed, bins)

    def attempt(self, task: Integers, source: Source) -> tuple[Floats, NDArray[np.bool_]]:
        """Return one candidate for every trial and whether it passes, shape (trials,) each.

        A uniform number below the pass probability is the same event as a count that reaches a noisy k.
        """
        seed, candidate = self.draw(task, source)
        probability = self.test.pass_probability(self.seeds_in_bin(task, seed, candidate))
        return candidate, uniform_floats(len(task), source) < probability

    def until_pass(self, task: Integers, attempts: int, source: Source, *, progress: Progress | None = None) -> Floats:
        """Return the first passing candidate of every trial, NaN if none of `attempts` passes; shape (trials,)."""
        records = np.full(len(task), np.nan)
        pending = np.arange(len(task))
        for _ in range(attempts):
            if not len(pending):
                break
            candidate, passed = self.attempt(task[pending], source)
            records[pending[passed]] = candidate[passed]
            pending = pending[~passed]
            if progress is not None:
                progress(len(task) - len(pending), len(task))
        return records


TOP_MASS = 1 << 40
"""Mass of a kernel in the cell of its claim; masses below a half of 1 are cut off."""
LARGEST_REACH = 9.0
"""Bandwidths from a claim at which a Gaussian's mass has been rounded to 0."""
MAX_CELLS = 1 << 16
"""Largest number of cells; the masses of a kernel as wide as the bounds then sum to less than 2**62."""
LEAST_GAMMA = 1.001
WEIGHT_STEPS = 1 << 20
"""Largest integer weight of a task's seeds."""
NO_BIN = -1
"""Bin of mass 0."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelTable:
    """Symmetric kernel on a grid.

    Attributes:
        mass: by distance in cells from the claim, positive, shape (reach + 1,).
        bins: bin of the privacy test of each mass, same shape; masses in a bin differ by a factor below gamma.
    """

    mass: Integers
    bins: Integers

    @property
    def reach(self) -> int:
        """Largest distance with a mass, in cells."""
        return len(self.mass) - 1

    @cached_property
    def cumulative(self) -> Integers:
        """Cumulative masses of the offsets -reach .. reach, shape (2 * reach + 1,)."""
        return np.cumsum(np.concatenate((self.mass[:0:-1], self.mass)))

    def sample_offsets(self, count: int, source: Source) -> Integers:
        """Return offsets drawn in proportion to their masses, exactly; shape (count,)."""
        drawn = uniform_below(np.full(count, self.cumulative[-1]), source)
        return np.searchsorted(self.cumulative, drawn, side="right") - self.reach

    def bin_of(self, offset: Integers) -> Integers:
        """Return the bin at every offset, `NO_BIN` beyond the reach; shape as `offset`."""
        distance = np.abs(offset)
        return np.where(distance <= self.reach, self.bins[np.minimum(distance, self.reach)], NO_BIN)


def kernel_table(kernel: Kernel, width: float, gamma: float) -> KernelTable:
    """Return the kernel's density at the centres of cells, scaled to `TOP_MASS` and rounded to integers.

    Args:
        kernel: one of `KERNELS`.
        width: bandwidth in cells, from 1 to `MAX_CELLS`.
        gamma: ratio of the masses at the ends of a bin, at least `LEAST_GAMMA`.

    Raises:
        SettingsError: the width or gamma is out of range.
    """
    if not 1 <= width <= MAX_CELLS:
        raise SettingsError(
            f"a bandwidth must have 1 to {MAX_CELLS:,} cells of the grid",
            value=width,
            hint="Use a bandwidth between one cell and the width of the bounds.",
        )
    if gamma < LEAST_GAMMA:
        raise SettingsError(f"gamma must be at least {LEAST_GAMMA}", value=gamma)
    distance = np.arange(math.ceil(min(kernel.reach, LARGEST_REACH) * width) + 1)
    density = kernel.log_density(distance / width)
    mass = np.rint(TOP_MASS * np.exp(density - density[0])).astype(np.int64)
    mass = mass[: int(np.flatnonzero(mass)[-1]) + 1]
    limits = _bin_limits(int(mass[0]), Fraction(gamma))
    return KernelTable(mass=mass, bins=np.array([bisect_left(limits, int(one)) for one in mass], dtype=np.int64))


def _bin_limits(top: int, gamma: Fraction) -> list[int]:
    """Return the largest mass of every bin, ascending: each is the next one over gamma, rounded down.

    A bin holds the masses above one limit and up to the next, so their ratio is below gamma.
    """
    limits = []
    while top > 0:
        limits.append(top)
        top = top * gamma.denominator // gamma.numerator
    return limits[::-1]


@dataclass(frozen=True, eq=False, kw_only=True)
class GridCandidateSampler:
    """Sampler of candidates on a public grid, in integers.

    Attributes:
        claims: the seeds, within public bounds.
        cells: number of equal cells between the bounds of every task.
        weight: integer weight of each claim as seed, at least 1, shape (claims,).
        tables: kernels of the tasks.
        table: index into `tables` of every task, shape (tasks,).
        test: privacy test.
    """

    claims: Claims
    cells: int
    weight: Integers
    tables: tuple[KernelTable, ...]
    table: Integers
    test: IntegerPrivacyTest

    @cached_property
    def cell(self) -> Integers:
        """Cell of every claim, a function of this claim and its task's bounds alone; shape (claims,)."""
        low, high = self.claims.low[self.claims.task], self.claims.high[self.claims.task]
        share = (self.claims.value - low) / (high - low)
        return np.clip((share * self.cells).astype(np.int64), 0, self.cells - 1)

    def attempt(self, task: Integers, source: Source) -> tuple[Integers, NDArray[np.bool_]]:
        """Return one candidate for every trial, a cell that may lie beyond the bounds, and whether it passes.

        Args:
            task: the trials' tasks, each with a claim, shape (trials,).
            source: of randomness; the amount used depends on the trials' tasks and on the draws alone.
        """
        seed = self._draw_seeds(task, source)
        offset = np.empty(len(task), dtype=np.int64)
        for index, table in enumerate(self.tables):
            trials = np.flatnonzero(self.table[task] == index)
            offset[trials] = table.sample_offsets(len(trials), source)
        candidate = self.cell[seed] + offset

        def bins(trial: Integers, claim: Integers) -> Integers:
            return self._bins(task[trial], candidate[trial] - self.cell[claim])

        return candidate, self.test.passes(count_in_seed_bin(self.claims, task, seed, bins), source)

    def _draw_seeds(self, task: Integers, source: Source) -> Integers:
        ends = np.cumsum(self.weight)
        before = np.concatenate(([0], ends))[self.claims.pointers]
        drawn = uniform_below(np.diff(before)[task], source)
        return np.searchsorted(ends, before[task] + drawn, side="right")

    def _bins(self, task: Integers, offset: Integers) -> Integers:
        bins = np.empty(len(task), dtype=np.int64)
        for index, table in enumerate(self.tables):
            rows = self.table[task] == index
            bins[rows] = table.bin_of(offset[rows])
        return bins


def integer_weights(weight: Floats, claims: Claims) -> Integers:
    """Return weights as integers from 1 to `WEIGHT_STEPS`, the largest of each task at the top; shape (claims,)."""
    largest = np.zeros(len(claims.tasks))
    np.maximum.at(largest, claims.task, weight)
    return np.maximum(np.rint(weight / largest[claims.task] * WEIGHT_STEPS).astype(np.int64), 1)


def count_in_seed_bin(
    claims: Claims, task: Integers, seed: Integers, bins: Callable[[Integers, Integers], NDArray[np.number]]
) -> Integers:
    """Return the number of claims of the task in the bin of the seed, for every trial; shape (trials,).

    Args:
        claims: the seeds.
        task: the trials' tasks, shape (trials,).
        seed: position of the trials' seeds among the claims, shape (trials,).
        bins: returns the bins of trials' candidates under the kernels of claims, given positions of both.
    """
    counts = np.zeros(len(task), dtype=np.int64)
    for block in _blocks(claims.per_task[task]):
        trials = np.arange(len(task))[block]
        degree = claims.per_task[task[trials]]
        row = np.repeat(np.arange(len(trials)), degree)
        start = np.cumsum(degree) - degree
        claim = np.repeat(claims.pointers[task[trials]] - start, degree) + np.arange(len(row))
        same = bins(trials[row], claim) == bins(trials, seed[trials])[row]
        counts[trials] = np.bincount(row[same], minlength=len(trials))
    return counts


def _blocks(sizes: Integers) -> Iterator[slice]:
    """Yield contiguous ranges whose sizes sum to about `ENTRIES`, at least one element each."""
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        limit = ENTRIES + (ends[first - 1] if first else 0)
        stop = max(first + 1, int(np.searchsorted(ends, limit, side="right")))
        yield slice(first, stop)
        first = stop
