"""Truth discovery by weighted votes (Li et al., KDD 2018, equations 2 and 3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.estimate import TIE, WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.fit_state import StateField
from crowdveil.em.model import EStep, GoldBlock, Summary


@dataclass(frozen=True, eq=False)
class VoteParameters:
    """Counts of the reports and weights, shape (workers,)."""

    summary: Summary
    weight: NDArray[np.float64]


class VoteStatistics(NamedTuple):
    """Reports of each worker that agree with the current truths, ties split; shape (workers,)."""

    agreement: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedVote(Estimator[VoteParameters, VoteStatistics]):
    """Alternate a weighted plurality vote and weights from agreement with its result.

    The weight is w = log((K - 1) p / (1 - p)) for K labels and a share p of agreeing reports. Negative weights, below
    chance, are kept (section 6.2.2 of the paper). Tied labels share a task. The votes are no probabilities, so an
    estimate has no confidence. The first step is the majority vote.

    Attributes:
        clamp: p is kept in [2 clamp / K, 1 - clamp], so that weights are finite.
        max_steps: largest number of steps; the vote converges in finitely many (see docs), usually below 30.
        tolerance: stop when no posterior changes by more than this.

    Raises:
        SettingsError: `clamp` outside (0, 0.5).
    """

    name: ClassVar[str] = "weighted-vote"
    ranges: ClassVar[Mapping[str, str]] = {"clamp": "(0, 0.5)"}
    state_fields: ClassVar[Mapping[str, StateField]] = {"weight": StateField("real")}
    clamp: float = 0.01
    max_steps: int = 200
    tolerance: float = 1e-8

    def initialize(self, summary: Summary) -> VoteParameters:
        """Return equal weights."""
        return VoteParameters(summary, np.ones(summary.workers))

    def e_step(self, block: GoldBlock, parameters: VoteParameters) -> EStep[VoteStatistics]:
        """Return the vote of equation (2): posterior [task, label] is 1 at the winner, shared equally by ties."""
        step = block.coded.weighted_plurality_vote(parameters.weight, TIE, block.gold)
        return EStep(VoteStatistics(step.agreement), step.posterior)

    def m_step(self, statistics: VoteStatistics, parameters: VoteParameters) -> VoteParameters:
        """Return the weights of equation (3)."""
        summary = parameters.summary
        share = right_report_shares(statistics.agreement, summary.per_worker, summary.labels)
        clamped = np.clip(share, 2 * self.clamp / summary.labels, 1 - self.clamp)
        return VoteParameters(summary, log_odds_weight(clamped, summary.labels))

    def worker_table(self, statistics: VoteStatistics, parameters: VoteParameters) -> WorkerTable:
        """Return the weights from the last vote; 0 for a worker without reports."""
        return WorkerTable(self.m_step(statistics, parameters).weight, "weight")


def right_report_shares(sums: NDArray[np.float64], reports: NDArray[np.int64], labels: int) -> NDArray[np.float64]:
    """Return the share of right reports of each worker, in [0, 1]; 1 / labels for a worker without reports.

    Args:
        sums: from `agreement_sums`, shape (workers,).
        reports: reports of each worker, shape (workers,).
        labels: number of labels.
    """
    share = np.full(len(sums), 1.0 / labels)
    # Rounding may raise a sum of posteriors slightly above the number of reports.
    return np.minimum(np.divide(sums, reports, out=share, where=reports > 0), 1.0)


def log_odds_weight(share: NDArray[np.float64], labels: int) -> NDArray[np.float64]:
    """Return log(share (labels - 1) / (1 - share)), the log-likelihood ratio of a report for its label.

    It is 0 at chance and negative below. Wrong reports are uniform over the other labels.
    """
    return np.log(share) + np.log(labels - 1.0) - np.log1p(-share)
