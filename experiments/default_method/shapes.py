"""The default for labels on simulated shapes of crowds: classes, labels, answers, abilities, errors, spammers, copies.

Each cell is 200 tasks of workers with 40 answers each. It prints for each value of each factor the accuracies of the
default, of the default with the usual start only, of the vote, one-coin, Dawid-Skene and the best constant, and the
calibration error of the first two; means of all cells with this value and of `--seeds` crowds a cell.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from crowdveil import Categories, DawidSkene, HierarchicalDawidSkene, MajorityVote, OneCoin, Reports
from crowdveil.estimators import hierarchical_dawid_skene
from crowdveil.evaluation.metrics import score

TASKS, LOAD = 200, 40
FACTORS = {
    "classes": ("even", ".8", ".95", ".99"),
    "labels": (2, 3, 5, 10),
    "answers": (3, 5, 10),
    "known": ((0.6, 0.9), (0.0, 0.9), (0.05, 0.4)),
    "errors": ("alike", "by class"),
    "others": ("none", "30 % spam", "30 % copy one"),
}
"""Share of the frequent class; labels; answers a task; range of the probability that a worker knows the truth, and
guesses otherwise; whether knowledge and guesses differ by class; further workers."""
CELLS = list(product(*FACTORS.values()))

Cell = tuple[str, int, int, tuple[float, float], str, str]


def crowd(cell: Cell, seed: int) -> tuple[Reports, dict[int, str]]:
    """Return the answers and truths of a crowd of this shape."""
    classes, labels, answers, known, errors, others = cell
    rng, workers = np.random.default_rng(seed), max(answers + 2, TASKS * answers // LOAD)
    prior = np.full(labels, 1 / labels)
    if classes != "even":
        prior[:] = (1 - float(classes)) / (labels - 1)
        prior[rng.integers(labels)] = float(classes)
    truth = rng.choice(labels, TASKS, p=prior)
    tables = confusions(rng, rng.uniform(*known, workers), labels, errors == "by class")
    if others == "30 % spam":
        for place, worker in enumerate(np.flatnonzero(rng.random(workers) < 0.3)):
            tables[worker] = 1 / labels if place % 2 else 0.1 / labels + 0.9 * np.eye(labels)[rng.integers(labels)]
    activity = rng.lognormal(0, 0.7, workers)
    order = np.argsort(-np.log(activity) - rng.gumbel(size=(TASKS, workers)), axis=1)
    task, worker = np.repeat(np.arange(TASKS), answers), order[:, :answers].ravel()
    value = drawn(rng, tables[worker, truth[task]])
    if others == "30 % copy one":
        original, copies = rng.integers(workers), rng.random(workers) < 0.3
        copies[original] = True
        value = np.where(copies[worker], drawn(rng, tables[original, truth])[task], value)
    names = Categories(tuple(f"label {label}" for label in range(labels)))
    reports = Reports(task, worker, value, np.arange(TASKS), np.arange(workers), names)
    return reports, {place: names.names[code] for place, code in enumerate(truth)}


def confusions(
    rng: np.random.Generator, known: NDArray[np.float64], labels: int, by_class: bool
) -> NDArray[np.float64]:
    """Return confusion matrices, [worker, truth, label], of workers who know the truth with these probabilities."""
    shape = len(known), labels
    easy = rng.uniform(0.5, 1.4, labels) * rng.uniform(0.8, 1.2, shape) if by_class else np.ones(shape)
    knows = np.minimum(known[:, None] * easy, 0.97)[:, :, None]
    pull = rng.dirichlet(np.ones(labels), labels) if by_class else np.full((labels, labels), 1 / labels)
    return np.asarray(knows * np.eye(labels) + (1 - knows) * (0.5 / labels + 0.5 * pull))


def drawn(rng: np.random.Generator, probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return a label for each row of probabilities."""
    return (rng.random(len(probabilities))[:, None] > probabilities.cumsum(axis=1)[:, :-1]).sum(axis=1)


def figures(number: int, seeds: int) -> NDArray[np.float64]:
    """Return the figures of a cell, in the order of the program's docstring."""
    found = []
    for seed in range(seeds):
        reports, truth = crowd(CELLS[number], seed * len(CELLS) + number)
        with patch.object(hierarchical_dawid_skene, "starts_by_abilities", return_value=False):
            usual = HierarchicalDawidSkene().fit(reports)
        others = [method.fit(reports) for method in (MajorityVote(), OneCoin(), DawidSkene(max_steps=50))]
        scores = [score(one, truth) for one in (HierarchicalDawidSkene().fit(reports), usual, *others)]
        constant = max(map(list(truth.values()).count, set(truth.values()))) / TASKS
        accuracies = [1 - one.error for one in scores]
        found.append([*accuracies, constant, *(one.calibration_error or 0.0 for one in scores[:2])])
    return np.mean(found, axis=0)


def main() -> None:
    """Print a row for each value of each factor, and for all cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    with ProcessPoolExecutor(2) as pool:
        table = np.array(list(pool.map(figures, range(len(CELLS)), [seeds] * len(CELLS), chunksize=8)))
    for place, (factor, values) in enumerate(FACTORS.items()):
        for value in values:
            rows = table[[cell[place] == value for cell in CELLS]]
            print(f"{factor:8} {value!s:14}", *rows.mean(axis=0).round(3))
    gain = table[:, 0] - table[:, 1]
    print(f"{'all':23}", *table.mean(axis=0).round(3))
    print(f"{len(CELLS)} cells: accuracy changes by {gain.min():.3f} to {gain.max():.3f}, {(gain < -0.003).sum()} fall")


if __name__ == "__main__":
    main()
