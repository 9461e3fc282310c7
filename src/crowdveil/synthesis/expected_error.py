"""Expected error of the task means of a private release, by simulated crowds with the same public structure.

A simulated crowd has the tasks, the bounds and, with public participation, the participation of the real one; its
values are drawn at random. No real value is read, so the result may be published. Where truths are drawn from the
records of a release, the result is post-processing of that release.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.guarantee import MIN_EPSILON
from crowdveil.randomness import seeded
from crowdveil.synthesis.original_claims import Claims, Floats
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.private_method import PrivateMethod
from crowdveil.synthesis.release import Release

SCATTER = 0.05
"""Assumed standard deviation of claims around the truth of their task, as a share of the bounds."""
MAX_CLAIMS = 200_000
"""Largest number of simulated claims; of a larger crowd, some of the tasks are simulated."""
LEAST_TASKS, MAX_CROWDS = 200, 50
"""Least number of tasks to average over, and largest number of simulated crowds to reach it."""
CLEARLY_SMALLER = 0.95
"""Ratio of two simulated errors below which the first counts as smaller; larger ratios may be due to chance."""
LEAST_MEANS = 10
"""Least number of tasks with records whose means are used as truths."""
GOOD_ENOUGH = 0.15
"""Ratio to the constant's error up to which the first method is used without a comparison."""


class TaskMeanError(NamedTuple):
    """Mean absolute errors of task means, in shares of the bounds, weighted by the claims of a task.

    Attributes:
        error: of the means of a task's records, against the means of its claims.
        constant: of the best single number for all tasks, for the assumed truths.
    """

    error: float
    constant: float

    @property
    def better_than_constant(self) -> bool:
        """Whether the records are expected to be nearer than one number for all tasks."""
        return self.error < CLEARLY_SMALLER * self.constant


class ReleaseErrors(NamedTuple):
    """Expected errors of a release under two assumptions on the truths; None where there is no estimate.

    Attributes:
        any_truths: truths uniform within the bounds; from public numbers alone.
        truths_of_records: truths distributed as the means of the released records; from these and public numbers.
    """

    any_truths: TaskMeanError | None
    truths_of_records: TaskMeanError | None

    def to_json(self, width: float) -> dict[str, dict[str, float] | None]:
        """Return both as JSON values, in units of claims whose bounds have the distance `width`."""
        return {
            name: None if found is None else {"error": found.error * width, "constant": found.constant * width}
            for name, found in self._asdict().items()
        }

    def constant_warning(self, width: float) -> str:
        """Return a warning if one number for all tasks is expected to be as good as the records, else an empty text."""
        assumptions = "truths anywhere within the bounds", "truths as in the records"
        for found, assumed in zip(self, assumptions, strict=True):
            if found is not None and not found.better_than_constant:
                better = "hardly" if found.error < found.constant else "no"
                return (
                    f"The records are expected to be {better} better than one number for all tasks: their task "
                    f"means are off by {found.error * width:.3g}, the number by {found.constant * width:.3g} "
                    f"({assumed}). Use a larger epsilon, narrower bounds, or tasks with more claims."
                )
        return ""


def simulated_task_mean_error(
    method: PrivateMethod, claims: Claims, truths: Floats | None = None
) -> TaskMeanError | None:
    """Return the expected error of a release, None if no task of the simulated crowds releases anything.

    Args:
        method: of the release.
        claims: only public numbers are read: tasks, bounds and, with public participation, the (task, worker) pairs.
        truths: values from which the truths are drawn, in shares of the bounds; by default uniform within the bounds.
    """
    crowd, method = _subsampled_claims(_claims_of_public_size(method, claims), method)
    constant = 0.5 if truths is None else float(np.median(truths))
    rows = []
    for seed in range(int(np.clip(LEAST_TASKS // max(len(crowd.tasks), 1), 1, MAX_CROWDS))):
        source = seeded(seed)
        truth = source.generator.random(len(crowd.tasks))
        if truths is not None:
            truth = truths[(truth * len(truths)).astype(np.int64)]
        position = np.clip(
            truth[crowd.task_of_each_claim] + SCATTER * source.generator.normal(size=len(crowd)), 0.0, 1.0
        )
        value = crowd.low[crowd.task_of_each_claim] + (crowd.high - crowd.low)[crowd.task_of_each_claim] * position
        simulated = replace(crowd, value=value)
        released = mean_record_shares(method.release(simulated, source), simulated)
        rows.append(
            np.stack(
                (
                    _task_means_as_range_shares(simulated, simulated.task_of_each_claim, simulated.value),
                    released,
                    simulated.per_task,
                )
            )
        )
    claimed, released, weight = np.concatenate(rows, axis=1)
    both = np.isfinite(claimed) & np.isfinite(released)
    if not both.any():
        return None
    errors = np.abs(claimed - released)[both], np.abs(claimed - constant)[both]
    return TaskMeanError(*(float(np.average(error, weights=weight[both])) for error in errors))


def prefer_first(first: PrivateMethod, second: PrivateMethod, claims: Claims) -> PrivateMethod:
    """Return the first method if its expected error is small or not clearly larger than the second's, else the second.

    Args:
        first, second: methods for the same claims.
        claims: as for `simulated_task_mean_error`.
    """
    ours = simulated_task_mean_error(first, claims)
    if ours is None or ours.error <= GOOD_ENOUGH * ours.constant:
        return first
    theirs = simulated_task_mean_error(second, claims)
    return second if theirs is not None and theirs.error < CLEARLY_SMALLER * ours.error else first


def expected_errors_of_release(method: PrivateMethod, claims: Claims, release: Release) -> ReleaseErrors:
    """Return the expected errors of a release that was made; `claims` as for `simulated_task_mean_error`."""
    means = mean_record_shares(release, claims)
    means = means[np.isfinite(means)]
    return ReleaseErrors(
        any_truths=simulated_task_mean_error(method, claims),
        truths_of_records=simulated_task_mean_error(method, claims, means) if len(means) >= LEAST_MEANS else None,
    )


def mean_record_shares(release: Release, claims: Claims) -> Floats:
    """Return the mean of each task's records, in shares of its bounds, shape (tasks,); NaN for a task without one."""
    return _task_means_as_range_shares(claims, release.task, release.value)


def _claims_of_public_size(method: PrivateMethod, claims: Claims) -> Claims:
    """Return claims with the public numbers of the real ones; their values are to be replaced."""
    if not (isinstance(method, Histogram) and method.participation == "protected"):
        return claims
    assert method.expected_claims is not None  # checked by Histogram.__post_init__
    each = max(1, round(method.expected_claims))
    tasks = min(len(claims.tasks), max(1, MAX_CLAIMS // each))
    return Claims(
        pointers=np.arange(tasks + 1) * each,
        worker=np.arange(tasks * each, dtype=np.int32),
        value=np.zeros(tasks * each),
        tasks=claims.tasks[:tasks],
        workers=np.arange(tasks * each),
        low=claims.low[:tasks],
        high=claims.high[:tasks],
        public_tasks=True,
    )


def _subsampled_claims(claims: Claims, method: PrivateMethod) -> tuple[Claims, PrivateMethod]:
    """Return some tasks of a large crowd, with a worker's epsilon scaled to keep the budget per task."""
    step = math.ceil(len(claims) / MAX_CLAIMS)
    if step <= 1 or len(claims.tasks) < LEAST_TASKS * step:
        return claims, method
    rows = np.arange(0, len(claims.tasks), step)
    kept = np.isin(claims.task_of_each_claim, rows)
    smaller = replace(
        claims,
        pointers=np.concatenate(([0], np.cumsum(claims.per_task[rows]))),
        worker=claims.worker[kept],
        value=claims.value[kept],
        tasks=claims.tasks[rows],
        low=claims.low[rows],
        high=claims.high[rows],
    )
    if method.unit == "cell":
        return smaller, method
    share = len(smaller) / len(claims)
    most = None if method.most_claims is None else max(1, round(method.most_claims * share))
    return smaller, replace(method, epsilon=max(method.epsilon * share, MIN_EPSILON), most_claims=most)


def _task_means_as_range_shares(claims: Claims, task: NDArray[np.integer], value: Floats) -> Floats:
    count, total = (np.bincount(task, weights=column, minlength=len(claims.tasks)) for column in (None, value))
    with np.errstate(invalid="ignore"):
        return (total / count - claims.low) / (claims.high - claims.low)
