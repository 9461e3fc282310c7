"""EM step of each compiled kernel in one thread, against numpy and the memory bandwidth.

`python -m benchmarks.em_steps --answers 10000000`: ten answers a task, a hundred a worker, in the order of tasks.
Processor time, medians over rounds, ratios within a round.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from crowdveil.answers.reports import Block
from crowdveil.em.kernels.dispatch import encoded_block_for_kernels, reports_per_reproducible_block
from crowdveil.em.kernels.numpy_backend import EncodedBlock, ScoreTables, largest_change

READ = 1 << 25
"""Doubles read to measure the bandwidth: 256 MB, more than any cache."""


def blocks(answers: int, workers: int, labels: int, cells: int, *, tails: bool) -> list[Block]:
    """Return random answers in blocks of the size of a fit; real numbers if `labels` is 0.

    With tails, one worker gives a tenth of all answers, and one task of each block gets a hundredth of its answers.
    """
    rng = np.random.default_rng(0)
    size = reports_per_reproducible_block(answers, cells, compiled=True)
    made = []
    for first in range(0, answers, size):
        held = min(size, answers - first)
        tasks = max(held // 10, 1)
        task, worker = rng.integers(0, tasks, held), rng.integers(0, workers, held, dtype=np.int32)
        if tails:
            task[: held // 100], worker[rng.random(held) < 0.1] = 0, 0
        pointers = np.concatenate(([0], np.cumsum(np.bincount(task, minlength=tasks))))
        value = rng.integers(0, labels, held, dtype=np.int16) if labels else rng.normal(size=held)
        made.append(Block(0, tasks, pointers, worker, value))
    return made


def steps(labels: int, workers: int, coded: list[EncodedBlock], kind: str) -> Callable[[], None]:
    """Return the E-step over all blocks: new posteriors, their sums, and the largest change."""
    rng = np.random.default_rng(1)
    before: list[Any] = [None] * len(coded)
    unknown: Any = [np.full(one.block.tasks, -1) for one in coded]
    weight = rng.uniform(0.5, 2.0, workers)
    if kind == "mean":
        unknown = [np.full(len(gold), np.nan) for gold in unknown]
    first, tables = np.zeros(labels), ScoreTables(rng.normal(size=(workers * labels, labels)), np.zeros((1, labels)))
    groups = [np.zeros(len(gold), dtype=int) for gold in unknown]

    def step() -> None:
        for at, (one, group, gold, old) in enumerate(zip(coded, groups, unknown, before, strict=True)):
            if kind == "mean":
                found: Any = one.reduce_weighted_means(weight, 1e-12, gold, old)
            elif kind == "coin":
                found = one.one_coin_step(weight, first, gold, old)
            else:
                found = one.confusion_step(tables, group, gold, old)
            if old is not None and found.change is None:
                largest_change(found[0], old)
            before[at] = found[0]

    return step


def seconds(work: Callable[[], Any]) -> float:
    """Return the processor time of one call."""
    begin = time.thread_time()
    work()
    return time.thread_time() - begin


def measure(name: str, answers: int, labels: int, kind: str, given: argparse.Namespace) -> str:
    """Return one row of the table."""
    workers = min(max(answers // 100, 10), 10**6)
    cells = workers * labels**2 if kind == "tables" else workers
    made = blocks(answers, workers, labels, cells, tails=name.endswith("tails"))
    fast = steps(
        labels, workers, [encoded_block_for_kernels(one, workers, labels, compiled=True) for one in made], kind
    )
    plain = steps(
        labels, workers, [encoded_block_for_kernels(one, workers, labels, compiled=False) for one in made], kind
    )
    bandwidth = np.ones(READ)
    fast()
    fast()
    contenders: list[Callable[[], Any]] = [fast, bandwidth.sum]
    if answers <= given.plain_up_to:
        contenders.append(plain)
    rounds = [[seconds(one) for one in contenders] for _ in range(given.rounds)]
    speed = statistics.median(READ * 8 / one[1] for one in rounds)
    share = statistics.median((12 if kind == "mean" else 4) * answers / one[0] / (READ * 8 / one[1]) for one in rounds)
    times = f"{statistics.median(one[2] / one[0] for one in rounds):.1f}" if len(contenders) > 2 else ""
    step = statistics.median(one[0] for one in rounds)
    per_answer = f"{step * 1e3:.3g} | {step / answers * 1e9:.3g}"
    return f"| {name} | {answers:.0e} | {per_answer} | {times} | {share:.1%} | {speed / 1e9:.1f} |"


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", nargs="+", type=float, default=[1e5, 1e6])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plain-up-to", type=float, default=1e7)
    parser.add_argument(
        "--kernels", nargs="+", default=["coin 2", "coin 5", "tables 5", "mean 0", "coin 5 tails", "tables 5 tails"]
    )
    given = parser.parse_args()
    print("| kernel | answers | ms a step | ns an answer | numpy / compiled | share of bandwidth | GB/s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in given.kernels:
        kind, labels = name.split()[:2]
        for answers in given.answers:
            print(measure(name, int(answers), int(labels), kind, given), flush=True)
    print(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
