"""Trials of the demo: every registered mechanism and method on the crowds whose answers it reads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy.special import ndtr

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Scale
from crowdveil.comparison.demo.crowds import DemoCrowd
from crowdveil.comparison.trials import Methods, NotRun, Trial, pairs_not_run
from crowdveil.design.channel_design import design_channel, normal_worker_model
from crowdveil.design.mechanism_from_settings import MechanismSettings, build_mechanism
from crowdveil.em.estimator import Estimator
from crowdveil.errors import SettingsError
from crowdveil.inference.methods import SLOW_WORK
from crowdveil.mechanisms import (
    Designed,
    DesignObjective,
    Laplace,
    Mechanism,
    OneLayer,
    QuantizedResponse,
    RandomizedResponse,
    TwoLayer,
)
from crowdveil.published import MatrixFactorizationPublished, SunTwoLayer
from crowdveil.registry import ESTIMATOR_ENTRIES, MECHANISM_ENTRIES, USUAL_ESTIMATORS, EstimatorEntry
from crowdveil.simulate.perturbation import expected_report_count

EPSILONS = (1.0, 2.0, 3.0, 4.0, 5.0)
"""Of randomized response, with every method."""
TABLE_EPSILONS = (1.0, 3.0, 5.0)
"""Of the other mechanisms."""
FOR_LABELS = {"one-layer", "two-layer", "sun-two-layer", "subset-selection", "optimized-unary-encoding"}
FOR_NUMBERS = {
    *("laplace", "piecewise", "ogpm", "square-wave", "staircase", "quantized-response", "designed"),
    *("matrix-factorization", "matrix-factorization-published"),
}
"""Mechanisms that are shown on one kind of crowd; others are shown on all crowds that they can be built for."""
METHOD_FOR_BOTH = "dawid-skene"
"""Method for labels that is run on numbers, too."""
TOLERANCE = 1e-3
"""Convergence tolerance; it halves the run time of the default."""
POINTS_PER_STEP = 4
"""Grid points of truth per step of a scale; half of the default gives the same errors in half the time."""
MAX_STEPS: Mapping[str, int] = {
    **{"weighted-vote": 50, "private-dawid-skene": 50, "weighted-mean": 100, "gaussian": 100},
    **{"glad": 100, "ebcc": 100, "lfc": 100, "mace": 100},
    **{"one-coin": 200, "dawid-skene": 200, "ordinal-dawid-skene": 200},
}
"""Steps of methods that would take long, with the tolerance of the demo; others have their default settings."""
FASTER = 2
"""How many times faster a slow method is at least with these settings."""
EVERY = "every mechanism"
NO_ORDER = "the labels have no order"
SLOW = "more than ten seconds for so many reports"
SHORTER = "to keep the demo short, only for unprotected answers and randomized response"
MANY_REPORTS = "a report for every cell would take most of the run time"


@dataclass(frozen=True, kw_only=True, eq=False)
class DemoTrials:
    """Trials of one crowd, and what is not run there, with reasons."""

    trials: tuple[Trial, ...]
    not_run: tuple[NotRun, ...]


def trials_of_demo_crowd(crowd: DemoCrowd, seed: int) -> DemoTrials:
    """Return a trial of unprotected answers, and one for every mechanism."""
    mechanisms, unbuilt = demo_mechanisms(crowd)
    plain, models, unsuited = demo_methods(crowd)
    first = Trial(crowd=crowd, mechanism=None, seed=seed, plain=plain, models=models)
    rare = {one.name: SHORTER for one in first.methods if one.name not in {*USUAL_ESTIMATORS, "weighted-vote"}}
    trials = [first]
    for mechanism in mechanisms:
        left_out = {} if mechanism.name == RandomizedResponse.name else rare
        left_out = left_out | ({"gaussian": MANY_REPORTS} if isinstance(mechanism, Laplace) else {})
        trials.append(replace(first, mechanism=mechanism, left_out=left_out))
    pairs = [pair for trial in trials for pair in pairs_not_run(trial)]
    return DemoTrials(trials=tuple(trials), not_run=(*unbuilt, *unsuited, *pairs))


def demo_mechanisms(crowd: DemoCrowd) -> tuple[list[Mechanism], list[NotRun]]:
    """Return every registered mechanism for the answers of the crowd, at several epsilons, and those that refuse."""
    others = FOR_LABELS if crowd.error == "mae" else FOR_NUMBERS
    names = [name for name in MECHANISM_ENTRIES if name not in others]
    found: list[Mechanism] = []
    refused: list[NotRun] = []
    for name in sorted(names, key=lambda one: one != RandomizedResponse.name):
        for epsilon in EPSILONS if name == RandomizedResponse.name else TABLE_EPSILONS:
            try:
                found.append(_mechanism(name, epsilon, crowd))
            except SettingsError as error:
                missing = NotRun(
                    crowd=crowd.name, mechanism=f"{name} at epsilon {epsilon:g}", requested=epsilon,
                    method="every method", reason=str(error).rstrip("."),
                )  # fmt: skip
                refused.append(missing)
    return found, refused


def _mechanism(name: str, epsilon: float, crowd: DemoCrowd) -> Mechanism:
    """Return a mechanism: published ones with the settings of their papers, designed ones with the public numbers.

    Raises:
        SettingsError: it refuses the alphabet or epsilon, such as two-layer where Theorem 6.3 has no b <= 1.
    """
    answers, alphabet = crowd.answers, crowd.answers.alphabet
    assert alphabet is not None
    tasks = len(answers.tasks)
    match name, alphabet:
        case "one-layer", _:
            return OneLayer(alphabet=alphabet, epsilon=epsilon, participation="public")
        case "two-layer", _:
            most = int(answers.per_worker.max())
            return TwoLayer.as_published(alphabet=alphabet, epsilon=epsilon, participation="public", answers=most)
        case "sun-two-layer", _:
            return SunTwoLayer(alphabet=alphabet, epsilon=epsilon, answers=tasks)
        case "matrix-factorization-published", Scale():
            return MatrixFactorizationPublished(
                alphabet=alphabet, epsilon=epsilon, tasks=tasks, dimensions=5, ridge=0.1
            )
        case "quantized-response", Scale():
            return QuantizedResponse.for_objective(objective_from_public_numbers(alphabet, crowd), epsilon)
        case "designed", Scale():
            objective = objective_from_public_numbers(alphabet, crowd)
            return Designed.from_channel(design_channel(objective, epsilon, null_apart=True))
    settings = MechanismSettings(name=name, epsilon=epsilon, participation="protected")
    return build_mechanism(settings, alphabet, tasks=tasks)


def demo_methods(crowd: DemoCrowd) -> tuple[Methods, Methods, list[NotRun]]:
    """Return every registered method for the answers of the crowd: without and with a noise model, and those not run.

    Majority vote is in both. A method that is not usual is not run if it takes long on randomized response.
    """
    alphabet = crowd.answers.alphabet
    assert alphabet is not None
    kind = "numeric" if crowd.error == "mae" else "categorical"
    suited = [
        entry
        for entry in ESTIMATOR_ENTRIES.values()
        if entry.capabilities.kind == kind or entry.name == METHOD_FOR_BOTH
    ]
    reasons = {
        entry.name: NO_ORDER if entry.capabilities.needs_ordered_labels and not alphabet.ordered else SLOW
        for entry in suited
        if (entry.capabilities.needs_ordered_labels and not alphabet.ordered) or _takes_long(entry.name, crowd)
    }
    run = [(entry, _method(entry, crowd)) for entry in suited if entry.name not in reasons]
    plain = tuple(one for entry, one in run if not entry.capabilities.reads_channel or entry.name == "majority-vote")
    models = tuple(one for entry, one in run if entry.capabilities.reads_channel)
    left = [
        NotRun(crowd=crowd.name, mechanism=EVERY, requested=None, method=name, reason=reason)
        for name, reason in reasons.items()
    ]
    return plain, models, left


def _takes_long(name: str, crowd: DemoCrowd) -> bool:
    """Return whether a method that is not usual takes long on reports of randomized response."""
    if name in USUAL_ESTIMATORS or name not in SLOW_WORK:
        return False
    answers: Reports = crowd.answers
    assert answers.alphabet is not None
    channels = [RandomizedResponse(alphabet=answers.alphabet, epsilon=epsilon).channel() for epsilon in EPSILONS]
    most = max(len(answers), *(expected_report_count(answers, channel) for channel in channels))
    least, power = SLOW_WORK[name]
    return most * answers.labels**power >= FASTER * least


def _method(entry: EstimatorEntry, crowd: DemoCrowd) -> Estimator[Any, Any]:
    """Return the method, gaussian with the public prior of numbers."""
    build = cast(Callable[..., Estimator[Any, Any]], entry.import_class())
    if entry.name not in MAX_STEPS:
        return build()
    steps = MAX_STEPS[entry.name]
    if entry.name != "gaussian" or crowd.answers.alphabet is None:
        return build(max_steps=steps, tolerance=TOLERANCE)
    mean, deviation = crowd.prior or (None, None)
    return build(
        prior_mean=mean,
        prior_deviation=deviation,
        max_steps=steps,
        tolerance=TOLERANCE * float(np.ptp(crowd.answers.alphabet.values)),
        points_per_step=POINTS_PER_STEP,
    )


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
