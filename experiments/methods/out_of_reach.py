"""Cells of the default behind noise that are below the best constant or the vote: fresh seeds, and what oracles reach.

Cells are those of `results/against_constants.csv` whose default is below the best constant, or the vote of reports, by
more than its margin. Every cell has other seeds, because the lowest of 120 means of four are low by chance, too: 16,
and 4 where all workers report on all of 1,000 tasks and fits take long.
Both oracles know the confusion matrix of each worker, from all gold, with the crowd's row as one answer to each truth.
One knows the class shares of gold, too; the other learns them from the reports (maximum likelihood). Where the second
is below the best constant, what lacks is the class shares, which reports do not tell: the cell is out of reach, as far
as the most likely shares are the best guess of them.
`python -m experiments.methods.out_of_reach` writes `results/out_of_reach.csv` and prints its figures.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from experiments.methods import against_constants
from experiments.methods.against_constants import MARGIN, VOTE_MARGIN, sample
from experiments.rows import read_rows, write_rows
from numpy.typing import NDArray

from crowdveil import Categories, HierarchicalDawidSkene, MajorityVote, RandomizedResponse, Reports
from crowdveil.channels.guarantee import Participation
from crowdveil.inference.scores import metrics
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_reports

FIRST_SEED, SEEDS, SEEDS_OF_LARGE, LARGE = 100, 16, 4, 300_000
"""First seed, numbers of seeds, and the number of cells from which a set is large."""
SHARE_STEPS = 500
TINY = 1e-9
RESULTS = Path(__file__).parent / "results" / "out_of_reach.csv"


@dataclass(frozen=True, slots=True)
class Row:
    """Mean accuracies of one cell over fresh seeds.

    Attributes:
        set, participation, epsilon: of the cell.
        seeds: number of seeds.
        default, vote, constant: of the default, of the vote that takes reports for answers, of the best constant.
        default_error: standard error of the mean of the default, over seeds.
        vote_error: that of the difference of default and vote.
        inferred: of the label that the default finds most often.
        oracle: of the posterior under true confusion matrices and class shares.
        learned: of the same with class shares learned from reports.
    """

    set: str
    participation: str
    epsilon: float
    seeds: int
    default: float
    default_error: float
    vote: float
    vote_error: float
    constant: float
    inferred: float
    oracle: float
    learned: float

    @property
    def below_constant(self) -> bool:
        """Whether the default is below the best constant by more than the margin."""
        return self.default < self.constant - MARGIN

    @property
    def below_vote(self) -> bool:
        """Whether the default is below the vote by more than its margin."""
        return self.default < self.vote - VOTE_MARGIN

    @property
    def out_of_reach(self) -> bool:
        """Whether the oracle that learns class shares is below the best constant, too."""
        return self.learned < self.constant - MARGIN


@dataclass(frozen=True, slots=True)
class Oracle:
    """True confusion matrices of all workers, P(report | truth) behind a mechanism, and class shares.

    Attributes:
        reported: P(report | truth) of each worker, indexed [worker, truth, symbol].
        silent: P(NULL report | truth) of each worker, indexed [worker, truth]; 1 if participation is public.
        shares: class shares of gold.
    """

    reported: NDArray[np.float64]
    silent: NDArray[np.float64]
    shares: NDArray[np.float64]

    @classmethod
    def of(cls, answers: Reports, gold: dict[str, Any], mechanism: RandomizedResponse) -> "Oracle":
        """Return the oracle of a set."""
        names, labels = mechanism.alphabet.names, mechanism.alphabet.size
        code = {name: index for index, name in enumerate(names)}
        truth = np.array([code[gold[str(task)]] if str(task) in gold else -1 for task in answers.tasks])
        known = truth[answers.task] >= 0
        counts = np.zeros((len(answers.workers), labels, labels))
        np.add.at(counts, (answers.worker[known], truth[answers.task[known]], answers.value[known]), 1.0)
        crowd = counts.sum(axis=0) + np.full((labels, labels), TINY)
        counts += crowd / crowd.sum(axis=1, keepdims=True)
        confusion = counts / counts.sum(axis=2, keepdims=True)
        shares = np.bincount(truth[truth >= 0], minlength=labels) / (truth >= 0).sum()
        table = mechanism.channel().probabilities
        if mechanism.participation == "public":
            return cls(confusion @ table, np.ones(confusion.shape[:2]), shares)
        rate = np.bincount(answers.worker, minlength=len(answers.workers)) / len(answers.tasks)
        inputs = np.append(
            rate[:, None, None] * confusion, np.broadcast_to((1 - rate)[:, None, None], (*confusion.shape[:2], 1)), 2
        )
        reported = inputs @ table
        return cls(reported[:, :, :labels], reported[:, :, labels], shares)

    def log_likelihood(self, reports: Reports) -> NDArray[np.float64]:
        """Return the log-likelihood of each truth of each task, indexed [task, truth]."""
        silent = np.log(self.silent)
        terms = np.log(self.reported[reports.worker, :, reports.value]) - silent[reports.worker]
        found = np.repeat(silent.sum(axis=0)[None], len(reports.tasks), axis=0)
        np.add.at(found, reports.task, terms)
        return found

    def posteriors(self, reports: Reports) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the posterior under the class shares of gold, and under those learned from the reports."""
        scores = self.log_likelihood(reports)
        likelihood = np.exp(scores - scores.max(axis=1, keepdims=True))
        learned = np.full(len(self.shares), 1 / len(self.shares))
        for _ in range(SHARE_STEPS):
            learned = normalized(likelihood * learned).mean(axis=0)
        return normalized(likelihood * self.shares), normalized(likelihood * learned)


def normalized(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows divided by their sums."""
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def rows() -> Iterator[Row]:
    """Yield the rows of all cells that are below a constant or the vote."""
    found = read_rows(against_constants.RESULTS, against_constants.Row)
    low = [row for row in found if row.below("default") or row.below("default", "vote", VOTE_MARGIN)]
    for name in dict.fromkeys(row.set for row in low):
        answers, gold = sample(name)
        assert isinstance(answers.alphabet, Categories)
        for row in (row for row in low if row.set == name):
            participation: Participation = "public" if row.participation == "public" else "protected"
            mechanism = RandomizedResponse(alphabet=answers.alphabet, epsilon=row.epsilon, participation=participation)
            yield cell(name, answers, gold, mechanism)


def cell(name: str, answers: Reports, gold: dict[str, Any], mechanism: RandomizedResponse) -> Row:
    """Return the row of one cell."""
    oracle = Oracle.of(answers, gold, mechanism)
    cells = len(answers.tasks) * len(answers.workers) if mechanism.participation == "protected" else len(answers.task)
    seeds = range(FIRST_SEED, FIRST_SEED + (SEEDS if cells < LARGE else SEEDS_OF_LARGE))
    each = np.array([accuracies(answers, gold, mechanism, oracle, seed) for seed in seeds])
    default, vote, inferred, best, learned = each.mean(axis=0).round(4).tolist()
    default_error = float(each[:, 0].std(ddof=1) / np.sqrt(len(each)))
    vote_error = float((each[:, 0] - each[:, 1]).std(ddof=1) / np.sqrt(len(each)))
    return Row(
        name, mechanism.participation, mechanism.epsilon, len(seeds),
        default, round(default_error, 4), vote, round(vote_error, 4),
        round(float(oracle.shares.max()), 4), inferred, best, learned,
    )  # fmt: skip


def accuracies(
    answers: Reports, gold: dict[str, Any], mechanism: RandomizedResponse, oracle: Oracle, seed: int
) -> tuple[float, ...]:
    """Return the accuracies of default, vote, inferred constant and both oracles, of one seed."""
    reports = perturb_reports(answers, mechanism, seeded(seed))
    estimate = HierarchicalDawidSkene().fit(reports, channel=mechanism.channel())
    code = {name: index for index, name in enumerate(mechanism.alphabet.names)}
    index = {str(task): place for place, task in enumerate(answers.tasks)}
    tasks = np.array([index[str(task)] for task in gold])
    truths = np.array([code[truth] for truth in gold.values()])
    known, learned = (
        float((posterior[tasks].argmax(axis=1) == truths).mean()) for posterior in oracle.posteriors(reports)
    )
    return (
        metrics.accuracy(estimate, gold),
        metrics.accuracy(MajorityVote().fit(reports), gold),
        float(oracle.shares[estimate.posterior.mean(axis=0).argmax()]),
        known,
        learned,
    )


def summary(found: list[Row]) -> str:
    """Return how many cells are below with fresh seeds, and out of reach."""
    lost = [row for row in found if row.below_constant]
    reach = [f"{row.set} {row.participation} {row.epsilon}" for row in lost if not row.out_of_reach]
    votes = [
        f"{row.set} {row.participation} {row.epsilon} ({row.default - row.vote:+.3f}, standard error "
        f"{row.vote_error:.3f})"
        for row in found
        if row.below_vote
    ]
    return (
        f"{len(found)} cells: with fresh seeds {len(lost)} below the best constant by more than {MARGIN}, "
        f"{sum(row.out_of_reach for row in lost)} of them out of reach; not: {', '.join(reach) or 'none'}. "
        f"Below the vote by more than {VOTE_MARGIN}: {', '.join(votes) or 'none'}."
    )


if __name__ == "__main__":
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, rows())
    print(summary(read_rows(RESULTS, Row)))
