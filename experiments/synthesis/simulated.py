"""Error of the private methods on a known density: half N(-1, .6), half N(2, .9), bounds -4 .. 6 and ten times as wide.

Mean integrated squared error over tasks, against the true density. Usage: python -m experiments.synthesis.simulated
[--tasks N] [--seed N]. The number of bins, the budget of range selection and its penalty were tuned on this density.
"""

import argparse
import math

import numpy as np
from experiments.synthesis.density_error import (
    DensityCurve,
    basic_release,
    histogram_curve,
    integrated_squared_error,
    kernel_curve,
)
from numpy.typing import NDArray

from crowdveil.randomness import seeded
from crowdveil.synthesis.claims import Claims, scale_claims
from crowdveil.synthesis.discrete_noise import floor_epsilon
from crowdveil.synthesis.huai2019.kernel_density import Bandwidth, GaussianKernel, WeightedKernelDensity
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.histogram_density import HistogramDensities
from crowdveil.synthesis.private.noisy_counts import NoisyCounter
from crowdveil.synthesis.private.pooled_shape import PooledShape

Floats = NDArray[np.float64]
PARTS = ((0.5, -1.0, 0.6), (0.5, 2.0, 0.9))
SIZES, EPSILONS = (30, 100, 1000), (0.5, 1.0, 2.0, 5.0)


def truth(points: Floats) -> Floats:
    """Return the true density."""
    return sum(w * np.exp(-(((points - m) / s) ** 2) / 2) / (s * math.sqrt(2 * math.pi)) for w, m, s in PARTS)


TRUTH = DensityCurve(truth, np.linspace(-8, 12, 401))


def crowd(tasks: int, each: int, bounds: tuple[float, float], seed: int) -> Claims:
    """Return claims drawn from the truth."""
    random = np.random.default_rng(seed)
    part = (random.random(tasks * each) < 0.5).astype(int)
    value = random.normal(np.array([m for _, m, _ in PARTS])[part], np.array([s for _, _, s in PARTS])[part])
    task, worker = np.repeat(np.arange(tasks), each), np.tile(np.arange(each), tasks)
    return Claims.from_arrays(task, worker, value, bounds=bounds, outside="clip", tasks=range(tasks))


def kernel_error(claims: Claims, value: Floats, pointers: NDArray[np.int64]) -> float:
    """Return the mean error of kernel densities of some numbers, with the bandwidths of the originals."""
    width = Bandwidth().for_tasks(claims)
    errors = []
    for task in range(len(claims.tasks)):
        mine = value[pointers[task] : pointers[task + 1]]
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
    counter = NoisyCounter(epsilon=floor_epsilon(epsilon), bins=12, select_range=False)
    used = np.ones(len(claims), dtype=bool)
    counts = counter.count(scale_claims(claims, rows, used), claims.per_task.astype(float), seeded(seed)).counts
    counts = np.where(counts > float(counter.scale), counts, 0.0)
    counts[counts.sum(axis=1) == 0] = 1.0
    mass = counts / counts.sum(axis=1, keepdims=True)
    edge = np.zeros((len(rows), 1))
    ends = {"low": claims.low, "high": claims.high, "range_low": claims.low, "range_high": claims.high}
    return steps_error(HistogramDensities(task=rows, mass=np.concatenate((edge, mass, edge), axis=1), **ends))


def main(tasks: int, seed: int, sizes: list[int]) -> None:
    """Print one row per size and epsilon."""
    for bounds in ((-4.0, 6.0), (-45.0, 55.0)):
        print(
            f"bounds {bounds}, {tasks} tasks; ISE of the best constant (flat): {1 / (bounds[1] - bounds[0]):.3f} less"
        )
        for each in sizes:
            claims = crowd(tasks, each, bounds, seed)
            random = np.random.default_rng(seed + 1)
            clean = kernel_error(claims, claims.value, claims.pointers)
            some = np.concatenate([random.choice(claims.of_task(k), 30) for k in range(tasks)])
            some = some + random.normal(size=len(some)) * np.repeat(Bandwidth().for_tasks(claims), 30)
            sampled = kernel_error(claims, some, np.arange(tasks + 1) * 30)
            print(f"n={each}: kernel density {clean:.4f}, 30 records of it, no privacy {sampled:.4f}")
            for epsilon in EPSILONS:
                row = [plain_histogram(claims, epsilon, seed)]
                for method in (
                    Histogram(epsilon=epsilon),
                    Histogram(epsilon=epsilon, participation="protected", expected_claims=each),
                    Histogram(epsilon=epsilon, select_range=True),
                    PooledShape(epsilon=epsilon),
                ):
                    row.append(steps_error(method.private_densities(claims, seeded(seed))[0]))
                made = Histogram(epsilon=epsilon).release(claims, seeded(seed))
                row.append(kernel_error(claims, made.value, np.arange(tasks + 1) * 30))
                noisy = basic_release(claims, epsilon, seeded(seed))
                row.append(kernel_error(claims, noisy.value, claims.pointers))
                print(f"  epsilon {epsilon}: " + " ".join(f"{error:.4f}" for error in row), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="claims per task")
    chosen = parser.parse_args()
    print(
        "columns: plain noisy histogram | histogram | protected participation | range selection | pooled shape | "
        "30 records | Basic"
    )
    main(chosen.tasks, chosen.seed, chosen.sizes)
