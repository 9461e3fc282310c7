"""Ordinal Dawid-Skene: a mixture of worker types by noise and bias on the scale of ordered labels.

A type has a normal error and a bias around the truth's position, or ignores the truth. Mean field: the posteriors over
types, q_i(c), and over truths are updated in turn, through the channel.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crowdveil.em.deconvolution import frequencies_of_reports
from crowdveil.em.estimate import WorkerTable
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.model import FitInput, FitResult, GoldBlock, MemoryUse, Summary
from crowdveil.estimators.confusion.credible_intervals import confusion_intervals
from crowdveil.estimators.confusion.model import (
    CrowdEstimator,
    CrowdStatistics,
    class_prior_log_density,
    damped_class_prior,
    full_report_sums,
    log_participation_prior,
    participation_posterior_mean,
)
from crowdveil.estimators.confusion.parameters import TINY, CrowdParameters, Mixture, participation_prior
from crowdveil.estimators.one_coin import OneCoin

LAPSE_RATE = 0.2
"""Share of guesses among the answers of every worker; without it, one large error would exclude a truth."""
NOISES = (1 / 3, 1 / 2, 0.8, 1.25, 2.0, 3.0)
"""Standard deviations of the careful types, in units of the typical one."""
BIASES = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""Biases of the careful types, in levels."""
TYPICAL_NOISE = 0.15
"""Typical standard deviation of errors, in units of the range K - 1."""
MIN_NOISE = 0.2
"""Lower bound of the standard deviation, in levels; with less, nearly all answers equal the truth."""
NOISE_SPREAD, BIAS_SPREAD = 0.7, 0.25
"""Standard deviations of the logarithm of the noise and of the bias over workers."""
CARELESS_SHARE = 0.15
"""Share of workers whose answers do not depend on the truth."""
FAVOURITE_SHARES = (0.5, 0.95)
"""Probabilities that a careless type with a favourite label answers it; otherwise the type guesses."""
MIN_PROBABILITY = 1e-3
"""Lower bound of P(answer | truth), before normalization."""


def worker_types(base_rate: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the confusion matrices of all worker types, and their prior shares.

    Args:
        base_rate: share of each label among answers, shape (labels,), sums to 1.

    Returns:
        Indexed [type, truth, label], rows sum to 1; and shape (types,), sums to 1.
    """
    labels = len(base_rate)
    typical = TYPICAL_NOISE * (labels - 1)
    careful = [(noise, bias) for noise in NOISES for bias in BIASES]
    tables = [
        LAPSE_RATE * base_rate + (1 - LAPSE_RATE) * threshold_answer_given_truth(labels, noise * typical, bias)
        for noise, bias in careful
    ]
    weights = [
        np.exp(-0.5 * (np.log(noise) / NOISE_SPREAD) ** 2 - 0.5 * (bias / BIAS_SPREAD) ** 2) for noise, bias in careful
    ]
    careless = [
        (1 - share) * base_rate + share * label for label in np.eye(labels) for share in (*FAVOURITE_SHARES,)
    ] + [base_rate]
    tables += [np.tile(row, (labels, 1)) for row in careless]
    unbiased = [CARELESS_SHARE / 2 / (len(careless) - 1)] * (len(careless) - 1) + [CARELESS_SHARE / 2]
    shares = np.concatenate((np.array(weights) / sum(weights) * (1 - CARELESS_SHARE), unbiased))
    floored = np.maximum(np.array(tables), MIN_PROBABILITY)
    return floored / floored.sum(axis=2, keepdims=True), shares


def threshold_answer_given_truth(labels: int, noise: float, bias: float) -> NDArray[np.float64]:
    """Return P(answer | truth) of a normal error, indexed [truth, label]; the extreme labels include the tails."""
    cuts = np.arange(labels - 1) + 0.5
    level = np.arange(labels)[:, None] + bias
    below = ndtr((cuts - level) / max(noise, MIN_NOISE))
    ends = np.zeros((labels, 1)), np.ones((labels, 1))
    return np.diff(np.concatenate((ends[0], below, ends[1]), axis=1), axis=1)


BYTES_PER_TYPE = 48
"""Bytes per worker and type."""
PRIOR_HOLD_STEPS = 10
"""Steps with a uniform class prior before it is learned, in the second initialization."""
MAX_CONCENTRATION = 16.0
"""Upper bound of the concentration of the Beta prior in credible intervals, in answers."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinalDawidSkene(CrowdEstimator[CrowdParameters]):
    """Dawid-Skene for ordered labels; confusion matrices are mixtures of worker types with learned shares.

    `log_likelihoods` is the mean-field lower bound of the log-likelihood, priors included; it never falls.

    Attributes:
        shrinkage: pseudo-workers with the prior shares of types, in the learned mixture.
        pseudo_answers: lower bound of the pseudo-counts, in answers, of the Beta prior of participation; multiplied by
            the noise.
        damping: prior weight of answer frequencies in the class prior, in campaigns; multiplied by the noise.
        max_steps: largest number of steps.
        tolerance: stop when no posterior changes by more than this.

    Raises:
        SettingsError: one of them is out of range.

    >>> from crowdveil import Categories, Reports
    >>> answers = {"task": [1, 1, 1, 2, 2, 2], "worker": [*"abcabc"], "label": [*"112223"]}
    >>> labels = Categories(("1", "2", "3"), ordered=True)
    >>> OrdinalDawidSkene().fit(Reports.from_frame(answers, alphabet=labels)).truth.tolist()
    ['1', '2']
    """

    name: ClassVar[str] = "ordinal-dawid-skene"
    ranges: ClassVar[Mapping[str, str]] = {"shrinkage": "(0, inf)", "pseudo_answers": "[0, inf)", "damping": "[0, inf)"}
    state_fields: ClassVar[Mapping[str, StateField]] = {
        "responsibility": StateField("distribution"),
        "participation": StateField("probability"),
        "class_prior": StateField("distribution", by_worker=False),
        "kinds": StateField("distribution", by_worker=False),
    }
    max_steps: int = 1000
    tolerance: float = 1e-6
    shrinkage: float = 100.0
    pseudo_answers: float = 5.0
    damping: float = 0.1

    def initialize(self, summary: Summary) -> CrowdParameters:
        """Return the prior mixture of types for every worker; the first posterior is the share of votes."""
        pool = frequencies_of_reports(summary)
        min_pseudo_counts = self.pseudo_answers * pool.noise / pool.participation
        tables, expected = worker_types(pool.label_shares)
        mixture = Mixture(tables, expected, expected, np.tile(expected, (summary.workers, 1)))
        return CrowdParameters(
            summary=summary,
            pool=pool,
            dirichlet_prior=np.zeros(tables.shape[1:]),
            participation_pseudo_counts=participation_prior(summary, pool, min_pseudo_counts),
            confusion=mixture.confusion_of_each_worker(),
            participation=np.full(summary.workers, pool.participation),
            class_prior=pool.label_shares if summary.prior is None else summary.prior,
            is_initial=True,
            mixture=mixture,
        )

    def memory(self, summary: Summary, parameters: CrowdParameters) -> MemoryUse:
        """Return the memory of confusion matrices, responsibilities, and the posteriors of the first initialization."""
        assert parameters.mixture is not None
        tables = CrowdEstimator.memory(self, summary, parameters)
        own = BYTES_PER_TYPE * parameters.mixture.responsibility.size + 8 * summary.tasks * summary.labels
        return tables._replace(shared=tables.shared + own)

    def to_state(self, parameters: CrowdParameters) -> Mapping[str, NDArray[np.float64]]:
        """Return responsibilities, shares of types, participations and the class prior."""
        if parameters.is_initial or parameters.mixture is None:
            return {}
        return {
            "responsibility": parameters.mixture.responsibility,
            "participation": parameters.participation,
            "class_prior": parameters.class_prior,
            "kinds": parameters.mixture.shares,
        }

    def from_state(self, initial: CrowdParameters, state: FitState) -> CrowdParameters:
        """Return the parameters of the state; new workers keep the initial ones."""
        assert initial.mixture is not None
        responsibility = state.worker_rows_or_default("responsibility", initial.mixture.responsibility)
        mixture = replace(initial.mixture, responsibility=responsibility, shares=state.shared["kinds"])
        return replace(
            initial,
            mixture=mixture,
            confusion=mixture.confusion_of_each_worker(),
            participation=state.worker_rows_or_default("participation", initial.participation),
            class_prior=state.shared["class_prior"] if initial.summary.prior is None else initial.class_prior,
            is_initial=False,
        )

    def initializations(self, data: FitInput) -> tuple[CrowdParameters, ...]:
        """Return two initializations if the class prior is learned: at once, or after steps with a uniform one.

        A class prior that is learned from votes at once can suppress a rare label before confusion matrices converge.
        """
        summary = data.summary
        if summary.prior is not None:
            return (self.initialize(summary),)
        learned_at_once = self.initialize(summary)
        uniform = np.full(summary.labels, 1 / summary.labels)
        return (learned_at_once, replace(learned_at_once, class_prior=uniform, prior_hold_steps=PRIOR_HOLD_STEPS))

    def m_step(self, statistics: CrowdStatistics, parameters: CrowdParameters) -> CrowdParameters:
        """Return new responsibilities, mixture shares, participations and class prior."""
        assert parameters.mixture is not None
        reports = full_report_sums(statistics, parameters)
        scores = log_likelihood_by_type(reports, parameters, parameters.mixture) + np.log(parameters.mixture.shares)
        scores += log_likelihood_of_history(parameters, parameters.mixture)
        own = np.exp(scores - scores.max(axis=1, keepdims=True))
        own /= own.sum(axis=1, keepdims=True)
        learned = own.sum(axis=0) + self.shrinkage * parameters.mixture.expected
        mixture = replace(parameters.mixture, responsibility=own, shares=learned / learned.sum())
        participation = parameters.participation
        if parameters.pool.protected:
            answered = expected_non_null_reports(reports, parameters, mixture)
            participation = participation_posterior_mean(answered, reports.sum(axis=(1, 2)), parameters)
        prior = parameters.class_prior
        if parameters.summary.prior is None and not parameters.prior_hold_steps:
            prior = damped_class_prior(statistics.by_truth.sum(axis=0), self.damping, parameters)
        return replace(
            parameters,
            mixture=mixture,
            confusion=mixture.confusion_of_each_worker(),
            participation=participation,
            class_prior=prior,
            is_initial=False,
            prior_hold_steps=max(parameters.prior_hold_steps - 1, 0),
        )

    def credible_intervals(
        self,
        blocks: Iterable[GoldBlock],
        posterior: NDArray[np.float64],
        result: FitResult[CrowdParameters, CrowdStatistics],
    ) -> WorkerTable:
        """Return the worker table with intervals of one ability for all rows, as in `one-coin`.

        Error classes contain one guess in five answers, so their mean ability never reaches 1. They have no common
        mean to shrink to, so similar abilities are evidence of a concentrated prior. Without noise, the posterior mean
        under this prior replaces the ability.
        """
        return confusion_intervals(
            OneCoin(),
            blocks,
            posterior,
            result,
            one_ability=True,
            max_concentration=MAX_CONCENTRATION,
            average_priors_by_evidence=True,
            use_posterior_mean=not result.parameters.pool.noise,
        )

    def log_prior(self, parameters: CrowdParameters) -> float:
        """Return the terms of the mean-field bound beyond the tasks', with the log-densities of all priors."""
        mixture = parameters.mixture
        assert mixture is not None
        mixture_terms = (
            self.shrinkage * float(mixture.expected @ np.log(mixture.shares)) - mixture.responsibility_divergence()
        )
        learned = 0.0 if parameters.summary.prior is not None else class_prior_log_density(self.damping, parameters)
        known = float(np.sum(mixture.responsibility * log_likelihood_of_history(parameters, mixture)))
        return mixture_terms + log_participation_prior(parameters) + learned + known


def log_likelihood_by_type(
    reports: NDArray[np.float64], parameters: CrowdParameters, mixture: Mixture
) -> NDArray[np.float64]:
    """Return the expected log-likelihood of each worker's reports under each type, indexed [worker, type]."""
    by_type = mixture.report_tables_by_type(parameters.pool.model.full_table, parameters.participation)
    return np.stack([(reports * np.log(np.maximum(table, TINY))).sum(axis=(1, 2)) for _, table in by_type], axis=1)


def log_likelihood_of_history(parameters: CrowdParameters, mixture: Mixture) -> NDArray[np.float64]:
    """Return the log-likelihood of each worker's earlier answers under each type, [worker, type]; zeros without any."""
    earlier = parameters.summary.history
    if earlier is None:
        return np.zeros((1, 1))
    right = np.einsum("tzz->tz", mixture.type_confusion)
    shares = parameters.pool.label_shares
    logs = np.log(right) @ shares, np.log(1 - right) @ shares
    return np.asarray(earlier.right[:, None] * logs[0] + earlier.wrong[:, None] * logs[1])


def expected_non_null_reports(
    reports: NDArray[np.float64], parameters: CrowdParameters, mixture: Mixture
) -> NDArray[np.float64]:
    """Return the expected number of each worker's reports that are answers, not NULL; shape (workers,)."""
    answers = np.zeros(len(reports))
    by_type = mixture.report_tables_by_type(parameters.pool.model.full_table, parameters.participation)
    for index, (answered, table) in enumerate(by_type):
        share = parameters.participation[:, None, None] * answered / np.maximum(table, TINY)
        answers += mixture.responsibility[:, index] * (reports * share).sum(axis=(1, 2))
    return answers
