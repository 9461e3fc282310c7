"""Synthetic crowds for benchmarks, drawn from a seed, with integers as identifiers."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LABELS = 5
LEAST_WORKERS = 20
TASKS_AT_ONCE = 1 << 18
"""Tasks whose answers are drawn together; bounds the extra memory."""
COLUMNS = ("task", "worker", "label")


def write_crowd(folder: Path, answers: int, *, labels: int = LABELS, seed: int = 0) -> None:
    """Write columns `task.npy`, `worker.npy` and `label.npy` (int32), rows in random order.

    Ten answers a task and a hundred a worker on average, no cell twice. Abilities are uniform between 0.3 and 0.95,
    errors uniform over the other labels.

    Args:
        folder: that exists.
        answers: how many rows, at least 100.
        labels: how many kinds.
        seed: of everything that is drawn.
    """
    generator = np.random.default_rng(seed)
    tasks, workers = answers // 10, max(answers // 100, LEAST_WORKERS)
    truth = generator.integers(0, labels, tasks, dtype=np.int32)
    ability = generator.uniform(0.3, 0.95, workers)
    parts = []
    for first in range(0, tasks, TASKS_AT_ONCE):
        mine = min(TASKS_AT_ONCE, tasks - first)
        task, worker = _cells(generator, mine, workers, answers * (first + mine) // tasks - answers * first // tasks)
        task += first
        wrong = (truth[task] + generator.integers(1, labels, len(task), dtype=np.int32)) % labels
        parts.append((task, worker, np.where(generator.random(len(task)) < ability[worker], truth[task], wrong)))
    for name, pieces in zip(COLUMNS, zip(*parts, strict=True), strict=True):
        column = np.concatenate(pieces)
        np.random.default_rng(seed).shuffle(column)  # the same seed moves all columns alike
        np.save(folder / f"{name}.npy", column)


def _cells(
    generator: np.random.Generator, tasks: int, workers: int, draws: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    cells = generator.choice(tasks * workers, draws, replace=False, shuffle=False)
    task = cells // workers
    return task.astype(np.int32), (cells - task * workers).astype(np.int32)
