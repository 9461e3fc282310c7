"""Errors of `gaussian` through every mechanism for numbers on six crowds, with and without knowledge of the truths.

    python -m experiments.utility.mechanisms_on_crowds > experiments/utility/results/mechanisms_on_crowds.csv

Participation is public. "told": design and inference know the distribution of the truths, and the design the deviations
of the workers. "untold": the design assumes equally likely truths and the default deviations of a plan, and inference
learns the distribution. "plan" is the candidate with the least expected error of a plan that knows the size of the
crowd and, if told, these facts. Within a seed all mechanisms have the same crowd; mechanisms with the same table have
the same reports. n_emotion is read from `CROWDVEIL_DATA`.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from math import inf
from typing import NamedTuple

import numpy as np
from experiments.rows import four_digits, write_rows
from numpy.typing import NDArray

from crowdveil import Gaussian, QuantizedResponse, Reports, Scale
from crowdveil.answers.assignment import Assignment
from crowdveil.answers.datasets import load
from crowdveil.answers.facts.prior import Prior
from crowdveil.channels.channel import Channel
from crowdveil.design.channel_design import design_channel, normal_worker_model
from crowdveil.design.mechanism_from_settings import Expectation
from crowdveil.estimators.gaussian.discretization import normal_answer_probabilities
from crowdveil.mechanisms import MECHANISMS, DesignObjective
from crowdveil.planning import candidates
from crowdveil.planning.candidates import channel_key
from crowdveil.planning.expected_campaign import DEFAULT_SIGMAS, expected_campaign
from crowdveil.planning.plan import predict_group
from crowdveil.randomness import seeded
from crowdveil.simulate import numeric_crowd, perturb_cells

EPSILONS = (0.5, 1.0, 2.0, 4.0)
CLOSED = ("randomized-response", "laplace", "staircase", "piecewise", "ogpm", "square-wave")
PLAN = "plan"
CHOSEN = ("quantized-response", "designed", PLAN)
UNPROTECTED = "unprotected"
SHOWN = (
    ("sun", "untold", 0.5),
    ("sun", "untold", 1.0),
    ("sun", "told", 1.0),
    ("peer, 1", "untold", 2.0),
    ("peer, 1", "untold", 4.0),
    ("peer, 1", "told", 2.0),
    ("peer, 5", "untold", 1.0),
    ("peer, 5", "untold", 2.0),
    ("peer, 5", "told", 2.0),
    ("dense", "untold", 1.0),
    ("n_emotion", "untold", 0.5),
    ("n_emotion", "untold", 1.0),
    ("n_emotion", "untold", 4.0),
)
"""Crowd, knowledge and epsilon of the settings in the table of docs/explanation/truth-per-epsilon.md."""
SEED_SETS = {"first": 0, "second": 1000}
"""First seed of each set."""
TOLERANCE_STEPS = 0.02
"""Largest change of a truth at convergence, in steps of the answers."""


class CrowdKind(NamedTuple):
    """A crowd: its scale, how one is made from a seed, number of seeds, mean and deviation of truths, workers' sigmas.

    Without a known distribution of truths there is no row "told".
    """

    scale: Scale
    make: Callable[[int], tuple[Reports, NDArray[np.float64]]]
    seeds: int
    truths: tuple[float, float] | None = None
    sigmas: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Mean over seeds of one mechanism.

    Attributes:
        crowd, knowledge, seed_set: names.
        epsilon, mechanism: epsilon is 0 for unprotected answers.
        table: name of the first mechanism with this table; differs for "plan", and where tables are equal.
        seeds: number of crowds, or of draws of the reports.
        error, deviation: mean absolute error and its standard error over seeds.
        constant: error of the best constant, chosen with the truths.
        below: share of the seeds whose error is below that of the constant.
    """

    crowd: str
    knowledge: str
    seed_set: str
    epsilon: float
    mechanism: str
    table: str
    seeds: int
    error: float
    deviation: float
    constant: float
    below: float


def _sun(seed: int) -> tuple[Reports, NDArray[np.float64]]:
    crowd = numeric_crowd(workers=1000, tasks=200, sparsity=0.9, source=seeded(seed))
    return crowd.answers, crowd.truth


def _peer(grades: int, seed: int) -> tuple[Reports, NDArray[np.float64]]:
    """Return 40 students who each grade some essays of 40."""
    crowd = numeric_crowd(
        workers=40,
        tasks=40,
        sparsity=0.0,
        scale=Scale(0, 10),
        truth=lambda generator, count: generator.normal(7, 1.5, count),
        sigmas=(0.5, 1.0, 2.0),
        source=seeded(seed),
    )
    answers = crowd.answers
    asked = Assignment.balanced(answers.tasks, answers.workers, grades, seeded(seed + 1))
    cells = asked.task * len(answers.workers) + asked.worker
    kept = np.isin(answers.task.astype(np.int64) * len(answers.workers) + answers.worker, cells)
    return (
        replace(answers, task=answers.task[kept], worker=answers.worker[kept], value=answers.value[kept]),
        crowd.truth,
    )


def _dense(seed: int) -> tuple[Reports, NDArray[np.float64]]:
    """Return 150 workers with error variances from an exponential distribution, and 30 truths uniform on 0..10."""
    crowd = numeric_crowd(
        workers=150,
        tasks=30,
        sparsity=0.0,
        scale=Scale(0, 10),
        truth=lambda generator, count: generator.uniform(0, 10, count),
        sigmas=tuple(np.sqrt(seeded(seed + 1).generator.exponential(1, 150)).tolist()),
        source=seeded(seed),
    )
    return crowd.answers, crowd.truth


@cache
def _emotion() -> tuple[Reports, NDArray[np.float64]]:
    """Return the answers of n_emotion on 11 numbers, and its truths."""
    data = load("n_emotion", duplicates="first")
    answers, gold = data.answers, data.gold
    scale = Scale(-100, 100, 20)
    rounded = replace(answers, value=scale.encode(answers.numbers), alphabet=scale)
    return rounded, np.array([gold.get(task, np.nan) for task in answers.tasks.tolist()], dtype=float)


KINDS = {
    "sun": CrowdKind(Scale(0, 9), _sun, 6, (0.0, 1.0), (1.0, 5.0)),
    **{
        f"peer, {grades}": CrowdKind(Scale(0, 10), partial(_peer, grades), 20, (7.0, 1.5), (0.5, 1.0, 2.0))
        for grades in (1, 2, 5)
    },
    "dense": CrowdKind(Scale(0, 10), _dense, 12),
    "n_emotion": CrowdKind(Scale(-100, 100, 20), lambda _: _emotion(), 4),
}


def label_prior(kind: CrowdKind) -> dict[str, float] | None:
    """Return the probability of each rounded truth; None if the distribution is not known."""
    if kind.truths is None:
        return None
    mean, deviation = kind.truths
    shares = normal_answer_probabilities(np.array([mean]), np.array([deviation]), kind.scale.values, kind.scale.step)
    return dict(zip(kind.scale.names, shares[0, 0].tolist(), strict=True))


@cache
def channel_of(name: str, mechanism: str, epsilon: float, told: bool) -> Channel:
    """Return the channel of a mechanism for a kind of crowd."""
    kind = KINDS[name]
    if mechanism in CLOSED:
        return MECHANISMS[mechanism](alphabet=kind.scale, epsilon=epsilon, participation="public").channel()
    if mechanism == PLAN:
        return planned_channel(name, epsilon, told)
    known = label_prior(kind) if told else None
    size = kind.scale.size
    objective = DesignObjective(
        alphabet=kind.scale,
        prior=np.full(size, 1 / size) if known is None else np.array(list(known.values())),
        worker_model=normal_worker_model(
            kind.scale, kind.sigmas if told else tuple(share * kind.scale.range for share in DEFAULT_SIGMAS)
        ),
        participation_rate=1.0,
        participation="public",
    )
    if mechanism == "designed":
        return design_channel(objective, epsilon, null_apart=True)
    return QuantizedResponse.for_objective(objective, epsilon).channel()


def planned_channel(name: str, epsilon: float, told: bool) -> Channel:
    """Return the channel that `crowdveil plan` recommends at an epsilon of an answer."""
    kind = KINDS[name]
    answers, _ = kind.make(0)
    known = label_prior(kind) if told else None
    expected = Expectation(
        prior=None if known is None else Prior(probabilities=known),
        participation_rate=len(answers.task) / (len(answers.tasks) * len(answers.workers)),
        sigmas=kind.sigmas if told else (),
    )
    campaign = expected_campaign(kind.scale, expected, "public", tasks=len(answers.tasks), workers=len(answers.workers))
    found = predict_group(campaign, epsilon, candidates(campaign, epsilon), inf)
    return min(found, key=lambda row: row.error_then_bayes_error).mechanism.channel()


def error_and_constant(name: str, seed: int, mechanism: str, epsilon: float, told: bool) -> tuple[float, float]:
    """Return the mean absolute error of one fit, and that of the best constant."""
    kind = KINDS[name]
    answers, truth = kind.make(seed)
    channel = None if mechanism == UNPROTECTED else channel_of(name, mechanism, epsilon, told)
    reports = answers if channel is None else perturb_cells(answers, channel, seeded(seed + 500_000))
    method = Gaussian(tolerance=TOLERANCE_STEPS * kind.scale.step)
    estimate = method.fit(reports, channel=channel, prior=label_prior(kind) if told else None)
    codes = {task: code for code, task in enumerate(answers.tasks.tolist())}
    known = truth[[codes[task] for task in estimate.tasks.tolist()]]
    scored = ~np.isnan(known)
    return (
        float(np.abs(estimate.truth - known)[scored].mean()),
        float(np.abs(known - np.median(known[scored]))[scored].mean()),
    )


def measured_rows(names: tuple[str, ...] = tuple(KINDS)) -> Iterator[Row]:
    """Yield the rows of some crowds."""
    for name, seed_set in product(names, SEED_SETS):
        for told in (False, True) if KINDS[name].truths is not None else (False,):
            yield measured_row(name, seed_set, UNPROTECTED, 0.0, told)
            for epsilon in EPSILONS:
                found: dict[object, Row] = {}
                for mechanism in (*CLOSED, *CHOSEN):
                    key = channel_key(channel_of(name, mechanism, epsilon, told))
                    if key not in found:
                        found[key] = measured_row(name, seed_set, mechanism, epsilon, told)
                    yield replace(found[key], mechanism=mechanism)


def measured_row(name: str, seed_set: str, mechanism: str, epsilon: float, told: bool) -> Row:
    """Return the row of one mechanism, measured."""
    kind, first = KINDS[name], SEED_SETS[seed_set]
    pairs = [error_and_constant(name, seed, mechanism, epsilon, told) for seed in range(first, first + kind.seeds)]
    errors, constants = np.array(pairs).T
    return Row(
        crowd=name,
        knowledge="told" if told else "untold",
        seed_set=seed_set,
        epsilon=epsilon,
        mechanism=mechanism,
        table=mechanism,
        seeds=kind.seeds,
        error=float(errors.mean()),
        deviation=float(errors.std(ddof=1) / np.sqrt(kind.seeds)),
        constant=float(constants.mean()),
        below=float((errors < constants).mean()),
    )


def table(rows: list[Row]) -> list[str]:
    """Return the lines of the page's table: errors in the settings `SHOWN`, means over all seeds."""
    columns = ("randomized-response", "quantized-response", "staircase", "piecewise", "ogpm", "square-wave", PLAN)
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        found.setdefault((row.crowd, row.knowledge, row.epsilon, row.mechanism), []).append(row)

    def mean(crowd: str, knowledge: str, epsilon: float, mechanism: str) -> float:
        return float(np.mean([row.error for row in found[crowd, knowledge, epsilon, mechanism]]))

    lines = [
        f"| crowd | prior | epsilon | constant | {' | '.join(f'`{name}`' for name in columns)} | unprotected |",
        "| --- | --- | --- | --- | " + "--- | " * len(columns) + "--- |",
    ]
    for crowd, knowledge, epsilon in SHOWN:
        constant = float(np.mean([row.constant for row in found[crowd, knowledge, epsilon, PLAN]]))
        errors = [mean(crowd, knowledge, epsilon, name) for name in columns]
        numbers = (constant, *errors, mean(crowd, knowledge, 0.0, UNPROTECTED))
        cells = (crowd, {"told": "known", "untold": "learned"}[knowledge], f"{epsilon:g}")
        lines.append(f"| {' | '.join((*cells, *(f'{number:.3g}' for number in numbers)))} |")
    return lines


if __name__ == "__main__":
    write_rows(sys.stdout, Row, measured_rows(tuple(sys.argv[1:]) or tuple(KINDS)), four_digits)
