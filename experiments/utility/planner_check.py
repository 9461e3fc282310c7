"""Predicted intervals of plans against errors measured in whole campaigns.

Fourteen settings that were not used in development. Measured campaigns are simulated with what plans only approximate:
abilities from a continuous Beta distribution, truths from a normal distribution, all tasks, and default settings of
estimators. Then three real sets, planned from public facts only: labels, sizes, share of answered cells, and the
default ability. Run `python experiments/utility/planner_check.py [--quick]`.
"""

import argparse
import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from crowdveil import (
    Categories,
    DawidSkene,
    Designed,
    Gaussian,
    OrdinalDawidSkene,
    QuantizedResponse,
    RandomizedResponse,
    Reports,
    Scale,
)
from crowdveil.channel_design import design_channel, normal_worker_model, one_coin_worker_model
from crowdveil.channels.guarantee import Participation
from crowdveil.channels.rounding import format_bound
from crowdveil.data.datasets import available, load
from crowdveil.evaluation.metrics import score
from crowdveil.mechanisms import ChannelMechanism, DesignObjective
from crowdveil.planning import Campaign, LabelCrowd, NumberCrowd, Prediction, beta_abilities, predict
from crowdveil.planning.population import ABILITY_CONCENTRATION, ordinal_worker_model
from crowdveil.randomness import Seeded, seeded
from crowdveil.simulate import Crowd, categorical_crowd, numeric_crowd, perturb

RUNS = 5
ESTIMATORS = {kind.name: kind for kind in (DawidSkene, OrdinalDawidSkene, Gaussian)}
FIRST_SEED = 7_000
REAL = (
    ("duchenne", "dawid-skene", (3.0, 5.0, 8.0, math.inf)),
    ("adult2", "dawid-skene", (3.0, 5.0, 8.0, math.inf)),
    ("web_zhou", "dawid-skene", (3.0, 5.0, math.inf)),
    ("web_zhou", "ordinal-dawid-skene", (3.0, 5.0, math.inf)),
)
ORDERED = ("adult2", "web_zhou")
"""Sets with ordered labels, whose assumed mistakes follow the order for every method."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One campaign: `labels` or `scale`, with `ability` or `sigmas`; normal truths have a `mean` and a `deviation`."""

    mechanism: str
    epsilon: float
    tasks: int
    workers: int
    rate: float
    participation: Participation = "protected"
    labels: int = 0
    prior: tuple[float, ...] = ()
    ability: float = 0.75
    scale: Scale | None = None
    sigmas: tuple[float, ...] = ()
    mean: float = 0.0
    deviation: float = 1.0
    learned: bool = False
    ordered: bool = False
    method: str | None = None


SETTINGS = (
    Setting(labels=2, mechanism="randomized-response", epsilon=1, tasks=300, workers=100, rate=0.3),
    Setting(labels=2, mechanism="randomized-response", epsilon=3, tasks=1000, workers=400, rate=0.05, prior=(0.7, 0.3)),
    Setting(
        labels=2, mechanism="randomized-response", epsilon=2, tasks=200, workers=50, rate=0.5, participation="public"
    ),
    Setting(labels=4, mechanism="quantized-response", epsilon=2, tasks=400, workers=300, rate=0.1, ability=0.8),
    Setting(labels=4, mechanism="designed", epsilon=3, tasks=600, workers=150, rate=0.2, prior=(0.6, 0.2, 0.1, 0.1)),
    Setting(
        labels=4,
        mechanism="randomized-response",
        epsilon=1,
        tasks=250,
        workers=80,
        rate=0.25,
        participation="public",
        ability=0.65,
    ),
    Setting(labels=10, mechanism="randomized-response", epsilon=4, tasks=300, workers=500, rate=0.1, ability=0.6),
    Setting(labels=10, mechanism="designed", epsilon=2, tasks=150, workers=200, rate=0.2, participation="public"),
    Setting(
        scale=Scale(0, 9),
        sigmas=(1.0, 4.0),
        mechanism="quantized-response",
        epsilon=2,
        tasks=150,
        workers=1000,
        rate=0.2,
    ),
    Setting(
        scale=Scale(0, 9),
        sigmas=(1.0, 2.0, 4.0),
        mechanism="randomized-response",
        epsilon=4,
        tasks=100,
        workers=600,
        rate=0.3,
        mean=5,
        deviation=2,
    ),
    Setting(
        scale=Scale(0, 20),
        sigmas=(2.0, 6.0),
        mechanism="designed",
        epsilon=3,
        tasks=200,
        workers=300,
        rate=0.1,
        participation="public",
        mean=12,
        deviation=3,
    ),
    Setting(
        scale=Scale(0, 9),
        sigmas=(1.0, 3.0),
        mechanism="randomized-response",
        epsilon=5,
        tasks=80,
        workers=400,
        rate=0.5,
        mean=4,
        deviation=3,
        learned=True,
    ),
    Setting(
        labels=5,
        ordered=True,
        method="ordinal-dawid-skene",
        mechanism="randomized-response",
        epsilon=3,
        tasks=300,
        workers=200,
        rate=0.1,
        ability=0.7,
    ),
)


def campaign_of(setting: Setting) -> Campaign:
    """Return the campaign of a setting for the planner."""
    crowd: LabelCrowd | NumberCrowd
    if setting.scale is None:
        alphabet = Categories(tuple(f"label {number}" for number in range(setting.labels)), setting.ordered)
        prior = np.array(setting.prior or [1 / setting.labels] * setting.labels)
        answers = one_coin_worker_model(setting.labels, setting.ability)
        crowd = LabelCrowd(alphabet=alphabet, prior=prior, abilities=beta_abilities(setting.ability))
    else:
        scale = setting.scale
        edges = (scale.values[:-1] + scale.step / 2 - setting.mean) / setting.deviation
        prior = np.maximum(np.diff(ndtr(edges), prepend=0.0, append=1.0), 1e-6)
        prior /= prior.sum()
        answers = normal_worker_model(scale, setting.sigmas)
        crowd = NumberCrowd(alphabet=scale, prior=prior, sigmas=setting.sigmas)
    objective = DesignObjective(
        alphabet=crowd.alphabet,
        prior=prior,
        worker_model=answers,
        participation_rate=setting.rate,
        participation=setting.participation,
    )
    known = not setting.learned and (setting.scale is not None or bool(setting.prior))
    return Campaign(
        objective=objective,
        crowd=crowd,
        tasks=setting.tasks,
        workers=setting.workers,
        prior_public=known,
        method=setting.method,
    )


def mechanism_of(name: str, campaign: Campaign, epsilon: float) -> ChannelMechanism:
    """Return the mechanism for the campaign's objective."""
    if name == Designed.name:
        return Designed.from_channel(design_channel(campaign.cell_objective, epsilon, null_apart=True))
    if name == QuantizedResponse.name:
        return QuantizedResponse.for_objective(campaign.cell_objective, epsilon)
    return RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=epsilon, participation=campaign.participation)


def simulate(setting: Setting, campaign: Campaign, seed: int) -> Crowd:
    """Return a simulated campaign, with other distributions than the planner assumes."""
    source = seeded(seed)
    if setting.scale is not None:
        return numeric_crowd(
            workers=setting.workers,
            tasks=setting.tasks,
            sparsity=1 - setting.rate,
            scale=setting.scale,
            truth=lambda generator, count: generator.normal(setting.mean, setting.deviation, count),
            sigmas=setting.sigmas,
            source=source,
        )
    a, b = setting.ability * ABILITY_CONCENTRATION, (1 - setting.ability) * ABILITY_CONCENTRATION
    alphabet = campaign.crowd.alphabet
    assert isinstance(alphabet, Categories)
    if setting.ordered:
        return ordered_crowd(setting, alphabet, source)
    return categorical_crowd(
        workers=setting.workers,
        tasks=setting.tasks,
        labels=alphabet,
        sparsity=1 - setting.rate,
        prior=setting.prior or None,
        ability=lambda generator, count: generator.beta(a, b, count),
        source=source,
    )


def ordered_crowd(setting: Setting, labels: Categories, source: Seeded) -> Crowd:
    """Return simulated ordered answers; each worker has an own ability, and mistakes fall off with the distance."""
    generator = source.generator
    truth = generator.integers(0, labels.size, setting.tasks)
    ability = generator.beta(
        setting.ability * ABILITY_CONCENTRATION, (1 - setting.ability) * ABILITY_CONCENTRATION, setting.workers
    )
    task, worker = np.nonzero(generator.random((setting.tasks, setting.workers)) < setting.rate)
    shares = [
        ordinal_worker_model(labels.size, ability[one])[truth[on]].tolist()
        for on, one in zip(task, worker, strict=True)
    ]
    value = np.array([generator.choice(labels.size, p=share) for share in shares])
    names = np.arange(1, setting.tasks + 1), np.arange(1, setting.workers + 1)
    answers = Reports(task.astype(np.int32), worker.astype(np.int32), value, *names, labels)
    return Crowd(answers=answers, truth=np.array(labels.names)[truth], quality=ability, quality_name="ability")


def measure(setting: Setting, campaign: Campaign, mechanism: ChannelMechanism, seed: int) -> tuple[float, float, float]:
    """Return one campaign's error, the error of the best constant on it, and the correlation with the truth."""
    crowd, source = simulate(setting, campaign, seed), seeded(seed + 50_000)
    reports = perturb(crowd.answers, mechanism, source)
    estimator = ESTIMATORS[campaign.estimator.name]()
    result = score(estimator.fit(reports, channel=mechanism.channel(), prior=campaign.prior), crowd.gold)
    return result.error, result.baseline, result.correlation


def inside(prediction: Prediction, error: float) -> bool:
    """Return whether an error lies in the predicted interval."""
    return prediction.low - 1e-12 <= error <= prediction.high + 1e-12


def simulated(quick: bool) -> None:
    """Print one line per setting: prediction, error of the first run, and number of runs inside the interval."""
    print(
        "| setting | epsilon | predicted | interval | measured | inside | of 5 runs | "
        "simulated once | of 5 runs | constant | correlation |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    first = every = of_once = 0
    shown = SETTINGS[::4] if quick else SETTINGS
    for number, setting in enumerate(shown):
        campaign = campaign_of(setting)
        mechanism = mechanism_of(setting.mechanism, campaign, setting.epsilon)
        prediction, once = predict(campaign, mechanism), predict(campaign, mechanism, seeds=1)
        runs = [measure(setting, campaign, mechanism, FIRST_SEED + 100 * number + run) for run in range(RUNS)]
        hits = [inside(prediction, error) for error, _, _ in runs]
        hits_once = sum(inside(once, error) for error, _, _ in runs)
        first, every, of_once = first + hits[0], every + sum(hits), of_once + hits_once
        what = f"{setting.labels} labels" if setting.scale is None else f"scale 0..{setting.scale.high:g}"
        print(
            f"| {what}, {setting.workers} x {setting.tasks}, rate {setting.rate:g}, {setting.participation}, "
            f"{setting.mechanism}{_more(setting)} | {format_bound(mechanism.guarantee.epsilon, 4)} | "
            f"{prediction.error:.3f} | "
            f"{prediction.low:.3f} to {prediction.high:.3f} | {runs[0][0]:.3f} | {'yes' if hits[0] else 'no'} | "
            f"{sum(hits)} | {once.error:.3f} ({once.low:.3f} to {once.high:.3f}) | {hits_once} | "
            f"{runs[0][1]:.3f} | {runs[0][2]:.2f} |",
            flush=True,
        )
    whole = RUNS * len(shown)
    print(f"\nFirst runs inside: {first} of {len(shown)}; all runs: {every} of {whole}, once {of_once} of {whole}.\n")


def _more(setting: Setting) -> str:
    """Return the settings that differ from the defaults."""
    return f", {setting.method}" if setting.method else ""


def real(quick: bool) -> None:
    """Print predictions for real sets from public facts, and measured errors."""
    print("| set, method | epsilon | predicted | interval | measured | inside | constant | correlation | gold |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, method, epsilons in REAL:
        if name not in available():
            print(f"{name}: not in the data directory")
            continue
        data = load(name)
        ordered = method == OrdinalDawidSkene.name or name in ORDERED
        labels = Categories(data.answers.alphabet.names, ordered)  # type: ignore[union-attr]
        answers = replace(data.answers, alphabet=labels)
        campaign = as_planned(answers, labels, method)
        for epsilon in epsilons[1:2] if quick else epsilons:
            mechanism = None if math.isinf(epsilon) else RandomizedResponse(alphabet=labels, epsilon=epsilon)
            prediction = predict(campaign, mechanism)
            reports = answers if mechanism is None else perturb(answers, mechanism, seeded(FIRST_SEED))
            channel = None if mechanism is None else mechanism.channel()
            result = score(ESTIMATORS[method]().fit(reports, channel=channel), data.gold, error="error_rate")
            print(
                f"| {name}, {method} | {epsilon:g} | {prediction.error:.3f} | "
                f"{prediction.low:.3f} to {prediction.high:.3f} | {result.error:.3f} | "
                f"{'yes' if inside(prediction, result.error) else 'no'} | {result.baseline:.3f} | "
                f"{result.correlation:.2f} | {result.scored} |",
                flush=True,
            )


def as_planned(answers: Reports, labels: Categories, method: str) -> Campaign:
    """Return the campaign of a real set: its sizes and share of answers, a uniform prior, and default workers."""
    prior = np.full(labels.size, 1 / labels.size)
    objective = DesignObjective(
        alphabet=labels,
        prior=prior,
        worker_model=one_coin_worker_model(labels.size, 0.75),
        participation_rate=len(answers) / (len(answers.tasks) * len(answers.workers)),
    )
    return Campaign(
        objective=objective,
        crowd=LabelCrowd(alphabet=labels, prior=prior, abilities=beta_abilities(0.75)),
        tasks=len(answers.tasks),
        workers=len(answers.workers),
        method=method,
    )


def main() -> None:
    """Read the arguments and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three settings, and one epsilon of the real sets")
    quick = parser.parse_args().quick
    simulated(quick)
    real(quick)


if __name__ == "__main__":
    main()
