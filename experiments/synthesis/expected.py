"""Expected errors of private releases against actual errors, and the accuracy of the warning against a constant.

Errors of task means in shares of the bounds, for three crowds, both units, two methods. Usage:
python -m experiments.synthesis.expected [--seed N].
"""

import argparse

import numpy as np
from experiments.papers.huai2019.crowds import FLOORPLAN, crowd

from crowdveil.channels.guarantee import Unit
from crowdveil.randomness import seeded
from crowdveil.synthesis.expected_error import more_accurate, release_errors, task_means
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.method import PrivateMethod
from crowdveil.synthesis.private.pooled_shape import PooledShape

UNITS: tuple[Unit, ...] = ("cell", "worker")
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)


def row(name: str, method: PrivateMethod, chosen: bool, seed: int) -> bool:
    """Print one setting and return whether the warning was right."""
    claims = crowd(name, seed)
    release = method.release(claims, seeded(seed))
    count, total = (np.bincount(claims.task, weights=w, minlength=len(claims.tasks)) for w in (None, claims.value))
    with np.errstate(invalid="ignore"):
        truth = (total / count - claims.low) / (claims.high - claims.low)
    made = task_means(release, claims)
    both = np.isfinite(truth) & np.isfinite(made)
    error = float(np.abs(made - truth)[both].mean())
    constant = float(np.abs(truth - np.median(truth[both]))[both].mean())
    said = release_errors(method, claims, release)
    pairs = " | ".join("none" if pair is None else f"{pair.error:.3f} / {pair.constant:.3f}" for pair in said)
    right = (said.warning(1.0) == "") == (error < constant)
    unit = getattr(method, "unit", "cell")
    print(
        f"{name} | {unit} | {getattr(method, 'epsilon', 0):g} | {method.name}{' (chosen)' * chosen} | {pairs} | "
        f"{error:.3f} | {constant:.3f} | {'right' if right else 'wrong'}",
        flush=True,
    )
    return right


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    print("crowd | unit | epsilon | mechanism | truths anywhere | truths as in the records | made | constant | warning")
    found = []
    for name in ("population_cut", "weather_temperature", FLOORPLAN):
        for unit in UNITS:
            for epsilon in EPSILONS:
                modes = Histogram(epsilon=epsilon, unit=unit), PooledShape(epsilon=epsilon, unit=unit)
                best = more_accurate(*modes, crowd(name, seed))
                found += [row(name, method, method is best, seed) for method in modes]
    print(f"right: {sum(found)} of {len(found)}")
