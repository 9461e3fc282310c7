"""Mean answers of tasks from the sum over workers of matrix-factorization reports.

Every worker sends a short vector about all tasks. The sum of these vectors over workers is a sufficient statistic for
the tasks' mean answers. No dense table of answers by worker is reconstructed, as in Sun et al. 2018: its rows lie in
the row space of the profiles and hold no information about single workers.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.channels.profile_totals import ProfileTotals
from crowdveil.em.estimate import Estimate, WorkerTable
from crowdveil.errors import ReportsError, SettingsError


@dataclass(frozen=True, slots=True, eq=False)
class TaskSums:
    """Sums per task by minimum-norm least squares; all of shape (tasks,).

    Attributes:
        numerators: sum over workers who answered of (answer - centre).
        counts: number of workers who answered; may be negative.
        numerator_deviation, count_deviation: standard deviation of the noise in them.
    """

    numerators: NDArray[np.float64]
    counts: NDArray[np.float64]
    numerator_deviation: NDArray[np.float64]
    count_deviation: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FactorizationMean:
    """Mean answer of each task, shrunk to the public centre in proportion to the noise.

    truth = centre + C S / (C^2 + (s / t)^2), where S, C are the task's noisy sum of (answer - centre) and noisy count,
    s the deviation of the noise in S, t the deviation expected of truths around the centre. For a known C this is the
    posterior mean of a normal truth. If C is at most `count_threshold` standard deviations of its noise, the truth
    is the centre.

    This is not an `Estimator`: the EM loop reads one value per (task, worker) cell, and here only sums are known.
    Inference is one pass over the sums.

    Attributes:
        truth_deviation: t, in the units of the answers; None is that of a uniform truth, (high - low) / sqrt(12).
        count_threshold: smallest informative count, in standard deviations of its noise.
    """

    name: ClassVar[str] = "factorization-mean"
    truth_deviation: float | None = None
    count_threshold: float = 2.0

    def __post_init__(self) -> None:
        if self.truth_deviation is not None and not 0 < self.truth_deviation < math.inf:
            raise SettingsError("truth_deviation must be positive and finite", value=self.truth_deviation)
        if not 0 <= self.count_threshold < math.inf:
            raise SettingsError("count_threshold must be finite and not negative", value=self.count_threshold)

    def fit(
        self, totals: ProfileTotals, *, tasks: ArrayLike | None = None, workers: ArrayLike | None = None
    ) -> Estimate:
        """Return the estimate of every task's truth.

        Args:
            totals: from the mechanism.
            tasks, workers: names in code order; by default numbers.

        Returns:
            An estimate whose worker weights are NaN, since the sum does not identify workers. Every worker counts as
            one report on every task.

        Raises:
            ReportsError: the totals or the lists of names do not fit together.
        """
        sums = task_sums(totals)
        count = len(sums.counts)
        worker_names = _given_or_numbered_names(workers, totals.workers, "workers")
        return Estimate(
            method=self.name,
            alphabet=None,
            tasks=_given_or_numbered_names(tasks, count, "tasks"),
            posterior=self._shrunk_means(sums, totals),
            reports_per_task=np.full(count, totals.workers),
            worker_names=worker_names,
            workers=WorkerTable(quality=np.full(totals.workers, np.nan), quality_name="weight"),
            reports_per_worker=np.ones(totals.workers, dtype=np.int64),
            channel_used=True,
        )

    def _shrunk_means(self, sums: TaskSums, totals: ProfileTotals) -> NDArray[np.float64]:
        """Return the shrunk means, inside [low, high], shape (tasks,)."""
        deviation = self.truth_deviation or (totals.high - totals.low) / math.sqrt(12)
        informative = sums.counts > self.count_threshold * sums.count_deviation
        counts = np.where(informative, sums.counts, 0.0)
        shift = counts * sums.numerators / (counts**2 + (sums.numerator_deviation / deviation) ** 2)
        return np.clip((totals.low + totals.high) / 2 + shift, totals.low, totals.high)


def task_sums(totals: ProfileTotals) -> TaskSums:
    """Return the sums per task, by minimum-norm least squares: the tasks of a bucket share its sums equally.

    Raises:
        ReportsError: the buckets are not those of the sums.
    """
    buckets, length = totals.buckets, len(totals.numerators)
    if (buckets.size and int(buckets.max()) >= length) or len(totals.counts) != length:
        raise ReportsError("the buckets must belong to the sums", hint="Use the mechanism that made the reports.")
    norm = 1.0 / np.bincount(buckets, minlength=length)[buckets]
    numerators, counts = totals.numerators[buckets] * norm, totals.counts[buckets] * norm
    return TaskSums(numerators, counts, totals.numerator_deviation * norm, totals.count_deviation * norm)


def _given_or_numbered_names(names: ArrayLike | None, count: int, role: str) -> NDArray[Any]:
    listed = np.arange(count) if names is None else np.asarray(names)
    if len(listed) != count:
        raise ReportsError(f"the totals have {count} {role}, but {len(listed)} names were given")
    return listed
