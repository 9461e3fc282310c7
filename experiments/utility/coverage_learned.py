"""Coverage and expected error of `gaussian` with a learned prior, by crowd, mechanism, participation and sparsity.

Half of the workers have sigma 1, half 5, on a scale of 0 to 9. Truths: `low`, N(0, 1) as in Sun et al. (2018); `high`,
N(8, 1); `uniform`. `designed` is designed for uniform truths, sigma 1 and half of the cells answered. A row has three
crowds: the pooled coverage of 90 % intervals, that of the worst crowd, the mean absolute error of the truths and of the
best constant, the error that the estimate expects, the mean width, and the number of crowds whose truths the estimate
calls not identified. `python -m experiments.utility.coverage_learned` writes `results/coverage_learned.csv`.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from experiments.rows import write_rows

from crowdveil import Gaussian, QuantizedResponse, RandomizedResponse, Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Participation
from crowdveil.design.channel_design import design_channel
from crowdveil.estimators.gaussian.discretization import normal_answer_probabilities
from crowdveil.mechanisms import DesignObjective, Laplace
from crowdveil.randomness import seeded
from crowdveil.simulate import numeric_crowd, perturb_cells
from crowdveil.simulate.crowds import Draw

RESULTS = Path(__file__).parent / "results" / "coverage_learned.csv"
SCALE = Scale(0, 9)
TRUTHS: dict[str, Draw] = {
    "low": lambda generator, count: generator.normal(0, 1, count),
    "high": lambda generator, count: generator.normal(8, 1, count),
    "uniform": lambda generator, count: generator.uniform(0, 9, count),
}
SIZES = {"40x40": (40, 40), "500x50": (500, 50), "2000x200": (2000, 200)}
EPSILONS, SPARSITIES = (0.5, 1.0, 3.0), (0.2, 0.5, 0.9)
SMALL, NOISY = ["500x50", "40x40"], ["randomized-response", "quantized-response"]
KINDS = ["protected", "public"]
PLAN: tuple[Any, ...] = (
    *product(["low"], SMALL, ["laplace"], KINDS, EPSILONS, SPARSITIES),
    *product(["low"], ["500x50"], ["laplace to 0"], ["protected"], EPSILONS, SPARSITIES),
    *product(["high", "uniform"], ["500x50"], ["laplace"], ["protected"], [1.0, 3.0], [0.5, 0.9]),
    *product(["low"], ["2000x200"], ["laplace"], ["protected"], [3.0], SPARSITIES),
    *product(["low"], SMALL, NOISY, KINDS, EPSILONS, SPARSITIES),
    *product(["low"], SMALL, NOISY, KINDS, [2.0, 5.0], [0.8, 0.95]),
    *product(["high", "uniform"], SMALL, NOISY, ["protected"], [1.0, 3.0], [0.5, 0.9]),
    *product(["low", "uniform"], ["500x50"], ["designed"], ["protected"], [1.0, 3.0], [0.5, 0.9]),
)
"""Truths, crowd, mechanism, participation, epsilon and share of NULL answers."""
FIRST_SEEDS, CROWDS = (101, 201), 3
ESTIMATOR = Gaussian(points_per_step=4)


class Row(NamedTuple):
    """One kind of crowd, mechanism and setting, with figures over three crowds."""

    truths: str
    crowd: str
    mechanism: str
    participation: str
    epsilon: float
    sparsity: float
    first_seed: int
    coverage: float
    least: float
    error: float
    constant: float
    expected: float
    width: float
    refused: int


def channel_of(name: str, epsilon: float, participation: Participation) -> Channel:
    """Return the channel of the mechanism of this name; quantized response has the cuts 3 and 6."""
    if name == "designed":
        truths = np.linspace(0, 9, 37)
        answers = normal_answer_probabilities(truths, np.array([1.0]), SCALE.values, 1.0)
        objective = DesignObjective(
            alphabet=SCALE, prior=np.full(37, 1 / 37), worker_model=answers, participation_rate=0.5
        )
        return design_channel(objective, epsilon)
    if name == "randomized-response":
        return RandomizedResponse(alphabet=SCALE, epsilon=epsilon, participation=participation).channel()
    if name == "quantized-response":
        return QuantizedResponse(alphabet=SCALE, epsilon=epsilon, participation=participation, cuts=(3, 6)).channel()
    null_value: float | Literal["uniform"] = 0.0 if name == "laplace to 0" else "uniform"
    return Laplace(alphabet=SCALE, epsilon=epsilon, participation=participation, null_value=null_value).channel()


def figures(
    truths: str, size: str, name: str, participation: Participation, epsilon: float, sparsity: float, seed: int
) -> tuple[float, ...]:
    """Return coverage, error, error of the best constant, expected error, width, and 1 if not identified."""
    workers, tasks = SIZES[size]
    source = seeded(seed)
    crowd = numeric_crowd(workers=workers, tasks=tasks, sparsity=sparsity, truth=TRUTHS[truths], source=source)
    channel = channel_of(name, epsilon, participation)
    found = ESTIMATOR.fit(perturb_cells(crowd.answers, channel, seeded(1000 + seed)), channel=channel)
    known = np.isfinite(found.truth)
    inside = (found.low <= crowd.truth) & (crowd.truth <= found.high)
    error = np.abs(found.truth - crowd.truth)[known].mean()
    constant = np.abs(crowd.truth - np.median(crowd.truth)).mean()
    width, expected = (found.high - found.low)[known].mean(), found.baseline.estimate_error
    return tuple(
        map(float, (inside[known].mean(), error, constant, expected, width, not found.intervals_narrower_than_scale))
    )


def rows(plan: tuple[tuple[str, str, str, Participation, float, float], ...]) -> Iterator[Row]:
    """Yield the figures of each setting and first seed."""
    for setting, first in product(plan, FIRST_SEEDS):
        found = np.array([figures(*setting, first + crowd) for crowd in range(CROWDS)])
        coverage, error, constant, expected, width, refused = found.mean(axis=0).round(3).tolist()
        least = float(found[:, 0].min().round(3))
        yield Row(*setting, first, coverage, least, error, constant, expected, width, round(refused * CROWDS))


if __name__ == "__main__":
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, rows(PLAN))
