"""Zero-Based Skill (crowd-kit; Ustalov, Pavlichenko and Tseitlin, JOSS 2024): votes and skills in turn.

Skills start at 1 / K + 10^-5. Step t adds r_t (a_i - s_i) to the skill s_i, where a_i is the share of worker i's
answers that agree with the winners of the votes weighted by s (ties split); r_t is 1, and halves every 20 steps.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from crowdveil.em.model import EStep, GoldBlock, Summary
from crowdveil.errors import SettingsError
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

FIRST_GAIN = 1e-5
"""Skill of every worker above chance before the first step."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroBasedSkill(SkillVote[Agreement]):
    """Skills moved towards the agreement with the votes that they weight.

    Gold tasks count with their gold label. The ability of a worker is the skill.

    Attributes:
        halving: number of steps after which the learning rate is halved.
        max_steps: largest number of votes; the skills are updated one time less.
        tolerance: stop when no share of votes changes by more than this.

    Raises:
        SettingsError: `halving` below 1.
    """

    name: ClassVar[str] = "zero-based-skill"
    capabilities: ClassVar[Capabilities] = capabilities_of("zero-based-skill")
    halving: int = 20
    max_steps: int = 101
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        self._require_setting_types()
        if self.halving < 1:
            raise SettingsError("halving must be at least 1", value=self.halving)

    def initialize(self, summary: Summary) -> SkillParameters:
        """Return equal skills, just above chance; raises as `SkillVote.initialize`."""
        parameters = SkillVote.initialize(self, summary)
        return replace(parameters, skill=np.full(summary.workers, 1 / summary.labels + FIRST_GAIN))

    def e_step(self, block: GoldBlock, parameters: SkillParameters) -> EStep[Agreement]:
        """Return the shares of votes, and each worker's agreement with the winners."""
        votes = weighted_votes(block, parameters)
        return EStep(agreement_with_winners(block, votes), shares(votes, block.gold))

    def m_step(self, statistics: Agreement, parameters: SkillParameters) -> SkillParameters:
        """Return the skills after one step; those of workers without reports stay."""
        summary, steps = parameters.summary, parameters.steps + 1
        share = right_share(statistics.agreement, summary.per_worker, summary.labels)
        gain = np.where(summary.per_worker > 0, share - parameters.skill, 0.0)
        rate = 0.5 ** (steps // self.halving)
        return replace(parameters, skill=parameters.skill + rate * gain, steps=steps)
