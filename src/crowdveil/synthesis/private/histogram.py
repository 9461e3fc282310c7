"""Private release from one histogram per task: noisy counts, smoothing, and any number of records for one epsilon.

Counts are integers with exact discrete Laplace noise; everything after them is post-processing. Proof, and the list of
public inputs: docs/explanation/synthesis/private.md.
"""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.guarantee import Participation
from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis.budgets import TaskBudgets, allocated_budgets
from crowdveil.synthesis.claims import Claims, Floats, scale_claims
from crowdveil.synthesis.discrete_noise import Integers
from crowdveil.synthesis.private.histogram_density import BIN_CHOICES, CELLS, HistogramDensities, smoothed_masses
from crowdveil.synthesis.private.method import PrivateMethod, Progress, require_public_bounds_and_tasks
from crowdveil.synthesis.private.noisy_counts import LEAST_RANGE_INFORMATION, NoisyCounter, NoisyCounts
from crowdveil.synthesis.release import SECURE

TASKS_AT_ONCE = 4096
BINS_AT_100, BINS_GROWTH = 16.0, 0.45
"""Number of bins where claims times epsilon is 100, and the power of its growth. More than the best fit: smoothing
corrects bins that are too fine at a small cost, but not coarse ones (experiments/synthesis/README.md)."""


@final
@dataclass(frozen=True, kw_only=True)
class Histogram(PrivateMethod):
    """Private release of synthetic claims from histograms; further attributes as `PrivateMethod`.

    Attributes:
        participation: "public": neighbours replace claims, and the (task, worker) pairs are known; "protected":
            neighbours add, remove or replace claims, and only the list of tasks is known, which must have been given.
        bins: number of bins of a task, one of `BIN_CHOICES`; by default chosen from public numbers.
        select_range: spend a part of the budget on selecting the range of each task's claims, for bounds much wider
            than these; only on tasks with enough (public) claims times epsilon.
        expected_claims: publicly expected number of claims of a task; needed, and used, if participation is protected.
        most_claims: needed for protected workers.
        least_claims: of protected participation the noisy total counts.
    """

    name: ClassVar[str] = "histogram"
    participation: Participation = "public"
    bins: int | None = None
    select_range: bool = False
    expected_claims: float | None = None

    def __post_init__(self) -> None:
        PrivateMethod.__post_init__(self)
        if self.bins is not None and self.bins not in BIN_CHOICES:
            raise SettingsError(
                f"bins must be one of {BIN_CHOICES}", value=self.bins, hint="Leave it out for the default."
            )
        claims = self.expected_claims
        if (self.participation == "protected" or claims is not None) and not 0 < (claims or 0) < np.inf:
            raise SettingsError(
                "protected participation hides the number of claims: expected_claims must be positive and finite",
                value=claims,
                hint="Give the number of claims that a task is publicly expected to have.",
            )
        if self.unit == "worker" and self.participation == "protected" and self.most_claims is None:
            raise SettingsError(
                "the unit worker with protected participation needs most_claims",
                value=None,
                hint="Give the number of claims per worker that are used.",
            )

    def private_densities(
        self, claims: Claims, source: Source = SECURE, *, progress: Progress | None = None
    ) -> tuple[HistogramDensities, TaskBudgets]:
        """Return the densities of the records, covered by the same epsilon, and the budgets; errors as `release`."""
        require_public_bounds_and_tasks(claims, self.participation)
        budgets = allocated_budgets(
            claims,
            epsilon=self.epsilon,
            unit=self.unit,
            participation=self.participation,
            most_claims=self.most_claims,
        )
        used = budgets.sample_used(claims, source)
        expected = self._expected(claims, used)
        information = expected * budgets.task_epsilon
        ranged = self.select_range & (information >= LEAST_RANGE_INFORMATION)
        bins = self._bins(information)
        released = np.ones(len(bins), dtype=bool)
        if self.participation == "public":
            released = claims.per_task >= self.least_claims
        densities: list[HistogramDensities] = []
        done = 0
        queries = np.stack((bins, budgets.divisor, ranged), axis=1)
        for query in np.unique(queries[released], axis=0):
            counter = NoisyCounter(
                epsilon=budgets.exact_epsilon[int(query[1])],
                bins=int(query[0]),
                select_range=bool(query[2]),
            )
            rows = np.flatnonzero(released & (queries == query).all(axis=1))
            for first in range(0, len(rows), TASKS_AT_ONCE):
                part = rows[first : first + TASKS_AT_ONCE]
                noisy = counter.count(scale_claims(claims, part, used), expected[part], source)
                densities.append(self._densities(claims, part, noisy, expected[part]))
                done += len(part)
                if progress is not None:
                    progress(done, int(released.sum()))
        return _concatenated(densities), budgets

    def _expected(self, claims: Claims, used: NDArray[np.bool_]) -> Floats:
        """Return the public or expected number of used claims of each task, at least 1 if public; shape (tasks,)."""
        if self.participation == "protected":
            assert self.expected_claims is not None  # checked by __post_init__
            return np.full(len(claims.tasks), float(self.expected_claims))
        return np.maximum(np.bincount(claims.task[used], minlength=len(claims.tasks)), 1.0)

    def _bins(self, information: Floats) -> Integers:
        """Return the number of bins of tasks from claims times epsilon, public numbers; shape (tasks,)."""
        choices = np.array(BIN_CHOICES if self.bins is None else (self.bins,))
        target = BINS_AT_100 * np.maximum(information / 100.0, 1e-9) ** BINS_GROWTH
        return choices[np.abs(np.log(target[:, None] / choices)).argmin(axis=1)]

    def _densities(self, claims: Claims, rows: Integers, noisy: NoisyCounts, total: Floats) -> HistogramDensities:
        if self.participation == "protected":
            total = noisy.counts.sum(axis=1) + noisy.outside
            kept = total >= self.least_claims
            rows, total = rows[kept], total[kept]
            noisy = noisy._replace(**{name: getattr(noisy, name)[kept] for name in ("counts", "outside", "interval")})
        low, high = claims.low[rows], claims.high[rows]
        ends = low[:, None] + (high - low)[:, None] * noisy.interval
        return HistogramDensities(
            task=rows,
            low=low,
            high=high,
            range_low=ends[:, 0],
            range_high=ends[:, 1],
            mass=cell_masses(noisy, total),
        )


def cell_masses(noisy: NoisyCounts, total: Floats) -> Floats:
    """Return the masses of `HistogramDensities` from noisy counts: smoothed inside the range, uniform outside.

    Args:
        noisy: counts of some tasks.
        total: number of claims of each task, positive, shape (tasks,).
    """
    bins = noisy.counts.shape[1]
    partial = noisy.interval[:, 1] - noisy.interval[:, 0] < 1.0
    counted = noisy.counts.sum(axis=1)
    # Two estimates of the number inside, from the bins and from the outside, combined by inverse variance.
    inside = counted + (total - noisy.outside - counted) * (bins / (bins + 1.0))
    share = np.where(partial, np.clip(inside / total, 0.0, 1.0), 1.0)
    floored = np.maximum(share, 1.0 / np.maximum(total, 1.0))
    shape = smoothed_masses(noisy.counts, np.full(len(total), noisy.variance), total * floored)
    below, above = noisy.interval[:, 0], 1.0 - noisy.interval[:, 1]
    rest = np.divide(1.0 - share, below + above, out=np.zeros(len(total)), where=below + above > 0)
    return np.column_stack((rest * below, share[:, None] * shape, rest * above))


def _concatenated(parts: list[HistogramDensities]) -> HistogramDensities:
    """Return all parts as one, in the order of the task codes."""
    empty = np.zeros(0)
    none = HistogramDensities(
        task=np.zeros(0, dtype=np.int64),
        low=empty,
        high=empty,
        range_low=empty,
        range_high=empty,
        mass=np.zeros((0, CELLS + 2)),
    )
    columns = {
        name: np.concatenate([getattr(part, name) for part in (none, *parts)])
        for name in ("task", "low", "high", "range_low", "range_high", "mass")
    }
    order = np.argsort(columns["task"])
    return HistogramDensities(**{name: column[order] for name, column in columns.items()})
