"""MACE: workers who know the truth or spam (Hovy et al., NAACL 2013), by variational Bayes, through any channel.

Worker i knows the truth of a task with probability theta_i; else the answer is drawn from a spamming strategy xi_i:
    P(answer x | truth z) = theta_i [x = z] + (1 - theta_i) xi_i[x].
Priors: theta_i ~ Beta(1/2, 1/2), xi_i ~ Dirichlet(10, ..., 10); the class prior is uniform or public.
With expected answers n_i[z, x] and r = theta~ / (theta~ + (1 - theta)~ xi~[x]), the M-step adds to the priors
    known_i = sum_x r n_i[x, x],   spam_i[x] = sum_z n_i[z, x] - r n_i[x, x],
and the E-step uses exp(E log .) = exp(digamma(count) - digamma(total)) of each parameter, written with ~.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.deconvolution import frequencies_of_reports
from crowdveil.em.estimate import WorkerTable
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.model import Summary
from crowdveil.em.saddle_points import jittered_table
from crowdveil.estimators.confusion.model import (
    M_STEPS,
    CrowdEstimator,
    CrowdStatistics,
    expected_worker_answers,
    full_report_sums,
    log_participation_prior,
)
from crowdveil.estimators.confusion.parameters import CrowdParameters, participation_prior
from crowdveil.estimators.confusion.variational import dirichlet_divergence, expected_log_dirichlet

SMALLEST = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class MaceParameters(CrowdParameters):
    """Parameters of the crowd; `confusion` holds exp(E log) of the two ways to an answer, so rows sum to less than 1.

    Attributes:
        knowing: Beta parameters of (spam, know), indexed [worker, 2].
        strategy: Dirichlet parameters of the spamming strategy, indexed [worker, label].
    """

    knowing: NDArray[np.float64] = None  # type: ignore[assignment]
    strategy: NDArray[np.float64] = None  # type: ignore[assignment]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Mace(CrowdEstimator[MaceParameters]):
    """Variational EM from the (deconvolved) majority vote; deterministic, so restarts are not needed.

    The ability of a worker is E[theta] + E[1 - theta] / K: P(right answer) of a worker who spams evenly.

    Attributes:
        competence: Beta parameters of P(spam) and P(know).
        strategy: Dirichlet parameter of each label of the spamming strategy.
        max_steps, tolerance: as in every estimator.

    Raises:
        SettingsError: a setting that is not positive.
    """

    name: ClassVar[str] = "mace"
    ranges: ClassVar[Mapping[str, str]] = {"competence": "(0, inf)", "strategy": "(0, inf)"}
    state_fields: ClassVar[Mapping[str, StateField]] = {
        "knowing": StateField("real"),
        "strategy": StateField("real"),
        "participation": StateField("probability"),
    }
    competence: tuple[float, float] = (0.5, 0.5)
    strategy: float = 10.0
    max_steps: int = 500
    tolerance: float = 1e-4

    def initialize(self, summary: Summary) -> MaceParameters:
        """Return the prior for every worker; the first posterior is the share of votes."""
        pool, labels = frequencies_of_reports(summary), summary.labels
        return with_geometric_mean_confusion(
            MaceParameters(
                summary=summary,
                pool=pool,
                dirichlet_prior=np.zeros((labels, labels)),
                participation_pseudo_counts=participation_prior(summary, pool, 5 * pool.noise / pool.participation),
                confusion=np.empty(0),
                participation=np.full(summary.workers, pool.participation),
                class_prior=np.full(labels, 1 / labels) if summary.prior is None else summary.prior,
                is_initial=True,
                knowing=np.tile(self.competence, (summary.workers, 1)),
                strategy=np.full((summary.workers, labels), self.strategy),
            )
        )

    def m_step(self, statistics: CrowdStatistics, parameters: MaceParameters) -> MaceParameters:
        """Return the posteriors of theta and xi from expected answers, and participations."""
        reports = full_report_sums(statistics, parameters)
        for _ in range(M_STEPS if parameters.pool.noise else 1):
            answers, participation = expected_worker_answers(reports, parameters)
            right = np.einsum("wxx->wx", answers)
            known = right * probability_known_given_right(parameters)
            spam = answers.sum(axis=1) - known
            parameters = replace(
                with_geometric_mean_confusion(
                    replace(
                        parameters,
                        knowing=np.stack([spam.sum(axis=1), known.sum(axis=1)], axis=1) + self.competence,
                        strategy=spam + self.strategy,
                    )
                ),
                participation=participation,
                is_initial=False,
                score_tables=None,
            )
        return parameters

    def worker_table(self, statistics: CrowdStatistics, parameters: MaceParameters) -> WorkerTable:
        """Return abilities and posterior mean confusion matrices."""
        labels = parameters.pool.labels
        knows = parameters.knowing[:, 1] / parameters.knowing.sum(axis=1)
        strategy = parameters.strategy / parameters.strategy.sum(axis=1, keepdims=True)
        confusion = knows[:, None, None] * np.eye(labels) + ((1 - knows)[:, None] * strategy)[:, None, :]
        return WorkerTable(
            quality=knows + (1 - knows) / labels,
            quality_name="ability",
            confusion=confusion,
            participation=parameters.participation if parameters.pool.protected else None,
        )

    def log_prior(self, parameters: MaceParameters) -> float:
        """Return minus the divergence of the posteriors of theta and xi from their priors, and the Beta log-density."""
        prior = np.full(parameters.strategy.shape[1], self.strategy)
        divergence = dirichlet_divergence(parameters.knowing, np.array(self.competence))
        divergence += dirichlet_divergence(parameters.strategy, prior)
        return log_participation_prior(parameters) - divergence

    def jitter_parameters(self, parameters: MaceParameters, direction: float, seed: int) -> MaceParameters:
        """Return the parameters with slightly changed counts."""
        knowing = jittered_table(parameters.knowing, direction, seed)
        return replace(with_geometric_mean_confusion(replace(parameters, knowing=knowing)), score_tables=None)

    def from_state(self, initial: MaceParameters, state: FitState) -> MaceParameters:
        """Return the parameters of the state; new workers keep the prior."""
        known = CrowdEstimator.from_state(self, initial, state)
        return with_geometric_mean_confusion(known)


def with_geometric_mean_confusion(parameters: MaceParameters) -> MaceParameters:
    """Return the parameters with exp(E log) of both ways to each answer, added up; indexed [worker, truth, label]."""
    knowing, spam = geometric_mean_parameters(parameters)
    confusion = knowing[:, None, None] * np.eye(spam.shape[1]) + spam[:, None, :]
    return replace(parameters, confusion=confusion)


def geometric_mean_parameters(parameters: MaceParameters) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return theta~, shape (workers,), and (1 - theta)~ xi~, indexed [worker, label]."""
    spam, knowing = expected_log_dirichlet(parameters.knowing).T
    return np.exp(knowing), np.exp(spam[:, None] + expected_log_dirichlet(parameters.strategy))


def probability_known_given_right(parameters: MaceParameters) -> NDArray[np.float64]:
    """Return P(the worker knew | the answer x is right), indexed [worker, label x]."""
    knowing, spam = geometric_mean_parameters(parameters)
    return knowing[:, None] / np.maximum(knowing[:, None] + spam, SMALLEST)
