"""Measured errors of Algorithm 1 beside the bounds of Theorems 2, 3 and 5."""

from collections.abc import Callable

import numpy as np
from experiments.papers.exhibit import Configuration, Row, seed_of_point, standard_error
from experiments.papers.sun2018.accuracy import ALGORITHM_1, SEED_OF_REPORTS
from experiments.papers.sun2018.crowds import SunCrowd
from experiments.papers.sun2018.published import send

from crowdveil import Reports, Scale
from crowdveil.randomness import seeded
from crowdveil.simulate import numeric_crowd

SCALE = Scale(0, 9)


def equal_workers(workers: int, tasks: int, rate: float, seed: int, truth: float = 0.0) -> SunCrowd:
    """Return workers with sigma 1 who answer a share `rate` of the tasks, all with one truth."""
    crowd = numeric_crowd(
        workers=workers, tasks=tasks, sparsity=1 - rate, truth=lambda _, n: np.full(n, truth), sigmas=(1.0,),
        source=seeded(seed),
    )  # fmt: skip
    return SunCrowd(crowd.answers, crowd.truth, (truth, 1.0))


def lone_worker(tasks: int, truth: float) -> SunCrowd:
    """Return one worker who answered the first of many tasks."""
    names = np.arange(1, tasks + 1), np.array([1])
    answers = Reports(np.array([0]), np.array([0]), np.array([int(truth)]), *names, SCALE)
    return SunCrowd(answers, np.full(tasks, truth), (truth, 1.0))


def seeds_of(configuration: Configuration) -> range:
    """Return the seeds of the crowds of one point; no two points share one."""
    first = seed_of_point(configuration["seed"], configuration["claimed_epsilon"], configuration.get("rate", 0.0))
    return range(first, first + configuration["repeats"])


def measured(
    configuration: Configuration, crowd: Callable[[int], SunCrowd], bound: Callable[[SunCrowd], float], constant: float
) -> list[Row]:
    """Return the row of one case.

    Args:
        configuration: names mechanism, case, epsilon, repeats and seed.
        crowd: the crowd of a seed.
        bound: the theorem's bound for a crowd.
        constant: best public constant; its error is measured.
    """
    figures, seeds = [], seeds_of(configuration)
    for seed in seeds:
        one = crowd(seed)
        sent = send(one, configuration, seed + SEED_OF_REPORTS)
        unprotected = one.error(ALGORITHM_1.fit(one.answers).truth)
        error = one.error(ALGORITHM_1.fit(sent.reports).truth)
        figures.append((bound(one), error, unprotected, sent.exact, float(np.abs(one.truth - constant).mean())))
    mean = np.mean(figures, axis=0).tolist()
    answers = crowd(seeds[0]).answers
    return [{
        "mechanism": f"{configuration['mechanism']} as printed", "inference": "Algorithm 1",
        "case": configuration["case"], "workers": len(answers.workers), "tasks": len(answers.tasks),
        "participation_rate": len(answers) / (len(answers.workers) * len(answers.tasks)),
        "claimed_epsilon": configuration["claimed_epsilon"], "exact_epsilon": mean[3], "bound": mean[0],
        "error": mean[1], "constant": mean[4], "unprotected": mean[2], "repeats": len(seeds),
        "standard_error": standard_error([figure[1] for figure in figures]),
    }]  # fmt: skip


def exceeds(row: Row) -> bool:
    """Return whether the measured error exceeds the bound by more than five standard errors."""
    return row["error"] - 5 * row["standard_error"] > row["bound"]
