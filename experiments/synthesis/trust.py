"""Accuracy with worker weights: none, learned within the budget, and known.

400 workers, half of them N(truth, 1.5), half N(truth, 6). Mean integrated squared error of `Histogram` over 150 tasks
with bounds 0 .. 40, against the density of the reliable half and against that of all.
Usage: python -m experiments.synthesis.trust
"""

import math

import numpy as np
from experiments.synthesis.density_error import DensityCurve, histogram_curve, integrated_squared_error
from numpy.typing import NDArray

from crowdveil.randomness import seeded
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.private.histogram import Histogram

TASKS, WORKERS, SIGMAS = 150, 400, (1.5, 6.0)
BREAKS = np.linspace(-20, 60, 401)


def mixture(centre: float, weights: tuple[float, float]) -> DensityCurve:
    """Return the density of claims on a task whose truth is `centre`."""

    def at(points: NDArray[np.float64]) -> NDArray[np.float64]:
        return sum(
            w * np.exp(-(((points - centre) / s) ** 2) / 2) / (s * math.sqrt(2 * math.pi))
            for w, s in zip(weights, SIGMAS, strict=True)
        )

    return DensityCurve(at, BREAKS)


def crowd(each: int, seed: int) -> tuple[Claims, NDArray[np.float64]]:
    """Return claims of `each` random workers per task, and the truths."""
    random = np.random.default_rng(seed)
    truth = random.uniform(8, 32, TASKS)
    worker = np.concatenate([random.choice(WORKERS, each, replace=False) for _ in range(TASKS)])
    task = np.repeat(np.arange(TASKS), each)
    value = truth[task] + random.normal(size=len(task)) * np.array(SIGMAS)[worker % 2]
    return Claims.from_arrays(task, worker, value, bounds=(0, 40), outside="clip", workers=np.arange(WORKERS)), truth


def main() -> None:
    """Print one row per size and epsilon: error against the reliable half / against all."""
    known = {str(number): 1 / 16 for number in range(1, WORKERS, 2)}
    print("| claims a task | epsilon | equal weights | learned | known |\n| --- | --- | --- | --- | --- |")
    for each in (40, 200):
        claims, truth = crowd(each, 5)
        for epsilon in (0.5, 1.0, 2.0, 5.0):
            row = []
            modes = (
                Histogram(epsilon=epsilon),
                Histogram(epsilon=epsilon, learn_weights=True),
                Histogram(epsilon=epsilon, weights=known),
            )
            for method in modes:
                found, _ = method.private_densities(claims, seeded(1))
                errors = [
                    float(
                        np.mean(
                            [
                                integrated_squared_error(histogram_curve(found, k), mixture(truth[k], w))
                                for k in range(TASKS)
                            ]
                        )
                    )
                    for w in ((1.0, 0.0), (0.5, 0.5))
                ]
                row.append(f"{errors[0]:.4f} / {errors[1]:.4f}")
            print(f"| {each} | {epsilon} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
