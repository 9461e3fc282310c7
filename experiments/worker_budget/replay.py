"""Error at budgets per worker on real answers, with and without assignment: replays of Duchenne and AdultContent2.

With assignment every worker is asked k of the tasks that the worker answered, at random, and budget / k
goes to each cell: a campaign that asked only these tasks. Without it the budget is divided over all tasks, and NULL
cells are sent too. k is the power of two with the smallest estimated share of wrong truths, by the posterior of the
inference on a first, separate seed: no gold truth chooses it. Errors are against the gold truths.

    python experiments/worker_budget/replay.py > experiments/worker_budget/results/replay.csv
"""

import csv
import sys
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crowdveil import HierarchicalDawidSkene, RandomizedResponse, Reports
from crowdveil.channels.guarantee import Participation
from crowdveil.data import datasets
from crowdveil.mechanisms.budget import mechanism_within_budget
from crowdveil.privacy.budget import cell_epsilon
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_cells

BUDGETS, LOADS, SEEDS, DELTA = (1.0, 2.0, 5.0, 10.0), (1, 2, 4, 8, 16, 32, 64), 5, 1e-6
COLUMNS = "crowd,budget,delta,participation,tasks of a worker,epsilon per cell,error,standard error,constant,seeds"


def assigned(answers: Reports, load: int, seed: int) -> Reports:
    """Return at most `load` answers of every worker, at random."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(answers))
    order = order[np.argsort(answers.worker[order], kind="stable")]
    workers = answers.worker[order]
    place = np.arange(len(order)) - np.searchsorted(workers, workers)
    kept = order[place < load]
    return replace(answers, task=answers.task[kept], worker=answers.worker[kept], value=answers.value[kept])


def error_of(posterior: NDArray[np.float64], truth: NDArray[np.int64]) -> float:
    """Return the share of wrong gold truths, ties split."""
    known = posterior[truth >= 0]
    best = known >= known.max(axis=1, keepdims=True) - 1e-12
    return float(1 - (best[np.arange(len(best)), truth[truth >= 0]] / best.sum(axis=1)).mean())


def epsilon_of(answers: Reports, budget: float, cells: int, delta: float, participation: Participation) -> float:
    """Return the epsilon per cell of a budget."""
    if delta:
        return cell_epsilon(budget, cells, delta, 8.0)
    alphabet = answers.alphabet
    assert alphabet is not None
    return mechanism_within_budget(
        lambda epsilon: RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation=participation),
        budget,
        cells,
        most=8.0,
    ).epsilon


def inferred(answers: Reports, epsilon: float, participation: Participation, seed: int) -> NDArray[np.float64]:
    """Return the posterior through randomized response; asked cells are all answered, so none is NULL."""
    alphabet = answers.alphabet
    assert alphabet is not None
    channel = RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation=participation).channel()
    sent = perturb_cells(answers, channel, seeded(seed))
    return HierarchicalDawidSkene().fit(sent, channel=channel).posterior


def rows_of(name: str) -> None:
    """Print the rows of one crowd."""
    data = datasets.load(name)
    answers, tasks = data.answers, len(data.answers.tasks)
    assert answers.alphabet is not None
    codes = {label: code for code, label in enumerate(answers.alphabet.names)}
    truth = np.array([codes[data.gold[task]] if task in data.gold else -1 for task in answers.tasks.tolist()])
    constant = 1 - np.bincount(truth[truth >= 0]).max() / (truth >= 0).sum()
    writer = csv.writer(sys.stdout, lineterminator="\n")

    def measure(budget: float, delta: float, load: int | None) -> None:
        participation: Participation = "protected" if load is None else "public"
        epsilon = epsilon_of(answers, budget, load or tasks, delta, participation)
        errors = []
        for seed in range(SEEDS if load is not None else 2):
            asked = answers if load is None else assigned(answers, load, 100 + seed)
            errors.append(error_of(inferred(asked, epsilon, participation, 200 + seed), truth))
        spread = np.std(errors, ddof=1) / np.sqrt(len(errors))
        figures = (epsilon, float(np.mean(errors)), float(spread), float(constant))
        asked_tasks = tasks if load is None else load
        writer.writerow([name, budget, delta, participation, asked_tasks, *(f"{x:.4g}" for x in figures), len(errors)])
        sys.stdout.flush()

    for budget in BUDGETS:
        for delta in (0.0, DELTA):
            measure(budget, delta, least_expected(answers, budget, delta))
        measure(budget, 0.0, None)


def least_expected(answers: Reports, budget: float, delta: float) -> int:
    """Return the load with the smallest estimated share of wrong truths, on seeds of its own."""
    expected = {}
    for load in LOADS:
        epsilon = epsilon_of(answers, budget, load, delta, "public")
        posterior = inferred(assigned(answers, load, 0), epsilon, "public", 1)
        expected[load] = float((1 - posterior.max(axis=1)).mean())
    return min(expected, key=lambda load: (expected[load], load))


if __name__ == "__main__":
    print(COLUMNS)
    for crowd in sys.argv[1:] or ("duchenne", "adult2"):
        rows_of(crowd)
