"""Wawa: worker agreement with aggregate (Appen), the majority vote weighted by each worker's agreement with it.

s_i = share of worker i's answers that agree with the majority vote (ties split);
P_j(z) = sum_{i: y_ij = z} s_i / sum_i s_i.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from crowdveil.em.model import EStep, GoldBlock
from crowdveil.estimators.voting.skill_vote import (
    Agreement,
    SkillParameters,
    SkillVote,
    agreement_with_winners,
    shares,
    weighted_votes,
)
from crowdveil.estimators.weighted_vote import right_share
from crowdveil.registry import Capabilities, capabilities_of


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wawa(SkillVote[Agreement]):
    """Two votes: the second is weighted by the agreement with the first.

    Gold tasks count with their gold label. The ability of a worker is the skill s_i.

    Attributes:
        max_steps: 2 are the method.
        tolerance: 1 ends the fit after the second vote.
    """

    name: ClassVar[str] = "wawa"
    capabilities: ClassVar[Capabilities] = capabilities_of("wawa")
    max_steps: int = 2
    tolerance: float = 1.0

    def e_step(self, block: GoldBlock, parameters: SkillParameters) -> EStep[Agreement]:
        """Return the shares of votes, and each worker's agreement with the winners."""
        votes = weighted_votes(block, parameters)
        return EStep(agreement_with_winners(block, votes), shares(votes, block.gold))

    def m_step(self, statistics: Agreement, parameters: SkillParameters) -> SkillParameters:
        """Return the shares of agreeing answers as skills."""
        summary = parameters.summary
        return replace(parameters, skill=right_share(statistics.agreement, summary.per_worker, summary.labels))
