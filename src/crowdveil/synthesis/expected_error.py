"""Expected error of the task means of a sound release, found by releasing made-up crowds of the same public structure.

A made-up crowd has the tasks, the bounds and, with public participation, the participation of the real one; its claims
are made up. No real claim is read, so that the result may be published. Where truths are drawn from the records of a
release, the result is post-processing of that release.
"""

import math
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.guarantee import MIN_EPSILON
from crowdveil.randomness import seeded
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.huai2019.modes import Substituted
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.pooled_shape import Shared
from crowdveil.synthesis.release import Release

Floats = NDArray[np.float64]
SoundMode: TypeAlias = Histogram | Shared | Substituted

SCATTER = 0.05
"""Assumed standard deviation of claims around the truth of their task, as a share of the bounds."""
MOST_CLAIMS = 200_000
"""Claims of a made-up crowd; of a larger crowd it has some of the tasks."""
LEAST_TASKS, MOST_CROWDS = 200, 50
"""Errors are averaged over at least so many tasks, made up in at most so many crowds."""
USEFUL = 0.95
"""Share of another error below which an error counts as smaller: less may be chance."""
LEAST_MEANS = 10
"""Tasks with records from which on their means are taken for truths."""
AS_IS = "truths as in the records"
GOOD_ENOUGH = 0.15
"""Share of the constant's error up to which the first mode is used without a comparison."""


class ExpectedError(NamedTuple):
    """Mean absolute errors of task means, in shares of the bounds; a task counts as often as it has claims.

    Attributes:
        error: of the means of a task's records, against the means of its claims.
        constant: of one number for all tasks, the best for the assumed truths.
    """

    error: float
    constant: float

    @property
    def useful(self) -> bool:
        """Whether the records are expected to be nearer than one number for all tasks."""
        return self.error < USEFUL * self.constant


class ReleaseErrors(NamedTuple):
    """Expected errors of a release under two assumptions on the truths; None where they say nothing.

    Attributes:
        any_truths: truths lie anywhere within the bounds. From public numbers alone.
        truths_of_records: truths lie as the means of the released records do. From these and public numbers.
    """

    any_truths: ExpectedError | None
    truths_of_records: ExpectedError | None

    def to_json(self, width: float) -> dict[str, dict[str, float] | None]:
        """Return both as JSON values, in units of claims whose bounds are `width` apart."""
        return {
            name: None if found is None else {"error": found.error * width, "constant": found.constant * width}
            for name, found in self._asdict().items()
        }

    def warning(self, width: float) -> str:
        """Return a sentence with numbers if one number for all tasks is expected to do as well, else nothing."""
        for found, assumed in ((self.any_truths, "truths anywhere within the bounds"), (self.truths_of_records, AS_IS)):
            if found is not None and not found.useful:
                return (
                    f"The records are expected to be no better than one number for all tasks: their task means are off "
                    f"by {found.error * width:.3g}, the number by {found.constant * width:.3g} ({assumed}). Use a "
                    "larger epsilon, narrower bounds, or tasks with more claims."
                )
        return ""


def expected_error(mode: SoundMode, claims: Claims, truths: Floats | None = None) -> ExpectedError | None:
    """Return the error to expect of a release, None if no task of the made-up crowds releases anything.

    Args:
        mode: of the release.
        claims: of which only public numbers are read: tasks, bounds and, with public participation, who claimed what.
        truths: that the made-up tasks have one of, in shares of the bounds; by default any number within the bounds,
            all equally likely.
    """
    crowd, mode = _smaller(_structure(mode, claims), mode)
    constant = 0.5 if truths is None else float(np.median(truths))
    rows = []
    for number in range(int(np.clip(LEAST_TASKS // max(len(crowd.tasks), 1), 1, MOST_CROWDS))):
        source = seeded(number)
        drawn = source.generator.random(len(crowd.tasks))
        if truths is not None:
            drawn = truths[(drawn * len(truths)).astype(np.int64)]
        spread = SCATTER * source.generator.normal(size=len(crowd))
        made = replace(crowd, value=_in_units(crowd, crowd.task, np.clip(drawn[crowd.task] + spread, 0.0, 1.0)))
        released = task_means(mode.release(made, source), made)
        rows.append(np.stack((_means(made, made.task, made.value), released, made.per_task)))
    claimed, released, claims_held = np.concatenate(rows, axis=1)
    both = np.isfinite(claimed) & np.isfinite(released)
    if not both.any():
        return None
    gaps = np.abs(claimed - released)[both], np.abs(claimed - constant)[both]
    return ExpectedError(*(float(np.average(gap, weights=claims_held[both])) for gap in gaps))


def nearer(first: SoundMode, second: SoundMode, claims: Claims) -> SoundMode:
    """Return the first mode if it is good enough or no farther from the truth than the second, else the second.

    Args:
        first, second: modes for the same claims.
        claims: as for `expected_error`.
    """
    ours = expected_error(first, claims)
    if ours is None or ours.error <= GOOD_ENOUGH * ours.constant:
        return first
    theirs = expected_error(second, claims)
    return second if theirs is not None and theirs.error < USEFUL * ours.error else first


def release_errors(mode: SoundMode, claims: Claims, release: Release) -> ReleaseErrors:
    """Return what to expect of a release that was made; `claims` as for `expected_error`."""
    means = task_means(release, claims)
    means = means[np.isfinite(means)]
    return ReleaseErrors(
        any_truths=expected_error(mode, claims),
        truths_of_records=expected_error(mode, claims, means) if len(means) >= LEAST_MEANS else None,
    )


def task_means(release: Release, claims: Claims) -> Floats:
    """Return the mean of each task's records, in shares of its bounds; NaN for a task without, shape (tasks,)."""
    return _means(claims, release.task, release.value)


def _structure(mode: SoundMode, claims: Claims) -> Claims:
    """Return claims of which only the values, all to be replaced, are not public."""
    if not (isinstance(mode, Histogram) and mode.participation == "protected"):
        return claims
    assert mode.expected_claims is not None  # checked at birth
    each = max(1, round(mode.expected_claims))
    tasks = min(len(claims.tasks), max(1, MOST_CLAIMS // each))
    return Claims(
        pointers=np.arange(tasks + 1) * each,
        worker=np.arange(tasks * each, dtype=np.int32),
        value=np.zeros(tasks * each),
        tasks=claims.tasks[:tasks],
        workers=np.arange(tasks * each),
        low=claims.low[:tasks],
        high=claims.high[:tasks],
        public_bounds=True,
        public_tasks=True,
        public_workers=True,
    )


def _smaller(claims: Claims, mode: SoundMode) -> tuple[Claims, SoundMode]:
    """Leave out tasks of a large crowd, and as much of a worker's epsilon, so that a task may spend about the same."""
    step = math.ceil(len(claims) / MOST_CLAIMS)
    if step <= 1 or len(claims.tasks) < LEAST_TASKS * step:
        return claims, mode
    rows = np.arange(0, len(claims.tasks), step)
    kept = np.isin(claims.task, rows)
    smaller = replace(
        claims,
        pointers=np.concatenate(([0], np.cumsum(claims.per_task[rows]))),
        worker=claims.worker[kept],
        value=claims.value[kept],
        tasks=claims.tasks[rows],
        low=claims.low[rows],
        high=claims.high[rows],
    )
    if isinstance(mode, Substituted) or mode.unit == "cell":
        return smaller, mode
    share = len(smaller) / len(claims)
    most = None if mode.most_claims is None else max(1, round(mode.most_claims * share))
    return smaller, replace(mode, epsilon=max(mode.epsilon * share, MIN_EPSILON), most_claims=most)


def _in_units(claims: Claims, task: NDArray[np.integer], share: Floats) -> Floats:
    return claims.low[task] + (claims.high - claims.low)[task] * share


def _means(claims: Claims, task: NDArray[np.integer], value: Floats) -> Floats:
    count, total = (np.bincount(task, weights=column, minlength=len(claims.tasks)) for column in (None, value))
    with np.errstate(invalid="ignore"):
        return (total / count - claims.low) / (claims.high - claims.low)
