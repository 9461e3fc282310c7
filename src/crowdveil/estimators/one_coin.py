"""One-coin model: one ability p_i per worker, P(y | z) = p_i for y = z and (1 - p_i) / (K - 1) otherwise.

`OneCoin` reads any channel through confusion matrices; `CoinModel` is the same model for reports that are answers.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from crowdveil.em.deconvolution import AnswerFrequencies, frequencies_of_reports, vote_shares_or_prior
from crowdveil.em.estimate import WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.gold import one_hot_gold
from crowdveil.em.kernels.reductions import map_row_chunks
from crowdveil.em.model import Coordinates, EStep, FitResult, GoldBlock, Summary
from crowdveil.em.saddle_points import jittered_table
from crowdveil.estimators.confusion.credible_intervals import (
    AbilityTangent,
    CompleteDataSummary,
    confusion_intervals,
    plain_ability_information,
    with_intervals,
)
from crowdveil.estimators.confusion.model import (
    ConfusionEstimator,
    CrowdStatistics,
    log_dirichlet_density,
    with_finite_log_odds,
)
from crowdveil.estimators.confusion.parameters import (
    TINY,
    CrowdParameters,
    ability_log_density,
    candidate_mean_abilities,
    most_likely_index,
)


@dataclass(frozen=True, eq=False)
class CoinParameters:
    """Parameters of the crowd.

    Attributes:
        summary, pool: counts of the reports, and the answer frequencies estimated from them.
        class_prior: P(truth), shape (labels,).
        ability: P(answer right), shape (workers,); None before the first step, whose posterior is the share of votes.
        votes: cached `vote_log_likelihoods`.
    """

    summary: Summary
    pool: AnswerFrequencies
    class_prior: NDArray[np.float64]
    ability: NDArray[np.float64] | None
    votes: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    @property
    def wrong_label_probability(self) -> NDArray[np.float64]:
        """P(a given wrong answer), shape (workers,)."""
        assert self.ability is not None
        return np.maximum((1 - self.ability) / (self.summary.labels - 1), TINY)


class CoinStatistics(NamedTuple):
    """Sums over tasks: expected right answers of each worker, shape (workers,)."""

    right: NDArray[np.float64]
    log_likelihood: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CoinModel(Estimator[CoinParameters, CoinStatistics]):
    """EM over abilities of workers whose reports are answers.

    Attributes:
        smoothing: pseudo-counts per cell of a confusion matrix.
        shrinkage: pseudo-counts per row in the credible intervals.
        anchor_ability: prior mean of the ability, used if there is only one step.
        max_steps, tolerance: as in every estimator.
    """

    name: ClassVar[str] = "one-coin"
    state_fields: ClassVar[Mapping[str, StateField]] = {"ability": StateField("probability")}
    smoothing: float
    shrinkage: float
    anchor_ability: float
    max_steps: int
    tolerance: float

    def initialize(self, summary: Summary) -> CoinParameters:
        """Return no abilities: the first posterior is the share of votes."""
        pool = frequencies_of_reports(summary)
        return CoinParameters(summary, pool, pool.label_shares if summary.prior is None else summary.prior, None)

    def coordinates(self, parameters: CoinParameters) -> Coordinates | None:
        """Return the log-odds of abilities."""
        return None if parameters.ability is None else (logit(with_finite_log_odds(parameters.ability)),)

    def from_coordinates(self, parameters: CoinParameters, coordinates: Coordinates) -> CoinParameters:
        """Return the parameters with abilities of these log-odds."""
        return replace(parameters, ability=np.maximum(expit(coordinates[0]), TINY))

    def jitter_parameters(self, parameters: CoinParameters, direction: float, seed: int) -> CoinParameters:
        """Return the parameters with slightly changed abilities."""
        assert parameters.ability is not None
        return replace(parameters, ability=jittered_table(parameters.ability, direction, seed), votes=None)

    def precompute(self, parameters: CoinParameters) -> CoinParameters:
        """Return the parameters with their votes."""
        return parameters if parameters.ability is None else replace(parameters, votes=vote_log_likelihoods(parameters))

    def e_step(self, block: GoldBlock, parameters: CoinParameters) -> EStep[CoinStatistics]:
        """Return posteriors of the block's tasks and the right answers that follow."""
        if parameters.ability is None:
            posterior = one_hot_gold(vote_shares_or_prior(block, parameters.summary, parameters.pool), block.gold)
            return EStep(CoinStatistics(block.coded.agreement_sums(posterior), math.nan), posterior)
        wrong, weight = parameters.votes or vote_log_likelihoods(parameters)
        step = block.coded.one_coin_step(weight, np.log(parameters.class_prior), block.gold, block.before)
        likelihood = step.log_normaliser + float((block.coded.worker_counts * wrong).sum())
        return EStep(CoinStatistics(step.agreement, likelihood), step.posterior, change=step.change)

    def m_step(self, statistics: CoinStatistics, parameters: CoinParameters) -> CoinParameters:
        """Return the shares of right answers with pseudo-counts; the class prior is uniform or public."""
        labels = parameters.summary.labels
        answers, right = parameters.summary.per_worker + labels**2 * self.smoothing, statistics.right
        if (earlier := parameters.summary.history) is not None:
            answers, right = answers + earlier.number, right + earlier.right
        ability = np.maximum((right + labels * self.smoothing) / answers, TINY)
        prior = np.full(labels, 1 / labels) if parameters.summary.prior is None else parameters.class_prior
        return replace(parameters, ability=ability, class_prior=prior, votes=None)

    def worker_table(self, statistics: CoinStatistics, parameters: CoinParameters) -> WorkerTable:
        """Return abilities and confusion matrices with uniform errors; before any step, the prior mean of all."""
        labels, workers = parameters.summary.labels, parameters.summary.workers
        if parameters.ability is None:
            prior_mean = self.anchor_ability * np.eye(labels) + (1 - self.anchor_ability) * parameters.pool.label_shares
            ability = np.full(workers, float(np.diag(prior_mean) @ parameters.class_prior))
            return WorkerTable(ability, "ability", confusion=np.repeat(prior_mean[None], workers, axis=0))
        table = np.repeat(parameters.wrong_label_probability, labels**2).reshape(-1, labels, labels)
        table[:, np.arange(labels), np.arange(labels)] = parameters.ability[:, None]
        return WorkerTable(parameters.ability, "ability", confusion=table)

    def credible_intervals(
        self,
        blocks: Iterable[GoldBlock],
        posterior: NDArray[np.float64],
        result: FitResult[CoinParameters, CoinStatistics],
    ) -> WorkerTable:
        """Return the worker table with credible intervals, equal to those of `OneCoin` behind the identity channel."""
        summary = result.parameters.summary
        right, number, labels = result.statistics.right, summary.per_worker, summary.labels
        mean_ability = float(right.sum() / number.sum()) if number.any() else 1 / labels
        pseudo = labels * self.smoothing + labels * self.shrinkage * mean_ability
        share = (right + pseudo) / (number + labels**2 * self.smoothing + labels * self.shrinkage)
        every = np.repeat(share[:, None], labels, axis=1)
        data = plain_ability_information(AbilityTangent(every, np.ones_like(every), None), summary, blocks, posterior)
        complete = right / share**2 + (number - right) / (1 - share) ** 2
        answers_per_information = np.divide(number, complete, out=np.zeros(len(data)), where=complete > 0)
        return with_intervals(
            result.workers,
            CompleteDataSummary(share, answers_per_information, right - number * share),
            data,
            number,
            summary.history,
        )

    def from_state(self, initial: CoinParameters, state: FitState) -> CoinParameters:
        """Return the abilities of the state; new workers have the initial one."""
        labels, given = initial.summary.labels, initial.summary.prior
        no_statistics = CoinStatistics(np.zeros(initial.summary.workers), math.nan)
        default = self.worker_table(no_statistics, initial).quality
        prior = np.full(labels, 1 / labels) if given is None else initial.class_prior
        return replace(initial, ability=state.worker_rows_or_default("ability", default), class_prior=prior)

    def log_prior(self, parameters: CoinParameters) -> float:
        """Return the log-density of the confusion matrices under the smoothing prior."""
        if parameters.ability is None:
            return 0.0
        labels = parameters.summary.labels
        cells = labels * np.log(parameters.ability) + labels * (labels - 1) * np.log(parameters.wrong_label_probability)
        earlier, rest = parameters.summary.history, np.maximum(1 - parameters.ability, TINY)
        if earlier is None:
            return self.smoothing * float(cells.sum())
        known = earlier.right @ np.log(parameters.ability) + earlier.wrong @ np.log(rest)
        return self.smoothing * float(cells.sum()) + float(known)


def vote_log_likelihoods(parameters: CoinParameters) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log P(a given wrong answer), and the log-likelihood ratio of a right answer to it; shapes (workers,).

    Abilities must not be None.
    """
    assert parameters.ability is not None
    wrong = np.log(parameters.wrong_label_probability)
    return wrong, np.log(parameters.ability) - wrong


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneCoin(ConfusionEstimator):
    """EM over one ability per worker, with a fixed class prior.

    The class prior is uniform without a channel, since a learned one explains disagreement by a common label. Behind a
    channel it is a mixture, in proportion to the noise, of uniform and the crowd's answer frequencies. A public prior
    replaces both.

    Attributes:
        max_steps, tolerance, smoothing, shrinkage: as in `DawidSkene`.
        anchor_ability: mean of the hyperprior of the crowd's ability, behind a channel.
        damping: share of answer frequencies in the class prior, multiplied by the noise, at most 1.

    >>> answers = {"task": [1, 1, 1, 2, 2, 2], "worker": [*"abcabc"], "label": [*"yynnnn"]}
    >>> OneCoin().fit(answers).truth.tolist()
    ['y', 'n']
    """

    name: ClassVar[str] = "one-coin"
    state_fields: ClassVar[Mapping[str, StateField]] = {
        **CoinModel.state_fields,
        **ConfusionEstimator.state_fields,
    }
    max_steps: int = 1000
    tolerance: float = 1e-6
    smoothing: float = 0.01
    shrinkage: float = 5.0
    anchor_ability: float = 0.7
    damping: float = 1.0

    def simplify(self, summary: Summary) -> Estimator[Any, Any]:
        """Return the model without confusion matrices if reports are answers."""
        if not summary.model.is_identity:
            return self
        return CoinModel(
            smoothing=self.smoothing,
            shrinkage=self.shrinkage,
            anchor_ability=self.anchor_ability,
            max_steps=self.max_steps,
            tolerance=self.tolerance,
        )

    def estimate_confusions(
        self, answers: NDArray[np.float64], dirichlet_prior: NDArray[np.float64], *, compiled: bool = False
    ) -> NDArray[np.float64]:
        """Return matrices with one ability on the diagonal and uniform errors."""
        return map_row_chunks(partial(one_ability_confusion_matrices, dirichlet_prior), answers, np.empty_like(answers))

    def updated_dirichlet_prior(self, parameters: CrowdParameters) -> NDArray[np.float64]:
        """Return the Dirichlet prior with the most likely mean ability, given the workers' abilities."""
        dirichlet_priors = self._candidate_priors(parameters.pool)
        right, wrong = coin_pseudo_counts(dirichlet_priors)
        best = most_likely_index(
            self.anchor_ability, abilities_with_reports(parameters), right[:, None], wrong[:, None]
        )
        return np.asarray(dirichlet_priors[best])

    def _candidate_priors(self, pool: AnswerFrequencies) -> NDArray[np.float64]:
        """Return the Dirichlet priors of all candidate mean abilities, [candidate, truth, label]."""
        return np.array([self.dirichlet_prior(pool, mean) for mean in candidate_mean_abilities(self.anchor_ability)])

    def log_confusion_prior(self, parameters: CrowdParameters) -> float:
        """Return the Beta log-densities of abilities, and behind a channel that of their mean."""
        if not parameters.pool.noise:
            return log_dirichlet_density(parameters)
        away = np.abs(self._candidate_priors(parameters.pool) - parameters.dirichlet_prior)
        current = int(away.sum(axis=(1, 2)).argmin())
        mean_ability = candidate_mean_abilities(self.anchor_ability)[current]
        right, wrong = coin_pseudo_counts(parameters.dirichlet_prior)
        return float(
            ability_log_density(mean_ability, self.anchor_ability, abilities_with_reports(parameters), right, wrong)
        )

    def credible_intervals(
        self,
        blocks: Iterable[GoldBlock],
        posterior: NDArray[np.float64],
        result: FitResult[CrowdParameters, CrowdStatistics],
    ) -> WorkerTable:
        """Return the worker table with intervals of one ability for all rows."""
        return confusion_intervals(self, blocks, posterior, result, one_ability=True)

    def estimate_class_prior(self, by_truth: NDArray[np.float64], parameters: CrowdParameters) -> NDArray[np.float64]:
        """Return the fixed mixture of uniform and answer frequencies."""
        weight = min(1.0, self.damping * parameters.pool.noise)
        return (1 - weight) / parameters.pool.labels + weight * parameters.pool.label_shares


def one_ability_confusion_matrices(
    dirichlet_prior: NDArray[np.float64], answers: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return confusion matrices with one ability and uniform errors; all indexed [..., truth, label]."""
    labels, counts = answers.shape[1], answers + dirichlet_prior
    ability = np.einsum("wzz->w", counts) / counts.sum(axis=(1, 2))
    rest = (1 - ability) / (labels - 1)
    return np.asarray(rest[:, None, None] + (ability - rest)[:, None, None] * np.eye(labels))


def coin_pseudo_counts(
    dirichlet_prior: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the right and the wrong pseudo-counts of a Dirichlet prior [..., truth, label]."""
    right = np.einsum("...zz->...", dirichlet_prior)
    return right, dirichlet_prior.sum(axis=(-2, -1)) - right


def abilities_with_reports(parameters: CrowdParameters) -> NDArray[np.float64]:
    """Return the abilities of the workers with reports."""
    return np.asarray(parameters.confusion[parameters.summary.per_worker > 0, 0, 0])
