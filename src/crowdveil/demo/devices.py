"""Devices of the demo: every mechanism that fits a crowd at several epsilons, with task assignment."""

import numpy as np
from scipy.special import ndtr

from crowdveil.channel_design import design_channel, normal_worker_model
from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.data.assignment import Assignment
from crowdveil.demo.scenes import CROWD_SEED, Scene
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import (
    Designed,
    DesignObjective,
    Laplace,
    MatrixFactorization,
    MatrixFactorizationPublished,
    Mechanism,
    OneLayer,
    QuantizedResponse,
    RandomizedResponse,
    SunTwoLayer,
    TwoLayer,
)
from crowdveil.randomness import seeded
from crowdveil.simulate import simulated_assignment

EPSILONS = (1.0, 2.0, 3.0, 4.0, 5.0)
TABLE_EPSILONS = (1.0, 3.0, 5.0)


def mechanisms_for(scene: Scene) -> list[Mechanism]:
    """Return what the scene's answers are perturbed with: every mechanism that fits, each at several epsilons."""
    alphabet = scene.answers.alphabet
    assert alphabet is not None
    found: list[Mechanism] = [RandomizedResponse(alphabet=alphabet, epsilon=epsilon) for epsilon in EPSILONS]
    for epsilon in TABLE_EPSILONS:
        if isinstance(alphabet, Scale):
            found += _numeric_mechanisms(alphabet, epsilon, scene)
        else:
            found += _label_mechanisms(alphabet, epsilon, len(scene.answers.tasks), int(scene.answers.per_worker.max()))
    kinds = list(dict.fromkeys((mechanism.name, mechanism.participation) for mechanism in found))
    return sorted(found, key=lambda mechanism: kinds.index((mechanism.name, mechanism.participation)))


def _label_mechanisms(alphabet: Categories, epsilon: float, tasks: int, busiest: int) -> list[Mechanism]:
    """Return the mechanisms of Li et al., participation public as there, and Sun et al.'s extension of one to NULL."""
    one_layer = OneLayer(alphabet=alphabet, epsilon=epsilon, participation="public")
    extended = SunTwoLayer(alphabet=alphabet, epsilon=epsilon, answers=tasks)
    return [one_layer, *_published_two_layer(alphabet, epsilon, busiest), extended]


def _published_two_layer(alphabet: Alphabet, epsilon: float, answers: int) -> list[Mechanism]:
    try:
        return [TwoLayer.as_published(alphabet=alphabet, epsilon=epsilon, participation="public", answers=answers)]
    except SettingsError:  # Theorem 6.3 has no b <= 1 for so small an epsilon and so many labels.
        return []


def _numeric_mechanisms(scale: Scale, epsilon: float, scene: Scene) -> list[Mechanism]:
    objective, tasks = expected(scale, scene), len(scene.answers.tasks)
    return [
        Laplace(alphabet=scale, epsilon=epsilon),
        MatrixFactorizationPublished(alphabet=scale, epsilon=epsilon, tasks=tasks, dimensions=5, ridge=0.1),
        MatrixFactorization(alphabet=scale, epsilon=epsilon),
        QuantizedResponse.for_objective(objective, epsilon),
        Designed.from_channel(design_channel(objective, epsilon, null_apart=True)),
    ]


def expected(scale: Scale, scene: Scene) -> DesignObjective:
    """Return what is publicly known of numbers: a normal prior, and how many answers a task gets.

    Half the workers have a standard deviation of one step, half of five. Nothing is taken from the answers.
    """
    mean, deviation = scene.prior or (scale.low + scale.range / 2, scale.range / 4)
    edges = scale.values[:-1] + scale.step / 2
    prior = np.diff(ndtr((edges - mean) / deviation), prepend=0.0, append=1.0)
    answers = normal_worker_model(scale, (scale.step, 5 * scale.step))
    return DesignObjective(
        alphabet=scale, prior=prior, worker_model=answers, participation_rate=scene.participation_rate
    )


def assignment_for(scene: Scene) -> Assignment | None:
    """Return twice as many assigned cells as answers (more where one task has more); None if that is everyone.

    Made from who answered, which only a simulation may do.
    """
    crowd = len(scene.answers.workers)
    per_task = max(round(2 * scene.participation_rate * crowd), int(scene.answers.per_task.max()))
    return None if per_task >= crowd else simulated_assignment(scene.answers, per_task, seeded(CROWD_SEED))
