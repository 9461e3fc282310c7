"""Votes weighted by skills: the part that Wawa, Zero-Based Skill and Gold Majority Vote share.

The skill s_i of a worker is a share of answers that agree with some labels; the posterior of a label is its share of
the votes of a task, P_j(z) = sum_{i: y_ij = z} s_i / sum_i s_i.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.estimate import TIE, WorkerTable
from crowdveil.em.estimator import Estimator, one_of
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.gold import one_hot_gold
from crowdveil.em.model import GoldBlock, S, Summary
from crowdveil.errors import SettingsError


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


class Agreement(NamedTuple):
    """Answers of each worker that agree with the winners of the votes, ties split; shape (workers,)."""

    agreement: NDArray[np.float64]


class SkillVote(Estimator[SkillParameters, S]):
    """Worker table, state and refusals of votes weighted by skills."""

    state_fields: ClassVar[Mapping[str, StateField]] = {"skill": StateField("real")}

    def initialize(self, summary: Summary) -> SkillParameters:
        """Return equal skills.

        Raises:
            SettingsError: a prior was given; votes have none.
        """
        if summary.prior is not None:
            raise SettingsError(
                f"{self.name} uses no prior",
                value=summary.prior,
                hint=f"Use {one_of(kind='categorical', uses_prior=True)}.",
            )
        return SkillParameters(summary, np.ones(summary.workers))

    def worker_table(self, statistics: S, parameters: SkillParameters) -> WorkerTable:
        """Return the skills that weighted the last votes, nan without reports."""
        counts = parameters.summary.per_worker
        return WorkerTable(np.where(counts > 0, parameters.skill, np.nan), "ability")

    def log_likelihood(self, statistics: S) -> float | None:
        """Return None: a vote has no likelihood."""
        return None

    def to_state(self, parameters: SkillParameters) -> Mapping[str, NDArray[np.float64]]:
        """Return the skills."""
        return {"skill": parameters.skill}

    def from_state(self, initial: SkillParameters, state: FitState) -> SkillParameters:
        """Return the skills of the state; new workers keep the initial one."""
        return replace(initial, skill=state.rows("skill", initial.skill), steps=1)


def weighted_votes(block: GoldBlock, parameters: SkillParameters) -> NDArray[np.float64]:
    """Return the sums of skills by label, [task, label]; plain votes where all skills are 0."""
    votes = block.coded.vote_sums(parameters.skill)
    nothing = ~(votes.sum(axis=1) > 0)
    if nothing.any():
        votes[nothing] = block.coded.vote_sums(np.ones_like(parameters.skill))[nothing]
    return votes


def shares(votes: NDArray[np.float64], gold: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return each label's share of the votes, [task, label]; uniform without votes, certain for gold."""
    total = votes.sum(axis=1, keepdims=True)
    uniform = np.full_like(votes, 1 / votes.shape[1])
    return one_hot_gold(np.divide(votes, total, out=uniform, where=total > 0), gold)


def winner_shares(votes: NDArray[np.float64], gold: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return 1 at the label with the most votes, shared equally by ties, [task, label]; certain for gold."""
    best = votes >= votes.max(axis=1, keepdims=True) - TIE
    return one_hot_gold(best / best.sum(axis=1, keepdims=True), gold)


def agreement_with_winners(block: GoldBlock, votes: NDArray[np.float64]) -> Agreement:
    """Return each worker's agreement with the winners of the votes."""
    return Agreement(block.coded.agreement_sums(winner_shares(votes, block.gold)))
