"""Error of the private methods on a known density: half N(-1, .6), half N(2, .9), bounds -4 .. 6.

Mean integrated squared error over tasks, against the true density; `python -m experiments.synthesis.simulated` prints
it. The number of bins was tuned on this density.
"""

import math
from itertools import product

import numpy as np
from experiments.papers.huai2019.algorithm1.kernel_density import Bandwidth, GaussianKernel, WeightedKernelDensity
from experiments.synthesis.density_error import (
    DensityCurve,
    basic_release,
    histogram_curve,
    integrated_squared_error,
    kernel_curve,
)
from numpy.typing import NDArray

from crowdveil.randomness import seeded
from crowdveil.synthesis.discrete_noise import SENSITIVITY, noisy_counts, round_epsilon_down
from crowdveil.synthesis.original_claims import Claims, scaled_claims
from crowdveil.synthesis.private.histogram import Histogram, bin_counts
from crowdveil.synthesis.private.histogram_density import HistogramDensities
from crowdveil.synthesis.private.pooled_shape import PooledShape

Floats = NDArray[np.float64]
PARTS = ((0.5, -1.0, 0.6), (0.5, 2.0, 0.9))
BOUNDS, SIZES, EPSILONS = (-4.0, 6.0), (30, 100, 1000), (0.5, 1.0, 2.0, 5.0)
TASKS, SEED = 200, 11
COLUMNS = ("claims", "epsilon", "plain histogram", "histogram", "pooled-shape", "Laplace noise on every claim")


def truth(points: Floats) -> Floats:
    """Return the true density."""
    parts = [w * np.exp(-(((points - m) / s) ** 2) / 2) / (s * math.sqrt(2 * math.pi)) for w, m, s in PARTS]
    return np.sum(parts, axis=0)


TRUTH = DensityCurve(truth, np.linspace(-8, 12, 401))


def crowd(tasks: int, each: int, seed: int) -> Claims:
    """Return claims drawn from the truth."""
    random = np.random.default_rng(seed)
    part = (random.random(tasks * each) < 0.5).astype(int)
    value = random.normal(np.array([m for _, m, _ in PARTS])[part], np.array([s for _, _, s in PARTS])[part])
    task, worker = np.repeat(np.arange(tasks), each), np.tile(np.arange(each), tasks)
    return Claims.from_arrays(task, worker, value, bounds=BOUNDS, outside="clip", tasks=range(tasks))


def kernel_error(claims: Claims, value: Floats) -> float:
    """Return the mean error of kernel densities of other numbers than those of the claims, with their bandwidths."""
    width = Bandwidth().for_tasks(claims)
    errors = []
    for task in range(len(claims.tasks)):
        mine = value[claims.pointers[task] : claims.pointers[task + 1]]
        density = WeightedKernelDensity(
            value=mine, weight=np.full(len(mine), 1 / len(mine)), bandwidth=width[task], kernel=GaussianKernel()
        )
        errors.append(integrated_squared_error(kernel_curve(density), TRUTH))
    return float(np.mean(errors))


def steps_error(densities: HistogramDensities) -> float:
    """Return the mean error of private densities."""
    return float(
        np.mean([integrated_squared_error(histogram_curve(densities, k), TRUTH) for k in range(len(densities.task))])
    )


def plain_histogram(claims: Claims, epsilon: float, seed: int) -> float:
    """Return the mean error of the simplest private histogram: 12 bins, noise, threshold at its scale, normalise."""
    rows = np.arange(len(claims.tasks))
    exact = bin_counts(scaled_claims(claims, rows, np.ones(len(claims), dtype=bool)), 12)
    counts, _ = noisy_counts(exact, round_epsilon_down(epsilon), seeded(seed))
    counts = np.where(counts > float(SENSITIVITY / round_epsilon_down(epsilon)), counts, 0.0)
    counts[counts.sum(axis=1) == 0] = 1.0
    mass = counts / counts.sum(axis=1, keepdims=True)
    edge = np.zeros((len(rows), 1))
    ends = {"low": claims.low, "high": claims.high, "range_low": claims.low, "range_high": claims.high}
    return steps_error(HistogramDensities(task=rows, mass=np.concatenate((edge, mass, edge), axis=1), **ends))


def row(claims: Claims, epsilon: float) -> list[float]:
    """Return the mean errors in the order of `COLUMNS`."""
    noisy = basic_release(claims, epsilon, seeded(SEED))
    methods = Histogram(epsilon=epsilon), PooledShape(epsilon=epsilon)
    private = [steps_error(method.private_densities(claims, seeded(SEED))[0]) for method in methods]
    return [plain_histogram(claims, epsilon, SEED), *private, kernel_error(claims, noisy.value)]


if __name__ == "__main__":
    print("|", *(f"{column} |" for column in COLUMNS))
    for each, epsilon in product(SIZES, EPSILONS):
        errors = row(crowd(TASKS, each, SEED), epsilon)
        print(f"| {each} | {epsilon:g} |", *(f"{error:.3f} |" for error in errors), flush=True)
