"""Processor time of `infer` by the default method for labels on simulated answers, one thread, best of some runs.

`python -m benchmarks.default_method --answers 1000000`: workers of abilities .5 to .95, five answers a task. Rows:
labels, workers, share of workers who repeat one label, share of the frequent truth.
"""

import argparse
import os
import time

import numpy as np

from crowdveil import Categories, Reports, infer

CROWDS = ((5, 10_000, 0.0, 0.25), (2, 10_000, 0.0, 0.55), (2, 10_000, 0.0, 0.85), (3, 10_000, 0.4, 0.4))


def crowd(answers: int, labels: int, workers: int, repeating: float, frequent: float) -> Reports:
    """Return five answers a task of random workers."""
    rng, tasks = np.random.default_rng(0), answers // 5
    shares = np.append(frequent, np.full(labels - 1, (1 - frequent) / (labels - 1)))
    truth, ability = rng.choice(labels, tasks, p=shares), rng.uniform(0.5, 0.95, workers)
    worker = np.sort(rng.integers(0, workers, (tasks, 5)), axis=1).ravel()
    task = np.repeat(np.arange(tasks), 5)
    other = (truth[task] + rng.integers(1, labels, len(task))) % labels
    label = np.where(rng.random(len(task)) < ability[worker], truth[task], other)
    label[worker < repeating * workers] = 0
    once = np.append(True, (np.diff(task) > 0) | (np.diff(worker) > 0))
    codes = task[once].astype(np.int32), worker[once].astype(np.int32), label[once].astype(np.int16)
    names = Categories(tuple(f"label{k}" for k in range(labels)))
    return Reports(*codes, np.arange(tasks), np.arange(workers), names)


def main() -> None:
    """Print one row for each crowd."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    os.environ["CROWDVEIL_THREADS"] = "1"
    print("| labels | workers | repeating | frequent | seconds |\n|---|---|---|---|---|")
    for settings in CROWDS:
        reports, seconds = crowd(given.answers, *settings), []
        for _ in range(given.runs + 1):
            begin = time.process_time()
            infer(reports)
            seconds.append(time.process_time() - begin)
        print("| " + " | ".join(map(str, (*settings, round(min(seconds), 3)))) + " |", flush=True)


if __name__ == "__main__":
    main()
