"""Majority vote: every worker counts alike (Li et al. 2018, equation 1); through a channel, votes are deconvolved."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.deconvolution import AnswerFrequencies, frequencies_of_reports, vote_shares
from crowdveil.em.estimate import WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.gold import one_hot_gold
from crowdveil.em.model import EStep, GoldBlock, Summary
from crowdveil.registry import Capabilities, capabilities_of


class Parameters(NamedTuple):
    """What the vote needs beside the block: counts of the crowd."""

    summary: Summary
    pool: AnswerFrequencies


class Statistics(NamedTuple):
    """Sums over tasks: `agreement` is the posterior of each worker's reported labels, shape (workers,)."""

    agreement: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MajorityVote(Estimator[Parameters, Statistics]):
    """Posterior = estimated share of votes of each label; a worker's ability = mean posterior of his reported labels.

    Tied labels share the top; a task without votes gets the public prior, or all labels alike. One step, no settings.
    Through a channel, shares are estimated by deconvolution (`votes.py`), shrunk towards the crowd's base rate as far
    as reports are noise.
    """

    name: ClassVar[str] = "majority-vote"
    capabilities: ClassVar[Capabilities] = capabilities_of("majority-vote")
    max_steps: int = 1
    tolerance: float = 0.0

    def initialize(self, summary: Summary) -> Parameters:
        """Pool the counts of the whole crowd."""
        return Parameters(summary, frequencies_of_reports(summary))

    def e_step(self, block: GoldBlock, parameters: Parameters) -> EStep[Statistics]:
        """Return vote shares, and how far each worker's reports agree with them."""
        summary, pool = parameters
        posterior = one_hot_gold(vote_shares(block, summary, pool), block.gold)
        return EStep(Statistics(block.coded.agreement_sums(posterior @ meanings(pool))), posterior)

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """Return the parameters unchanged: a vote has nothing to learn."""
        return parameters

    def worker_table(self, statistics: Statistics, parameters: Parameters) -> WorkerTable:
        """Return each worker's mean agreement with the votes, NaN without reports."""
        counts = parameters.summary.per_worker
        ability = np.where(counts > 0, statistics.agreement / np.maximum(counts, 1), np.nan)
        return WorkerTable(quality=ability, quality_name="ability")

    def log_likelihood(self, statistics: Statistics) -> None:
        """Return None: a vote has no likelihood."""
        return None


def meanings(pool: AnswerFrequencies) -> NDArray[np.float64]:
    """Return 1 where a report agrees with a label, indexed [label, symbol]: with those that send it most often."""
    table = pool.model.table[: pool.labels]
    return (np.equal(table, table.max(axis=0)) & pool.model.is_informative).astype(float)
