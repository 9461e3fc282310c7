"""Simulated crowds with known truths and worker quality.

Numeric answers follow Sun et al. 2018, section VI-A; categorical answers follow the one-coin model: a worker answers
correctly with probability `ability`, otherwise any other label uniformly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.facts.asked import STATED
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.errors import SettingsError
from crowdveil.randomness import Seeded
from crowdveil.simulate.bernoulli import bernoulli_indices

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
"""Function of a generator and a count that returns independent draws, one per task or worker."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Crowd:
    """Simulated crowd with its truths and worker quality.

    Attributes:
        answers: unprotected answers; tasks and workers are named 1, 2, ...
        truth: truth of each task, shape (tasks,): a number, or a label's name.
        quality: quality of each worker, shape (workers,).
        quality_name: "sigma" (standard deviation of the error) or "ability" (probability of a correct answer).
    """

    answers: Reports
    truth: NDArray[Any]
    quality: NDArray[np.float64]
    quality_name: str

    @property
    def gold(self) -> dict[Any, Any]:
        """Truth by task name, for `fit(gold=...)` and `metrics.score`."""
        return dict(zip(self.answers.tasks.tolist(), self.truth.tolist(), strict=True))


def standard_normal(generator: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Return standard normal truths, as Sun et al. draw them."""
    return generator.standard_normal(count)


def uniform_abilities(generator: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Return abilities uniform on [0.5, 1]."""
    return generator.uniform(0.5, 1.0, count)


def numeric_crowd(
    *,
    workers: int,
    tasks: int,
    sparsity: float,
    scale: Scale = Scale(0, 9),  # noqa: B008 - a frozen value
    truth: Draw = standard_normal,
    sigmas: tuple[float, ...] = (1.0, 5.0),
    source: Seeded,
) -> Crowd:
    """Return a crowd with numeric answers: truth plus normal noise, rounded and clipped to the scale.

    Noise is added to the truth before clipping; `Crowd.truth` is clipped to the scale (Sun et al. 2018, section VI-A).

    Args:
        workers, tasks: size of the crowd.
        sparsity: probability that a cell is NULL, in [0, 1), independent for every cell.
        scale: the grid of answers.
        truth: draws one number per task.
        sigmas: standard deviations of errors; each applies to an equal random share of the workers.
        source: seeded.

    Raises:
        SettingsError: a size, sparsity or sigma out of range.
    """
    check_crowd(workers, tasks, sparsity)
    if not (sigmas and all(0 <= sigma < np.inf for sigma in sigmas)):
        raise SettingsError(
            "standard deviations must be finite and non-negative", value=sigmas, hint="Such as 0.5 and 1."
        )
    generator = source.generator
    centre = np.asarray(truth(generator, tasks), dtype=float)
    sigma = generator.permutation(np.resize(np.array(sigmas, dtype=float), workers))
    task, worker = np.divmod(bernoulli_indices(generator, tasks * workers, 1 - sparsity), workers)
    noise = generator.standard_normal(len(task))
    value = scale.encode(centre[task] + sigma[worker] * noise)
    answers = _simulated_answers_as_reports(task, worker, value, tasks, workers, scale)
    return Crowd(answers=answers, truth=np.clip(centre, scale.low, scale.high), quality=sigma, quality_name="sigma")


def categorical_crowd(
    *,
    workers: int,
    tasks: int,
    labels: Categories,
    sparsity: float | None = None,
    answers_per_worker: int | Draw | None = None,
    prior: tuple[float, ...] | None = None,
    ability: Draw = uniform_abilities,
    source: Seeded,
) -> Crowd:
    """Return a crowd with categorical answers from the one-coin model.

    Args:
        workers, tasks: size of the crowd.
        labels: possible answers.
        sparsity: probability that a cell is NULL, in [0, 1), independent for every cell; alternative to
            `answers_per_worker`.
        answers_per_worker: number of distinct uniform tasks that each worker answers, or a draw per worker, rounded and
            clipped to 0..tasks.
        prior: P(truth) by label, sums to 1; uniform by default.
        ability: draws one probability per worker, clipped to [0, 1].
        source: seeded.

    Raises:
        SettingsError: a size, sparsity or prior out of range, or not one of `sparsity` and `answers_per_worker`.
    """
    check_crowd(workers, tasks, 0.0 if sparsity is None else sparsity)
    generator = source.generator
    shares = checked_prior(prior, labels.size)
    truth = generator.choice(labels.size, size=tasks, p=shares)
    skill = np.clip(np.asarray(ability(generator, workers), dtype=float), 0.0, 1.0)
    if (sparsity is None) == (answers_per_worker is None):
        raise SettingsError("give either sparsity or answers_per_worker", value=(sparsity, answers_per_worker))
    if answers_per_worker is None:
        task, worker = np.divmod(bernoulli_indices(generator, tasks * workers, 1 - (sparsity or 0.0)), workers)
    else:
        task, worker = _random_tasks_of_each_worker(generator, workers, tasks, answers_per_worker)
    wrong = generator.random(len(task)) >= skill[worker]
    shift = wrong * generator.integers(1, labels.size, len(task))
    value = (truth[task] + shift) % labels.size
    answers = _simulated_answers_as_reports(task, worker, value, tasks, workers, labels)
    return Crowd(answers=answers, truth=np.array(labels.names)[truth], quality=skill, quality_name="ability")


def _simulated_answers_as_reports(
    task: Any, worker: Any, value: Any, tasks: int, workers: int, alphabet: Alphabet
) -> Reports:
    """Return simulated answers with names 1, 2, ...; all lists are public."""
    names = np.arange(1, tasks + 1), np.arange(1, workers + 1)
    return Reports(task, worker, value, *names, alphabet, STATED)


def _random_tasks_of_each_worker(
    generator: np.random.Generator, workers: int, tasks: int, answers: int | Draw
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return task and worker codes if every worker answers a uniform random set of tasks of the given size."""
    drawn = np.full(workers, float(answers)) if isinstance(answers, int) else np.asarray(answers(generator, workers))
    counts = np.clip(np.rint(drawn), 0, tasks).astype(np.int64)
    task = [generator.choice(tasks, size=count, replace=False, shuffle=False) for count in counts]
    return np.concatenate(task), np.repeat(np.arange(workers), counts)


def check_crowd(workers: int, tasks: int, sparsity: float) -> None:
    """Check the size and sparsity of a crowd.

    Raises:
        SettingsError: no worker, no task, or a sparsity outside [0, 1).
    """
    if workers < 1 or tasks < 1:
        raise SettingsError("a crowd needs at least one worker and one task", value=(workers, tasks))
    if not 0 <= sparsity < 1:
        raise SettingsError("sparsity must be in [0, 1)", value=sparsity, hint="It is the share of NULL cells.")


def checked_prior(prior: tuple[float, ...] | None, size: int) -> NDArray[np.float64]:
    """Return the prior over `size` labels, uniform by default; sums to 1.

    Raises:
        SettingsError: another number of probabilities, a negative one, or another sum.
    """
    shares = np.full(size, 1 / size) if prior is None else np.asarray(prior, dtype=float)
    if shares.shape != (size,) or not (shares >= 0).all() or abs(shares.sum() - 1) > 1e-6:
        raise SettingsError(f"the prior must be {size} probabilities that sum to 1", value=prior)
    return shares / shares.sum()
