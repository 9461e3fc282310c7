"""Two rounds of a campaign against one: does the first round's result save a fifth of the reports?

In the second round every task has the channel that is designed for the mean posterior of its group after the first.
The groups are the clusters of Lloyd's algorithm from starts by Gonzalez (1985), each the task farthest from those
before, first from the mean; every label keeps a tenth of an even share. One round has randomized response (labels) or
the channel designed for the public prior (grades). Half of the reports belong to each round; participation is public.
The reports of the second round are spread evenly, or given to the less certain half of the tasks (`ALLOCATIONS`).
Labels: `SHARE` of real answers, results of the default method. Grades: `TASKS` essays with truths from the prior and
graders of deviation `ERROR`, exact posteriors, as if both were known.

Run `python experiments/collection/rounds.py`; it writes results/rounds.csv (ten minutes). Means over `SEEDS` seeds.
"""

import csv
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from experiments.methods.against_constants import sample
from numpy.typing import NDArray

from crowdveil import Categories, ChannelTable, HierarchicalDawidSkene, RandomizedResponse, Reports, Scale
from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import Channel
from crowdveil.design.channel_design import design_channel, normal_worker_model, one_coin_confusion
from crowdveil.inference.scores import metrics
from crowdveil.mechanisms import DesignObjective
from crowdveil.randomness import seeded

RESULTS = Path(__file__).parent / "results" / "rounds.csv"
SETS, EPSILONS, SEEDS, SAVED = ("web_zhou", "dog", "s_rel", "adult2"), (0.5, 1.0, 2.0), 12, 0.2
SHARE = 0.6
"""Share of the real answers that one round takes: the second may then choose."""
GRADES, TASKS, GRADERS = Scale(0, 10), 300, (5, 10, 20)
MEAN, DEVIATION, ERROR, GRADE_FLOOR = 6.5, 1.5, 2.0, 1e-4
"""Prior of grades, deviation of graders, and the weight of every grade besides that of the normal prior."""
ALLOCATIONS = ("even", "uncertain")
FIELDS = (
    "data", "epsilon", "one_round",
    *(f"{name}{fewer}" for name in ALLOCATIONS for fewer in ("", "_fewer", "_deviation")), "gain",
)  # fmt: skip
MOST_GROUPS, STEPS, FLOOR = 12, 10, 0.1
"""Largest number of groups, steps of Lloyd's algorithm, and least probability of a label in even shares."""
Table = NDArray[np.float64]


def posterior_groups(posterior: Table) -> tuple[NDArray[np.int64], Table]:
    """Return the group of each task, shape (tasks,), and the mean posterior of each group, shape (groups, labels)."""
    raised = np.maximum(posterior, FLOOR / posterior.shape[1])
    raised /= raised.sum(axis=1, keepdims=True)
    starts = [raised[((raised - raised.mean(axis=0)) ** 2).sum(axis=1).argmax()]]
    nearest = ((raised - starts[0]) ** 2).sum(axis=1)
    while len(starts) < MOST_GROUPS and nearest.max() > 0:
        starts.append(raised[nearest.argmax()])
        nearest = np.minimum(nearest, ((raised - starts[-1]) ** 2).sum(axis=1))
    centres = np.array(starts)
    for _ in range(STEPS):
        closest = np.argmin([((raised - centre) ** 2).sum(axis=1) for centre in centres], axis=0)
        group = np.unique(closest, return_inverse=True)[1]
        centres = np.array([raised[group == index].mean(axis=0) for index in range(int(group.max()) + 1)])
    return group, centres


def table_by_cell(
    channels: Sequence[Channel], chosen: NDArray[np.int64], workers: NDArray[Any], tasks: NDArray[Any]
) -> ChannelTable:
    """Return the table with a channel for each cell, by its index [worker, task]; channels of no cell are left out."""
    used, index = np.unique(chosen, return_inverse=True)
    rows, of_worker = np.unique(index.reshape(chosen.shape), axis=0, return_inverse=True)
    columns, of_task = np.unique(rows, axis=1, return_inverse=True)
    return ChannelTable(
        channels=tuple(channels[code] for code in used.tolist()),
        choice=tuple(map(tuple, columns.tolist())),
        workers=dict(zip(map(str, workers), of_worker.ravel().tolist(), strict=True)),
        tasks=dict(zip(map(str, tasks), of_task.ravel().tolist(), strict=True)),
    )


def objectives(alphabet: Alphabet, priors: Table, model: Table) -> list[DesignObjective]:
    """Return the design objective of each prior, shape (groups, labels), with public participation."""
    return [DesignObjective(alphabet=alphabet, prior=one, worker_model=model, participation="public") for one in priors]


def designs(groups: list[DesignObjective], epsilon: float, plain: Channel) -> tuple[list[Channel], Table, Table]:
    """Return the channel designed for each group, and the information of a report through it and through `plain`."""
    channels = [design_channel(objective, epsilon) for objective in groups]
    pairs = zip(groups, channels, strict=True)
    own = np.array([objective.objective_of_channel(channel.probabilities) for objective, channel in pairs])
    return channels, own, np.array([objective.objective_of_channel(plain.probabilities) for objective in groups])


def weights(name: str, error: Table) -> Table:
    """Return the weight of each task in the second round by an allocation; `error` is expected after the first."""
    rank = np.argsort(np.argsort(-error, kind="stable"), kind="stable")
    return np.where((rank < len(error) / 2) | (name == "even"), 1.0, 1e-9)


def drawn(weight: Table, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return `count` of the cells without repeats, drawn with probabilities in proportion to their weights."""
    return np.argsort(generator.exponential(size=len(weight)) / weight, kind="stable")[:count]


def label_run(answers: Reports, gold: dict[str, Any], epsilon: float, share: float, seed: int) -> tuple[float, ...]:
    """Return the accuracies of one round and of two by each allocation, and the second round's gain.

    Both have this share of `SHARE` of the answers.
    """
    assert isinstance(answers.alphabet, Categories)
    generator, names = np.random.default_rng(seed), np.asarray(answers.tasks).astype(str)
    workers = np.asarray(answers.workers).astype(str)
    plain = RandomizedResponse(alphabet=answers.alphabet, epsilon=epsilon, participation="public").channel()
    order = generator.permutation(len(answers.task))
    count = int(share * SHARE * len(order))
    single = ChannelTable(channels=(plain,), choice=((0,),))

    def fitted(cells: NDArray[np.int64], sent: NDArray[np.int64], table: ChannelTable) -> Any:
        columns = answers.task[cells], answers.worker[cells], sent
        return HierarchicalDawidSkene().fit(Reports(*columns, names, workers, table.report_alphabet), channel=table)

    sent = plain.sample(answers.value[order[:count]], seeded(seed))
    first, half = order[: count // 2], count // 2
    before = fitted(first, sent[:half], single)
    group, priors = posterior_groups(before.posterior)
    model = one_coin_confusion(answers.alphabet.size, float(np.clip(before.workers.quality.mean(), 0.4, 0.95)))
    channels, own, usual = designs(objectives(answers.alphabet, priors, model), epsilon, plain)
    chosen = np.tile(1 + group, (len(workers), 1))
    chosen[answers.worker[first], answers.task[first]] = 0
    table = table_by_cell((plain, *channels), chosen, workers, names)
    code_of = {name: code for code, name in enumerate(table.report_alphabet.names)}
    codes = [np.array([code_of[name] for name in channel.outputs]) for channel in (plain, *channels)]
    found = [metrics.accuracy(fitted(order[:count], sent, single), gold)]
    for name in ALLOCATIONS:
        weight = weights(name, 1 - before.posterior.max(axis=1))[answers.task[order[half:]]]
        second = order[half:][drawn(weight, count - half, generator)]
        reports = np.empty(len(second), dtype=np.int64)
        for index, channel in enumerate(channels):
            cells = group[answers.task[second]] == index
            reports[cells] = codes[1 + index][channel.sample(answers.value[second[cells]], seeded(seed * 100 + index))]
        both = np.concatenate((first, second)), np.concatenate((codes[0][sent[:half]], reports))
        found.append(metrics.accuracy(fitted(*both, table), gold))
    size = np.bincount(group, minlength=len(priors))
    return *found, float(size @ own / (size @ usual))


def grade_run(epsilon: float, graders: int, share: float, seed: int) -> tuple[float, ...]:
    """Return the mean absolute errors of one and of two rounds of exact inference, and the second round's gain."""
    generator, values = np.random.default_rng(seed), GRADES.values
    prior = np.exp(-(((values - MEAN) / DEVIATION) ** 2) / 2) + GRADE_FLOOR
    prior, model = prior / prior.sum(), normal_worker_model(GRADES, (ERROR,))[0]
    truth = generator.choice(len(values), TASKS, p=prior)
    plain = design_channel(objectives(GRADES, prior[None], model)[0], epsilon)
    source = seeded(seed)
    half, total = round(graders * share) // 2, TASKS * (round(graders * share) - round(graders * share) // 2)

    def updated(log: Table, channel: Channel, counts: NDArray[np.int64], tasks: NDArray[np.int64]) -> Table:
        cells = np.repeat(np.arange(len(tasks)), counts)
        given = np.array([generator.choice(len(values), p=model[truth[task]]) for task in tasks[cells]], dtype=np.int64)
        terms = np.log(model @ channel.probabilities).T[channel.sample(given, source)]
        result = log.copy()
        np.add.at(result, cells, terms)
        return result

    every = np.arange(TASKS)
    first = updated(np.tile(np.log(prior), (TASKS, 1)), plain, np.full(TASKS, half), every)
    posterior = normalized(first)
    error = np.abs(values - values[median_of(first)][:, None])
    group, priors = posterior_groups(posterior)
    channels, own, usual = designs(objectives(GRADES, priors, model), epsilon, plain)
    logs = [updated(first, plain, np.full(TASKS, total // TASKS), every)]
    for name in ALLOCATIONS:
        weight = weights(name, (posterior * error).sum(axis=1))
        slots = np.repeat(every, 4 * (total // TASKS))
        counts = np.bincount(slots[drawn(weight[slots], total, generator)], minlength=TASKS)
        counts = np.full(TASKS, total // TASKS) if name == "even" else counts
        log = np.empty_like(first)
        for index, channel in enumerate(channels):
            own_tasks = np.flatnonzero(group == index)
            log[own_tasks] = updated(first[own_tasks], channel, counts[own_tasks], own_tasks)
        logs.append(log)
    size = np.bincount(group, minlength=len(priors))
    return *(float(np.abs(median_of(log) - truth).mean()) for log in logs), float(size @ own / (size @ usual))


def normalized(log: Table) -> Table:
    """Return the probabilities of these unnormalised logarithms, row by row."""
    found = np.exp(log - log.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def median_of(log: Table) -> NDArray[np.int64]:
    """Return the median label of each row of unnormalised logarithms."""
    return np.asarray((normalized(log).cumsum(axis=1) >= 0.5).argmax(axis=1))


def row(name: str, epsilon: float, run: Callable[[float, int], tuple[float, ...]]) -> list[str]:
    """Return a row: one round; two with as many reports, with a fifth fewer, and the standard error of the change."""
    whole, fewer = (np.array([run(share, seed) for seed in range(SEEDS)]) for share in (1.0, 1 - SAVED))
    found = [whole[:, 0].mean()]
    for place in range(1, 1 + len(ALLOCATIONS)):
        change = (fewer[:, place] - whole[:, 0]).std(ddof=1) / np.sqrt(SEEDS)
        found += [whole[:, place].mean(), fewer[:, place].mean(), change]
    return [name, f"{epsilon:g}", *(f"{value:.3f}" for value in (*found, whole[:, -1].mean()))]


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="One of the clusters is empty")
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(FIELDS)
        for epsilon in EPSILONS:
            runs = [(name, partial(label_run, *sample(name), epsilon)) for name in SETS]
            runs += [(f"grades of {graders} graders", partial(grade_run, epsilon, graders)) for graders in GRADERS]
            table.writerows(row(name, epsilon, run) for name, run in runs)
