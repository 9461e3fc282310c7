"""The default for labels behind randomized response, against constants and the vote, where little is known.

Rows are public sets by epsilon (per answer) and participation; means over seeds. Sets with more than `TASKS` tasks are
a fixed random sample of them, known truths first. The best constant is chosen with gold, the inferred one is the label
that the default finds most often. A public prior is the share of each truth in gold, rounded to tenths, at least 0.05,
as a curator may know it beforehand. `python -m experiments.methods.against_constants` writes
`results/against_constants.csv` and prints how many rows are below a constant.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from experiments.rows import read_rows, write_rows

from crowdveil import Categories, HierarchicalDawidSkene, MajorityVote, RandomizedResponse, Reports
from crowdveil.answers import datasets
from crowdveil.channels.guarantee import Participation
from crowdveil.inference.scores import metrics
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_reports

SETS = (
    *("bluebird", "snow_wsd", "snow_rte", "dog", "duchenne"),
    *("d_possent", "d_product", "web_zhou", "adult2", "s_rel"),
)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0)
PARTICIPATION: tuple[Participation, ...] = ("public", "protected")
TASKS, SEEDS, MARGIN, VOTE_MARGIN = 1000, 4, 0.01, 0.015
RESULTS = Path(__file__).parent / "results" / "against_constants.csv"


@dataclass(frozen=True, slots=True)
class Row:
    """Mean accuracies of one set, participation and epsilon.

    Attributes:
        set, participation, epsilon: of the row.
        default, known: of the default, and of the default with a public prior.
        vote, told: of the vote that takes reports for answers, and of that which knows the channel.
        constant, inferred: of the best constant, chosen with gold, and of the inferred one.
        frequent: of the most frequent label of the answers before they were perturbed.
    """

    set: str
    participation: str
    epsilon: float
    default: float
    known: float
    vote: float
    told: float
    constant: float
    inferred: float
    frequent: float

    def below(self, column: str, bound: str = "constant", margin: float = MARGIN) -> bool:
        """Return whether a column is below another by more than a margin."""
        return bool(getattr(self, column) < getattr(self, bound) - margin)


def rows() -> Iterator[Row]:
    """Yield the rows of all sets."""
    for name in SETS:
        answers, gold = sample(name)
        assert isinstance(answers.alphabet, Categories)
        for participation, epsilon in product(PARTICIPATION, EPSILONS):
            mechanism = RandomizedResponse(alphabet=answers.alphabet, epsilon=epsilon, participation=participation)
            each = [accuracies(answers, gold, mechanism, seed) for seed in range(SEEDS)]
            yield Row(name, participation, epsilon, *np.mean(each, axis=0).round(4).tolist())


def sample(name: str) -> tuple[Reports, dict[str, Any]]:
    """Return the answers of at most `TASKS` tasks of a set, and the gold of those that were answered."""
    data = datasets.load(name)
    answers, names = data.answers, np.asarray(data.answers.tasks)
    known = np.isin(names.astype(str), [str(task) for task in data.gold]) & (answers.per_task > 0)
    order = np.lexsort((np.random.default_rng(0).random(len(names)), ~known))
    chosen = np.sort(order[:TASKS])
    cells = np.isin(answers.task, chosen)
    present = np.flatnonzero(np.bincount(answers.worker[cells], minlength=len(answers.workers)))
    task = np.searchsorted(chosen, answers.task[cells]).astype(np.int32)
    worker = np.searchsorted(present, answers.worker[cells]).astype(np.int32)
    workers = np.asarray(answers.workers)[present]
    kept = Reports(task, worker, answers.value[cells], names[chosen], workers, answers.alphabet)
    scored = set(names[chosen][known[chosen]].astype(str).tolist())
    return kept, {task: truth for task, truth in data.gold.items() if str(task) in scored}


def accuracies(answers: Reports, gold: dict[str, Any], mechanism: RandomizedResponse, seed: int) -> tuple[float, ...]:
    """Return the accuracies of a row, of one seed."""
    reports, truths = perturb_reports(answers, mechanism, seeded(seed)), np.array(list(gold.values()))
    names, channel = mechanism.alphabet.names, mechanism.channel()
    share = {label: float((truths == label).mean()) for label in names}
    rough = {label: max(round(share[label], 1), 0.05) for label in names}
    prior = {label: rough[label] / sum(rough.values()) for label in names}
    estimate = HierarchicalDawidSkene().fit(reports, channel=channel)
    own = metrics.score(estimate, gold)
    known = metrics.accuracy(HierarchicalDawidSkene().fit(reports, channel=channel, prior=prior), gold)
    votes = (MajorityVote().fit(reports), MajorityVote().fit(reports, channel=channel))
    vote, told = (metrics.accuracy(one, gold) for one in votes)
    inferred = share[names[int(estimate.posterior.mean(axis=0).argmax())]]
    frequent = share[names[int(np.bincount(answers.value, minlength=len(names)).argmax())]]
    return 1 - own.error, known, vote, told, 1 - own.baseline, inferred, frequent


def summary(found: list[Row]) -> str:
    """Return how many rows are below a constant, and the mean accuracies."""
    lost = [row for row in found if row.below("default")]
    return (
        f"{len(found)} rows: {len(lost)} below the best constant ({sum(row.below('known') for row in found)} with a "
        f"public prior), {sum(row.below('default', 'inferred') for row in found)} below the inferred one. Of the "
        f"{len(lost)} the inferred constant is below the best one in {sum(row.below('inferred') for row in lost)}, the "
        f"most frequent answer in {sum(row.below('frequent') for row in lost)}. "
        f"{sum(row.below('default', 'vote', VOTE_MARGIN) for row in found)} below the vote by more than {VOTE_MARGIN}; "
        f"the vote that knows the channel is below it in {sum(row.below('told', 'vote', 1e-9) for row in found)}. Mean "
        f"accuracy of the vote {mean(row.vote for row in found):.3f}, of the default "
        f"{mean(row.default for row in found):.3f}, with a public prior {mean(row.known for row in found):.3f}."
    )


if __name__ == "__main__":
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, rows())
    print(summary(read_rows(RESULTS, Row)))
