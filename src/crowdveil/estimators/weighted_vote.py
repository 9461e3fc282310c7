"""Truth discovery by weighted votes (Li et al., KDD 2018, equations 2 and 3)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.estimate import TIE, FitState, StateField, WorkerTable
from crowdveil.em.estimator import Estimator, one_of
from crowdveil.em.model import EStep, GoldBlock, Summary
from crowdveil.errors import SettingsError
from crowdveil.estimators.log_odds import log_odds_weight, right_share
from crowdveil.registry import Capabilities, capabilities_of


@dataclass(frozen=True, eq=False)
class VoteParameters:
    """The crowd's counts and each worker's weight, shape (workers,)."""

    summary: Summary
    weight: NDArray[np.float64]


class VoteStatistics(NamedTuple):
    """Reports of each worker that agree with the current truths, tied ones in part; shape (workers,)."""

    agreement: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedVote(Estimator[VoteParameters, VoteStatistics]):
    """Elect the label with the largest sum of weights; weigh workers by how often they agree with the elected.

    The weight is w = log((K - 1) p / (1 - p)) for K labels and a share p of agreeing reports: for two labels the
    paper's log(p / (1 - p)). Negative weights (below chance) are kept: such a worker's vote speaks for other labels,
    as the paper's section 6.2.2 argues. Tied labels share a task. The model has no probabilities: an
    estimate has no confidence. The first step, all weights equal, is the majority
    vote.

    Attributes:
        clamp: p is kept in [2 clamp / K, 1 - clamp], that is [clamp, 1 - clamp] for two labels, so that nobody who
            happens always to agree gets an infinite weight.
        max_steps: largest number of steps; the vote settles in a finite number (see docs), usually below 30.
        tolerance: stop when no posterior changes by more than this.

    Raises:
        SettingsError: `clamp` outside (0, 0.5).
    """

    name: ClassVar[str] = "weighted-vote"
    capabilities: ClassVar[Capabilities] = capabilities_of("weighted-vote")
    state_fields: ClassVar[Mapping[str, StateField]] = {"weight": StateField("real")}
    clamp: float = 0.01
    max_steps: int = 200
    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        if not 0 < self.clamp < 0.5:
            raise SettingsError("clamp must be in (0, 0.5)", value=self.clamp, hint="0.01 is the default.")

    def initialize(self, summary: Summary) -> VoteParameters:
        """Return equal weights.

        Raises:
            SettingsError: a prior was given; votes have none.
        """
        if summary.prior is not None:
            raise SettingsError(
                "weighted-vote uses no prior",
                value=summary.prior,
                hint=f"Use {one_of(kind='categorical', uses_prior=True)}.",
            )
        return VoteParameters(summary, np.ones(summary.workers))

    def e_step(self, block: GoldBlock, parameters: VoteParameters) -> EStep[VoteStatistics]:
        """Hold the election of equation (2): posterior [task, label] is 1 at the winner, shared equally by ties."""
        step = block.coded.plurality_step(parameters.weight, TIE, parameters.summary.labels, block.gold, block.before)
        return EStep(VoteStatistics(step.agreement), step.posterior, change=step.change)

    def m_step(self, statistics: VoteStatistics, parameters: VoteParameters) -> VoteParameters:
        """Return the weights of equation (3)."""
        summary = parameters.summary
        share = right_share(statistics.agreement, summary.per_worker, summary.labels)
        kept = np.clip(share, 2 * self.clamp / summary.labels, 1 - self.clamp)
        return VoteParameters(summary, log_odds_weight(kept, summary.labels))

    def worker_table(self, statistics: VoteStatistics, parameters: VoteParameters) -> WorkerTable:
        """Return the weights that follow from the last election; 0 for a worker without reports."""
        return WorkerTable(self.m_step(statistics, parameters).weight, "weight")

    def to_state(self, parameters: VoteParameters) -> Mapping[str, NDArray[np.float64]]:
        """Return the weights."""
        return {"weight": parameters.weight}

    def from_state(self, initial: VoteParameters, state: FitState) -> VoteParameters:
        """Return the weights of the state, 1 for new workers."""
        return replace(initial, weight=state.rows("weight", initial.weight))

    def log_likelihood(self, statistics: VoteStatistics) -> float | None:
        """Return None: an election has no marginal likelihood."""
        return None
