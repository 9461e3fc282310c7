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
from crowdveil.synthesis.budgets import TaskBudgets
from crowdveil.synthesis.discrete_noise import Integers, noisy_counts
from crowdveil.synthesis.original_claims import Claims, Floats, ScaledClaims, scaled_claims
from crowdveil.synthesis.private.histogram_density import (
    BIN_CHOICES,
    CELLS,
    HistogramDensities,
    cosine_density,
)
from crowdveil.synthesis.private.private_method import PrivateMethod, Progress
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
        expected_claims: publicly expected number of claims of a task; needed, and used, if participation is protected.
        most_claims: needed for protected workers.
        least_claims: of protected participation the noisy total counts.
    """

    name: ClassVar[str] = "histogram"
    participation: Participation = "public"
    expected_claims: float | None = None

    def __post_init__(self) -> None:
        PrivateMethod.__post_init__(self)
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
        budgets, used = self._prepared(claims, source, self.participation)
        expected, protected = self._claims_expected_per_task(claims, used), self.participation == "protected"
        queries = np.stack((_numbers_of_bins(expected * budgets.task_epsilon), budgets.divisor), axis=1)
        released = (claims.per_task >= self.least_claims) | protected
        mass, done, whole = np.zeros((len(queries), CELLS + 2)), 0, int(released.sum())
        for query in np.unique(queries[released], axis=0):
            rows = np.flatnonzero(released & (queries == query).all(axis=1))
            for part in (rows[first : first + TASKS_AT_ONCE] for first in range(0, len(rows), TASKS_AT_ONCE)):
                exact = bin_counts(scaled_claims(claims, part, used), int(query[0]))
                counts, variance = noisy_counts(exact, budgets.exact_task_epsilon[int(query[1])], source)
                total = counts.sum(axis=1) if protected else expected[part]
                released[part] = kept = total >= self.least_claims if protected else np.ones(len(part), dtype=bool)
                mass[part[kept], 1:-1] = cosine_density(counts[kept], variance, total[kept])
                done += len(part)
                if progress is not None:
                    progress(done, whole)
        tasks = np.flatnonzero(released)
        low, high = claims.low[tasks], claims.high[tasks]
        densities = HistogramDensities(task=tasks, low=low, high=high, range_low=low, range_high=high, mass=mass[tasks])
        return densities, budgets

    def _claims_expected_per_task(self, claims: Claims, used: NDArray[np.bool_]) -> Floats:
        """Return the public or expected number of used claims of each task, at least 1 if public; shape (tasks,)."""
        if self.participation == "protected":
            assert self.expected_claims is not None  # checked by __post_init__
            return np.full(len(claims.tasks), float(self.expected_claims))
        return np.maximum(np.bincount(claims.task_of_each_claim[used], minlength=len(claims.tasks)), 1.0)


def _numbers_of_bins(information: Floats) -> Integers:
    """Return the number of bins of tasks from claims times epsilon, public numbers; shape (tasks,)."""
    choices = np.array(BIN_CHOICES)
    target = BINS_AT_100 * np.maximum(information / 100.0, 1e-9) ** BINS_GROWTH
    return choices[np.abs(np.log(target[:, None] / choices)).argmin(axis=1)]


def bin_counts(claims: ScaledClaims, bins: int) -> Integers:
    """Return the number of claims in each of some equal bins of the bounds, shape (tasks, bins).

    A replaced claim changes two numbers by 1, an added or removed claim one number.
    """
    column = np.minimum((claims.position * bins).astype(np.int64), bins - 1)
    return np.bincount(claims.task * bins + column, minlength=claims.tasks * bins).reshape(claims.tasks, bins)
