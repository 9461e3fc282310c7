"""Majority vote (Li et al. 2018, equation 1); behind a channel, votes are deconvolved."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray

from crowdveil.em.deconvolution import AnswerFrequencies, frequencies_of_reports, vote_shares_or_prior
from crowdveil.em.estimate import WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.gold import one_hot_gold
from crowdveil.em.model import EStep, GoldBlock, Summary

MIN_SIGNAL = 0.5
"""Signal from which the votes of a task alone order its labels."""
MIN_GAIN = 0.01
"""Accuracy above chance of votes that tell anything."""
MAJORITY = 0.5
"""Share of the answers up to which the most frequent one may be a common mistake."""
QUADRATURE_NODES = 20
"""Nodes of the integral over the reports of the right label."""


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
    answer frequencies in proportion to the noise. Frequencies of answers are not those of truths: the order of labels
    is that of the votes alone, but where these tell less than the frequencies do (`frequencies_decide`).

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
        shares = vote_shares_or_prior(block, summary, pool, ranked=not frequencies_decide(summary, pool))
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


def frequencies_decide(summary: Summary, pool: AnswerFrequencies) -> bool:
    """Return whether votes tell nothing, or little where one label is most of the answers and right more often.

    By the largest share less one standard deviation for the majority, less two for the comparison with votes.
    """
    if signal_of_votes(summary, pool) >= MIN_SIGNAL:
        return False
    accuracy, share = accuracy_of_agreeing_votes(summary, pool), float(pool.label_shares.max())
    deviation = pool.largest_share_deviation
    is_better = share - deviation > MAJORITY and share - 2 * deviation > accuracy
    return is_better or accuracy < 1 / pool.labels + MIN_GAIN


def signal_of_votes(summary: Summary, pool: AnswerFrequencies) -> float:
    """Return the answers of a task that survive the channel, relative to the deviation of its number of reports.

    With n label reports to a task and the noise v it is (1 - v) sqrt(n).
    """
    return float((1 - pool.noise) * np.sqrt(reports_per_task(summary, pool)))


def reports_per_task(summary: Summary, pool: AnswerFrequencies) -> float:
    """Return the mean number of label reports to a task."""
    return float(summary.symbol_counts[:, pool.model.is_informative].sum() / summary.tasks)


def accuracy_of_agreeing_votes(summary: Summary, pool: AnswerFrequencies) -> float:
    """Return how often the vote is right where all answers to a task are, shares of noise being equal.

    With n label reports to a task, K labels and the noise v, the lead of the right label on another one has the mean
    (1 - v) n and the variance n (p + q - (p - q)^2), p and q = v / K being the probabilities of their reports. Normal
    approximation; two leads have the correlation 1/2.
    """
    other = pool.noise / pool.labels
    right = 1 - pool.noise + other
    variance = right + other - (right - other) ** 2
    if variance <= 0:
        return 1.0
    nodes, weights = hermegauss(QUADRATURE_NODES)
    leads = nodes + (right - other) * np.sqrt(2 * reports_per_task(summary, pool) / variance)
    ahead = np.array([NormalDist().cdf(lead) for lead in leads.tolist()])
    return float(weights @ ahead ** (pool.labels - 1) / weights.sum())


def most_probable_label_indicator(pool: AnswerFrequencies) -> NDArray[np.float64]:
    """Return 1 where a symbol is most probable under a label, else 0; indexed [label, symbol]."""
    table = pool.model.table[: pool.labels]
    return (np.equal(table, table.max(axis=0)) & pool.model.is_informative).astype(float)
