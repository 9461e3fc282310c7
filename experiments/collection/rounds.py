"""Two rounds of a campaign against one: does the first round's result save a fifth of the reports?

In the second round every task has the channel that is designed for its posterior after the first, in at most `GROUPS`
groups of tasks; every label keeps a weight of at least `FLOOR`. One round has randomized response (labels) or the
channel designed for the public prior (grades). Half of the reports belong to each round; participation is public.
Labels: real answers, workers are divided between the rounds, results of the default method. Grades: `TASKS` essays
with truths from the prior and graders of deviation `ERROR`, exact posteriors, as if both were known.

Run `python experiments/collection/rounds.py`; it writes results/rounds.csv (three minutes). Means over `SEEDS` seeds.
"""

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from experiments.collection.planned_grading import DEVIATION, ERROR, MEAN
from experiments.collection.planned_grading import FLOOR as GRADE_FLOOR
from experiments.default_method.against_constants import sample
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2

from crowdveil import Categories, ChannelTable, HierarchicalDawidSkene, RandomizedResponse, Reports, Scale
from crowdveil.channel_design import design_channel, normal_worker_model, one_coin_worker_model
from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import Channel
from crowdveil.evaluation import metrics
from crowdveil.mechanisms import DesignObjective
from crowdveil.randomness import seeded

RESULTS = Path(__file__).parent / "results" / "rounds.csv"
SETS, EPSILONS, SEEDS, SAVED = ("web_zhou", "dog", "s_rel", "adult2"), (0.5, 1.0, 2.0), 12, 0.2
GROUPS, FLOOR = 12, 0.02
GRADES, TASKS, GRADERS = Scale(0, 10), 300, (5, 10, 20)
FIELDS = ("data", "epsilon", "one_round", "two_rounds", "two_rounds_fewer_reports", "standard_error", "gain")
Table = NDArray[np.float64]


def groups_of(posterior: Table, floor: float, seed: int) -> tuple[NDArray[np.int64], Table]:
    """Return the group of each task, and the mean posterior of each group with a floor on every label."""
    raised = np.maximum(posterior, floor)
    raised /= raised.sum(axis=1, keepdims=True)
    _, group = kmeans2(raised, min(GROUPS, len(np.unique(raised, axis=0))), minit="++", seed=seed, missing="warn")
    group = np.unique(group, return_inverse=True)[1]
    return group, np.array([raised[group == index].mean(axis=0) for index in range(group.max() + 1)])


def objectives(alphabet: Alphabet, priors: Table, model: Table) -> list[DesignObjective]:
    """Return the design objective of each prior, shape (groups, labels), with public participation."""
    return [DesignObjective(alphabet=alphabet, prior=one, worker_model=model, participation="public") for one in priors]


def designs(groups: list[DesignObjective], epsilon: float, plain: Channel, size: Table) -> tuple[list[Channel], float]:
    """Return the channel designed for each group, and the information of a report over that through `plain`."""
    channels = [design_channel(objective, epsilon) for objective in groups]
    pairs = zip(groups, channels, strict=True)
    own = np.array([objective.score(channel.probabilities) for objective, channel in pairs])
    return channels, float(size @ own / (size @ [objective.score(plain.probabilities) for objective in groups]))


def label_run(answers: Reports, gold: dict[str, Any], epsilon: float, share: float, seed: int) -> tuple[float, ...]:
    """Return the accuracies of one and of two rounds with this share of the answers, and the second round's gain."""
    assert isinstance(answers.alphabet, Categories)
    generator, names = np.random.default_rng(seed), np.asarray(answers.tasks).astype(str)
    workers = np.asarray(answers.workers).astype(str)
    plain = RandomizedResponse(alphabet=answers.alphabet, epsilon=epsilon, participation="public").channel()
    chosen = generator.permutation(len(answers.task))[: int(share * len(answers.task))]
    order = generator.permutation(len(workers))
    number = np.cumsum(np.bincount(answers.worker[chosen], minlength=len(workers))[order])
    late = np.zeros(len(workers), dtype=bool)
    late[order[number > len(chosen) / 2]] = True

    def fitted(cells: NDArray[np.int64], sent: NDArray[np.int64], table: ChannelTable) -> Any:
        columns = answers.task[cells], answers.worker[cells], sent
        return HierarchicalDawidSkene().fit(Reports(*columns, names, workers, table.report_alphabet), channel=table)

    single = ChannelTable(channels=(plain,), choice=((0,),))
    sent = plain.sample(answers.value[chosen], seeded(seed))
    second = late[answers.worker[chosen]]
    before = fitted(chosen[~second], sent[~second], single)
    group, priors = groups_of(before.posterior, FLOOR, seed)
    model = one_coin_worker_model(answers.alphabet.size, float(np.clip(before.workers.quality.mean(), 0.4, 0.95)))
    size = np.bincount(group[answers.task[chosen[second]]], minlength=len(priors))
    channels, gain = designs(objectives(answers.alphabet, priors, model), epsilon, plain, size)
    table = ChannelTable(
        channels=(plain, *channels),
        choice=((0,) * len(channels), tuple(range(1, len(channels) + 1))),
        workers=dict(zip(workers.tolist(), late.astype(int).tolist(), strict=True)),
        tasks=dict(zip(names.tolist(), group.tolist(), strict=True)),
    )
    used = np.where(second, group[answers.task[chosen]] + 1, 0)
    code_of = {name: code for code, name in enumerate(table.report_alphabet.names)}
    both = np.array([code_of[name] for name in plain.outputs])[sent]
    for index, channel in enumerate(channels, start=1):
        codes = np.array([code_of[name] for name in channel.outputs])
        both[used == index] = codes[channel.sample(answers.value[chosen[used == index]], seeded(seed * 100 + index))]
    one, two = (metrics.accuracy(fitted(chosen, *given), gold) for given in ((sent, single), (both, table)))
    return one, two, gain


def grade_run(epsilon: float, graders: int, share: float, seed: int) -> tuple[float, ...]:
    """Return the mean absolute errors of one and of two rounds of exact inference, and the second round's gain."""
    generator, values = np.random.default_rng(seed), GRADES.values
    prior = np.exp(-(((values - MEAN) / DEVIATION) ** 2) / 2) + GRADE_FLOOR
    prior, model = prior / prior.sum(), normal_worker_model(GRADES, (ERROR,))[0]
    truth = generator.choice(len(values), TASKS, p=prior)
    answers = np.array([generator.choice(len(values), round(graders * share), p=model[grade]) for grade in truth])
    half = answers.shape[1] // 2
    plain = design_channel(objectives(GRADES, prior[None], model)[0], epsilon)
    source = seeded(seed)

    def updated(log: Table, channel: Channel, given: NDArray[np.int64]) -> Table:
        reports = channel.sample(given.ravel(), source).reshape(given.shape)
        return np.asarray(log + np.log(model @ channel.probabilities).T[reports].sum(axis=1))

    first = updated(np.tile(np.log(prior), (TASKS, 1)), plain, answers[:, :half])
    one, two = updated(first, plain, answers[:, half:]), np.empty_like(first)
    group, priors = groups_of(normalized(first), FLOOR / 10, seed)
    channels, gain = designs(objectives(GRADES, priors, model), epsilon, plain, np.bincount(group))
    for index, channel in enumerate(channels):
        two[group == index] = updated(first[group == index], channel, answers[group == index, half:])
    return *(float(np.abs(median_of(log) - truth).mean()) for log in (one, two)), gain


def normalized(log: Table) -> Table:
    """Return the probabilities of these unnormalised logarithms, row by row."""
    weights = np.exp(log - log.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def median_of(log: Table) -> NDArray[np.int64]:
    """Return the median label of each row of unnormalised logarithms."""
    return np.asarray((normalized(log).cumsum(axis=1) >= 0.5).argmax(axis=1))


def row(name: str, epsilon: float, run: Callable[[float, int], tuple[float, ...]]) -> list[str]:
    """Return a row: results with all reports, two rounds with a fifth fewer, and the standard error of the change."""
    whole, fewer = (np.array([run(share, seed) for seed in range(SEEDS)]) for share in (1.0, 1 - SAVED))
    error = (fewer[:, 1] - whole[:, 0]).std(ddof=1) / np.sqrt(SEEDS)
    means = whole[:, 0].mean(), whole[:, 1].mean(), fewer[:, 1].mean(), error, whole[:, 2].mean()
    return [name, f"{epsilon:g}", *(f"{value:.3f}" for value in means)]


def main() -> None:
    """Measure and write the table."""
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(FIELDS)
        for epsilon in EPSILONS:
            for name in SETS:
                table.writerow(row(name, epsilon, partial(label_run, *sample(name), epsilon)))
            for graders in GRADERS:
                table.writerow(row(f"grades of {graders} graders", epsilon, partial(grade_run, epsilon, graders)))
            stream.flush()
            print("epsilon", epsilon, "done", flush=True)


if __name__ == "__main__":
    main()
