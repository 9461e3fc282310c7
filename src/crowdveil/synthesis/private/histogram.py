"""The sound release: one private histogram per task, smoothed, and any number of records drawn from it for one epsilon.

Counts are integers, their noise is two-sided geometric (`integer_noise`), and all that follows sees noisy counts only.
Proof, and what is public: docs/explanation/synthesis/private.md.

What the sound modes share: what must be public, and a release drawn from private densities.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.guarantee import Participation, Unit, require_epsilon
from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis.budgets import Budgets, divide, fixed_weights, in_fixed_point
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.discrete_noise import budget
from crowdveil.synthesis.histogram_density import Densities
from crowdveil.synthesis.private.noisy_counts import ZOOM_FROM, Histogrammer, Noisy, positions
from crowdveil.synthesis.private.smoothing import BIN_CHOICES, CELLS, smooth
from crowdveil.synthesis.private.worker_weights import learn_weights
from crowdveil.synthesis.release import SECURE, Release, Withheld, fresh_workers

Progress = Callable[[int, int], None]
"""Called as the work goes on with the tasks that are done and their number."""


def require_public(claims: Claims, participation: Participation) -> None:
    """Refuse claims whose bounds, list of tasks or number tell of what is protected.

    Raises:
        SettingsError: naming the bounds, the list, or the claims that were left out.
    """
    if not claims.public_bounds:
        raise SettingsError(
            "bounds must be public: taken from the claims, they tell of the smallest and the largest",
            value="bounds derived from the claims",
            hint="Give bounds that are known without looking at the claims.",
        )
    if participation == "protected" and not claims.public_tasks:
        raise SettingsError(
            "protected participation needs a public list of tasks: one taken from the claims names every task with a "
            "claim",
            value="tasks taken from the claims",
            hint="List all tasks without looking at the claims: tasks=..., on the command line --tasks FILE.",
        )
    if participation == "public":
        _refuse_left_out(claims)


def _refuse_left_out(claims: Claims) -> None:
    for left_out, what, instead in (
        (claims.dropped, "claims outside the bounds", "Use outside='clip'"),
        (claims.missing, "rows without a number", "Leave out all rows of these tasks or workers beforehand"),
    ):
        if left_out:
            raise SettingsError(
                "the number of claims must not depend on their values",
                value=f"{left_out} {what} left out",
                hint=f"{instead}, or protect participation.",
            )


def drawn_release(
    mode: str, claims: Claims, densities: Densities, budgets: Budgets, records: int, few: str, source: Source
) -> Release:
    """Draw `records` numbers from each density; tasks without one are withheld, `few` says why."""
    value = densities.sample(records, source)
    task = np.repeat(densities.task, records).astype(np.int32)
    missing = len(claims.tasks) - len(densities.task)
    return Release(
        mode=mode,
        task=task,
        worker=fresh_workers(task),
        value=value.ravel(),
        tasks=claims.tasks,
        curves=budgets.curves(),
        withheld=(Withheld(few, missing, missing * records),) if missing else (),
        simulation=source.simulation,
    )


def few_claims(least: int) -> str:
    """Say why a task is withheld where the number of claims is public."""
    return "no claim" if least == 1 else f"fewer than {least} claims"


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TASKS_AT_ONCE = 4096
BINS_AT_100, BINS_GROWTH = 16.0, 0.45
"""Bins where claims times epsilon is 100, and the power with which they grow. More than fits best: smoothing undoes
fine bins at a small price, nothing undoes coarse ones (docs/explanation/synthesis/utility.md)."""
WEIGHTS_SHARE = 0.25
"""Part of the budget that learning weights costs."""


class Sizes(NamedTuple):
    """What is publicly known, or assumed, of every task's claims.

    Attributes:
        weight: integer weight of every claim, 0 for those not used, shape (claims,).
        largest: largest weight a claim can have.
        expected: weight that a task has, or is expected to have, shape (tasks,).
        effective: claims that would tell as much if they weighed the same, shape (tasks,).
    """

    weight: Integers
    largest: int
    expected: Floats
    effective: Floats


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Release synthetic claims from private histograms: pure epsilon, whatever the number of records.

    Attributes:
        epsilon: privacy loss of one unit over the whole release.
        records: synthetic claims per task; they cost nothing.
        unit: "cell": one claim; "worker": all claims of one worker.
        participation: "public": neighbours replace claims, who claimed what is known; "protected": they add, remove or
            replace claims, and only the list of tasks is known, which must have been given.
        bins: bins of a task, one of `BIN_CHOICES`; by default chosen from public numbers.
        zoom: spend a part of the budget on finding where the claims of a task lie, for bounds far wider than these;
            only on tasks whose (public) size and budget allow it.
        weights: public trust in workers, by name, in (0, 1]; others count 1. Floored at 1/64, in steps of 1/64.
        learn_weights: spend a quarter of the budget on weighting workers by their agreement with the others.
        expected_claims: claims a task is publicly expected to have; needed, and used, if participation is protected.
        most_claims: claims of one worker that are used, chosen at random; needed for protected workers.
        least_claims: tasks with fewer claims (protected: with a smaller noisy total) release nothing.
    """

    name: ClassVar[str] = "histogram"
    epsilon: float
    records: int = 30
    unit: Unit = "cell"
    participation: Participation = "public"
    bins: int | None = None
    zoom: bool = False
    weights: Mapping[str, float] = field(default_factory=dict)
    learn_weights: bool = False
    expected_claims: float | None = None
    most_claims: int | None = None
    least_claims: int = 1

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        if self.records < 1 or self.least_claims < 1:
            raise SettingsError("records and least_claims must be positive", value=(self.records, self.least_claims))
        if self.bins is not None and self.bins not in BIN_CHOICES:
            raise SettingsError(f"bins must be one of {BIN_CHOICES}", value=self.bins)
        if self.participation == "protected" and not (self.expected_claims or 0) > 0:
            raise SettingsError(
                "protected participation hides how many claims there are: expected_claims must be positive",
                value=self.expected_claims,
                hint="Give the number of claims that a task is publicly expected to have.",
            )
        if self.participation == "protected" and (self.weights or self.learn_weights):
            raise SettingsError("weights name workers, who are protected", value=sorted(self.weights)[:5])
        if self.weights and self.learn_weights:
            raise SettingsError("weights are either given or learned", value=sorted(self.weights)[:5])
        if self.most_claims is not None and self.most_claims < 1:
            raise SettingsError("most_claims must be positive", value=self.most_claims)
        if self.unit == "worker" and self.participation == "protected" and self.most_claims is None:
            raise SettingsError(
                "protecting all of a worker needs most_claims if participation is protected",
                value=None,
                hint="Give the number of claims per worker that are used.",
            )

    def release(self, claims: Claims, source: Source = SECURE, *, progress: Progress | None = None) -> Release:
        """Return `records` synthetic claims for every task that can have them.

        Raises:
            SettingsError: bounds (protected: a list of tasks) that depend on the claims, or claims left out because of
                their value.
        """
        densities, budgets = self.private_densities(claims, source, progress=progress)
        few = few_claims(self.least_claims)
        if self.participation == "protected":
            few = f"noisy number of claims below {self.least_claims}"
        return drawn_release(self.name, claims, densities, budgets, self.records, few, source)

    def private_densities(
        self, claims: Claims, source: Source = SECURE, *, progress: Progress | None = None
    ) -> tuple[Densities, Budgets]:
        """Return the densities that records are drawn from, for the same epsilon, and the budget of every task.

        Raises:
            SettingsError: as `release`.
        """
        require_public(claims, self.participation)
        budgets = divide(
            claims,
            epsilon=self.epsilon,
            unit=self.unit,
            participation=self.participation,
            most_claims=self.most_claims,
        )
        used = budgets.used(claims, source)
        of_worker, spent = self._of_worker(claims, used, budgets, source)
        sizes = self._sizes(claims, used, of_worker)
        zoomed = self.zoom & (sizes.effective * budgets.of_tasks >= ZOOM_FROM)
        bins = self._bins(sizes, budgets)
        held = (
            claims.per_task >= self.least_claims if self.participation == "public" else np.ones(len(bins), dtype=bool)
        )
        parts: list[Densities] = []
        done = 0
        kinds = np.stack((bins, budgets.parts, zoomed), axis=1)
        for kind in np.unique(kinds[held], axis=0):
            counter = Histogrammer(
                epsilon=budgets.exact[int(kind[1])] - spent,
                bins=int(kind[0]),
                largest=sizes.largest,
                zoom=bool(kind[2]),
            )
            rows = np.flatnonzero(held & (kinds == kind).all(axis=1))
            for first in range(0, len(rows), TASKS_AT_ONCE):
                parts.append(self._densities(claims, rows[first : first + TASKS_AT_ONCE], counter, sizes, source))
                done += min(TASKS_AT_ONCE, len(rows) - first)
                if progress is not None:
                    progress(done, int(held.sum()))
        return _joined(parts), budgets

    def _of_worker(
        self, claims: Claims, used: NDArray[np.bool_], budgets: Budgets, source: Source
    ) -> tuple[Integers, Fraction]:
        """Return the integer weight of every worker, and what it cost each claim to learn them."""
        if not self.learn_weights:
            return fixed_weights(claims, self.weights), Fraction(0)
        spent = budget(float(min(budgets.exact.values(), default=budget(self.epsilon))) * WEIGHTS_SHARE)
        return in_fixed_point(learn_weights(claims, used, spent, source)), spent

    def _sizes(self, claims: Claims, used: NDArray[np.bool_], of_worker: Integers) -> Sizes:
        weight = of_worker[claims.worker] * used
        tasks = len(claims.tasks)
        if self.participation == "protected":
            assert self.expected_claims is not None  # checked at birth
            expected = np.full(tasks, float(self.expected_claims))
            return Sizes(weight, 1, expected, expected)
        total, squares = (
            np.bincount(claims.task, weights=column, minlength=tasks) for column in (weight, weight.astype(float) ** 2)
        )
        effective = np.divide(total**2, squares, out=np.ones(tasks), where=squares > 0)
        return Sizes(weight, int(of_worker.max(initial=1)), np.maximum(total, 1.0), effective)

    def _bins(self, sizes: Sizes, budgets: Budgets) -> Integers:
        """Return the number of bins of every task, from public numbers only."""
        choices = np.array(BIN_CHOICES if self.bins is None else (self.bins,))
        target = BINS_AT_100 * np.maximum(sizes.effective * budgets.of_tasks / 100.0, 1e-9) ** BINS_GROWTH
        return choices[np.abs(np.log(target[:, None] / choices)).argmin(axis=1)]

    def _densities(
        self, claims: Claims, rows: Integers, counter: Histogrammer, sizes: Sizes, source: Source
    ) -> Densities:
        noisy = counter.count(positions(claims, rows, sizes.weight), sizes.expected[rows], source)
        if self.participation == "protected":
            kept = noisy.counts.sum(axis=1) + noisy.outside >= self.least_claims
            rows = rows[kept]
            noisy = noisy._replace(**{name: getattr(noisy, name)[kept] for name in ("counts", "outside", "window")})
            total = noisy.counts.sum(axis=1) + noisy.outside
            effective = total
        else:
            total, effective = sizes.expected[rows], sizes.effective[rows]
        low, high = claims.low[rows], claims.high[rows]
        ends = low[:, None] + (high - low)[:, None] * noisy.window
        return Densities(
            task=rows,
            low=low,
            high=high,
            window_low=ends[:, 0],
            window_high=ends[:, 1],
            mass=masses(noisy, total, effective),
        )


def masses(noisy: Noisy, total: Floats, effective: Floats) -> Floats:
    """Turn noisy counts into the masses of `Densities`: inside by smoothing, outside spread over its width.

    Args:
        noisy: counts of some tasks.
        total: weight that they have altogether, positive, shape (tasks,).
        effective: claims of equal weight that would tell as much, shape (tasks,).
    """
    bins = noisy.counts.shape[1]
    partial = noisy.window[:, 1] - noisy.window[:, 0] < 1.0
    counted = noisy.counts.sum(axis=1)
    # Two estimates of the weight inside, from the bins and from what is outside, combined by their variances.
    inside = counted + (total - noisy.outside - counted) * (bins / (bins + 1.0))
    share = np.where(partial, np.clip(inside / total, 0.0, 1.0), 1.0)
    least = 1.0 / np.maximum(total, 1.0)
    share_held = np.maximum(share, least)
    shape = smooth(noisy.counts, np.full(len(total), noisy.variance), total * share_held, effective * share_held)
    below, above = noisy.window[:, 0], 1.0 - noisy.window[:, 1]
    rest = np.divide(1.0 - share, below + above, out=np.zeros(len(total)), where=below + above > 0)
    return np.column_stack((rest * below, share[:, None] * shape, rest * above))


def _joined(parts: list[Densities]) -> Densities:
    """Return all parts as one, in the order of the task codes."""
    columns = {name: [getattr(part, name) for part in parts] for name in ("task", "low", "high")}
    columns |= {name: [getattr(part, name) for part in parts] for name in ("window_low", "window_high", "mass")}
    if not parts:
        empty = np.zeros(0)
        none = np.zeros(0, dtype=np.int64)
        return Densities(
            task=none, low=empty, high=empty, window_low=empty, window_high=empty, mass=np.zeros((0, CELLS + 2))
        )
    order = np.argsort(np.concatenate(columns["task"]))
    joined = {name: np.concatenate(column)[order] for name, column in columns.items()}
    return Densities(**joined)
