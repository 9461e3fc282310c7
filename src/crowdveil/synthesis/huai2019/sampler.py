"""Algorithm 1 of Huai et al.: draw a seed by weight, a candidate from its kernel, test it, for many records at once.

Every record of every task is a trial of its own. All trials that have not passed yet are drawn and tested together.

The randomized test a candidate must pass (Huai et al., section 4.3): enough claims could as well have been its seed.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.errors import SettingsError
from crowdveil.randomness import WORD_BITS, Source
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.discrete_noise import Integers, budget, two_sided_geometric
from crowdveil.synthesis.huai2019.kernel_density import Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyTest:
    """Parameters of the test, named as in the paper; its defaults for k and gamma are those of the experiments.

    Attributes:
        k: claims wanted in the bin, at least 1. A task with fewer claims than k releases nothing.
        gamma: width of a bin, a ratio of densities above 1.
        epsilon0: privacy loss of one count, in nats; the paper does not say which it used.
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

    def pass_probability(self, count: ArrayLike) -> NDArray[np.float64]:
        """Return P(k + Lap(1 / epsilon0) <= count); grows by a factor of at most exp(epsilon0) per claim."""
        above = self.epsilon0 * (np.asarray(count, dtype=float) - self.k)
        tail = 0.5 * np.exp(-np.abs(above))
        return np.where(above < 0, tail, 1 - tail)

    def bins(self, log_density: ArrayLike) -> NDArray[np.float64]:
        """Return the bin a of every density, a whole number; infinity for density 0, which is in no bin."""
        return np.floor(-np.asarray(log_density, dtype=float) / math.log(self.gamma))


@dataclass(frozen=True, slots=True)
class GeometricTest:
    """The same test with two-sided geometric noise in place of Laplace noise, drawn exactly.

    Attributes:
        settings: k, gamma and epsilon0; the latter is rounded down to a multiple of 2**-20.
    """

    settings: PrivacyTest

    @property
    def k(self) -> int:
        """Claims wanted in the bin."""
        return self.settings.k

    @property
    def gamma(self) -> float:
        """Width of a bin."""
        return self.settings.gamma

    @property
    def exact(self) -> Fraction:
        """The epsilon0 of the noise, as a fraction.

        Raises:
            SettingsError: it is below 2**-20.
        """
        return budget(self.settings.epsilon0)

    @property
    def epsilon0(self) -> float:
        """The same as a float, exactly."""
        return float(self.exact)

    def pass_probability(self, count: ArrayLike) -> NDArray[np.float64]:
        """Return P(count + Z >= k), P(Z = z) proportional to exp(-epsilon0 |z|).

        It, and its complement, change by a factor of at most exp(epsilon0) per claim.
        """
        lacking = self.k - np.asarray(count, dtype=float)
        ratio = math.exp(-self.epsilon0)
        tail = ratio ** np.where(lacking > 0, lacking, 1 - lacking) / (1 + ratio)
        return np.where(lacking > 0, tail, 1 - tail)

    def passes(self, count: Integers, source: Source) -> NDArray[np.bool_]:
        """Draw whether a candidate passes, for every count, exactly; shape as `count`."""
        return count + two_sided_geometric(1 / self.exact, len(count), source) >= self.k


Progress = Callable[[int, int], None]
"""Called as the work goes on with the records that are done and their number."""

ENTRIES = 1 << 21
"""Densities held in memory at once."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Sampler:
    """The densities of all tasks, ready to be sampled.

    Attributes:
        claims: the seeds.
        weight: probability of each claim to be the seed, shape (claims,), sums to 1 over each task.
        bandwidth: shape (tasks,).
        kernel: of the candidates around their seed.
        test: what a candidate must pass.
    """

    claims: Claims
    weight: NDArray[np.float64]
    bandwidth: NDArray[np.float64]
    kernel: Kernel
    test: PrivacyTest

    @cached_property
    def _ladder(self) -> NDArray[np.float64]:
        """Position of each claim's end in [0, tasks], shape (claims,): task t owns [t, t + 1]."""
        ends = np.cumsum(self.weight)
        before = np.concatenate(([0.0], ends))[self.claims.pointers[:-1]]
        return self.claims.task + ends - before[self.claims.task]

    def draw(self, task: NDArray[np.int64], source: Source) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return for every trial the position of its seed among the claims, and its candidate (steps 1 and 2).

        Args:
            task: the trials' tasks, each with a claim, shape (trials,).
            source: two words a trial.
        """
        seed = np.searchsorted(self._ladder, task + uniforms(source, len(task)), side="left")
        # The sum of many weights ends a few units in the last place beside a whole number.
        seed = np.clip(seed, self.claims.pointers[task], self.claims.pointers[task + 1] - 1)
        return seed, self.claims.value[seed] + self.bandwidth[task] * self.kernel.quantile(uniforms(source, len(task)))

    def seeds_in_bin(
        self, task: NDArray[np.int64], seed: NDArray[np.int64], candidate: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Return for every trial how many claims of its task lie in the bin of its seed (steps 2 and 3 of the test)."""
        found = np.zeros(len(task), dtype=np.int64)
        for part in parts(self.claims.per_task[task]):
            degree = self.claims.per_task[task[part]]
            trial = np.repeat(np.arange(len(degree)), degree)
            start = np.cumsum(degree) - degree
            claim = np.repeat(self.claims.pointers[task[part]] - start, degree) + np.arange(len(trial))
            same = self._bin(task[part][trial], claim, candidate[part][trial])
            own = self._bin(task[part], seed[part], candidate[part])
            found[part] = np.bincount(trial[same == own[trial]], minlength=len(degree))
        return found

    def attempt(self, task: NDArray[np.int64], source: Source) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return one candidate for every trial and whether it passes, shape (trials,) each.

        Comparing a uniform number with the probability to pass is the same as comparing the count with a noisy k.
        """
        seed, candidate = self.draw(task, source)
        chance = self.test.pass_probability(self.seeds_in_bin(task, seed, candidate))
        return candidate, uniforms(source, len(task)) < chance

    def until_pass(
        self, task: NDArray[np.int64], attempts: int, source: Source, *, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """Return the first candidate of every trial that passes, NaN where none of `attempts` does; shape (trials,)."""
        found = np.full(len(task), np.nan)
        waiting = np.arange(len(task))
        for _ in range(attempts):
            if not len(waiting):
                break
            candidate, passed = self.attempt(task[waiting], source)
            found[waiting[passed]] = candidate[passed]
            waiting = waiting[~passed]
            if progress is not None:
                progress(len(task) - len(waiting), len(task))
        return found

    def _bin(
        self, task: NDArray[np.int64], claim: NDArray[np.int64], candidate: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        width = self.bandwidth[task]
        return self.test.bins(self.kernel.log_density((candidate - self.claims.value[claim]) / width) - np.log(width))


def uniforms(source: Source, count: int) -> NDArray[np.float64]:
    """Return numbers in (0, 1), the middles of 2**48 equal steps, shape (count,)."""
    return (source.words(count).astype(float) + 0.5) * 2.0**-WORD_BITS


def parts(sizes: NDArray[np.int64]) -> Iterator[slice]:
    """Yield contiguous ranges whose sizes add up to about `ENTRIES`, at least one each."""
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        limit = ENTRIES + (ends[first - 1] if first else 0)
        stop = max(first + 1, int(np.searchsorted(ends, limit, side="right")))
        yield slice(first, stop)
        first = stop
