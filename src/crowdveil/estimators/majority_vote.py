"""Majority vote (Li et al. 2018, equation 1); behind a channel, votes are deconvolved."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.deconvolution import AnswerFrequencies, frequencies_of_reports, vote_shares_or_prior
from crowdveil.em.estimate import WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.gold import one_hot_gold
from crowdveil.em.model import EStep, GoldBlock, Summary

MIN_SIGNAL = 0.5
"""Signal from which the votes of a task alone order its labels."""


class Parameters(NamedTuple):
    """Counts of the reports, and the answer frequencies estimated from them."""

    summary: Summary
    pool: AnswerFrequencies


class Statistics(NamedTuple):
    """Sums over tasks: `agreement` is the posterior of each worker's reported labels, shape (workers,)."""

    agreement: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MajorityVote(Estimator[Parameters, Statistics]):
    """Posterior: each label's estimated share of votes. Ability: mean posterior of the labels that a worker reports.

    Tied labels share a task; a task without votes gets the public prior, or the uniform distribution. One step.
    Behind a channel, shares are estimated by deconvolution (`em.deconvolution`) and shrunk to the crowd's
    answer frequencies in proportion to the noise. Frequencies of answers are not those of truths: where votes tell
    something (`signal_of_votes`), the order of labels is that of the votes alone.

    Attributes:
        max_steps, tolerance: 1 and 0, without effect on the vote.

    >>> answers = {"task": [1, 1, 1, 2, 2, 2], "worker": [*"abcabc"], "label": [*"yynnnn"]}
    >>> MajorityVote().fit(answers).truth.tolist()
    ['y', 'n']
    """

    name: ClassVar[str] = "majority-vote"
    max_steps: int = 1
    tolerance: float = 0.0

    def initialize(self, summary: Summary) -> Parameters:
        """Return the answer frequencies of all workers."""
        return Parameters(summary, frequencies_of_reports(summary))

    def e_step(self, block: GoldBlock, parameters: Parameters) -> EStep[Statistics]:
        """Return vote shares, and each worker's agreement with them."""
        summary, pool = parameters
        ranked = signal_of_votes(summary, pool) >= MIN_SIGNAL
        shares = vote_shares_or_prior(block, summary, pool, ranked=ranked)
        posterior = one_hot_gold(shares, block.gold)
        return EStep(Statistics(block.coded.agreement_sums(posterior @ most_probable_label_indicator(pool))), posterior)

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """Return the parameters unchanged."""
        return parameters

    def worker_table(self, statistics: Statistics, parameters: Parameters) -> WorkerTable:
        """Return each worker's mean agreement with the votes, NaN without reports."""
        counts = parameters.summary.per_worker
        ability = np.where(counts > 0, statistics.agreement / np.maximum(counts, 1), np.nan)
        return WorkerTable(quality=ability, quality_name="ability")


def signal_of_votes(summary: Summary, pool: AnswerFrequencies) -> float:
    """Return the answers of a task that survive the channel, relative to the deviation of its number of reports.

    With n label reports to a task and the noise v it is (1 - v) sqrt(n).
    """
    listed = summary.symbol_counts[:, pool.model.is_informative].sum()
    return float((1 - pool.noise) * np.sqrt(listed / summary.tasks))


def most_probable_label_indicator(pool: AnswerFrequencies) -> NDArray[np.float64]:
    """Return 1 where a symbol is most probable under a label, else 0; indexed [label, symbol]."""
    table = pool.model.table[: pool.labels]
    return (np.equal(table, table.max(axis=0)) & pool.model.is_informative).astype(float)
