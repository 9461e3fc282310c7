"""Made-up crowds: truths, workers of known quality, and which of them answered what."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.data.public_lists import ALL_LISTS
from crowdveil.data.reports import Reports
from crowdveil.errors import SettingsError
from crowdveil.randomness import Seeded
from crowdveil.simulate.bernoulli import bernoulli_indices

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
"""Draws `count` independent numbers: a truth per task, an ability or a number of answers per worker."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Crowd:
    """A made-up crowd with everything that a real curator would not know.

    Attributes:
        answers: unprotected answers; tasks and workers are named 1, 2, ... and all listed.
        truth: truth of each task, shape (tasks,): a number, or a label's name.
        quality: of each worker, shape (workers,).
        quality_name: "sigma" (standard deviation of the error) or "ability" (probability of a correct answer).
    """

    answers: Reports
    truth: NDArray[Any]
    quality: NDArray[np.float64]
    quality_name: str

    @property
    def gold(self) -> dict[Any, Any]:
        """Truth by task name, as `fit(gold=...)` and `metrics.score` take it."""
        return dict(zip(self.answers.tasks.tolist(), self.truth.tolist(), strict=True))


def standard_normal(generator: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Draw truths as Sun et al. do: normal with mean 0 and standard deviation 1."""
    return generator.standard_normal(count)


def uniform_abilities(generator: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Draw abilities uniformly between one half and one."""
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
    """Make numeric answers by the recipe of Sun et al. 2018, section VI-A.

    A worker's answer is the task's truth plus normal noise, rounded and clipped to the scale. Noise is added to the
    truth as drawn; `Crowd.truth` holds it clipped to the scale, the best that any inference on the scale can say.

    Args:
        workers, tasks: size of the crowd.
        sparsity: probability that a cell is NULL, in [0, 1), independently for every cell.
        scale: the grid of answers.
        truth: draws one number per task.
        sigmas: standard deviations of the workers' errors; equal shares of the workers, at random, have each.
        source: seeded.

    Raises:
        SettingsError: a size, sparsity or sigma out of range.
    """
    check_crowd(workers, tasks, sparsity)
    if not (sigmas and all(0 <= sigma < np.inf for sigma in sigmas)):
        raise SettingsError("standard deviations must be finite and non-negative", value=sigmas)
    generator = source.generator
    centre = np.asarray(truth(generator, tasks), dtype=float)
    sigma = generator.permutation(np.resize(np.array(sigmas, dtype=float), workers))
    task, worker = np.divmod(bernoulli_indices(generator, tasks * workers, 1 - sparsity), workers)
    noise = generator.standard_normal(len(task))
    value = scale.encode(centre[task] + sigma[worker] * noise)
    answers = _made_up(task, worker, value, tasks, workers, scale)
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
    """Make categorical answers by the one-coin model: right with the worker's ability, else any other label alike.

    Args:
        workers, tasks: size of the crowd.
        labels: what an answer can be.
        sparsity: probability that a cell is NULL, in [0, 1), independently for every cell; or instead
        answers_per_worker: how many distinct tasks each worker answers, chosen uniformly: one number for all, or a draw
            per worker, rounded and clipped to 0..tasks.
        prior: probability of each label to be a task's truth, sums to 1; uniform by default.
        ability: draws one probability per worker, clipped to [0, 1].
        source: seeded.

    Raises:
        SettingsError: a size, sparsity or prior out of range, or not just one of `sparsity` and `answers_per_worker`.
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
        task, worker = _chosen_tasks(generator, workers, tasks, answers_per_worker)
    wrong = generator.random(len(task)) >= skill[worker]
    shift = wrong * generator.integers(1, labels.size, len(task))
    value = (truth[task] + shift) % labels.size
    answers = _made_up(task, worker, value, tasks, workers, labels)
    return Crowd(answers=answers, truth=np.array(labels.names)[truth], quality=skill, quality_name="ability")


def _made_up(task: Any, worker: Any, value: Any, tasks: int, workers: int, alphabet: Alphabet) -> Reports:
    """Return made-up answers; names are numbers from 1, and all lists are known before any answer."""
    names = np.arange(1, tasks + 1), np.arange(1, workers + 1)
    return Reports(task, worker, value, *names, alphabet, ALL_LISTS)


def _chosen_tasks(
    generator: np.random.Generator, workers: int, tasks: int, answers: int | Draw
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Let every worker choose that many distinct tasks, all sets of one size alike."""
    wanted = np.full(workers, float(answers)) if isinstance(answers, int) else np.asarray(answers(generator, workers))
    counts = np.clip(np.rint(wanted), 0, tasks).astype(np.int64)
    task = [generator.choice(tasks, size=count, replace=False, shuffle=False) for count in counts]
    return np.concatenate(task), np.repeat(np.arange(workers), counts)


def check_crowd(workers: int, tasks: int, sparsity: float) -> None:
    """Refuse empty crowds, and a sparsity that is no share.

    Raises:
        SettingsError: with the value.
    """
    if workers < 1 or tasks < 1:
        raise SettingsError("a crowd needs at least one worker and one task", value=(workers, tasks))
    if not 0 <= sparsity < 1:
        raise SettingsError("sparsity must be in [0, 1)", value=sparsity, hint="It is the share of NULL cells.")


def checked_prior(prior: tuple[float, ...] | None, size: int) -> NDArray[np.float64]:
    """Return the probability of each of so many labels, uniform by default; sums to 1.

    Raises:
        SettingsError: other than so many probabilities.
    """
    shares = np.full(size, 1 / size) if prior is None else np.asarray(prior, dtype=float)
    if shares.shape != (size,) or not (shares >= 0).all() or abs(shares.sum() - 1) > 1e-6:
        raise SettingsError(f"the prior must be {size} probabilities that sum to 1", value=prior)
    return shares / shares.sum()
