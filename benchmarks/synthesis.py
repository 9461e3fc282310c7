"""Seconds of the whole pipeline, from columns in memory to synthetic records, by release method, for growing crowds.

Usage: python -m benchmarks.synthesis [CLAIMS ...]   (default 10000 30000 100000 300000 1000000)
Ten claims a task and twenty a worker on average, 30 records a task; one claim in twenty is absurd. Secure randomness.
One process; every time is one run.
"""

import sys
import time

import numpy as np

from crowdveil.randomness import secure
from crowdveil.synthesis.original_claims import Claims
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.pooled_shape import PooledShape

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
METHODS = (
    Histogram(epsilon=1.0),
    PooledShape(epsilon=2.0),
)
RECORDS = (1, 10, 30, 100)


def columns(claims: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return columns task, worker and value."""
    random = np.random.default_rng(1)
    tasks, workers = claims // 10, claims // 20
    task, worker = random.integers(0, tasks, claims), random.integers(0, workers, claims)
    spread = random.lognormal(0, 0.7, workers)[worker]
    absurd = (random.random(claims) < 0.05) * random.normal(0, 50, claims)
    return task, worker, random.normal(0, 10, tasks)[task] + random.normal(size=claims) * spread + absurd


def seconds(given: tuple[np.ndarray, ...], method: Histogram | PooledShape) -> tuple[float, int]:
    """Return the time of one run and the number of records."""
    start = time.perf_counter()
    claims = Claims.from_arrays(*given, bounds=(-100, 100), outside="clip", duplicates="first")
    made = method.release(claims, secure())
    return time.perf_counter() - start, len(made)


def main(sizes: tuple[int, ...]) -> None:
    """Print the growth with claims, then with records at the smallest size of at least 100,000."""
    names = ["histogram", "histogram, range selection", "pooled-shape"]
    print("| claims | " + " | ".join(names) + " |\n| --- |" + " --- |" * len(names))
    for size in sizes:
        given = columns(size)
        row = [f"{seconds(given, method)[0]:.2f} s" for method in METHODS]
        print(f"| {size:,} | " + " | ".join(row) + " |", flush=True)
    given = columns(next((size for size in sizes if size >= 100_000), sizes[-1]))
    print("\n| records a task | histogram | pooled-shape |\n| --- | --- | --- |")
    for records in RECORDS:
        histogram, pooled = Histogram(epsilon=1.0, records=records), PooledShape(epsilon=2.0, records=records)
        row = [f"{seconds(given, method)[0]:.2f} s" for method in (histogram, pooled)]
        print(f"| {records} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main(tuple(int(float(text)) for text in sys.argv[1:]) or SIZES)
