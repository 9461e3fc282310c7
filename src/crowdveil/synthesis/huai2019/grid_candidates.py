"""Candidates of Algorithm 1 of Huai et al. on a public grid, in integers: every probability is a ratio of integers.

Floating-point candidates tell their seed: only few seeds can give a certain double. Here claims are moved to the cells
of a grid that is known before any claim, a kernel is a table of integer masses by distance in cells, seeds, candidates
and public draws are integers drawn exactly, and the test adds integer noise
(docs/explanation/synthesis/paper-reproduction.md).
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.discrete_noise import Integers, uniform_below
from crowdveil.synthesis.huai2019.kernel_density import Kernel
from crowdveil.synthesis.huai2019.sampler import GeometricTest, parts

TOP_MASS = 1 << 40
"""Mass of a kernel in the cell of its claim; what is below a half of 1 is no part of the kernel."""
REACH = 9.0
"""Bandwidths from a claim at which a Gaussian's mass has rounded to 0."""
MOST_CELLS = 1 << 16
"""Masses of a kernel as wide as the bounds then add up to less than 2**62."""
LEAST_GAMMA = 1.001
WEIGHT_STEPS = 1 << 20
"""Seeds are drawn by integer weights, the largest of a task being this."""
OUTSIDE = -1
"""Bin of mass 0, which is in none."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelTable:
    """A symmetric kernel on a grid.

    Attributes:
        mass: by distance in cells from the claim, positive, shape (reach + 1,).
        bins: bin of the privacy test of each mass; within a bin masses differ by a factor below gamma, same shape.
    """

    mass: Integers
    bins: Integers

    @property
    def reach(self) -> int:
        """Largest distance that has a mass."""
        return len(self.mass) - 1

    @cached_property
    def ends(self) -> Integers:
        """Cumulated masses of the offsets -reach .. reach, shape (2 * reach + 1,)."""
        return np.cumsum(np.concatenate((self.mass[:0:-1], self.mass)))

    def offsets(self, count: int, source: Source) -> Integers:
        """Draw offsets in proportion to their masses, exactly; shape (count,)."""
        drawn = uniform_below(np.full(count, self.ends[-1]), source)
        return np.searchsorted(self.ends, drawn, side="right") - self.reach

    def bin_of(self, distance: Integers) -> Integers:
        """Return the bin at every distance, of either sign; OUTSIDE beyond the reach; shape as `distance`."""
        apart = np.abs(distance)
        return np.where(apart <= self.reach, self.bins[np.minimum(apart, self.reach)], OUTSIDE)


def kernel_table(kernel: Kernel, width: float, gamma: float) -> KernelTable:
    """Return the table of a kernel.

    Args:
        kernel: whose density at the centres of cells, times a constant, is rounded to integers.
        width: bandwidth in cells, from 1 to `MOST_CELLS`.
        gamma: width of a bin, a ratio of masses, at least `LEAST_GAMMA`.

    Raises:
        SettingsError: the width or gamma is out of range.
    """
    if not 1 <= width <= MOST_CELLS:
        raise SettingsError(
            f"a bandwidth must have 1 to {MOST_CELLS:,} cells of the grid",
            value=width,
            hint="Use a bandwidth between one cell and the width of the bounds.",
        )
    if gamma < LEAST_GAMMA:
        raise SettingsError(f"gamma must be at least {LEAST_GAMMA}", value=gamma)
    distance = np.arange(math.ceil(min(kernel.reach, REACH) * width) + 1)
    density = kernel.log_density(distance / width)
    mass = np.rint(TOP_MASS * np.exp(density - density[0])).astype(np.int64)
    mass = mass[: int(np.flatnonzero(mass)[-1]) + 1]
    starts = _starts(int(mass[0]), Fraction(gamma))
    return KernelTable(mass=mass, bins=np.array([bisect_left(starts, int(one)) for one in mass], dtype=np.int64))


def _starts(top: int, gamma: Fraction) -> list[int]:
    """Return the largest masses of all bins, ascending: each is the next one over gamma, rounded down.

    A bin holds the masses above one start and up to the next, so that their ratio is below gamma.
    """
    found = []
    while top > 0:
        found.append(top)
        top = top * gamma.denominator // gamma.numerator
    return found[::-1]


@dataclass(frozen=True, eq=False, kw_only=True)
class GridSampler:
    """The densities of all tasks on a grid, ready to be sampled.

    Attributes:
        claims: the seeds, within public bounds.
        cells: equal cells between the bounds of every task.
        weight: integer weight of each claim as a seed, at least 1, shape (claims,).
        tables: kernels of the tasks.
        table: which of them is each task's, shape (tasks,).
        test: what a candidate must pass.
    """

    claims: Claims
    cells: int
    weight: Integers
    tables: tuple[KernelTable, ...]
    table: Integers
    test: GeometricTest

    @cached_property
    def cell(self) -> Integers:
        """Cell of every claim, which follows from this claim and its task's bounds alone; shape (claims,)."""
        low, high = self.claims.low[self.claims.task], self.claims.high[self.claims.task]
        share = (self.claims.value - low) / (high - low)
        return np.clip((share * self.cells).astype(np.int64), 0, self.cells - 1)

    def attempt(self, task: Integers, source: Source) -> tuple[Integers, NDArray[np.bool_]]:
        """Return one candidate for every trial, a cell that may lie beyond the bounds, and whether it passes.

        Args:
            task: the trials' tasks, each with a claim, shape (trials,).
            source: of randomness; how much is used depends on the trials' tasks and on the draws alone.
        """
        seed = self._seeds(task, source)
        offset = np.empty(len(task), dtype=np.int64)
        for number, table in enumerate(self.tables):
            mine = np.flatnonzero(self.table[task] == number)
            offset[mine] = table.offsets(len(mine), source)
        candidate = self.cell[seed] + offset
        return candidate, self.test.passes(self._seeds_in_bin(task, seed, candidate), source)

    def _seeds(self, task: Integers, source: Source) -> Integers:
        ends = np.cumsum(self.weight)
        before = np.concatenate(([0], ends))[self.claims.pointers]
        drawn = uniform_below(np.diff(before)[task], source)
        return np.searchsorted(ends, before[task] + drawn, side="right")

    def _seeds_in_bin(self, task: Integers, seed: Integers, candidate: Integers) -> Integers:
        """Return for every trial how many claims of its task lie in the bin of its seed."""
        found = np.zeros(len(task), dtype=np.int64)
        for part in parts(self.claims.per_task[task]):
            degree = self.claims.per_task[task[part]]
            trial = np.repeat(np.arange(len(degree)), degree)
            start = np.cumsum(degree) - degree
            claim = np.repeat(self.claims.pointers[task[part]] - start, degree) + np.arange(len(trial))
            own = self._bin(task[part], candidate[part] - self.cell[seed[part]])
            same = self._bin(task[part][trial], candidate[part][trial] - self.cell[claim]) == own[trial]
            found[part] = np.bincount(trial[same], minlength=len(degree))
        return found

    def _bin(self, task: Integers, distance: Integers) -> Integers:
        found = np.empty(len(task), dtype=np.int64)
        for number, table in enumerate(self.tables):
            mine = self.table[task] == number
            found[mine] = table.bin_of(distance[mine])
        return found


def integer_weights(weight: NDArray[np.float64], claims: Claims) -> Integers:
    """Return weights as integers from 1 to WEIGHT_STEPS, the largest of each task at the top; shape (claims,)."""
    largest = np.zeros(len(claims.tasks))
    np.maximum.at(largest, claims.task, weight)
    return np.maximum(np.rint(weight / largest[claims.task] * WEIGHT_STEPS).astype(np.int64), 1)
