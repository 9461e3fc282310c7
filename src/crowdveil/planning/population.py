"""Assumed crowd of a plan: a prior of truths, and workers of a few quality classes in known shares.

Both crowds can be simulated (`crowdveil.simulate`), and give P(answer | truth) for the Bayes error. Long scales are
planned on a coarser scale: 101 labels took more than ten times as long as 21.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, softmax

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.design.channel_design import normal_worker_model, one_coin_confusion
from crowdveil.errors import SettingsError
from crowdveil.estimators.gaussian.discretization import quantiles
from crowdveil.inference.scores.metrics import ErrorName
from crowdveil.randomness import Seeded
from crowdveil.simulate import Crowd, categorical_crowd, numeric_crowd
from crowdveil.simulate.bernoulli import bernoulli_indices

MAX_SCALE_STEPS = 20
"""Steps of a scale beyond which it is planned on a coarser one."""
MAX_STEP_IN_SIGMAS = 2.0
"""Largest step of a coarser scale, in units of the smallest standard deviation; rounding then adds a third to that
variance."""
ABILITY_CLASSES = 7
"""Classes that approximate a distribution of abilities."""
ABILITY_CONCENTRATION = 10.0
"""Concentration of the Beta distribution of abilities; with mean 0.75 its standard deviation is 0.13."""
POINTS_PER_STEP, MAX_POINTS = 8, 512
"""Grid points of truth per step of a scale, and on the whole scale at most."""
DISTANCE_DECAY = 0.5
"""Ratio of the probabilities of mistakes that are one ordered label farther off."""
MARGIN_STEPS = 1.0
"""Steps by which truths of the outermost labels extend beyond the scale, as in the prior of `gaussian`."""


def coarsen_scale(scale: Scale, smallest_sigma: float) -> Scale:
    """Return the scale to plan on, with the same ends and at most `MAX_SCALE_STEPS` steps.

    It has more steps if workers are precise. Its steps are multiples of the given ones if at least half as many fit,
    else a fraction of the range.

    Args:
        scale: of the answers.
        smallest_sigma: smallest standard deviation of the workers, in units of the answers.
    """
    most, steps = MAX_SCALE_STEPS, scale.size - 1
    finest = scale.range / (MAX_STEP_IN_SIGMAS * smallest_sigma) if smallest_sigma > 0 else float(steps)
    while most < finest and most < steps:
        most *= 2
    if steps <= most:
        return scale
    divisors = [count for count in range(most, most // 2 - 1, -1) if steps % count == 0 and count >= finest]
    count = divisors[0] if divisors else most
    # 15 digits: the decimal that a person would write.
    return Scale(scale.low, scale.high, float(f"{scale.step * steps / count:.15g}"))


def coarsen_prior(prior: NDArray[np.float64], scale: Scale, coarse: Scale) -> NDArray[np.float64]:
    """Return the prior on the labels of a coarser scale, shape (coarse labels,).

    The probability of a label is spread evenly over the numbers that round to it.

    Args:
        prior: P(truth), shape (labels,).
        scale: of the prior.
        coarse: from `coarsen_scale`.
    """
    centres = scale.values[:, np.newaxis]
    low, high = centres - scale.step / 2, centres + scale.step / 2
    borders = np.concatenate(([-np.inf], (coarse.values[:-1] + coarse.values[1:]) / 2, [np.inf]))
    overlap = np.minimum(high, borders[1:]) - np.maximum(low, borders[:-1])
    part = prior @ np.maximum(overlap, 0.0)
    return np.asarray(part / part.sum())


def beta_abilities(mean: float) -> tuple[float, ...]:
    """Return `ABILITY_CLASSES` abilities, in equal shares, that approximate a Beta distribution.

    They are its quantiles at the middle of each share, shifted to the given mean where possible.

    Raises:
        SettingsError: a mean outside [0, 1].
    """
    if not 0 <= mean <= 1:
        raise SettingsError("an ability must be in [0, 1]", value=mean)
    if mean in (0, 1):
        return (float(mean),)
    middles = (np.arange(ABILITY_CLASSES) + 0.5) / ABILITY_CLASSES
    found = betaincinv(mean * ABILITY_CONCENTRATION, (1 - mean) * ABILITY_CONCENTRATION, middles)
    return tuple(np.clip(found + mean - found.mean(), 0.0, 1.0).tolist())


def ordinal_answer_given_truth(labels: int, ability: float) -> NDArray[np.float64]:
    """Return P(answer | truth) of a worker whose mistakes are mostly near the truth.

    An answer is correct with probability `ability`; each label farther off is `DISTANCE_DECAY` times as likely. Shape
    (labels, labels), indexed [truth, answer], rows sum to 1.
    """
    labels_range = np.arange(labels)
    mistakes = DISTANCE_DECAY ** np.abs(labels_range[:, None] - labels_range) * (1 - np.eye(labels))
    return np.asarray(ability * np.eye(labels) + (1 - ability) * mistakes / mistakes.sum(axis=1, keepdims=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelCrowd:
    """Crowd that answers labels: correct with the worker's ability, else any other label alike.

    For three or more ordered labels, mistakes are mostly near the truth (`ordinal_answer_given_truth`). The error of a
    crowd is the share of wrong labels.

    Attributes:
        alphabet: the labels.
        prior: P(truth), shape (labels,).
        abilities: abilities in equal shares; a worker has one of them at random.
    """

    error_name: ClassVar[ErrorName] = "error_rate"
    alphabet: Categories
    prior: NDArray[np.float64]
    abilities: tuple[float, ...]

    @cached_property
    def qualities(self) -> NDArray[np.float64]:
        """Return the distinct abilities, ascending, shape (classes,)."""
        return np.unique(self.abilities)

    @cached_property
    def worker_shares(self) -> NDArray[np.float64]:
        """Return the share of workers in each class, shape (classes,)."""
        return _class_shares(self.abilities)

    @property
    def log_truth_prior(self) -> NDArray[np.float64]:
        """Return log P(truth), shape (labels,)."""
        return np.log(np.maximum(self.prior, np.finfo(float).tiny))

    @property
    def constant_error(self) -> float:
        """Return the error of the best public constant."""
        return 1 - float(self.prior.max())

    @property
    def has_ordered_labels(self) -> bool:
        """Whether the labels have an order that affects mistakes."""
        return self.alphabet.ordered and self.alphabet.size > 2

    def simulate(self, *, workers: int, tasks: int, rate: float, source: Seeded) -> Crowd:
        """Return a simulated crowd in which each cell is answered with probability `rate`."""
        if self.has_ordered_labels:
            return self._simulate_ordinal(workers, tasks, rate, source)
        return categorical_crowd(
            workers=workers,
            tasks=tasks,
            labels=self.alphabet,
            sparsity=1 - rate,
            prior=tuple(self.prior.tolist()),
            ability=lambda generator, count: generator.choice(np.array(self.abilities), count),
            source=source,
        )

    def _simulate_ordinal(self, workers: int, tasks: int, rate: float, source: Seeded) -> Crowd:
        generator, labels = source.generator, self.alphabet
        truth = self.draw_truths(generator, tasks)
        worker_class = generator.choice(len(self.qualities), workers, p=self.worker_shares)
        task, worker = np.divmod(bernoulli_indices(generator, tasks * workers, rate), workers)
        cumulative = np.cumsum(self.answer_probabilities(), axis=2)[worker_class[worker], truth[task], :-1]
        value = (generator.random(len(task))[:, None] > cumulative).sum(axis=1)
        answers = Reports(task, worker, value, np.arange(1, tasks + 1), np.arange(1, workers + 1), labels)
        names = np.array(labels.names)[truth]
        return Crowd(answers=answers, truth=names, quality=self.qualities[worker_class], quality_name="ability")

    def workers_in_each_class(self, generator: np.random.Generator, workers: int) -> NDArray[np.int64]:
        """Return a random number of workers in each class, shape (classes,)."""
        return generator.multinomial(workers, self.worker_shares)

    def draw_truths(self, generator: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Return random truths as label codes, shape (count,)."""
        return generator.choice(self.alphabet.size, count, p=self.prior)

    def truths_of(self, crowd: Crowd) -> NDArray[np.int64]:
        """Return the truths of a simulated crowd as label codes, shape (tasks,)."""
        codes = {name: code for code, name in enumerate(self.alphabet.names)}
        return np.array([codes[str(name)] for name in crowd.truth])

    def answer_probabilities(self, truths: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """Return P(answer | truth), indexed [class, truth, label], for all truths or the given ones."""
        return self._answer_probabilities if truths is None else self._answer_probabilities[:, truths]

    @cached_property
    def _answer_probabilities(self) -> NDArray[np.float64]:
        model = ordinal_answer_given_truth if self.has_ordered_labels else one_coin_confusion
        return np.stack([model(self.alphabet.size, ability) for ability in self.qualities.tolist()])

    def losses(self, scores: NDArray[np.float64], truths: NDArray[Any]) -> NDArray[np.float64]:
        """Return 1 for each task whose most probable label is wrong, else 0.

        Args:
            scores: log-posteriors up to a constant, indexed [task, truth].
            truths: label codes, shape (tasks,).
        """
        return (scores.argmax(axis=1) != truths).astype(float)

    def posterior_expected_losses(self, scores: NDArray[np.float64], truths: NDArray[Any]) -> NDArray[np.float64]:
        """Return the posterior probability of a wrong label, shape (tasks,): the same mean as `losses`, less noise."""
        return 1 - softmax(scores, axis=1).max(axis=1)

    def loss_variance(self, error: float, losses: NDArray[np.float64]) -> float:
        """Return the variance of one task's loss if the mean loss is `error`."""
        return error * (1 - error)


@dataclass(frozen=True, kw_only=True, eq=False)
class NumberCrowd:
    """Crowd that answers numbers: truth plus a normal error, rounded and clipped to a scale.

    The probability of a label is spread evenly over the truths that round to it; the outermost labels extend
    `MARGIN_STEPS` beyond the scale. Truths are clipped when errors are measured. The error of a crowd is the mean
    absolute error.

    Attributes:
        alphabet: the scale.
        prior: P(rounded truth), shape (labels,).
        sigmas: standard deviations of errors in equal shares of the workers, in units of the answers.
    """

    error_name: ClassVar[ErrorName] = "mae"
    alphabet: Scale
    prior: NDArray[np.float64]
    sigmas: tuple[float, ...]

    @cached_property
    def qualities(self) -> NDArray[np.float64]:
        """Return the distinct standard deviations, ascending, shape (classes,)."""
        return np.unique(self.sigmas)

    @cached_property
    def worker_shares(self) -> NDArray[np.float64]:
        """Return the share of workers in each class, shape (classes,)."""
        return _class_shares(self.sigmas)

    @cached_property
    def grid_of_truths(self) -> NDArray[np.float64]:
        """Return the grid of truths, ascending, evenly spaced."""
        scale, spacing = self.alphabet, self.spacing
        below = round((0.5 + MARGIN_STEPS) * scale.step / spacing)
        count = round(scale.range / spacing) + 2 * below
        return np.add(scale.low, spacing * (np.arange(count) - below + 0.5), dtype=np.float64)

    @property
    def spacing(self) -> float:
        """Return the distance between grid points, in units of the answers."""
        return self.alphabet.step / (2 * max(1, min(POINTS_PER_STEP // 2, MAX_POINTS // self.alphabet.size // 2)))

    @cached_property
    def truth_probabilities(self) -> NDArray[np.float64]:
        """Return P(truth) on the grid."""
        nearest = self.alphabet.encode(self.grid_of_truths)
        return np.asarray(self.prior[nearest] / np.bincount(nearest, minlength=self.alphabet.size)[nearest])

    @property
    def log_truth_prior(self) -> NDArray[np.float64]:
        """Return log P(truth) on the grid."""
        return np.log(np.maximum(self.truth_probabilities, np.finfo(float).tiny))

    @cached_property
    def constant_error(self) -> float:
        """Return the error of the best public constant, the median of the prior."""
        inside = self._clipped_to_scale(self.grid_of_truths)
        median = inside[np.searchsorted(np.cumsum(self.truth_probabilities), 0.5)]
        return float(self.truth_probabilities @ np.abs(inside - median))

    def simulate(self, *, workers: int, tasks: int, rate: float, source: Seeded) -> Crowd:
        """Return a simulated crowd in which each cell is answered with probability `rate`."""
        return numeric_crowd(
            workers=workers,
            tasks=tasks,
            sparsity=1 - rate,
            scale=self.alphabet,
            truth=self.draw_truths,
            sigmas=self.sigmas,
            source=source,
        )

    def workers_in_each_class(self, generator: np.random.Generator, workers: int) -> NDArray[np.int64]:
        """Return the number of workers in each class, shape (classes,); it is not random."""
        member = np.searchsorted(self.qualities, self.sigmas)
        repeats, rest = divmod(workers, len(member))
        classes = len(self.qualities)
        return repeats * np.bincount(member, minlength=classes) + np.bincount(member[:rest], minlength=classes)

    def draw_truths(self, generator: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Return random truths between grid points, shape (count,)."""
        drawn = self.grid_of_truths[generator.choice(len(self.grid_of_truths), count, p=self.truth_probabilities)]
        return np.asarray(drawn + self.spacing * generator.uniform(-0.5, 0.5, count))

    def truths_of(self, crowd: Crowd) -> NDArray[np.float64]:
        """Return the truths of a simulated crowd, shape (tasks,)."""
        return np.asarray(crowd.truth, dtype=float)

    def answer_probabilities(self, truths: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """Return P(answer | truth), indexed [class, truth, label], for the grid of truths or the given ones."""
        sigmas = tuple(self.qualities.tolist())
        return normal_worker_model(self.alphabet, sigmas, self.grid_of_truths if truths is None else truths)

    def losses(self, scores: NDArray[np.float64], truths: NDArray[Any]) -> NDArray[np.float64]:
        """Return the distance of truth and posterior median, shape (tasks,).

        Args:
            scores: log-posteriors up to a constant, indexed [task, grid point].
            truths: numbers, shape (tasks,).
        """
        return np.abs(self.medians(scores) - self._clipped_to_scale(truths))

    def medians(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return posterior medians, clipped to the scale, shape (tasks,)."""
        return self._clipped_to_scale(quantiles(softmax(scores, axis=1), self.grid_of_truths, (0.5,))[:, 0])

    def posterior_expected_losses(self, scores: NDArray[np.float64], truths: NDArray[Any]) -> NDArray[np.float64]:
        """Return `losses`: expected losses under a posterior on a grid would be too small."""
        return self.losses(scores, truths)

    def loss_variance(self, error: float, losses: NDArray[np.float64]) -> float:
        """Return the variance of one task's loss if the mean loss is `error`, scaled from given losses."""
        mean = float(losses.mean())
        return error**2 * float(losses.var()) / mean**2 if mean > 0 else 0.0

    def _clipped_to_scale(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip(numbers, self.alphabet.low, self.alphabet.high)


AssumedCrowd = LabelCrowd | NumberCrowd


def _class_shares(qualities: tuple[float, ...]) -> NDArray[np.float64]:
    counts = np.unique(qualities, return_counts=True)[1]
    return np.asarray(counts / counts.sum())
