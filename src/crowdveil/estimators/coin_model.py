"""One-coin where reports are answers: one number per worker, and no table anywhere.

The same model as `OneCoin` without a channel, and the same numbers; a step costs one vote and one sum per report.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.estimate import WorkerTable
from crowdveil.estimators.ability_interval import FIRMEST, Path, Spread, information_of_answers, with_intervals
from crowdveil.estimators.fitting import Estimator, Expected, GoldBlock, Summary
from crowdveil.estimators.gold import one_hot_gold
from crowdveil.estimators.mixture import TINY
from crowdveil.estimators.saddle import nudge
from crowdveil.estimators.votes import Pool, pool_reports, vote_shares


@dataclass(frozen=True, eq=False)
class CoinParameters:
    """The crowd as far as it is known.

    Attributes:
        summary, pool: counts of the reports, and what they alone say.
        class_prior: P(truth), shape (labels,).
        ability: P(answer right), shape (workers,); None before the first step, whose posterior is the share of votes.
        votes: the votes that follow, where they have been worked out.
    """

    summary: Summary
    pool: Pool
    class_prior: NDArray[np.float64]
    ability: NDArray[np.float64] | None
    votes: "Votes | None" = None

    @property
    def rest(self) -> NDArray[np.float64]:
        """P(a given wrong answer), shape (workers,)."""
        assert self.ability is not None
        return np.maximum((1 - self.ability) / (self.summary.labels - 1), TINY)


class Votes(NamedTuple):
    """Logarithms, shapes (workers,): of P(a given wrong answer), and by how much that of a right one is more."""

    wrong: NDArray[np.float64]
    weight: NDArray[np.float64]


class CoinStatistics(NamedTuple):
    """Sums over tasks: expected right answers of each worker, shape (workers,)."""

    right: NDArray[np.float64]
    log_likelihood: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CoinModel(Estimator[CoinParameters, CoinStatistics]):
    """Expectation-maximization over abilities.

    Attributes:
        smoothing: pseudo-answers per cell of a worker's table.
        shrinkage: pseudo-answers per row of it in the intervals of abilities.
        anchor_ability: what the table of the first step is made of, should there be no second.
        max_steps, tolerance: as in every estimator.
    """

    name: ClassVar[str] = "one-coin"
    kind: ClassVar[Literal["categorical", "numeric"]] = "categorical"
    reads_channel: ClassVar[bool] = True
    smoothing: float
    shrinkage: float
    anchor_ability: float
    max_steps: int
    tolerance: float

    def start(self, summary: Summary) -> CoinParameters:
        """Return no abilities: the first posterior is the share of votes."""
        pool = pool_reports(summary)
        return CoinParameters(summary, pool, pool.label_shares if summary.prior is None else summary.prior, None)

    def nudged(self, parameters: CoinParameters, direction: float, seed: int) -> CoinParameters:
        """Return the parameters with every ability moved by a hair."""
        assert parameters.ability is not None
        return replace(parameters, ability=nudge(parameters.ability, direction, seed), votes=None)

    def prepare(self, parameters: CoinParameters) -> CoinParameters:
        """Return the parameters with their votes."""
        return parameters if parameters.ability is None else replace(parameters, votes=votes(parameters))

    def expect(self, block: GoldBlock, parameters: CoinParameters) -> Expected[CoinStatistics]:
        """Return posteriors of the block's tasks and the right answers that follow."""
        if parameters.ability is None:
            posterior = one_hot_gold(vote_shares(block, parameters.summary, parameters.pool), block.gold)
            return Expected(CoinStatistics(block.coded.agreement(posterior), math.nan), posterior)
        wrong, weight = parameters.votes or votes(parameters)
        step = block.coded.coin_step(weight, np.log(parameters.class_prior), block.gold, block.before)
        likelihood = step.log_normaliser + float((block.coded.worker_counts * wrong).sum())
        return Expected(CoinStatistics(step.agreement, likelihood), step.posterior, moved=step.moved)

    def maximize(self, statistics: CoinStatistics, parameters: CoinParameters) -> CoinParameters:
        """Return the shares of right answers, pseudo-answers added; the class prior is uniform or public."""
        labels = parameters.summary.labels
        answers = parameters.summary.per_worker + labels**2 * self.smoothing
        ability = np.maximum((statistics.right + labels * self.smoothing) / answers, TINY)
        prior = np.full(labels, 1 / labels) if parameters.summary.prior is None else parameters.class_prior
        return replace(parameters, ability=ability, class_prior=prior, votes=None)

    def workers(self, statistics: CoinStatistics, parameters: CoinParameters) -> WorkerTable:
        """Return abilities, and tables that spread errors evenly; before any step the anchor of them all."""
        labels, workers = parameters.summary.labels, parameters.summary.workers
        if parameters.ability is None:
            guess = self.anchor_ability * np.eye(labels) + (1 - self.anchor_ability) * parameters.pool.label_shares
            ability = np.full(workers, float(np.diag(guess) @ parameters.class_prior))
            return WorkerTable(ability, "ability", confusion=np.repeat(guess[None], workers, axis=0))
        table = np.repeat(parameters.rest, labels**2).reshape(-1, labels, labels)
        table[:, np.arange(labels), np.arange(labels)] = parameters.ability[:, None]
        return WorkerTable(parameters.ability, "ability", confusion=table)

    def look_back(
        self,
        table: WorkerTable,
        blocks: Iterable[GoldBlock],
        posterior: NDArray[np.float64],
        end: tuple[CoinStatistics, CoinParameters],
    ) -> WorkerTable:
        """Return the table with intervals of abilities, those that `OneCoin` gives through the identity."""
        right, number = end[0].right, end[1].summary.per_worker
        labels = end[1].summary.labels
        centre = float(right.sum() / number.sum()) if number.any() else 1 / labels
        pseudo = labels * self.smoothing + labels * self.shrinkage * centre
        share = (right + pseudo) / (number + labels**2 * self.smoothing + labels * self.shrinkage)
        every = np.repeat(share[:, None], labels, axis=1)
        data = information_of_answers(Path(every, np.ones_like(every), None), end[1].summary, blocks, posterior)
        complete = right / share**2 + (number - right) / (1 - share) ** 2
        strength = np.divide(number, complete, out=np.zeros(len(data)), where=complete > 0)
        return with_intervals(table, Spread(share, strength, right - number * share, FIRMEST), data, number)

    def log_likelihood(self, statistics: CoinStatistics) -> float | None:
        """Return the marginal log-likelihood of the reports; None for the vote that starts the loop."""
        return None if math.isnan(statistics.log_likelihood) else statistics.log_likelihood

    def log_prior(self, parameters: CoinParameters) -> float:
        """Return the log-density of the tables under the smoothing."""
        if parameters.ability is None:
            return 0.0
        labels = parameters.summary.labels
        cells = labels * np.log(parameters.ability) + labels * (labels - 1) * np.log(parameters.rest)
        return self.smoothing * float(cells.sum())


def votes(parameters: CoinParameters) -> Votes:
    """Return what each worker's report adds to the scores of its task; there must be abilities."""
    assert parameters.ability is not None
    wrong = np.log(parameters.rest)
    return Votes(wrong, np.log(parameters.ability) - wrong)
