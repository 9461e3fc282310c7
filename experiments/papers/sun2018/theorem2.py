"""Theorem 2: bound on the error of Laplace perturbation, and a crowd of one worker that exceeds it."""

from experiments.papers.exhibit import Configuration, Row, Verdict
from experiments.papers.sun2018.bounds import SCALE, equal_workers, exceeds, lone_worker, measured
from experiments.papers.sun2018.crowds import SunCrowd
from experiments.theory.published_bounds import laplace_cell_error, mean_error_bound

EQUAL, LONE = "equal workers, truths 0", "one worker, one answer, truths 4.5"


def measure(configuration: Configuration) -> list[Row]:
    """Return bound and measured error of one case; NULL becomes a uniform draw, of mean 4.5."""
    workers, tasks, rate = configuration["workers"], configuration["tasks"], configuration["rate"]
    truth = 4.5 if configuration["case"] == LONE else 0.0
    scale = SCALE.size / configuration["claimed_epsilon"]

    def crowd(seed: int) -> SunCrowd:
        return lone_worker(tasks, truth) if truth else equal_workers(workers, tasks, rate, seed)

    def bound(_: SunCrowd) -> float:
        return mean_error_bound(laplace_cell_error([1], [rate], [abs(4.5 - truth)], noise_scale=scale), [1])

    return measured(configuration, crowd, bound, truth)


def verdict(rows: list[Row]) -> Verdict:
    """Return that the bound is loose for equal workers and false for one."""
    equal, (lone,) = [row for row in rows if row["case"] == EQUAL], [row for row in rows if row["case"] == LONE]
    example = next(row for row in equal if row["claimed_epsilon"] == 1 and row["bound"] > 14)
    holds = all(row["error"] < row["bound"] for row in equal) and exceeds(lone) and round(example["bound"], 2) == 14.13
    holds &= all(row["constant"] == 0 for row in equal)
    sentence = (
        f"the example's bound is the printed 14.13, where {example['error']:.2f} is measured (the constant 0: 0); for "
        f"one worker with one answer, NULL drawn uniformly, the error {lone['error']:.2f} exceeds the bound "
        f"{lone['bound']:.2f}."
    )
    return Verdict("reproduced in part", sentence, holds)
