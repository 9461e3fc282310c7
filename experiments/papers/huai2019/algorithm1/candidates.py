"""Candidates of Algorithm 1 of Huai et al. and their privacy test, in floating point as published.

A seed claim is drawn by weight, a candidate from the kernel at the seed. The candidate passes the randomized test
(Huai et al., section 4.3) if a noisy number of claims in the bin of the seed reaches k. Bins are ranges of the
candidate's density under the kernel of each claim, with ratio gamma. Floating-point candidates reveal their seed: only
few seeds can give a certain double.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from experiments.papers.huai2019.algorithm1.kernel_density import Kernel
from numpy.typing import ArrayLike, NDArray

from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis.claims import Claims, Floats
from crowdveil.synthesis.discrete_noise import Integers, uniform_floats


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
