"""Votes weighted by skills: Wawa, Zero-Based Skill and gold majority vote.

The skill s_i of a worker is a share of answers that agree with some labels (ties split); the posterior of a label is
its share of the votes of a task, P_j(z) = sum_{i: y_ij = z} s_i / sum_i s_i. Gold tasks count with their gold label.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.estimate import TIE, WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.gold import one_hot_gold
from crowdveil.em.model import EStep, GoldBlock, S, Summary
from crowdveil.estimators.weighted_vote import VoteStatistics, right_report_shares

FIRST_GAIN = 1e-5
"""Skill of every worker above chance before the first step of Zero-Based Skill."""


@dataclass(frozen=True, eq=False)
class SkillParameters:
    """Counts of the reports and skills.

    Attributes:
        summary: counts of the reports.
        skill: weight of each worker's votes, shape (workers,).
        steps: number of updates of the skills.
    """

    summary: Summary
    skill: NDArray[np.float64]
    steps: int = 0


class GoldAnswers(NamedTuple):
    """Right answers of each worker to gold tasks, and all answers to them; shapes (workers,)."""

    right: NDArray[np.float64]
    answers: NDArray[np.float64]


class SkillVote(Estimator[SkillParameters, S]):
    """Votes, worker table and state; the ability of a worker is the skill."""

    state_fields: ClassVar[Mapping[str, StateField]] = {"skill": StateField("real")}

    def initialize(self, summary: Summary) -> SkillParameters:
        """Return equal skills."""
        return SkillParameters(summary, np.ones(summary.workers))

    def worker_table(self, statistics: S, parameters: SkillParameters) -> WorkerTable:
        """Return the skills that weighted the last votes, nan without reports."""
        counts = parameters.summary.per_worker
        return WorkerTable(np.where(counts > 0, parameters.skill, np.nan), "ability")

    def from_state(self, initial: SkillParameters, state: FitState) -> SkillParameters:
        """Return the skills of the state; new workers keep the initial one."""
        return replace(Estimator.from_state(self, initial, state), steps=1)


class AgreementVote(SkillVote[VoteStatistics]):
    """Skills from the agreement with the winners of the votes that they weight."""

    def e_step(self, block: GoldBlock, parameters: SkillParameters) -> EStep[VoteStatistics]:
        """Return the shares of votes, and each worker's agreement with the winners."""
        votes = weighted_votes(block, parameters)
        best = votes >= votes.max(axis=1, keepdims=True) - TIE
        winners = one_hot_gold(best / best.sum(axis=1, keepdims=True), block.gold)
        return EStep(VoteStatistics(block.coded.agreement_sums(winners)), vote_shares_with_gold(votes, block.gold))

    def m_step(self, statistics: VoteStatistics, parameters: SkillParameters) -> SkillParameters:
        """Return the shares of agreeing answers as skills."""
        summary = parameters.summary
        skill = right_report_shares(statistics.agreement, summary.per_worker, summary.labels)
        return replace(parameters, skill=skill, steps=parameters.steps + 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wawa(AgreementVote):
    """Worker agreement with aggregate (Appen): a vote weighted by each worker's agreement with the majority vote.

    Attributes:
        max_steps: 2 are the method.
        tolerance: 1 ends the fit after the second vote.
    """

    name: ClassVar[str] = "wawa"
    max_steps: int = 2
    tolerance: float = 1.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroBasedSkill(AgreementVote):
    """Votes and skills in turn (crowd-kit; Ustalov, Pavlichenko and Tseitlin, JOSS 2024).

    Skills start at 1 / K + 10^-5. Step t adds r_t (a_i - s_i) to the skill s_i, where a_i is the share of worker i's
    answers that agree with the winners of the votes weighted by s; r_t is 1, and halves every `halving` steps.

    Attributes:
        halving: number of steps after which the learning rate is halved.
        max_steps: largest number of votes; the skills are updated one time less.
        tolerance: stop when no share of votes changes by more than this.

    Raises:
        SettingsError: `halving` below 1.
    """

    name: ClassVar[str] = "zero-based-skill"
    halving: int = 20
    max_steps: int = 101
    tolerance: float = 1e-5

    def initialize(self, summary: Summary) -> SkillParameters:
        """Return equal skills, just above chance."""
        return SkillParameters(summary, np.full(summary.workers, 1 / summary.labels + FIRST_GAIN))

    def m_step(self, statistics: VoteStatistics, parameters: SkillParameters) -> SkillParameters:
        """Return the skills after one step; those of workers without reports stay."""
        target = AgreementVote.m_step(self, statistics, parameters)
        gain = np.where(parameters.summary.per_worker > 0, target.skill - parameters.skill, 0.0)
        rate = 0.5 ** (target.steps // self.halving)
        return replace(target, skill=parameters.skill + rate * gain)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GoldMajorityVote(SkillVote[GoldAnswers]):
    """One vote, weighted by accuracy on gold; needs `gold`, and is the majority vote without.

    The skill is the share of right answers to gold tasks. Workers without a gold task have the accuracy of all gold
    answers together.

    Attributes:
        max_steps: 2 are the method.
        tolerance: 1 ends the fit after the weighted vote.
    """

    name: ClassVar[str] = "gold-majority-vote"
    max_steps: int = 2
    tolerance: float = 1.0

    def e_step(self, block: GoldBlock, parameters: SkillParameters) -> EStep[GoldAnswers]:
        """Return the shares of votes, and each worker's answers to gold tasks."""
        posterior = vote_shares_with_gold(weighted_votes(block, parameters), block.gold)
        known = np.broadcast_to((block.gold >= 0).astype(float)[:, None], posterior.shape)
        right = one_hot_gold(np.zeros_like(posterior), block.gold)
        return EStep(GoldAnswers(block.coded.agreement_sums(right), block.coded.agreement_sums(known)), posterior)

    def m_step(self, statistics: GoldAnswers, parameters: SkillParameters) -> SkillParameters:
        """Return the accuracies on gold; equal skills without gold answers."""
        right, answers = statistics
        if not answers.sum() > 0:
            return replace(parameters, steps=parameters.steps + 1)
        skill = np.full(len(right), right.sum() / answers.sum())
        return replace(parameters, skill=np.divide(right, answers, out=skill, where=answers > 0))


def weighted_votes(block: GoldBlock, parameters: SkillParameters) -> NDArray[np.float64]:
    """Return the sums of skills by label, [task, label]; plain votes where all skills are 0."""
    votes = block.coded.symbol_weights(parameters.skill)
    nothing = ~(votes.sum(axis=1) > 0)
    if nothing.any():
        votes[nothing] = block.coded.symbol_weights(np.ones_like(parameters.skill))[nothing]
    return votes


def vote_shares_with_gold(votes: NDArray[np.float64], gold: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return each label's share of the votes, [task, label]; uniform without votes, certain for gold."""
    total = votes.sum(axis=1, keepdims=True)
    uniform = np.full_like(votes, 1 / votes.shape[1])
    return one_hot_gold(np.divide(votes, total, out=uniform, where=total > 0), gold)
