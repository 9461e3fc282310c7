"""Dawid-Skene with one confusion matrix for the whole crowd, through any channel.

The multinomial model of Paun et al. (TACL 2018): reports on a task are independent draws from
R[z, y] = (1 - s) Q[NULL, y] + s sum_x C[z, x] Q[x, y], the same for all workers. Only the counts of reports by task and
symbol enter, so reports may be shuffled.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.fit_state import StateField
from crowdveil.em.kernels.reductions import normalize_confusion
from crowdveil.em.model import Summary
from crowdveil.em.saddle_points import jittered_table
from crowdveil.estimators.confusion.model import (
    M_STEPS,
    ConfusionEstimator,
    CrowdStatistics,
    DirichletEstimator,
    expected_worker_answers,
    full_report_sums,
    normalized,
)
from crowdveil.estimators.confusion.parameters import TINY, CrowdParameters


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PooledDawidSkene(DirichletEstimator):
    """EM from the (deconvolved) majority vote, with one confusion matrix and one participation for all workers.

    Attributes:
        smoothing, shrinkage, anchor_ability, damping, max_steps, tolerance: as in Dawid-Skene; shrinkage counts
            pseudo-answers of the whole crowd.
    """

    name: ClassVar[str] = "pooled-dawid-skene"
    state_fields: ClassVar[Mapping[str, StateField]] = ConfusionEstimator.state_fields
    max_steps: int = 1000
    tolerance: float = 1e-6
    smoothing: float = 0.01
    shrinkage: float = 50.0
    anchor_ability: float = 0.7
    damping: float = 0.1

    def initialize(self, summary: Summary) -> CrowdParameters:
        """Return the prior mean; participation has no prior, as it is that of all reports."""
        initial = super(PooledDawidSkene, self).initialize(summary)
        return replace(initial, participation_pseudo_counts=0.0)

    def m_step(self, statistics: CrowdStatistics, parameters: CrowdParameters) -> CrowdParameters:
        """Return the crowd's confusion matrix, participation and class prior from expected answers."""
        reports = full_report_sums(statistics, parameters)
        for _ in range(M_STEPS if parameters.pool.noise else 1):
            answers, participation = expected_worker_answers(reports, parameters)
            total = answers.sum(axis=0, keepdims=True)
            parameters = replace(
                parameters,
                confusion=_repeated_for_each_worker(
                    normalize_confusion(total, parameters.dirichlet_prior)[0], len(answers)
                ),
                participation=np.full_like(participation, participation.mean()),
                is_initial=False,
            )
        if parameters.summary.prior is None:
            by_truth = statistics.by_truth.sum(axis=0)
            parameters = replace(parameters, class_prior=self.estimate_class_prior(by_truth, parameters))
        return parameters

    def log_confusion_prior(self, parameters: CrowdParameters) -> float:
        """Return the Dirichlet log-density of the crowd's rows."""
        logs = np.log(np.maximum(parameters.confusion[0], TINY))
        return float((parameters.dirichlet_prior * logs).sum())

    def jitter_parameters(self, parameters: CrowdParameters, direction: float, seed: int) -> CrowdParameters:
        """Return the parameters with a slightly changed confusion matrix."""
        confusion = normalized(jittered_table(parameters.confusion[0], direction, seed))
        return replace(
            parameters, confusion=_repeated_for_each_worker(confusion, len(parameters.confusion)), score_tables=None
        )


def _repeated_for_each_worker(matrix: NDArray[np.float64], workers: int) -> NDArray[np.float64]:
    """Return the matrix for every worker, indexed [worker, truth, label]."""
    return np.repeat(matrix[None], workers, axis=0)
