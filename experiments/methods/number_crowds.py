"""Errors of `student-t` on simulated crowds of numbers by shape, density and kind of workers, and by `worker_prior`.

Truths are N(0, 3^2). Workers are alike (sigma 2), of two classes (half sigma 1, half sigma 5), biased (sigma 2, bias
N(0, 2^2)), heavy-tailed (2 times Student's t with 1.5 degrees of freedom), or biased and of two classes. The bound is
the mean with the true sigmas as weights; where these are equal it is the plain mean. Mean absolute errors over ten
seeds; `--real` prints those on the public sets instead, from the folder CROWDVEIL_DATA, and `--biases` those of biased
crowds and of the public sets without and with fitted biases. Half a minute.

    python experiments/methods/number_crowds.py [--real | --biases]
"""

import argparse
import math
from itertools import product
from typing import Literal
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from crowdveil.data import datasets
from crowdveil.data.reports import Reports
from crowdveil.estimators import StudentT, WeightedMean
from crowdveil.estimators.numeric import student_t

Kind = Literal["alike", "two classes", "biased", "heavy-tailed", "biased, two classes"]
KINDS: tuple[Kind, ...] = ("alike", "two classes", "biased", "heavy-tailed", "biased, two classes")
SHAPES = ((20, 500), (100, 100), (500, 50), (2000, 20))
"""Workers and tasks."""
DENSITIES, SEEDS, BIAS_SEEDS = (0.05, 0.2, 1.0), 10, 60
"""Shares of answered cells, and crowds of each kind; more where the level of biases decides."""
WORKER_PRIORS = (1.0, 10.0, 100.0, 1000.0)
SETS = ("n_emotion", "snow_valence", "weather_temperature", "peer_grading_mooc", "population_tf", "population_cut")
METHODS = {"weighted-mean": WeightedMean(tolerance=1e-4)} | {
    f"student-t, {prior:g}": StudentT(worker_prior=prior) for prior in WORKER_PRIORS
}


def crowd(
    workers: int, tasks: int, density: float, kind: Kind, seed: int
) -> tuple[Reports, NDArray[np.float64], NDArray[np.float64]]:
    """Return answers, the truths, shape (tasks,), and the workers' deviations, shape (workers,)."""
    rng = np.random.default_rng([seed, workers, int(100 * density), KINDS.index(kind)])
    truth = 3 * rng.standard_normal(tasks)
    task, worker = np.nonzero(rng.random((tasks, workers)) < density)
    sigma = rng.permutation(np.resize([1.0, 5.0] if "two classes" in kind else [2.0], workers))
    bias = rng.normal(0, 2, workers) if "biased" in kind else np.zeros(workers)
    error = rng.standard_t(1.5, len(task)) if kind == "heavy-tailed" else rng.standard_normal(len(task))
    value = truth[task] + bias[worker] + sigma[worker] * error
    return (
        Reports.from_arrays(task, worker, value, numeric=True, tasks=range(tasks), workers=range(workers)),
        truth,
        sigma,
    )


def errors(reports: Reports, truth: NDArray[np.float64], sigma: NDArray[np.float64]) -> dict[str, float]:
    """Return the mean absolute errors; a task without answers has the median of the estimates."""
    task, numbers, tasks = reports.task, reports.numbers, np.arange(len(truth))
    precision = 1 / sigma[reports.worker] ** 2
    with np.errstate(invalid="ignore"):
        found = {
            "constant": np.full(len(truth), np.median(truth)),
            "mean": np.bincount(task, numbers, len(truth)) / np.bincount(task, minlength=len(truth)),
            "median": np.array([np.median(numbers[task == j]) if (task == j).any() else np.nan for j in tasks]),
            "known": np.bincount(task, precision * numbers, len(truth)) / np.bincount(task, precision, len(truth)),
        }
    found |= {name: method.fit(reports).posterior for name, method in METHODS.items()}
    return {
        name: float(np.abs(np.where(np.isnan(values), np.nanmedian(values), values) - truth).mean())
        for name, values in found.items()
    }


def errors_by_biases(reports: Reports, truth: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the errors without and with biases, on tasks with answers and a truth; and 1 if biases were fitted."""
    with patch.object(student_t, "LEAST_RATIO", math.inf):
        without = StudentT().fit(reports).posterior
    found = StudentT().fit(reports)
    off, on = (float(np.nanmean(np.abs(values - truth))) for values in (without, found.posterior))
    return off, on, float(found.workers.bias is not None)


def print_biases() -> None:
    """Print errors without and with biases, the change in percent, and the share of crowds with fitted biases."""
    print("| crowd | without | with | change, % | fitted |")
    for (workers, tasks), density, kind in product(SHAPES, DENSITIES, KINDS):
        rows = [errors_by_biases(*crowd(workers, tasks, density, kind, seed)[:2]) for seed in range(BIAS_SEEDS)]
        print_change(f"{workers} x {tasks}, {density:g}, {kind}", *np.mean(rows, axis=0).tolist())
    for name in SETS:
        data = datasets.load(name)
        gold = np.array([data.gold.get(task, np.nan) for task in data.answers.tasks.tolist()], dtype=float)
        print_change(name, *errors_by_biases(data.answers, gold))


def print_change(name: str, off: float, on: float, fitted: float) -> None:
    """Print one row of the table of biases."""
    print(f"| {name} | {off:.4g} | {on:.4g} | {100 * (on / off - 1):+.1f} | {fitted:.1f} |", flush=True)


def real_errors(name: str) -> dict[str, float]:
    """Return the mean absolute errors on the gold tasks of a public set."""
    data = datasets.load(name)
    gold = np.array([data.gold.get(task, np.nan) for task in data.answers.tasks.tolist()], dtype=float)
    return {
        method: float(np.nanmean(np.abs(one.fit(data.answers).posterior - gold))) for method, one in METHODS.items()
    }


def print_row(name: str, found: dict[str, float]) -> None:
    """Print one row of a Markdown table."""
    print(f"| {name} |", *(f"{value:.4g} |" for value in found.values()), flush=True)


def main() -> None:
    """Print one row per crowd or set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--biases", action="store_true")
    given = parser.parse_args()
    if given.biases:
        print_biases()
        return
    if given.real:
        print("| set |", *(f"{method} |" for method in METHODS))
        for name in SETS:
            print_row(name, real_errors(name))
        return
    print("| workers x tasks, density, kind | constant | mean | median | known |", *(f"{name} |" for name in METHODS))
    for (workers, tasks), density, kind in product(SHAPES, DENSITIES, KINDS):
        rows = [errors(*crowd(workers, tasks, density, kind, seed)) for seed in range(SEEDS)]
        mean = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
        print_row(f"{workers} x {tasks}, {density:g}, {kind}", mean)


if __name__ == "__main__":
    main()
