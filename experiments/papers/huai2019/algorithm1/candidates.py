"""Candidates of Algorithm 1 of Huai et al. and their privacy test, in floating point as published.

A seed claim is drawn by weight, a candidate from the kernel at the seed. The candidate passes the randomized test
(Huai et al., section 4.3) if a noisy number of claims in the bin of the seed reaches k. Bins are ranges of the
candidate's density under the kernel of each claim, with ratio gamma. Floating-point candidates reveal their seed: only
few seeds can give a certain double.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from experiments.papers.huai2019.algorithm1.kernel_density import Kernel
from numpy.typing import ArrayLike, NDArray

from crowdveil.randomness import Source
from crowdveil.synthesis.discrete_noise import Integers, uniform_floats
from crowdveil.synthesis.original_claims import Claims, Floats


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

    def pass_probability(self, count: ArrayLike) -> Floats:
        """Return P(k + Lap(1 / epsilon0) <= count), which grows by a factor of at most exp(epsilon0) per claim."""
        above = self.epsilon0 * (np.asarray(count, dtype=float) - self.k)
        tail = 0.5 * np.exp(-np.abs(above))
        return np.where(above < 0, tail, 1 - tail)

    def bins(self, log_density: ArrayLike) -> Floats:
        """Return the bin of every density, a whole number; infinity for density 0, which is in no bin."""
        return np.floor(-np.asarray(log_density, dtype=float) / math.log(self.gamma))


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
        return self.claims.task_of_each_claim + ends - before[self.claims.task_of_each_claim]

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
        degree, width = self.claims.per_task[task], self.bandwidth[task]
        trial = np.repeat(np.arange(len(task)), degree)
        claim = np.repeat(self.claims.pointers[task] - np.cumsum(degree) + degree, degree) + np.arange(len(trial))
        own = self._bins(candidate, seed, width)
        same = self._bins(candidate[trial], claim, width[trial]) == own[trial]
        return np.bincount(trial[same], minlength=len(task))

    def _bins(self, candidate: Floats, claim: Integers, width: Floats) -> Floats:
        """Return the bins of candidates under the kernels of claims, given by their positions."""
        log_density = self.kernel.log_density((candidate - self.claims.value[claim]) / width)
        return self.test.bins(log_density - np.log(width))

    def attempt(self, task: Integers, source: Source) -> tuple[Floats, NDArray[np.bool_]]:
        """Return one candidate for every trial and whether it passes, shape (trials,) each.

        A uniform number below the pass probability is the same event as a count that reaches a noisy k.
        """
        seed, candidate = self.draw(task, source)
        probability = self.test.pass_probability(self.seeds_in_bin(task, seed, candidate))
        return candidate, uniform_floats(len(task), source) < probability

    def until_pass(self, task: Integers, attempts: int, source: Source) -> "Records":
        """Return the first passing candidate of every trial, NaN if none of `attempts` passes."""
        records, pending = np.full(len(task), np.nan), np.arange(len(task))
        candidates = comparisons = 0
        for _ in range(attempts):
            if not len(pending):
                break
            candidate, passed = self.attempt(task[pending], source)
            candidates += len(pending)
            comparisons += int(self.claims.per_task[task[pending]].sum())
            records[pending[passed]] = candidate[passed]
            pending = pending[~passed]
        return Records(records, candidates, comparisons)


class Records(NamedTuple):
    """Record of every trial, shape (trials,), and the numbers of drawn candidates and of comparisons with claims."""

    value: Floats
    candidates: int
    comparisons: int
