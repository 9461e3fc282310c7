"""Gold majority vote: votes weighted by each worker's accuracy on gold tasks.

s_i = share of right answers of worker i to gold tasks;   P_j(z) = sum_{i: y_ij = z} s_i / sum_i s_i.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.gold import one_hot_gold
from crowdveil.em.model import EStep, GoldBlock
from crowdveil.estimators.voting.skill_vote import SkillParameters, SkillVote, shares, weighted_votes
from crowdveil.registry import Capabilities, capabilities_of


class GoldAnswers(NamedTuple):
    """Right answers of each worker to gold tasks, and all answers to them; shapes (workers,)."""

    right: NDArray[np.float64]
    answers: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GoldMajorityVote(SkillVote[GoldAnswers]):
    """One vote, weighted by accuracy on gold; needs `gold`, and is the majority vote without.

    Workers without a gold task have the accuracy of all gold answers together. The ability of a worker is the skill.

    Attributes:
        max_steps: 2 are the method.
        tolerance: 1 ends the fit after the weighted vote.
    """

    name: ClassVar[str] = "gold-majority-vote"
    capabilities: ClassVar[Capabilities] = capabilities_of("gold-majority-vote")
    max_steps: int = 2
    tolerance: float = 1.0

    def e_step(self, block: GoldBlock, parameters: SkillParameters) -> EStep[GoldAnswers]:
        """Return the shares of votes, and each worker's answers to gold tasks."""
        posterior = shares(weighted_votes(block, parameters), block.gold)
        known = np.broadcast_to((block.gold >= 0).astype(float)[:, None], posterior.shape)
        right = one_hot_gold(np.zeros_like(posterior), block.gold)
        return EStep(GoldAnswers(block.coded.agreement_sums(right), block.coded.agreement_sums(known)), posterior)

    def m_step(self, statistics: GoldAnswers, parameters: SkillParameters) -> SkillParameters:
        """Return the accuracies on gold; equal skills without gold answers."""
        right, answers = statistics
        if not answers.sum() > 0:
            return replace(parameters, steps=1)
        skill = np.full(len(right), right.sum() / answers.sum())
        return replace(parameters, skill=np.divide(right, answers, out=skill, where=answers > 0))
