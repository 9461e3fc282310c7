"""Abilities that differ by task: experts are drawn anew for each group of tasks, from one group to one per task."""

import math

import numpy as np
from experiments.papers.exhibit import Configuration, Figure, Row, Verdict
from experiments.papers.wang2018.dense_crowd import (
    ITERATIONS,
    DenseCrowd,
    channel_projection,
    default_inference,
    draw_crowd,
    known_abilities,
    majority_vote,
    private_dawid_skene,
)
from experiments.papers.wang2018.line_chart import draw_lines, legend_below, numbers, panels
from experiments.papers.wang2018.theorem4 import vote_error
from experiments.theory.task_limits import known_accuracy_error_bound
from numpy.typing import NDArray

WORKERS, EXPERTS = 100, 20
LARGEST_FIT = 1_000_000
"""Cells from which the default inference is not run."""


def measure(configuration: Configuration) -> list[Row]:
    """Return mean errors; every group of tasks has its own `EXPERTS` perfect workers, the others guess."""
    epsilon, tasks = numbers(configuration, "epsilon"), int(numbers(configuration, "tasks"))
    groups, repeats = int(numbers(configuration, "groups")), int(numbers(configuration, "repeats"))
    generator = np.random.default_rng([int(numbers(configuration, "seed")), groups, tasks, round(1000 * epsilon)])
    runs = np.array([errors_of_run(groups, tasks, epsilon, generator) for _ in range(repeats)])
    error, by_group, vote, known, default, clean, constant, bound = (float(number) for number in runs.mean(axis=0))
    return [
        {
            "mechanism": "randomized-response, public participation",
            "workers": WORKERS,
            "tasks": tasks,
            "experts": EXPERTS,
            "claimed_epsilon": epsilon,
            "exact_epsilon": epsilon,
            "exact_epsilon_worker": tasks * epsilon,
            "groups": groups,
            "error": error,
            "standard_error": float(runs[:, 0].std(ddof=1) / math.sqrt(repeats)),
            "error_by_group": by_group,
            "vote": vote,
            "vote_exact": vote_error(WORKERS, EXPERTS, 1 / (1 + math.exp(-epsilon))),
            "known_abilities": known,
            "known_abilities_bound": bound,
            "default_inference": default,
            "unprotected": clean,
            "constant": constant,
            "repeats": repeats,
        }
    ]


def errors_of_run(groups: int, tasks: int, epsilon: float, generator: np.random.Generator) -> list[float]:
    """Return the errors of the methods, and the bound for known abilities."""
    order = generator.permuted(np.tile(np.arange(WORKERS)[:, None], groups), axis=0)
    group = np.arange(tasks) * groups // tasks
    crowd = draw_crowd(np.where(order < EXPERTS, 1.0, 0.5)[:, group], tasks, epsilon, generator)
    votes, projection = majority_vote(crowd.reports), channel_projection(epsilon)
    fitted, _ = private_dawid_skene(crowd.reports, votes / WORKERS, projection, ITERATIONS)
    clean, _ = private_dawid_skene(crowd.answers, majority_vote(crowd.answers) / WORKERS, 0.001, ITERATIONS)
    default = math.nan if WORKERS * tasks > LARGEST_FIT else crowd.error(default_inference(crowd)[0])
    errors = [
        crowd.error(truths) for truths in (fitted, by_groups(crowd, group, groups), votes, known_abilities(crowd))
    ]
    bound = known_accuracy_error_bound(crowd.report_accuracy)
    return [*errors, default, crowd.error(clean), crowd.constant_error, bound]


def by_groups(crowd: DenseCrowd, group: NDArray[np.intp], groups: int) -> NDArray[np.float64]:
    """Return the truths of Algorithm 1 on each group of tasks by itself."""
    truths = np.empty(len(group))
    for number in range(groups):
        mine = np.flatnonzero(group == number)
        reports = np.ascontiguousarray(crowd.reports[:, mine])
        start = majority_vote(reports) / WORKERS
        truths[mine], _ = private_dawid_skene(reports, start, channel_projection(crowd.epsilon), ITERATIONS)
    return truths


def draw(rows: list[Row], figure: Figure) -> None:
    """Draw the errors against the number of groups."""
    lines = {
        "vote_exact": "vote, exact",
        "error": "Algorithm 1",
        "error_by_group": "Algorithm 1 by group",
        "known_abilities": "known abilities",
        "known_abilities_bound": "bound, known abilities",
    }
    epsilons = sorted({numbers(row, "claimed_epsilon") for row in rows})
    axes = panels(figure, len(epsilons), across=3)
    for epsilon, axis in zip(epsilons, axes, strict=False):
        draw_lines(axis, [row for row in rows if row["claimed_epsilon"] == epsilon], "groups", lines)
        axis.set(ylim=(1e-5, 1), title=f"epsilon {epsilon:g}")
    axes[0].set_ylabel("share of wrong truths")
    legend_below(figure, axes[0])


def verdict(rows: list[Row]) -> Verdict:
    """Return that the advantage over the vote ends where nothing connects the tasks."""
    apart = [row for row in rows if row["groups"] == row["tasks"]]
    same = [row for row in rows if row["groups"] == 1]
    lost = all(
        numbers(row, "error") >= numbers(row, "vote_exact") - 3 * numbers(row, "standard_error") for row in apart
    )
    gained = all(numbers(row, "error") < numbers(row, "vote_exact") / 2 for row in same)
    known = all(numbers(row, "known_abilities") <= numbers(row, "known_abilities_bound") for row in rows)
    grouped = all(
        numbers(row, "error_by_group") <= numbers(row, "error") + 3 * numbers(row, "standard_error")
        for row in rows
        if numbers(row, "tasks") >= 100 * numbers(row, "groups")
    )
    sentence = (
        f"Algorithm 1 makes less than half the errors of the vote if the {EXPERTS} experts of {WORKERS} workers are "
        "the same on all tasks, and not measurably fewer than the vote if every task has other experts, where the "
        "vote is optimal; with known groups of at least 100 tasks it errs no more than on all tasks together."
    )
    return Verdict("reproduced in part", sentence, lost and gained and known and grouped)
