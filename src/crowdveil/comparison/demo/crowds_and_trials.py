"""Crowds of the demo, with the mechanisms and the methods of their trials."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from crowdveil.answers.datasets import Dataset
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.comparison.trials import GoldCrowd, Trial
from crowdveil.design.channel_design import design_channel, normal_worker_model
from crowdveil.errors import SettingsError
from crowdveil.estimators import (
    DawidSkene,
    Estimator,
    Gaussian,
    MajorityVote,
    OneCoin,
    OrdinalDawidSkene,
    WeightedMean,
    WeightedVote,
)
from crowdveil.mechanisms import (
    Designed,
    DesignObjective,
    Laplace,
    MatrixFactorization,
    Mechanism,
    Ogpm,
    OneLayer,
    OptimizedUnaryEncoding,
    Piecewise,
    QuantizedResponse,
    RandomizedResponse,
    SquareWave,
    Staircase,
    SubsetSelection,
    TwoLayer,
)
from crowdveil.published import MatrixFactorizationPublished, PrivateDawidSkene, SunTwoLayer
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, numeric_crowd

CROWD_SEED = 1
EPSILONS = (1.0, 2.0, 3.0, 4.0, 5.0)
TABLE_EPSILONS = (1.0, 3.0, 5.0)
REAL = {"adult2", "duchenne", "weather_temperature"}
TEMPERATURES = Scale(0, 120, 5)
"""Public scale of temperatures in cities, in degrees Fahrenheit."""
TOLERANCE = 1e-3
"""Convergence tolerance; it halves the run time of the default."""
POINTS_PER_STEP = 4
"""Grid points of truth per step of a scale; half of the default gives the same errors in half the time."""
VOTES: tuple[Estimator[Any, Any], ...] = (MajorityVote(), WeightedVote(max_steps=50, tolerance=TOLERANCE))
MEAN = WeightedMean(max_steps=100, tolerance=TOLERANCE)
"""Methods without a model of noise, for labels and for numbers."""
MODELS: tuple[Estimator[Any, Any], ...] = (
    MajorityVote(),
    PrivateDawidSkene(max_steps=50, tolerance=TOLERANCE),
    OneCoin(max_steps=200, tolerance=TOLERANCE),
    DawidSkene(max_steps=200, tolerance=TOLERANCE),
)
TASK_STEP = 8
"""Every eighth task of the temperatures is used, to keep the demo short."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DemoCrowd(GoldCrowd):
    """Crowd of the demo.

    Attributes:
        title: heading of the page.
        description: source of the answers, in one sentence.
        prior: mean and standard deviation of the public normal prior of numbers; None for labels.
    """

    title: str
    description: str
    prior: tuple[float, float] | None = None

    @property
    def participation_rate(self) -> float:
        """Share of answered cells, from the public mean number of answers per task."""
        return round(len(self.answers) / len(self.answers.tasks)) / len(self.answers.workers)


def demo_crowds(load: Callable[[str], Dataset] | None) -> tuple[DemoCrowd, ...]:
    """Return AdultContent2, Duchenne and temperatures of cities, or two simulated crowds.

    Args:
        load: returns the data set of a name of `REAL`, with the first answer of each worker to each task; None for
            simulated crowds.
    """
    if load is not None:
        ratings = labelled_crowd(load("adult2"), "web sites rated G, P, R or X by how adult they are")
        judgements = labelled_crowd(load("duchenne"), "photographs judged: a true smile or a posed one")
        return ratings, judgements, web_site_temperature_crowd(load("weather_temperature"))
    return simulated_ratings(), simulated_yes_no_crowd()


def labelled_crowd(data: Dataset, question: str) -> DemoCrowd:
    """Return the crowd of a data set of labels."""
    size = f"{len(data.answers.workers):,} workers, {len(data.answers.tasks):,} tasks, {len(data.answers):,} answers"
    return DemoCrowd(
        name=data.name,
        title=data.meta["title"],
        description=f"Real answers: {question} ({size}; {data.gold_with_answers} tasks with gold).",
        answers=data.answers,
        gold=data.gold,
        error="error_rate",
    )


def web_site_temperature_crowd(data: Dataset) -> DemoCrowd:
    """Return temperatures claimed by web sites, on a public scale.

    The public prior is normal: mean at the middle of the scale, standard deviation a quarter of its range.
    """
    numbers = every_nth_task(data.answers, TASK_STEP)
    answers = replace(numbers, value=TEMPERATURES.encode(numbers.value), alphabet=TEMPERATURES)
    shown = set(answers.tasks.tolist())
    gold = {task: truth for task, truth in data.gold.items() if task in shown}
    return DemoCrowd(
        name=data.name,
        title="Temperatures that web sites claim",
        description=f"Real answers: {len(answers.workers)} web sites claim the temperature of a US city at an hour, in "
        f"degrees Fahrenheit, on the scale 0, 5, ..., 120 (every eighth task: {len(answers.tasks):,}, "
        f"{len(answers):,} answers; {len(gold):,} tasks with gold).",
        answers=answers,
        gold=gold,
        error="mae",
        prior=(TEMPERATURES.low + TEMPERATURES.range / 2, TEMPERATURES.range / 4),
    )


def every_nth_task(answers: Reports, step: int) -> Reports:
    """Return the answers to every `step`-th task, over the same workers."""
    kept = answers.task % step == 0
    return replace(
        answers,
        task=answers.task[kept] // step,
        worker=answers.worker[kept],
        value=answers.value[kept],
        tasks=answers.tasks[::step],
    )


def simulated_ratings() -> DemoCrowd:
    """Return a crowd as in Sun et al. (2018), section VI-A, with 800 workers and 60 tasks; numbers 0 to 9."""
    simulated = numeric_crowd(workers=800, tasks=60, sparsity=0.9, source=seeded(CROWD_SEED))
    return DemoCrowd(
        name="simulated-ratings",
        title="Simulated ratings from 0 to 9",
        description="Simulated as in Sun et al. (2018), smaller: 800 workers, 60 tasks, 90 % of the cells without an "
        "answer; standard deviation 1 for half of the workers, 5 for the others. No data directory was found.",
        answers=simulated.answers,
        gold=simulated.gold,
        error="mae",
        prior=(0.0, 1.0),
    )


def simulated_yes_no_crowd() -> DemoCrowd:
    """Return a binary crowd as large as Duchenne: 64 workers, 2,134 tasks, mean ability 0.75."""
    simulated = categorical_crowd(
        workers=64,
        tasks=2134,
        labels=Categories(("no", "yes")),
        sparsity=0.87,
        prior=(0.6, 0.4),
        ability=lambda generator, count: np.clip(generator.normal(0.75, 0.12, count), 0.5, 0.98),
        source=seeded(CROWD_SEED),
    )
    return DemoCrowd(
        name="simulated-judgements",
        title="Simulated yes/no judgements",
        description="Simulated: 64 workers, 2,134 tasks, about eight answers per task, mean ability 0.75. "
        "No data directory was found.",
        answers=simulated.answers,
        gold=simulated.gold,
        error="error_rate",
    )


def demo_mechanisms(crowd: DemoCrowd) -> list[Mechanism]:
    """Return every mechanism for the alphabet of the crowd, at several epsilons each."""
    alphabet = crowd.answers.alphabet
    assert alphabet is not None
    found: list[Mechanism] = [RandomizedResponse(alphabet=alphabet, epsilon=epsilon) for epsilon in EPSILONS]
    for epsilon in TABLE_EPSILONS:
        if isinstance(alphabet, Scale):
            found += _numeric_mechanisms(alphabet, epsilon, crowd)
        else:
            found += _label_mechanisms(alphabet, epsilon, len(crowd.answers.tasks), int(crowd.answers.per_worker.max()))
    kinds = list(dict.fromkeys((mechanism.name, mechanism.participation) for mechanism in found))
    return sorted(found, key=lambda mechanism: kinds.index((mechanism.name, mechanism.participation)))


def _label_mechanisms(alphabet: Categories, epsilon: float, tasks: int, busiest: int) -> list[Mechanism]:
    """Return those of Li et al. with public participation, the extension to NULL of Sun et al., and sets of labels."""
    one_layer = OneLayer(alphabet=alphabet, epsilon=epsilon, participation="public")
    extended = SunTwoLayer(alphabet=alphabet, epsilon=epsilon, answers=tasks)
    sets = [kind(alphabet=alphabet, epsilon=epsilon) for kind in (SubsetSelection, OptimizedUnaryEncoding)]
    return [one_layer, *_published_two_layer_if_possible(alphabet, epsilon, busiest), extended, *sets]


def _published_two_layer_if_possible(alphabet: Alphabet, epsilon: float, answers: int) -> list[Mechanism]:
    try:
        return [TwoLayer.as_published(alphabet=alphabet, epsilon=epsilon, participation="public", answers=answers)]
    except SettingsError:  # Theorem 6.3 has no b <= 1 for this epsilon and number of labels.
        return []


def _numeric_mechanisms(scale: Scale, epsilon: float, crowd: DemoCrowd) -> list[Mechanism]:
    objective, tasks = objective_from_public_numbers(scale, crowd), len(crowd.answers.tasks)
    return [
        Laplace(alphabet=scale, epsilon=epsilon),
        *(kind(alphabet=scale, epsilon=epsilon) for kind in (Piecewise, Ogpm, SquareWave, Staircase)),
        MatrixFactorizationPublished(alphabet=scale, epsilon=epsilon, tasks=tasks, dimensions=5, ridge=0.1),
        MatrixFactorization(alphabet=scale, epsilon=epsilon),
        QuantizedResponse.for_objective(objective, epsilon),
        Designed.from_channel(design_channel(objective, epsilon, null_apart=True)),
    ]


def objective_from_public_numbers(scale: Scale, crowd: DemoCrowd) -> DesignObjective:
    """Return the design objective from public numbers: normal prior, participation rate, and worker noise.

    The standard deviation is one step for half of the workers, five steps for the others.
    """
    mean, deviation = crowd.prior or (scale.low + scale.range / 2, scale.range / 4)
    edges = scale.values[:-1] + scale.step / 2
    prior = np.diff(ndtr((edges - mean) / deviation), prepend=0.0, append=1.0)
    worker_model = normal_worker_model(scale, (scale.step, 5 * scale.step))
    return DesignObjective(
        alphabet=scale, prior=prior, worker_model=worker_model, participation_rate=crowd.participation_rate
    )


def trials_of_demo_crowd(crowd: DemoCrowd, seed: int) -> list[Trial]:
    """Return a trial of unprotected answers, and one for every mechanism."""
    models = channel_aware_demo_estimators(crowd)
    votes = VOTES if crowd.error == "error_rate" else (MEAN,)
    plain = Trial(crowd=crowd, mechanism=None, seed=seed, plain=votes, models=models)
    # Laplace has a report in every cell: gaussian would need most of the run time.
    return [plain] + [
        replace(plain, mechanism=one, models=models[:1] if isinstance(one, Laplace) else models)
        for one in demo_mechanisms(crowd)
    ]


def channel_aware_demo_estimators(crowd: DemoCrowd) -> tuple[Estimator[Any, Any], ...]:
    """Return the channel-aware methods for the answers of a crowd, with the public prior of numbers."""
    alphabet = crowd.answers.alphabet
    assert alphabet is not None
    if crowd.error != "mae":
        return (*MODELS, OrdinalDawidSkene(max_steps=200, tolerance=TOLERANCE)) if alphabet.ordered else MODELS
    mean, deviation = crowd.prior or (None, None)
    gaussian = Gaussian(
        prior_mean=mean,
        prior_deviation=deviation,
        max_steps=100,
        tolerance=TOLERANCE * float(np.ptp(alphabet.values)),
        points_per_step=POINTS_PER_STEP,
    )
    return MODELS[-1], gaussian
