"""Gaussian errors of an anonymous crowd: numbers through a channel, from the counts of reports on each task.

Reports on a task of truth mu are independent draws from the crowd's mixture of kinds of workers,
R[mu, y] = (1 - s) Q[NULL, y] + s sum_k w_k sum_x C_k[mu, x] Q[x, y], with the normal errors C_k of deviation sigma_k.
E-step: p_j(mu) proportional to prior(mu) prod_y R[mu, y]^m_jy from the counts m_j. M-step: with
G[mu, y] = sum_j p_j(mu) m_jy, w_k proportional to w_k sum G[mu, y] C_k[mu, .] Q[., y] / R[mu, y], and s likewise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.reports import Block
from crowdveil.em.deconvolution import frequencies_of_reports
from crowdveil.em.estimate import WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.kernels.numpy_backend import softmax
from crowdveil.em.model import EStep, GoldBlock, MemoryUse, Summary
from crowdveil.estimators.gaussian import discretization as grid
from crowdveil.estimators.gaussian.discretization import MAX_PARTICIPATION, TINY
from crowdveil.estimators.gaussian.estimator import (
    CHUNK_TASKS,
    LEVELS,
    Gaussian,
    GaussianParameters,
    averaged_truth_quantiles,
    candidate_log_likelihoods,
    e_step_in_chunks,
    task_symbol_counts,
    weighted_by_marginal_likelihood,
)

M_STEPS = 20
"""Updates of the mixture at unchanged posteriors within an M-step."""
PSEUDO_REPORTS = 1.0
"""Pseudo-answers of every sigma."""


@dataclass(frozen=True, eq=False)
class PooledParameters:
    """The crowd's mixture and the prior of truths.

    Attributes:
        anonymous: grid of truths, candidate priors and their weights, as in `gaussian`.
        unanswered: P(report | no answer), shape (reports, 1).
        answered: P(report | truth, sigma), indexed [report, sigma, truth].
        sigma_shares: shape (sigmas,), sum 1.
        participation: share of cells that are answered.
        first: True in the first step, which weights the priors by their marginal likelihood.
        learned: True if shares and participation are those of an earlier M-step.
    """

    anonymous: GaussianParameters
    unanswered: NDArray[np.float64]
    answered: NDArray[np.float64]
    sigma_shares: NDArray[np.float64]
    participation: float
    first: bool = True
    learned: bool = False

    @property
    def report_given_truth(self) -> NDArray[np.float64]:
        """P(report | truth), indexed [report, truth]."""
        answers = np.einsum("k,ykt->yt", self.sigma_shares, self.answered)
        return np.asarray((1 - self.participation) * self.unanswered + self.participation * answers)

    @property
    def log_prior(self) -> NDArray[np.float64]:
        """Log-probabilities of the truths: the weighted candidates."""
        models = self.anonymous.anonymous_models
        return np.asarray(np.log(self.anonymous.weights @ np.exp(models[0].family)))


class PooledStatistics(NamedTuple):
    """Sums over tasks: posterior times counts, [report, truth]; evidence of the candidates, in the first step only."""

    by_report: NDArray[np.float64]
    evidence: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PooledGaussian(Estimator[PooledParameters, PooledStatistics]):
    """EM for the crowd's mixture of error sizes and its participation; truths are posterior medians with intervals.

    Attributes:
        prior_mean, prior_deviation: public normal prior of the truths; None for a learned prior, or one given by label.
        max_steps: largest number of steps.
        tolerance: stop when no truth changes by more than this, in units of the answers.

    Raises:
        SettingsError: a setting out of range.
    """

    name: ClassVar[str] = "pooled-gaussian"
    state_fields: ClassVar[Mapping[str, StateField]] = {
        "sigma_shares": StateField("distribution", by_worker=False),
        "participation": StateField("probability"),
    }
    prior_mean: float | None = None
    prior_deviation: float | None = None
    max_steps: int = 300
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        Estimator.__post_init__(self)
        self._gaussian()

    def _gaussian(self) -> Gaussian:
        return Gaussian(prior_mean=self.prior_mean, prior_deviation=self.prior_deviation)

    def initialize(self, summary: Summary) -> PooledParameters:
        """Return the participation of the pooled counts, and candidate priors with mixtures of sigmas."""
        anonymous, model = self._gaussian().initialize(summary), summary.model
        assert summary.alphabet is not None
        sigmas, values = anonymous.classes.sigmas, summary.alphabet.values
        answers = grid.normal_answer_probabilities(
            anonymous.points, sigmas, values, grid.alphabet_step(summary.alphabet)
        )
        pool = frequencies_of_reports(summary)
        return PooledParameters(
            anonymous=replace(anonymous, q=np.empty((0, 0))),
            unanswered=model.full_table[-1][:, None],
            answered=(answers @ model.full_table[: summary.labels]).transpose(2, 0, 1),
            sigma_shares=anonymous.sigma_shares,
            participation=min(pool.participation, MAX_PARTICIPATION) if model.protected else 1.0,
        )

    def memory(self, summary: Summary, parameters: PooledParameters) -> MemoryUse:
        """Return the size of the statistics, and of posteriors on the grid of truths of `CHUNK_TASKS` tasks."""
        points, reports = len(parameters.anonymous.points), len(parameters.answered)
        return MemoryUse(points * reports, parameters.answered.nbytes, 64 * CHUNK_TASKS * points)

    def to_state(self, parameters: PooledParameters) -> Mapping[str, NDArray[np.float64]]:
        """Return the shares of sigmas and the participation; empty before they are learned."""
        if not parameters.learned:
            return {}
        crowd = np.full(parameters.anonymous.summary.workers, parameters.participation)
        return {"sigma_shares": parameters.sigma_shares, "participation": crowd}

    def from_state(self, initial: PooledParameters, state: FitState) -> PooledParameters:
        """Return the parameters of the state; the first step weights the priors of truths, as in every fit."""
        known = state.worker_rows_or_default("participation", np.full(initial.anonymous.summary.workers, np.nan))
        participation = initial.participation if np.isnan(known).all() else float(np.nanmax(known))
        return replace(initial, sigma_shares=state.shared["sigma_shares"], participation=participation, learned=True)

    def e_step(self, block: GoldBlock, parameters: PooledParameters) -> EStep[PooledStatistics]:
        """Return posterior medians of the block's tasks with their interval, and the sums for the mixture."""
        return e_step_in_chunks(
            block, parameters.anonymous, lambda part, gold: _statistics_and_quantiles_of_tasks(part, gold, parameters)
        )

    def m_step(self, statistics: PooledStatistics, parameters: PooledParameters) -> PooledParameters:
        """Return the weights of priors in the first step, then the mixture of sigmas and the participation."""
        if parameters.first:
            weighted = weighted_by_marginal_likelihood(
                statistics.evidence, replace(parameters.anonymous, learned=parameters.learned)
            )
            parameters = replace(parameters, anonymous=replace(weighted, q=np.empty((0, 0))), first=False)
            if weighted.average is not None:
                parameters = replace(parameters, participation=float(weighted.classes.participations[0]))
            return parameters if weighted.learned else replace(parameters, sigma_shares=weighted.sigma_shares)
        if parameters.anonymous.average is not None:
            return parameters
        smoothing = grid.neighbour_smoothing_matrix(len(parameters.sigma_shares))
        for _ in range(M_STEPS):
            ratio = statistics.by_report / np.maximum(parameters.report_given_truth, TINY)
            by_sigma = parameters.sigma_shares * np.einsum("yt,ykt->k", ratio, parameters.answered)
            answered = parameters.participation * by_sigma.sum()
            blank = (1 - parameters.participation) * float((ratio * parameters.unanswered).sum())
            shares = (parameters.participation * by_sigma + PSEUDO_REPORTS) @ smoothing
            share = answered / max(answered + blank, TINY) if parameters.participation < 1 else 1.0
            parameters = replace(parameters, sigma_shares=shares / shares.sum(), participation=float(share))
        return replace(parameters, learned=True)

    def worker_table(self, statistics: PooledStatistics, parameters: PooledParameters) -> WorkerTable:
        """Return the crowd's sigma, weight 1 / sigma and participation for every worker."""
        summary, sigmas = parameters.anonymous.summary, parameters.anonymous.classes.sigmas
        levels = np.exp(grid.quantiles(parameters.sigma_shares[None], np.log(sigmas), LEVELS))
        low, middle, high = np.repeat(levels, summary.workers, axis=0).T
        protected = summary.model.protected
        return WorkerTable(
            quality=np.full(summary.workers, float(parameters.sigma_shares @ (1 / sigmas))),
            quality_name="weight",
            participation=np.full(summary.workers, parameters.participation) if protected else None,
            sigma_low=low,
            sigma=middle,
            sigma_high=high,
        )


def _statistics_and_quantiles_of_tasks(
    part: Block, gold: NDArray[np.float64], parameters: PooledParameters
) -> tuple[PooledStatistics, NDArray[np.float64]]:
    """Return statistics and quantiles of some tasks of a block."""
    anonymous, fixed = parameters.anonymous, ~np.isnan(gold)
    if anonymous.average is not None:
        return PooledStatistics(np.zeros(1), np.zeros(1)), averaged_truth_quantiles(part, gold, anonymous)
    counts = task_symbol_counts(part, anonymous.summary)
    posterior, _ = softmax(counts @ np.log(np.maximum(parameters.report_given_truth, TINY)) + parameters.log_prior)
    posterior[fixed] = grid.point_masses(anonymous.points, gold[fixed])
    evidence = candidate_log_likelihoods(counts, gold, anonymous) if parameters.first else np.zeros(1)
    return PooledStatistics(counts.T @ posterior, evidence), grid.quantiles(posterior, anonymous.points, LEVELS)
