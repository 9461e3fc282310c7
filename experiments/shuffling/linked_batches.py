"""Error and loss of a worker where k reports of a worker stay together, between no link (k = 1) and whole reports.

Every worker sends one message for each group of k tasks; the groups are public and the same for all workers. The relay
shuffles the messages of a group. `gaussian` reads each message as a worker who is assigned the k tasks; single reports
are read by `pooled-gaussian`. The loss is that of all 200 tasks at delta 1e-6, composed over the groups, participation
protected; above 5 linked reports it is the local one.

    python -m experiments.shuffling.linked_batches > experiments/shuffling/results/linked_batches.csv
"""

import argparse
import csv
import sys
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields, replace

import numpy as np
from experiments.shuffling.trust_models import DELTA, TASKS, WORKERS, Case, channel_of, sun, unlinked

from crowdveil import Reports
from crowdveil.channels.channel import Channel
from crowdveil.data.assignment import Assignment
from crowdveil.privacy.loss_distribution import channel_profile, composed_epsilon
from crowdveil.privacy.shuffling import ShuffledCells, shuffled_worker
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_cells

EPSILON = 3.0
LINKED = (1, 2, 5, 20, 200)
MOST_LINKED = 5
"""Linked reports above which shuffling gains nothing at this epsilon."""


@dataclass(frozen=True, slots=True)
class Row:
    """One point: mean absolute error over the seeds, that of the best constant, and the loss of a worker."""

    crowd: str
    local_epsilon: float
    linked: int
    worker_epsilon: float
    error: float
    constant: float
    seeds: int


def messages(reports: Reports, linked: int, seed: int) -> tuple[Reports, Assignment]:
    """Return the reports of messages without names, in random order, and the tasks that each message asks."""
    rng = np.random.default_rng(seed)
    groups, senders = TASKS // linked, len(reports.workers)
    order = rng.permuted(np.tile(np.arange(senders), (groups, 1)), axis=1)
    group_of = rng.permutation(TASKS) // linked
    names = np.array([f"m{number}" for number in range(groups * senders)])
    group = group_of[reports.task]
    sent = replace(reports, worker=group * senders + order[group, reports.worker], workers=names)
    task = np.repeat(np.arange(TASKS), senders)
    asked = group_of[task] * senders + np.tile(np.arange(senders), TASKS)
    return sent, Assignment(np.asarray(reports.tasks), names, task, asked)


def error(case: Case, channel: Channel, linked: int, seed: int) -> float:
    """Return the mean absolute error with `linked` reports of a worker in a message."""
    sent = perturb_cells(case.answers, channel, seeded(1000 + seed))
    if linked == 1:
        return case.error(case.pooled.fit(unlinked(sent, seed), channel=channel))
    found, assignment = messages(sent, linked, seed)
    return case.error(case.linked.fit(found, channel=channel, assignment=assignment))


def worker_epsilon(channel: Channel, linked: int) -> float:
    """Return the loss of all answers of a worker at the delta, at most the local one."""
    local = composed_epsilon([(channel_profile(channel), TASKS)], DELTA)
    if linked > MOST_LINKED:
        return local
    cells = ShuffledCells(channel=channel, reports=WORKERS, cells=TASKS, linked=linked)
    return min(local, shuffled_worker([cells], delta=DELTA).epsilon)


def rows(sparsity: float, seeds: int) -> Iterator[Row]:
    """Yield the points of one crowd."""
    cases = [sun(sparsity, seed) for seed in range(seeds)]
    channel, constant = channel_of(cases[0], EPSILON), float(np.mean([case.constant for case in cases]))
    for linked in LINKED:
        errors = [error(case, channel, linked, seed) for seed, case in enumerate(cases)]
        loss = worker_epsilon(channel, linked)
        yield Row(cases[0].name, EPSILON, linked, loss, float(np.mean(errors)), constant, seeds)


def main() -> None:
    """Print one line per crowd and number of linked reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([field.name for field in fields(Row)])
    for sparsity in (0.5, 0.9):
        for row in rows(sparsity, given.seeds):
            writer.writerow([f"{x:.4g}" if isinstance(x, float) else x for x in astuple(row)])
            sys.stdout.flush()


if __name__ == "__main__":
    main()
