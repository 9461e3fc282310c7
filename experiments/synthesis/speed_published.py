"""Seconds of the whole pipeline of mode published, from arrays to release, for growing crowds and numbers of records.

Usage: python experiments/synthesis/speed_published.py [CLAIMS ...]   (default 100000 1000000)
Made-up crowd: ten claims a task on average, twenty a worker, workers of different spread, one claim in twenty absurd.
"""

import sys
import time

import numpy as np

from crowdveil.randomness import seeded
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.huai2019.methods import HuaiPublished

RECORDS = (1, 10, 30)


def crowd(claims: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return columns task, worker and value."""
    random = np.random.default_rng(1)
    tasks, workers = claims // 10, claims // 20
    task, worker = random.integers(0, tasks, claims), random.integers(0, workers, claims)
    spread = random.lognormal(0, 0.7, workers)[worker]
    absurd = (random.random(claims) < 0.05) * random.normal(0, 50, claims)
    return task, worker, random.normal(0, 10, tasks)[task] + random.normal(size=claims) * spread + absurd


def main(sizes: list[int]) -> None:
    """Print one line per size and number of records."""
    for size in sizes:
        columns = crowd(size)
        for records in RECORDS:
            start = time.perf_counter()
            claims = Claims.from_arrays(*columns, duplicates="first")
            made = HuaiPublished(records=records).release(claims, seeded(1))
            print(f"{size} claims, {records} records a task: {time.perf_counter() - start:.1f} s, {len(made)} released")


if __name__ == "__main__":
    main([int(float(text)) for text in sys.argv[1:]] or [100_000, 1_000_000])
