"""Truths of numbers by rivals and by `gaussian` at equal exact epsilon.

Crowds: "dense", 150 workers on 30 tasks, truths uniform on 0..10, error variances exponential with mean 1, as the
rivals assume; "sparse", 40 workers and 40 tasks with 5 answers each, truths N(7, 1.5), deviations .5, 1, 2 in thirds.
Answers and truths lie on 0..10: estimates outside are moved to its ends. Participation is public, epsilon is that of an
answer. The sparse crowd's prior is public; rivals that have no prior do not use it.

Rows of a mechanism are its reports read by `gaussian`; those of the registry appear by themselves. "told" mechanisms
are designed for the crowd's prior and deviations. "noise of one variance a worker" has no finite epsilon
(`shared_variance`); its epsilon is that of a single answer. `python -m experiments.rivals.numeric_discovery` writes
`results/numeric_discovery.csv` and the table of docs/explanation/related-work.md, within some minutes on one core.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from experiments.rivals import inferences as rivals
from experiments.rivals.inferences import Numbers, Sent
from experiments.rows import four_digits, read_rows, write_rows

from crowdveil import Channel, Gaussian, RandomizedResponse, Reports, Scale
from crowdveil.answers.facts.prior import Prior
from crowdveil.design.mechanism_from_settings import Expectation, MechanismSettings, build_mechanism
from crowdveil.errors import CrowdveilError
from crowdveil.randomness import seeded
from crowdveil.registry import DESIGNED_MECHANISMS, MECHANISM_NAMES
from crowdveil.simulate import perturb_cells

RESULTS = Path(__file__).parent / "results" / "numeric_discovery.csv"
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "related-work.md"
TABLE = re.compile(r"^\| sent \| inference \|.*?(?=^[^|])", re.DOTALL | re.MULTILINE)
SCALE = Scale(0, 10)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
SEED_SETS = {"dense": (range(4), range(100, 104)), "sparse": (range(12), range(100, 112))}
SIGMAS = {"dense": (0.3, 0.8, 1.5), "sparse": (0.5, 1.0, 2.0)}
"""Standard deviations of workers; for the dense crowd about the sixths of its distribution."""
PRIOR = (7.0, 1.5)
"""Mean and deviation of the sparse crowd's truths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Mean absolute error of one way on one crowd, over the draws of a set of seeds.

    Attributes:
        crowd: "dense" or "sparse".
        epsilon: of an answer; None for answers as they are.
        sent, inference: mechanism and method.
        seeds: the first seed.
        draws: number of draws.
        error: mean over draws.
        deviation: standard deviation over draws.
        constant: error of the best constant, chosen with the truths.
    """

    crowd: str
    epsilon: float | None
    sent: str
    inference: str
    seeds: int
    draws: int
    error: float
    deviation: float
    constant: float


@dataclass(frozen=True, eq=False)
class Crowd:
    """Answers of a crowd, before they are rounded to the scale, and the truths."""

    name: str
    answers: Sent
    truth: Numbers

    @property
    def reports(self) -> Reports:
        """The answers on the scale."""
        one = self.answers
        value = np.clip(np.rint(one.value), SCALE.low, SCALE.high).astype(int)
        return Reports(one.task, one.worker, value, np.arange(one.tasks), np.arange(one.workers), SCALE)

    @property
    def method(self) -> Gaussian:
        """Our inference; the sparse crowd's prior is public."""
        return Gaussian() if self.name == "dense" else Gaussian(prior_mean=PRIOR[0], prior_deviation=PRIOR[1])

    @property
    def log_prior(self) -> Numbers | None:
        """Public prior on the rivals' grid of truths."""
        points = np.linspace(SCALE.low, SCALE.high, rivals.TRUTHS)
        return None if self.name == "dense" else -(((points - PRIOR[0]) / PRIOR[1]) ** 2) / 2


def drawn_crowd(name: str, seed: int) -> Crowd:
    """Return the crowd of a seed."""
    rng = np.random.default_rng(seed)
    if name == "dense":
        tasks, workers, each = 30, 150, 150
        truth, deviation = rng.uniform(0, 10, tasks), np.sqrt(rng.exponential(1.0, workers))
    else:
        tasks, workers, each = 40, 40, 5
        truth, deviation = np.clip(rng.normal(*PRIOR, tasks), 0, 10), rng.permutation(np.resize((0.5, 1, 2), workers))
    task = np.repeat(np.arange(tasks), each)
    worker = np.concatenate([np.sort(rng.permutation(workers)[:each]) for _ in range(tasks)])
    value = np.clip(truth[task] + deviation[worker] * rng.standard_normal(len(task)), 0, 10)
    return Crowd(name, Sent(task, worker, value, tasks, workers, 0.0, 10.0), truth)


@cache
def channels(name: str, epsilon: float) -> tuple[tuple[str, Channel], ...]:
    """Return name and channel of the registry's mechanisms for a crowd; those that are told the prior end in "told"."""
    spread = np.exp(-(((SCALE.values - PRIOR[0]) / PRIOR[1]) ** 2) / 2)
    share = np.ones(SCALE.size) if name == "dense" else spread
    prior = Prior(probabilities=dict(zip(SCALE.names, (share / share.sum()).tolist(), strict=True)))
    told = Expectation(prior=prior, sigmas=SIGMAS[name])
    asked = [(one, one, Expectation()) for one in MECHANISM_NAMES]
    asked += [(f"{one}, told", one, told) for one in DESIGNED_MECHANISMS]
    found: list[tuple[str, Channel]] = []
    for shown, one, expected in asked:
        settings = MechanismSettings(name=one, epsilon=epsilon, participation="public", expected=expected)
        try:
            channel = build_mechanism(settings, SCALE, tasks=1).channel()
        except CrowdveilError:
            continue
        if isinstance(channel, Channel) and all(channel.rows != other.rows for _, other in found):
            found.append((shown, channel))
    return tuple(found)


def by_rivals(crowd: Crowd, epsilon: float, seed: int) -> Iterator[tuple[str, str, Numbers]]:
    """Yield mechanism, inference and truths of the rivals."""
    rng, one = np.random.default_rng([seed, 1]), crowd.answers
    scale = (one.high - one.low) / epsilon
    laplace = replace(one, value=one.value + rng.laplace(0.0, scale, len(one.value)))
    variance = np.full(one.workers, 2 * scale**2)
    yield "laplace", "mean", rivals.mean(laplace)
    yield "laplace", "CRH", rivals.crh(laplace)
    yield "laplace", "noise-aware weights, MOON-like", rivals.noise_aware_weights(laplace, variance)
    yield "laplace", "CRH of bounded numbers, TESLA-like", rivals.bounded_crh(laplace)
    yield "laplace", "mixture, MOON-like", rivals.mixture_posterior_medians(laplace, scale, crowd.log_prior)
    shared = np.sqrt(rng.exponential(2 * scale**2, one.workers))[one.worker] * rng.standard_normal(len(one.value))
    yield "noise of one variance a worker", "CRH", rivals.crh(replace(one, value=one.value + shared))
    response = RandomizedResponse(alphabet=SCALE, epsilon=epsilon, participation="public").channel()
    kept = perturb_cells(crowd.reports, response, seeded(seed))
    ends = response.probabilities[:2, 0]
    number = (SCALE.values[kept.value] - ends[1] * SCALE.values.sum()) / (ends[0] - ends[1])
    inverted = replace(one, task=kept.task.astype(np.int64), worker=kept.worker.astype(np.int64), value=number)
    yield "randomized-response", "CRH of inverted reports, PDPTD-like", rivals.crh(inverted)


def by_ours(crowd: Crowd, epsilon: float, seed: int) -> Iterator[tuple[str, str, Numbers]]:
    """Yield mechanism, inference and truths of `gaussian` through each channel."""
    for name, channel in channels(crowd.name, epsilon):
        reports = perturb_cells(crowd.reports, channel, seeded(seed))
        yield name, "gaussian", crowd.method.fit(reports, channel=channel).truth


def unprotected(crowd: Crowd) -> Iterator[tuple[str, str, Numbers]]:
    """Yield truths from the answers as they are."""
    yield "answers", "mean", rivals.mean(crowd.answers)
    yield "answers", "CRH", rivals.crh(crowd.answers)
    yield "answers", "gaussian", crowd.method.fit(crowd.reports).truth


def measured(name: str, epsilon: float | None, seeds: range) -> Iterator[Row]:
    """Yield the rows of a crowd at one epsilon."""
    errors: dict[tuple[str, str], list[float]] = {}
    constants = []
    for seed in seeds:
        crowd = drawn_crowd(name, seed)
        constants.append(float(np.abs(crowd.truth - np.median(crowd.truth)).mean()))
        ways = (
            unprotected(crowd)
            if epsilon is None
            else (*by_rivals(crowd, epsilon, seed), *by_ours(crowd, epsilon, seed))
        )
        for sent, inference, truth in ways:
            truth = np.clip(truth, SCALE.low, SCALE.high)
            errors.setdefault((sent, inference), []).append(float(np.abs(truth - crowd.truth).mean()))
    shared: dict[str, Any] = {"crowd": name, "epsilon": epsilon, "seeds": seeds[0], "draws": len(seeds)}
    for (sent, inference), found in errors.items():
        figures: dict[str, Any] = {
            "error": float(np.mean(found)),
            "deviation": float(np.std(found, ddof=1)) if len(found) > 1 else 0.0,
        }
        yield Row(**shared, sent=sent, inference=inference, **figures, constant=float(np.mean(constants)))


def rows() -> Iterator[Row]:
    """Yield all rows."""
    for name, epsilon in product(SEED_SETS, (*EPSILONS, None)):
        for seeds in SEED_SETS[name]:
            yield from measured(name, epsilon, seeds)


def table_of_page(found: list[Row]) -> str:
    """Return the errors by crowd and epsilon, means over all draws, with those without protection and the constant."""
    cells: dict[tuple[str, str], dict[tuple[str, float | None], list[float]]] = {}
    for row in found:
        own = cells.setdefault((row.sent, row.inference), {})
        own.setdefault((row.crowd, row.epsilon), []).append(row.error)
    places = list(product(SEED_SETS, EPSILONS))
    heads = ("sent", "inference", *(f"{crowd}, {epsilon:g}" for crowd, epsilon in places))
    lines = [heads, ("---",) * len(heads)]
    for (sent, inference), own in cells.items():
        shown = [own.get(place, own.get((place[0], None), [])) for place in places]
        lines.append((sent, inference, *(f"{np.mean(errors):.3g}" if errors else "-" for errors in shown)))
    constants = {crowd: np.mean([row.constant for row in found if row.crowd == crowd]) for crowd in SEED_SETS}
    lines.append(("nothing", "best constant", *(f"{constants[crowd]:.3g}" for crowd, _ in places)))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, rows(), four_digits)
    made = table_of_page(read_rows(RESULTS, Row))
    PAGE.write_text(TABLE.sub(lambda _: made, PAGE.read_text("utf-8"), count=1), encoding="utf-8")
