"""Simulation of the reports of NULL cells, against one random draw per cell in numpy.

    python -m benchmarks.perturbation --cells 100000000

The peer draws one uniform number per cell, a million at a time, and a label for each report. The upper limit draws one
exponential number per report and nothing else.
"""

import argparse
import math
from collections.abc import Callable

import numpy as np
from benchmarks.harness import compare, peak_megabytes, print_own_peak, table

from crowdveil import Categories, RandomizedResponse, Reports
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_reports

PEER = "one draw per cell, numpy"
LABELS = Categories(("no", "yes"))
TASKS = 1000
CHUNK_CELLS = 1 << 20


def dense(cells: int, epsilon: float) -> list[np.ndarray]:
    """Return task, worker and label of the reports, by one draw per cell."""
    generator = np.random.default_rng(1)
    share, workers = share_sent(epsilon), cells // TASKS
    parts = []
    for first in range(0, cells, CHUNK_CELLS):
        hit = first + np.flatnonzero(generator.random(min(CHUNK_CELLS, cells - first)) < share)
        task, worker = np.divmod(hit, workers)
        label = generator.integers(0, LABELS.size, len(hit))
        parts.append((task.astype(np.int32), worker.astype(np.int32), label.astype(np.int16)))
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def share_sent(epsilon: float) -> float:
    """Return the probability that NULL becomes a label."""
    return LABELS.size / (LABELS.size + math.exp(epsilon))


def contenders(cells: int, epsilon: float) -> dict[str, Callable[[], object]]:
    """Return the contenders, on a crowd without any answer."""
    empty = np.empty(0, dtype=np.int64)
    no_answers = Reports(empty, empty, empty, np.arange(TASKS), np.arange(cells // TASKS), LABELS)
    mechanism = RandomizedResponse(alphabet=LABELS, epsilon=epsilon)
    reports = round(cells * share_sent(epsilon))
    return {
        PEER: lambda: dense(cells, epsilon),
        "one exponential per report (upper limit)": lambda: exponentials(reports),
        "perturb": lambda: perturb_reports(no_answers, mechanism, seeded(1)),
    }


def exponentials(count: int) -> None:
    """Draw exponential numbers into one short array."""
    generator, held = np.random.default_rng(1), np.empty(1 << 15)
    for _ in range(-(-count // len(held))):
        generator.standard_exponential(out=held)


def main() -> None:
    """Print the comparison; with --only, run one contender and print its peak memory."""
    parser = argparse.ArgumentParser(description="Time of simulating reports.")
    parser.add_argument("--cells", type=int, default=10_000_000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[6.0, 4.0, 2.0, 1.0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", metavar="NAME")
    options = parser.parse_args()
    if options.only:
        contenders(options.cells, options.epsilons[0])[options.only]()
        print_own_peak()
        return
    for epsilon in options.epsilons:
        results = compare(contenders(options.cells, epsilon), rounds=options.rounds, peer=PEER)
        words = ["-m", "benchmarks.perturbation", "--cells", str(options.cells), "--epsilons", str(epsilon), "--only"]
        peaks = {name: peak_megabytes([*words, name]) for name in results}
        print(f"{options.cells:,} cells, epsilon {epsilon:g}\n\n{table(results, peaks)}\n")


if __name__ == "__main__":
    main()
