"""Replay: start with a few random answers per task, buy held-out answers in batches, score the default after each.

Policies: `uniform` buys random held-out answers, `balanced` those to the tasks with the fewest answers, `next` the
pairs of `planning.next_answers`, among the cells that the data set has an answer for. Run from the root of the project:
    python -m experiments.next_answers [NAME ...]
"""

import sys

import numpy as np
from numpy.typing import NDArray

from crowdveil.data import datasets
from crowdveil.data.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.estimators import HierarchicalDawidSkene
from crowdveil.evaluation.metrics import accuracy
from crowdveil.planning.next_answers import CrowdState, next_answers

SETS = {"bluebird": 3, "dog": 2, "snow_rte": 2, "web_zhou": 2, "d_possent": 5, "duchenne": 3, "d_product": 2}
"""Answers per task at the start."""
POLICIES = ("uniform", "balanced", "next")
BATCHES, SEEDS, BATCH_SHARE = 4, 5, 0.1
"""Batches, repetitions, and answers of a batch as a share of all answers."""
METHOD = HierarchicalDawidSkene()


def part(answers: Reports, kept: NDArray[np.bool_]) -> Reports:
    """Return some of the answers, over the same tasks and workers."""
    columns = answers.task[kept], answers.worker[kept], answers.value[kept]
    return Reports(*columns, answers.tasks, answers.workers, answers.alphabet)


def bought(answers: Reports, have: NDArray[np.bool_], fit: Estimate, size: int) -> NDArray[np.int64]:
    """Return the rows that `next` buys: cells without a held-out answer count as asked."""
    workers = len(answers.workers)
    cell = answers.task.astype(np.int64) * workers + answers.worker
    closed = np.ones(len(answers.tasks) * workers, dtype=bool)
    closed[cell[~have]] = False
    task, worker = np.divmod(np.flatnonzero(closed), workers)
    asked = Reports(task.astype(np.int32), worker.astype(np.int32), np.zeros(len(task)), answers.tasks, answers.workers)
    state = CrowdState(
        posterior=fit.posterior,
        reports=np.asarray(fit.reports_per_task, dtype=float),
        likelihood=fit.workers.confusion,
        error_correlation=METHOD.error_correlation,
    )
    chosen = next_answers(state, asked, budget=size)
    return np.flatnonzero(np.isin(cell, chosen.task * workers + chosen.worker))


def replay(name: str, policy: str, seed: int) -> list[float]:
    """Return the accuracy before the first batch and after each."""
    data = datasets.load(name, duplicates="first")
    answers, source = data.answers, np.random.default_rng(seed)
    order = np.lexsort((source.random(len(answers)), answers.task))
    place = np.arange(len(answers)) - np.repeat(np.cumsum(answers.per_task) - answers.per_task, answers.per_task)
    have = np.empty(len(answers), dtype=bool)
    have[order] = place < SETS[name]
    fit = METHOD.fit(part(answers, have))
    found = [accuracy(fit, data.gold)]
    for _ in range(BATCHES):
        left, size = np.flatnonzero(~have), int(BATCH_SHARE * len(answers))
        if policy == "next":
            rows = bought(answers, have, fit, size)
        else:
            counts = fit.reports_per_task[answers.task[left]] if policy == "balanced" else np.zeros(len(left))
            rows = left[np.lexsort((source.random(len(left)), counts))[:size]]
        have[rows] = True
        missing = size - len(rows)
        if missing > 0:  # A batch of `next` has one answer per task; the rest is bought uniformly.
            have[source.permutation(np.flatnonzero(~have))[:missing]] = True
        fit = METHOD.fit(part(answers, have))
        found.append(accuracy(fit, data.gold))
    return found


if __name__ == "__main__":
    print("| data set | answers per task at the start | start |", *(f"{policy} |" for policy in POLICIES))
    for name in sys.argv[1:] or SETS:
        scores = {policy: np.array([replay(name, policy, seed) for seed in range(SEEDS)]) for policy in POLICIES}
        cells = [
            f"{table[:, 1:].mean():.3f} ± {table[:, 1:].mean(axis=1).std() / SEEDS**0.5:.3f} |"
            for table in scores.values()
        ]
        print(f"| {name} | {SETS[name]} | {scores['next'][:, 0].mean():.3f} |", *cells, flush=True)
