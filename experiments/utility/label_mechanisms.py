"""Accuracy of truths by mechanism for labels, at equal exact epsilon and with one inference, on a crowd and real sets.

The crowd: ten labels, equally frequent truths, 300 tasks with ten answers each, 60 workers of abilities .4, .7 and .9
in equal shares, another crowd for each seed. The sets: `web_zhou`, `dog` and `bluebird`, read from the folder
CROWDVEIL_DATA. Participation is public. Mechanisms that are chosen for an expectation get the default one: equally
frequent labels, and an ability of .75. Gold chose nothing; the best constant alone is chosen knowing it.

    python -m experiments.utility.label_mechanisms [SET...] > experiments/utility/results/label_mechanisms.csv
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from experiments.rows import four_digits, write_rows

from crowdveil import Categories, Designed, HierarchicalDawidSkene, OneCoin, RandomizedResponse, Reports
from crowdveil.answers.datasets import load
from crowdveil.channels.channel import Channel
from crowdveil.design.channel_design import design_channel, one_coin_confusion
from crowdveil.em.estimator import fit_without_intervals
from crowdveil.inference.scores.metrics import score
from crowdveil.mechanisms import ChannelMechanism, DesignObjective, OptimizedUnaryEncoding, SubsetSelection
from crowdveil.planning.candidates import channel_key
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_cells

RESULTS = Path(__file__).parent / "results" / "label_mechanisms.csv"
TEN_LABELS = "ten labels"
SETS = (TEN_LABELS, "web_zhou", "dog", "bluebird")
EPSILONS = (0.5, 1.0, 2.0, 4.0)
SEEDS = (range(20), range(100, 120))
"""Two sets of seeds. The inference was changed while looking at crowds of the first one; the second one confirms,
without `UNARY`, to save time."""
RESPONSE, DESIGNED = RandomizedResponse.name, Designed.name
SUBSET, PUBLISHED_SIZE = SubsetSelection.name, f"{SubsetSelection.name}, published size"
UNARY = OptimizedUnaryEncoding.name
MECHANISMS = (RESPONSE, DESIGNED, SUBSET, PUBLISHED_SIZE, UNARY)
METHODS = (HierarchicalDawidSkene(), OneCoin())
DEFAULT = HierarchicalDawidSkene.name
TASKS, ANSWERS, WORKERS, ABILITIES = 300, 10, 60, (0.4, 0.7, 0.9)
ABILITY = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Mean over a set of seeds.

    Attributes:
        data, epsilon, mechanism, method: set, epsilon of a cell, and how reports were made and read.
        first_seed: of the set of seeds.
        accuracy: share of right truths among the gold tasks.
        error: standard error of the mean.
        gain: accuracy less that of randomized response with the same seeds and method.
        gain_error: standard error of the mean gain.
        constant, unprotected: accuracy of the best constant, and of the answers themselves with this method.
        symbols: of a report.
    """

    data: str
    epsilon: float
    mechanism: str
    method: str
    first_seed: int
    accuracy: float
    error: float
    gain: float
    gain_error: float
    constant: float
    unprotected: float
    symbols: int


def crowd(seed: int) -> tuple[Reports, Mapping[str, str]]:
    """Return the answers of the crowd of ten labels, and its truths."""
    rng, names = np.random.default_rng(seed), tuple(f"label {k}" for k in range(10))
    tasks, workers = (
        np.array([f"{kind} {k}" for k in range(count)]) for kind, count in (("task", TASKS), ("worker", WORKERS))
    )
    truth, ability = rng.integers(len(names), size=TASKS), np.resize(ABILITIES, WORKERS)
    task = np.repeat(np.arange(TASKS), ANSWERS)
    worker = np.concatenate([rng.choice(WORKERS, ANSWERS, replace=False) for _ in tasks])
    wrong = (truth[task] + rng.integers(1, len(names), size=len(task))) % len(names)
    value = np.where(rng.random(len(task)) < ability[worker], truth[task], wrong)
    answers = Reports(alphabet=Categories(names), tasks=tasks, workers=workers, task=task, worker=worker, value=value)
    return answers, {task: names[code] for task, code in zip(tasks.tolist(), truth, strict=True)}


def answers_and_gold(data: str, seed: int) -> tuple[Reports, Any]:
    """Return the answers of a set, and its known truths."""
    if data == TEN_LABELS:
        return crowd(seed)
    found = load(data)
    return found.answers, found.gold


def mechanisms(alphabet: Any, epsilon: float) -> dict[str, ChannelMechanism]:
    """Return every mechanism that the alphabet allows."""
    labels = alphabet.size
    objective = DesignObjective(
        alphabet=alphabet,
        prior=np.full(labels, 1 / labels),
        worker_model=one_coin_confusion(labels, ABILITY),
        participation="public",
    )
    shared: dict[str, Any] = {"alphabet": alphabet, "epsilon": epsilon, "participation": "public"}
    return {
        RESPONSE: RandomizedResponse(**shared),
        DESIGNED: Designed.from_channel(design_channel(objective, epsilon, null_apart=True)),
        SUBSET: SubsetSelection.for_objective(objective, epsilon),
        PUBLISHED_SIZE: SubsetSelection(**shared),
        UNARY: OptimizedUnaryEncoding(**shared),
    }


def accuracy(answers: Reports, gold: Any, channel: Channel, method: Any, seed: int) -> float:
    """Return the accuracy of a method that reads the reports of one draw."""
    reports = perturb_cells(answers, channel, seeded(10_000 + seed))
    return 1 - score(fit_without_intervals(method, reports, channel=channel), gold).error


def measured(data: str, epsilon: float, seeds: range) -> Iterator[Row]:
    """Yield the rows of a set at one epsilon; mechanisms with the table of an earlier one have its results."""
    drawn = [answers_and_gold(data, seed) for seed in (seeds if data == TEN_LABELS else seeds[:1])]
    tables = {name: one.channel() for name, one in mechanisms(drawn[0][0].alphabet, epsilon).items()}
    for method in METHODS:
        plain = [score(fit_without_intervals(method, answers), gold) for answers, gold in drawn]
        found: dict[object, np.ndarray[Any, Any]] = {}
        for name, channel in tables.items():
            if name == UNARY and seeds != SEEDS[0]:
                continue
            key = channel_key(channel)
            if key not in found:
                found[key] = np.array(
                    [accuracy(*drawn[place % len(drawn)], channel, method, seed) for place, seed in enumerate(seeds)]
                )
            own = found[key]
            gain = own - found[channel_key(tables[RESPONSE])]
            deviation = np.sqrt(len(seeds))
            yield Row(
                data=data,
                epsilon=epsilon,
                mechanism=name,
                method=method.name,
                first_seed=seeds.start,
                accuracy=float(own.mean()),
                error=float(own.std(ddof=1) / deviation),
                gain=float(gain.mean()),
                gain_error=float(gain.std(ddof=1) / deviation),
                constant=1 - float(np.mean([one.baseline for one in plain])),
                unprotected=1 - float(np.mean([one.error for one in plain])),
                symbols=len(channel.outputs),
            )


def table(rows: list[Row]) -> list[str]:
    """Return the rows of the page: accuracy by the default at each epsilon, with the first seeds."""
    found = {
        (row.data, row.mechanism, row.epsilon): row
        for row in rows
        if (row.method, row.first_seed) == (DEFAULT, SEEDS[0].start)
    }
    lines = [f"| mechanism | {' | '.join(SETS)} |", f"| --- |{' --- |' * len(SETS)}"]
    for mechanism in MECHANISMS:
        cells = ["/".join(f"{found[data, mechanism, epsilon].accuracy:.3f}" for epsilon in EPSILONS) for data in SETS]
        lines.append(f"| `{mechanism.replace(',', '`,', 1)}{'' if ',' in mechanism else '`'} | {' | '.join(cells)} |")
    known = [found[data, RESPONSE, EPSILONS[0]] for data in SETS]
    ends = [f"{row.constant:.3f}; {row.unprotected:.3f}" for row in known]
    return [*lines, f"| best constant; unprotected | {' | '.join(ends)} |"]


if __name__ == "__main__":
    names = sys.argv[1:] or SETS
    rows = (row for name in names for seeds in SEEDS for epsilon in EPSILONS for row in measured(name, epsilon, seeds))
    write_rows(sys.stdout, Row, rows, shown=four_digits)
