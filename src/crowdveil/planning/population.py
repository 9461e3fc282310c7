"""What the planner takes a crowd to be: truths from a public prior, workers of a few kinds in known shares.

Both crowds can be made up whole (by `crowdveil.simulate`) and can say how likely every answer is, which is what the
closed form needs.

Long scales are planned on a coarser one, which takes a minute where the scale itself took more than ten.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import beta

from crowdveil.channel_design import normal_worker_model, one_coin_worker_model
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.data.reports import Reports
from crowdveil.errors import SettingsError
from crowdveil.estimators.gaussian.discretization import quantiles
from crowdveil.evaluation.metrics import ErrorName
from crowdveil.randomness import Seeded
from crowdveil.simulate import Crowd, categorical_crowd, numeric_crowd
from crowdveil.simulate.bernoulli import bernoulli_indices

MOST_STEPS = 20
"""A scale of more steps than these is planned on a coarser one."""
STEP_OF_SIGMA = 2.0
"""Largest step of the coarser scale in the smallest standard deviation: rounding then adds a third to that variance."""


def coarser(scale: Scale, smallest_sigma: float) -> Scale:
    """Return the scale to plan on: with the same ends and `MOST_STEPS` at most, more where workers err by little.

    Steps are made of whole ones where at least half as many can be, and are a fraction of the range otherwise.

    Args:
        scale: of the answers.
        smallest_sigma: the smallest standard deviation of the workers, in units of the answers.
    """
    most, steps = MOST_STEPS, scale.size - 1
    finest = scale.range / (STEP_OF_SIGMA * smallest_sigma) if smallest_sigma > 0 else float(steps)
    while most < finest and most < steps:
        most *= 2
    if steps <= most:
        return scale
    whole = [count for count in range(most, most // 2 - 1, -1) if steps % count == 0 and count >= finest]
    return Scale(scale.low, scale.high, _step(scale, steps, whole[0] if whole else most))


def merged(prior: NDArray[np.float64], scale: Scale, onto: Scale) -> NDArray[np.float64]:
    """Return the prior of the coarser labels, shape (labels of `onto`,); `prior` has one entry per label of `scale`.

    A label stands for the numbers that round to it, evenly; each coarser one gets what rounds to it.
    """
    centres = scale.values[:, np.newaxis]
    low, high = centres - scale.step / 2, centres + scale.step / 2
    borders = np.concatenate(([-np.inf], (onto.values[:-1] + onto.values[1:]) / 2, [np.inf]))
    shared = np.minimum(high, borders[1:]) - np.maximum(low, borders[:-1])
    part = prior @ np.maximum(shared, 0.0)
    return np.asarray(part / part.sum())


def _step(scale: Scale, steps: int, count: int) -> float:
    """Return the step of `count` ones, as a decimal that a person would write."""
    return float(f"{scale.step * steps / count:.15g}")


KINDS = 7
"""Kinds of workers that stand for a distribution of abilities."""
CONCENTRATION = 10.0
"""Of the Beta distribution of abilities: with mean 0.75 its standard deviation is 0.13."""
PER_STEP, POINTS = 8, 512
"""Points of truth per step of a scale, and over the whole scale, at most."""
FARTHER = 0.5
"""How likely a mistake is that lies one ordered label farther off, in units of the nearer one."""
BEYOND = 1.0
"""Truths of the outermost labels reach this far beyond the scale, in steps: as `gaussian` reads a prior by label."""


def beta_abilities(mean: float) -> tuple[float, ...]:
    """Return `KINDS` abilities in equal shares that stand for a Beta distribution around `mean`.

    They are its quantiles at the middle of each share, shifted to have the mean asked for where that is possible.

    Raises:
        SettingsError: a mean outside [0, 1].
    """
    if not 0 <= mean <= 1:
        raise SettingsError("an ability must be in [0, 1]", value=mean)
    if mean in (0, 1):
        return (float(mean),)
    middles = (np.arange(KINDS) + 0.5) / KINDS
    found = beta.ppf(middles, mean * CONCENTRATION, (1 - mean) * CONCENTRATION)
    return tuple(np.clip(found + mean - found.mean(), 0.0, 1.0).tolist())


def near_answers(labels: int, ability: float) -> NDArray[np.float64]:
    """Return P(answer | truth) of a worker who is right with probability `ability`, else wrong and mostly near.

    Each label that a mistake is farther off makes it `FARTHER` times as likely. Shape (labels, labels), rows sum to 1.
    """
    places = np.arange(labels)
    mistakes = FARTHER ** np.abs(places[:, None] - places) * (1 - np.eye(labels))
    return np.asarray(ability * np.eye(labels) + (1 - ability) * mistakes / mistakes.sum(axis=1, keepdims=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelCrowd:
    """Workers who are right with their ability, else wrong in any way alike; its error is the share of wrong labels.

    Three ordered labels or more are mistaken for near ones mostly (`near_answers`).

    Attributes:
        alphabet: the labels.
        prior: P(truth), shape (labels,).
        abilities: equal shares of the workers, each drawn at random, have each of them.
    """

    error_name: ClassVar[ErrorName] = "error_rate"
    alphabet: Categories
    prior: NDArray[np.float64]
    abilities: tuple[float, ...]

    @cached_property
    def kinds(self) -> NDArray[np.float64]:
        """Return the distinct abilities, ascending."""
        return np.unique(self.abilities)

    @property
    def shares(self) -> NDArray[np.float64]:
        """Return the share of workers of each kind."""
        return _shares(self.abilities)

    @property
    def log_prior(self) -> NDArray[np.float64]:
        """Return the logarithm of P(truth)."""
        return np.log(np.maximum(self.prior, np.finfo(float).tiny))

    @property
    def constant_error(self) -> float:
        """Return the error of the best public constant."""
        return 1 - float(self.prior.max())

    @property
    def in_order(self) -> bool:
        """Whether labels have an order that says something about mistakes."""
        return self.alphabet.ordered and self.alphabet.size > 2

    def make(self, *, workers: int, tasks: int, rate: float, source: Seeded) -> Crowd:
        """Make such a crowd up; every cell is answered with probability `rate`."""
        if self.in_order:
            return self._make_in_order(workers, tasks, rate, source)
        return categorical_crowd(
            workers=workers,
            tasks=tasks,
            labels=self.alphabet,
            sparsity=1 - rate,
            prior=tuple(self.prior.tolist()),
            ability=lambda generator, count: generator.choice(np.array(self.abilities), count),
            source=source,
        )

    def _make_in_order(self, workers: int, tasks: int, rate: float, source: Seeded) -> Crowd:
        generator, labels = source.generator, self.alphabet
        truth, kind = self.draw_truths(generator, tasks), generator.choice(len(self.kinds), workers, p=self.shares)
        task, worker = np.divmod(bernoulli_indices(generator, tasks * workers, rate), workers)
        up_to = np.cumsum(self.tables(), axis=2)[kind[worker], truth[task], :-1]
        value = (generator.random(len(task))[:, None] > up_to).sum(axis=1)
        answers = Reports(task, worker, value, np.arange(1, tasks + 1), np.arange(1, workers + 1), labels)
        names = np.array(labels.names)[truth]
        return Crowd(answers=answers, truth=names, quality=self.kinds[kind], quality_name="ability")

    def members(self, generator: np.random.Generator, workers: int) -> NDArray[np.int64]:
        """Draw how many workers are of each kind, shape (kinds,)."""
        return generator.multinomial(workers, self.shares)

    def draw_truths(self, generator: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Draw truths as codes."""
        return generator.choice(self.alphabet.size, count, p=self.prior)

    def truths_of(self, crowd: Crowd) -> NDArray[np.int64]:
        """Return the truths of a made-up crowd as codes."""
        codes = {name: code for code, name in enumerate(self.alphabet.names)}
        return np.array([codes[str(name)] for name in crowd.truth])

    def tables(self, truths: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """Return P(answer | truth), indexed [kind, truth, label], for all truths or those given."""
        answers = near_answers if self.in_order else one_coin_worker_model
        every = np.stack([answers(self.alphabet.size, ability) for ability in self.kinds.tolist()])
        return every if truths is None else every[:, truths]

    def losses(self, scores: NDArray[np.float64], truths: NDArray[Any]) -> NDArray[np.float64]:
        """Return 1 for each task on which the likeliest truth is wrong; `scores` are log-posteriors [task, truth]."""
        return (scores.argmax(axis=1) != truths).astype(float)

    def risks(self, scores: NDArray[np.float64], truths: NDArray[Any]) -> NDArray[np.float64]:
        """Return the probability of that, by the posterior itself: the same mean, less noise."""
        return 1 - softmax(scores, axis=1).max(axis=1)

    def spread(self, error: float, losses: NDArray[np.float64]) -> float:
        """Return the variance of one task's loss where the mean loss is `error`."""
        return error * (1 - error)


@dataclass(frozen=True, kw_only=True, eq=False)
class NumberCrowd:
    """Workers with normal errors around the truth, rounded and clipped to a scale; its error is the mean absolute one.

    The probability of a label is spread evenly over the truths that round to it, those of both ends over one step
    beyond the scale too; they are clipped to the scale when errors are measured.

    Attributes:
        alphabet: the scale.
        prior: P(rounded truth), shape (labels,).
        sigmas: standard deviations of the workers' errors, in units of the answers; equal shares have each.
    """

    error_name: ClassVar[ErrorName] = "mae"
    alphabet: Scale
    prior: NDArray[np.float64]
    sigmas: tuple[float, ...]

    @cached_property
    def kinds(self) -> NDArray[np.float64]:
        """Return the distinct standard deviations, ascending."""
        return np.unique(self.sigmas)

    @property
    def shares(self) -> NDArray[np.float64]:
        """Return the share of workers of each kind."""
        return _shares(self.sigmas)

    @cached_property
    def points(self) -> NDArray[np.float64]:
        """Return the grid of truths, ascending, evenly spaced."""
        scale, spacing = self.alphabet, self.spacing
        below = round((0.5 + BEYOND) * scale.step / spacing)
        count = round(scale.range / spacing) + 2 * below
        return np.add(scale.low, spacing * (np.arange(count) - below + 0.5), dtype=np.float64)

    @property
    def spacing(self) -> float:
        """Return the distance of neighbours on the grid of truths, in units of the answers."""
        return self.alphabet.step / (2 * max(1, min(PER_STEP // 2, POINTS // self.alphabet.size // 2)))

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Return P(truth) on the grid."""
        nearest = self.alphabet.encode(self.points)
        return np.asarray(self.prior[nearest] / np.bincount(nearest, minlength=self.alphabet.size)[nearest])

    @property
    def log_prior(self) -> NDArray[np.float64]:
        """Return the logarithm of P(truth)."""
        return np.log(np.maximum(self.weights, np.finfo(float).tiny))

    @cached_property
    def constant_error(self) -> float:
        """Return the error of the best public constant, the median of the prior."""
        inside = self._clipped(self.points)
        median = inside[np.searchsorted(np.cumsum(self.weights), 0.5)]
        return float(self.weights @ np.abs(inside - median))

    def make(self, *, workers: int, tasks: int, rate: float, source: Seeded) -> Crowd:
        """Make such a crowd up; every cell is answered with probability `rate`."""
        return numeric_crowd(
            workers=workers,
            tasks=tasks,
            sparsity=1 - rate,
            scale=self.alphabet,
            truth=self.draw_truths,
            sigmas=self.sigmas,
            source=source,
        )

    def members(self, generator: np.random.Generator, workers: int) -> NDArray[np.int64]:
        """Return how many workers are of each kind, shape (kinds,); `generator` is not needed."""
        kind = np.searchsorted(self.kinds, self.sigmas)
        rounds, rest = divmod(workers, len(kind))
        size = len(self.kinds)
        return rounds * np.bincount(kind, minlength=size) + np.bincount(kind[:rest], minlength=size)

    def draw_truths(self, generator: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Draw truths as numbers, off the grid."""
        drawn = self.points[generator.choice(len(self.points), count, p=self.weights)]
        return np.asarray(drawn + self.spacing * generator.uniform(-0.5, 0.5, count))

    def truths_of(self, crowd: Crowd) -> NDArray[np.float64]:
        """Return the truths of a made-up crowd."""
        return np.asarray(crowd.truth, dtype=float)

    def tables(self, truths: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """Return P(answer | truth), indexed [kind, truth, label], for the grid of truths or those given."""
        return normal_worker_model(self.alphabet, tuple(self.kinds.tolist()), self.points if truths is None else truths)

    def losses(self, scores: NDArray[np.float64], truths: NDArray[Any]) -> NDArray[np.float64]:
        """Return each task's distance of truth and posterior median; `scores` are log-posteriors [task, truth]."""
        return np.abs(self.medians(scores) - self._clipped(truths))

    def medians(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return posterior medians, clipped to the scale, shape (tasks,); `scores` as above."""
        return self._clipped(quantiles(softmax(scores, axis=1), self.points, (0.5,))[:, 0])

    def risks(self, scores: NDArray[np.float64], truths: NDArray[Any]) -> NDArray[np.float64]:
        """Return `losses`: a posterior on a grid would think itself better than it is."""
        return self.losses(scores, truths)

    def spread(self, error: float, losses: NDArray[np.float64]) -> float:
        """Return the variance of one task's loss where the mean loss is `error`, by the shape of known `losses`."""
        mean = float(losses.mean())
        return error**2 * float(losses.var()) / mean**2 if mean > 0 else 0.0

    def _clipped(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip(numbers, self.alphabet.low, self.alphabet.high)


ExpectedCrowd = LabelCrowd | NumberCrowd


def _shares(qualities: tuple[float, ...]) -> NDArray[np.float64]:
    counts = np.unique(qualities, return_counts=True)[1]
    return np.asarray(counts / counts.sum())
