"""Labels from people who chose different epsilons: `python -m experiments.rivals.personal_budgets`.

Each third of the workers has epsilon .5, 1 or 4 for an answer, by randomized response, participation public. Ways:
- every report through the channel of its worker, by each of our methods;
- counts of reports, or of inverted reports, weighted by epsilon (like PDPTD, of which only the abstract was read);
- the workers of the largest epsilon alone, and all workers at the smallest one.
Needs the folder `CROWDVEIL_DATA`. Writes `results/personal_budgets.csv`, within a minute.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from experiments.rivals.worker_budgets import answers_of, response
from experiments.rows import four_digits, write_rows
from numpy.typing import NDArray

from crowdveil import ChannelTable, Reports, infer
from crowdveil.inference.scores.metrics import score
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_cells

RESULTS = Path(__file__).parent / "results" / "personal_budgets.csv"
DATA, EPSILONS = "dog", (0.5, 1.0, 4.0)
METHODS = ("hierarchical-dawid-skene", "dawid-skene", "one-coin")
SEED_SETS = (range(5), range(100, 105))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Share of right labels of one way, mean and standard deviation over the draws of a set of seeds."""

    way: str
    seeds: int
    draws: int
    accuracy: float
    deviation: float
    constant: float
    unprotected: float


def weighted_counts(reports: Reports, group: NDArray[np.int64], *, inverted: bool) -> NDArray[np.float64]:
    """Return the sums of reports, as they are or inverted, each times the epsilon of its worker; [task, label]."""
    counts = np.zeros((len(reports.tasks), reports.labels))
    for place, epsilon in enumerate(EPSILONS):
        table = response(reports.alphabet, epsilon).probabilities
        weights = epsilon * (np.linalg.inv(table) if inverted else np.eye(reports.labels))
        own = group[reports.worker] == place
        np.add.at(counts, reports.task[own], weights[reports.value[own]])
    return counts


def share_right(counts: NDArray[np.float64], reports: Reports, gold: dict[Any, Any]) -> float:
    """Return the share of known truths that have the largest count, ties split."""
    best = counts >= counts.max(axis=1, keepdims=True) - 1e-9
    places = {str(task): place for place, task in enumerate(reports.tasks)}
    labels = reports.alphabet.names
    right = [
        best[places[str(task)], labels.index(truth)] / best[places[str(task)]].sum() for task, truth in gold.items()
    ]
    return float(np.mean(right))


def accuracies(seed: int) -> Iterator[tuple[str, float]]:
    """Yield each way with its share of right labels."""
    answers, gold, _ = answers_of(DATA)
    group = np.random.default_rng(seed).permutation(np.resize(np.arange(len(EPSILONS)), len(answers.workers)))
    channels = [response(answers.alphabet, epsilon) for epsilon in EPSILONS]
    table = ChannelTable.by_worker(channels, dict(zip(map(str, answers.workers), group.tolist(), strict=True)))
    reports = perturb_cells(answers, table, seeded(seed))
    for method in METHODS:
        found = infer(reports, method, channel=table).estimate
        yield f"channel of each worker, {method}", 1 - score(found, gold).error
    for inverted, shown in ((False, "counts"), (True, "inverted counts")):
        counts = weighted_counts(reports, group, inverted=inverted)
        yield f"{shown} weighted by epsilon, PDPTD-like", share_right(counts, reports, gold)
    kept = group[reports.worker] == len(EPSILONS) - 1
    part = replace(reports, task=reports.task[kept], worker=reports.worker[kept], value=reports.value[kept])
    yield "largest epsilon alone", 1 - score(infer(part, METHODS[0], channel=channels[-1]).estimate, gold).error
    all_equal = perturb_cells(answers, channels[0], seeded(seed))
    yield (
        "all at the smallest epsilon",
        1 - score(infer(all_equal, METHODS[0], channel=channels[0]).estimate, gold).error,
    )


def rows() -> Iterator[Row]:
    """Yield all rows."""
    answers, gold, unprotected = answers_of(DATA)
    constant = score(infer(answers, METHODS[0]).estimate, gold).baseline
    for seeds in SEED_SETS:
        found: dict[str, list[float]] = {}
        for seed in seeds:
            for way, accuracy in accuracies(seed):
                found.setdefault(way, []).append(accuracy)
        for way, values in found.items():
            yield Row(
                way=way,
                seeds=seeds[0],
                draws=len(values),
                accuracy=float(np.mean(values)),
                deviation=float(np.std(values, ddof=1)),
                constant=1 - constant,
                unprotected=1 - unprotected,
            )


if __name__ == "__main__":
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, rows(), four_digits)
