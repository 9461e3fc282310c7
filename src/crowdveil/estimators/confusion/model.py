"""EM for confusion matrices behind a channel: the generative model of Dawid-Skene, one-coin and ordinal Dawid-Skene.

Model. Task j has truth z_j ~ pi. Worker i answers a cell with probability s_i, and answers x on truth z with
probability C_i[z, x]. The channel Q of the cell turns the answer, or NULL, into report y:
    R_i[z, y] = P(y_ij = y | z_j = z) = (1 - s_i) Q[NULL, y] + s_i sum_x C_i[z, x] Q[x, y].
Priors: rows of C_i are Dirichlet, s_i is Beta with the crowd's mean; their weights are proportional to the noise.

E-step. gamma_j(z) is proportional to pi_z prod_i R_i[z, y_ij]. Implicit NULL reports enter by their counts: each task
starts from the NULL terms of all workers, and a listed report replaces its worker's term.

M-step. From the sums N_i[z, y] of gamma_j(z) over the tasks with report y, with P_i[z, x] = s_i C_i[z, x] and
P_i[z, NULL] = 1 - s_i, expected answers are A_i[z, x] = P_i[z, x] sum_y N_i[z, y] Q[x, y] / R_i[z, y].
C_i is A_i plus pseudo-counts, normalized; s_i is the expected share of answered cells.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax

from crowdveil.em.deconvolution import AnswerFrequencies, frequencies_of_reports, vote_shares_or_prior
from crowdveil.em.estimate import WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.gold import one_hot_gold
from crowdveil.em.kernels.numpy_backend import TableStep
from crowdveil.em.kernels.reductions import (
    confusion_from_unnormalized_logs,
    floored_log,
    normalize_confusion,
)
from crowdveil.em.model import Coordinates, EStep, GoldBlock, MemoryUse, Summary
from crowdveil.em.saddle_points import jittered_table
from crowdveil.estimators.confusion.parameters import TINY, CrowdParameters, participation_prior

BYTES_PER_EXPECTED_ANSWER = 48
"""Bytes of the M-step behind a channel, per worker, answer and report."""
BYTES_PER_COORDINATE = 72
"""Bytes of accelerated EM per cell of all confusion matrices: points of three steps, and their combination."""
M_STEPS = 5
"""Iterations of expected answers at unchanged posteriors within an M-step."""
C = TypeVar("C", bound=CrowdParameters)


class CrowdStatistics(NamedTuple):
    """Sums over tasks: posteriors by reported symbol, [worker, truth, symbol], and in all, [task group, truth]."""

    by_report: NDArray[np.float64]
    by_truth: NDArray[np.float64]
    log_likelihood: float


class CrowdEstimator(Estimator[C, CrowdStatistics]):
    """E-step, worker table and credible intervals of models with confusion matrices."""

    def memory(self, summary: Summary, parameters: C) -> MemoryUse:
        """Return the size of the posterior sums, a table per worker, and of the expected answers behind a channel."""
        table = 0 if summary.model.is_identity else summary.model.full_table.size
        return MemoryUse(
            summary.workers * summary.symbols * summary.labels, BYTES_PER_EXPECTED_ANSWER * summary.workers * table
        )

    def jitter_parameters(self, parameters: C, direction: float, seed: int) -> C:
        """Return the parameters with slightly changed confusion matrices, or responsibilities of types."""
        if parameters.mixture is not None:
            own = normalized(jittered_table(parameters.mixture.responsibility, direction, seed))
            mixture = replace(parameters.mixture, responsibility=own)
            return replace(parameters, mixture=mixture, confusion=mixture.confusion_of_each_worker(), score_tables=None)
        confusion = normalized(jittered_table(parameters.confusion, direction, seed))
        return replace(parameters, confusion=confusion, score_tables=None)

    def precompute(self, parameters: C) -> C:
        """Return the parameters with their score tables."""
        return (
            parameters if parameters.is_initial else replace(parameters, score_tables=parameters.compute_score_tables())
        )

    def e_step(self, block: GoldBlock, parameters: C) -> EStep[CrowdStatistics]:
        """Return posteriors of the block's tasks and their sums by worker and report."""
        model = parameters.pool.model
        of_task = model.task_group[block.block.first : block.block.stop]
        if parameters.is_initial:
            posterior = one_hot_gold(self.first_posterior(block, parameters), block.gold)
            by_truth = totals_by_group(posterior, of_task, model.task_groups)
            step = TableStep(posterior, block.coded.table_row_sums(posterior), by_truth, np.nan)
        else:
            tables = parameters.score_tables or parameters.compute_score_tables()
            step = block.coded.confusion_step(tables, of_task, block.gold, block.before)
        sums = step.by_row.reshape(-1, model.listed_symbol_count, model.labels).transpose(0, 2, 1)
        return EStep(CrowdStatistics(sums, step.by_truth, step.log_likelihood), step.posterior, change=step.change)

    def first_posterior(self, block: GoldBlock, parameters: C) -> NDArray[np.float64]:
        """Return the posterior that the loop starts from, [task, label]: shares of votes."""
        return vote_shares_or_prior(block, parameters.summary, parameters.pool)

    def worker_table(self, statistics: CrowdStatistics, parameters: C) -> WorkerTable:
        """Return confusion matrices, protected participation, and abilities P(correct) under the class prior."""
        correct = np.einsum("wzz->wz", parameters.confusion)
        return WorkerTable(
            quality=correct @ parameters.class_prior,
            quality_name="ability",
            confusion=parameters.confusion,
            participation=parameters.participation if parameters.pool.protected else None,
        )


class ConfusionEstimator(CrowdEstimator[CrowdParameters]):
    """EM for one confusion matrix per worker; subclasses define how matrices and class prior are estimated.

    Attributes:
        smoothing: pseudo-counts per cell of a confusion matrix, with or without a channel.
        shrinkage: pseudo-counts per row of the Dirichlet prior, and least pseudo-counts of the participation
            prior; both are multiplied by the noise, so 0 without a channel.
        anchor_ability: prior mean of the ability: the Dirichlet prior's mean is this worker, who otherwise guesses from
            the crowd's answer frequencies.
        damping: prior weight of answer frequencies in the class prior, in campaigns; multiplied by the noise.

    Raises:
        SettingsError: a setting out of range.
    """

    state_fields: ClassVar[Mapping[str, StateField]] = {
        "confusion": StateField("distribution"),
        "participation": StateField("probability"),
        "class_prior": StateField("distribution", by_worker=False),
    }
    ranges: ClassVar[Mapping[str, str]] = {
        "smoothing": "(0, inf)",
        "shrinkage": "[0, inf)",
        "damping": "[0, inf)",
        "anchor_ability": "[0, 1)",
    }
    smoothing: float
    shrinkage: float
    anchor_ability: float
    damping: float

    def estimate_confusions(
        self, answers: NDArray[np.float64], dirichlet_prior: NDArray[np.float64], *, compiled: bool = False
    ) -> NDArray[np.float64]:
        """Return confusion matrices, by default the modes of Dirichlet posteriors: shares with pseudo-counts.

        Args:
            answers: expected answers, indexed [worker, truth, label].
            dirichlet_prior: pseudo-counts, indexed [truth, label].
            compiled: from `use_compiled`.
        """
        return normalize_confusion(answers, dirichlet_prior, compiled=compiled)

    def updated_dirichlet_prior(self, parameters: CrowdParameters) -> NDArray[np.float64]:
        """Return the pseudo-counts of the Dirichlet prior, [truth, label], given all confusion matrices.

        By default they are fixed: learned ones are less accurate.
        """
        return parameters.dirichlet_prior

    def log_confusion_prior(self, parameters: CrowdParameters) -> float:
        """Return the log-density of confusion matrices and a learned Dirichlet prior, up to a constant; 0 if unused."""
        return 0.0

    @abstractmethod
    def estimate_class_prior(self, by_truth: NDArray[np.float64], parameters: CrowdParameters) -> NDArray[np.float64]:
        """Return P(truth) from the posterior totals; not called with a public prior."""

    def log_class_prior(self, parameters: CrowdParameters) -> float:
        """Return the log-density of the class prior up to a constant; 0 if it is fixed or unused."""
        return 0.0

    def log_prior(self, parameters: CrowdParameters) -> float:
        """Return the log-density of confusion matrices (Dirichlet), participation (Beta) and a learned class prior."""
        learned = 0.0 if parameters.summary.prior is not None else self.log_class_prior(parameters)
        confusion = self.log_confusion_prior(parameters) + earlier_log_likelihood(parameters)
        return confusion + log_participation_prior(parameters) + learned

    def dirichlet_prior(self, pool: AnswerFrequencies, ability: float, full: bool = False) -> NDArray[np.float64]:
        """Return pseudo-counts [truth, label] whose mean is a worker of this ability who otherwise guesses.

        Shrinkage is multiplied by the noise unless `full`.
        """
        prior_mean = ability * np.eye(pool.labels) + (1 - ability) * pool.label_shares
        return self.smoothing + self.shrinkage * (1.0 if full else pool.noise) * prior_mean

    def from_state(self, initial: CrowdParameters, state: FitState) -> CrowdParameters:
        """Return the parameters of the state; new workers keep the initial ones."""
        parameters = replace(
            initial,
            confusion=state.worker_rows_or_default("confusion", initial.confusion),
            participation=state.worker_rows_or_default("participation", initial.participation),
            class_prior=state.shared["class_prior"] if initial.summary.prior is None else initial.class_prior,
            is_initial=False,
        )
        return (
            replace(parameters, dirichlet_prior=self.updated_dirichlet_prior(parameters))
            if initial.pool.noise
            else parameters
        )

    def answer_frequencies(self, summary: Summary) -> AnswerFrequencies:
        """Return the answer frequencies of all workers."""
        return frequencies_of_reports(summary)

    def initialize(self, summary: Summary) -> CrowdParameters:
        """Return the prior mean for every worker; the first posterior is the share of votes."""
        pool = self.answer_frequencies(summary)
        prior_mean = self.anchor_ability * np.eye(pool.labels) + (1 - self.anchor_ability) * pool.label_shares
        min_pseudo_counts = self.shrinkage * pool.noise / pool.participation
        return CrowdParameters(
            summary=summary,
            pool=pool,
            dirichlet_prior=self.dirichlet_prior(pool, self.anchor_ability),
            participation_pseudo_counts=participation_prior(summary, pool, min_pseudo_counts),
            confusion=np.broadcast_to(prior_mean, (summary.workers, *prior_mean.shape)),
            participation=np.full(summary.workers, pool.participation),
            class_prior=pool.label_shares if summary.prior is None else summary.prior,
            is_initial=True,
        )

    def m_step(self, statistics: CrowdStatistics, parameters: CrowdParameters) -> CrowdParameters:
        """Return new confusion matrices, participations and class prior from expected answers."""
        reports = full_report_sums(statistics, parameters)
        for _ in range(M_STEPS if parameters.pool.noise else 1):
            answers, participation = expected_worker_answers(reports, parameters)
            parameters = replace(
                parameters,
                confusion=self.estimate_confusions(
                    with_earlier_answers(answers, parameters),
                    parameters.dirichlet_prior,
                    compiled=parameters.summary.uses_compiled_confusion_fit,
                ),
                participation=participation,
                is_initial=False,
            )
        if parameters.summary.prior is None:
            parameters = replace(
                parameters, class_prior=self.estimate_class_prior(statistics.by_truth.sum(axis=0), parameters)
            )
        return (
            replace(parameters, dirichlet_prior=self.updated_dirichlet_prior(parameters))
            if parameters.pool.noise
            else parameters
        )


class DirichletEstimator(ConfusionEstimator):
    """EM with a fixed Dirichlet prior of the confusion rows, and a class prior damped by the answer frequencies."""

    def memory(self, summary: Summary, parameters: CrowdParameters) -> MemoryUse:
        """Return the memory of the E-step, and that of the coordinates of three steps."""
        use = CrowdEstimator.memory(self, summary, parameters)
        return use._replace(shared=use.shared + BYTES_PER_COORDINATE * summary.workers * summary.labels**2)

    def coordinates(self, parameters: CrowdParameters) -> Coordinates | None:
        """Return logarithms of confusion matrices, [worker, label, truth], and of the class prior; log-odds of
        participation, if it is protected."""
        if parameters.is_initial:
            return None
        logs = transposed_log_confusion(parameters), np.log(parameters.class_prior)
        return (*logs, logit(with_finite_log_odds(parameters.participation))) if parameters.pool.protected else logs

    def from_coordinates(self, parameters: CrowdParameters, coordinates: Coordinates) -> CrowdParameters:
        """Return the parameters with these values."""
        return replace(
            parameters,
            confusion=confusion_from_unnormalized_logs(
                coordinates[0], compiled=parameters.summary.uses_compiled_confusion_fit
            ),
            class_prior=softmax(coordinates[1]) if parameters.summary.prior is None else parameters.class_prior,
            participation=expit(coordinates[2]) if parameters.pool.protected else parameters.participation,
        )

    def log_confusion_prior(self, parameters: CrowdParameters) -> float:
        """Return the Dirichlet log-densities of the rows."""
        return log_dirichlet_density(parameters)

    def estimate_class_prior(self, by_truth: NDArray[np.float64], parameters: CrowdParameters) -> NDArray[np.float64]:
        """Return the mean posterior with noise-weighted answer frequencies as pseudo-counts."""
        return damped_class_prior(by_truth, self.damping, parameters)

    def log_class_prior(self, parameters: CrowdParameters) -> float:
        """Return the Dirichlet log-density of the class prior; 0 without damping."""
        return class_prior_log_density(self.damping, parameters)


def transposed_log_confusion(parameters: CrowdParameters) -> NDArray[np.float64]:
    """Return logarithms of confusion matrices, [worker, label, truth]; those of the score tables where they are."""
    confusion, tables = parameters.confusion.transpose(0, 2, 1), parameters.score_tables
    if tables is not None and parameters.pool.model.is_identity:
        return tables.report_scores.reshape(confusion.shape)
    compiled = parameters.summary.uses_compiled_confusion_fit
    return floored_log(np.ascontiguousarray(confusion), TINY, compiled=compiled)


def with_finite_log_odds(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities moved to the nearest ones with finite log-odds."""
    return np.clip(probability, TINY, 1 - np.finfo(float).epsneg)


def normalized(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a table whose last axis sums to 1."""
    return np.asarray(table / table.sum(axis=-1, keepdims=True))


def expected_worker_answers(
    reports: NDArray[np.float64], parameters: CrowdParameters
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return expected answers, indexed [worker, truth, label], and participations, shape (workers,).

    Args:
        reports: posterior sums from `full_report_sums`, indexed [worker, truth, report].
        parameters: of the E-step or of the last iteration.
    """
    pool = parameters.pool
    if pool.model.is_identity:
        return reports, parameters.participation
    inputs, table = parameters.input_symbol_probabilities(), pool.model.full_table
    # One product of all rows: numpy multiplies a stack of small matrices ten times more slowly.
    rows, sums = inputs.reshape(-1, len(table)), reports.reshape(-1, table.shape[1])
    expected = (rows * ((sums / np.maximum(rows @ table, TINY)) @ table.T)).reshape(inputs.shape)
    answers = expected[:, :, : pool.labels]
    participation = parameters.participation
    if pool.protected:
        participation = participation_posterior_mean(answers.sum(axis=(1, 2)), expected.sum(axis=(1, 2)), parameters)
    return answers, participation


def with_earlier_answers(answers: NDArray[np.float64], parameters: CrowdParameters) -> NDArray[np.float64]:
    """Return expected answers, [worker, truth, label], with earlier ones, whose errors are shared as the others.

    The Dirichlet prior counts among the others, so that the M-step is the maximum under the likelihood of
    `em.worker_history`.
    """
    earlier = parameters.summary.history
    if earlier is None:
        return answers
    shares, diagonal = parameters.pool.label_shares, np.eye(answers.shape[2])
    others = (answers + parameters.dirichlet_prior) * (1 - diagonal)
    wrong = earlier.wrong[:, None] * shares / np.maximum(others.sum(axis=2), TINY)
    right = earlier.right[:, None] * shares
    return np.asarray(answers + right[:, :, None] * diagonal + wrong[:, :, None] * others)


def earlier_log_likelihood(parameters: CrowdParameters) -> float:
    """Return the log-likelihood of earlier answers, see `em.worker_history`; 0 without any."""
    earlier = parameters.summary.history
    if earlier is None:
        return 0.0
    right = np.einsum("wzz->wz", parameters.confusion)
    logs = np.log(np.maximum(right, TINY)), np.log(np.maximum(1 - right, TINY))
    by_truth = earlier.right[:, None] * logs[0] + earlier.wrong[:, None] * logs[1]
    return float((by_truth @ parameters.pool.label_shares).sum())


def totals_by_group(posterior: NDArray[np.float64], group: NDArray[np.int64], groups: int) -> NDArray[np.float64]:
    """Return the sums of posteriors, [task, truth], by group of tasks; indexed [group, truth]."""
    if groups == 1:
        return posterior.sum(axis=0)[None]
    return np.array([posterior[group == one].sum(axis=0) for one in range(groups)])


def full_report_sums(statistics: CrowdStatistics, parameters: CrowdParameters) -> NDArray[np.float64]:
    """Return posterior sums over listed reports, then over each implicit NULL; [worker, truth, report]."""
    model = parameters.pool.model
    # The order in memory, which sums depend on, is lost where statistics come from another process.
    listed = np.ascontiguousarray(statistics.by_report.transpose(0, 2, 1)).transpose(0, 2, 1)
    if not model.implicit_null_count:
        return listed
    return np.concatenate((listed, model.implicit_null_posterior_sums(listed, statistics.by_truth)), axis=2)


def participation_posterior_mean(
    answered: NDArray[np.float64], cells: NDArray[np.float64], parameters: CrowdParameters
) -> NDArray[np.float64]:
    """Return each worker's participation: the posterior mean from expected answers and cells under the Beta prior."""
    given = answered + parameters.participation_pseudo_counts * parameters.pool.participation
    return np.clip(given / np.maximum(cells + parameters.participation_pseudo_counts, TINY), 0.0, 1.0)


def log_dirichlet_density(parameters: CrowdParameters) -> float:
    """Return the Dirichlet log-densities of all rows, up to a constant of the prior."""
    if parameters.score_tables is not None and parameters.pool.model.is_identity:
        table, dirichlet_prior = parameters.score_tables.report_scores, parameters.dirichlet_prior
        if (dirichlet_prior == dirichlet_prior[0, 0]).all():
            return float(dirichlet_prior[0, 0] * table.sum())
        return float(dirichlet_prior.T.ravel() @ table.reshape(-1, dirichlet_prior.size).sum(axis=0))
    return float((parameters.dirichlet_prior * np.log(np.maximum(parameters.confusion, TINY))).sum())


def log_participation_prior(parameters: CrowdParameters) -> float:
    """Return the Beta log-densities of all participations, up to a constant; 0 if participation is public."""
    if not parameters.pool.protected:
        return 0.0
    rate, share = parameters.pool.participation, parameters.participation
    answered = rate * np.log(np.maximum(share, TINY)) + (1 - rate) * np.log(np.maximum(1 - share, TINY))
    return parameters.participation_pseudo_counts * float(answered.sum())


def damped_class_prior(
    by_truth: NDArray[np.float64], damping: float, parameters: CrowdParameters
) -> NDArray[np.float64]:
    """Return the class prior: the mean posterior with noise-weighted answer frequencies as pseudo-counts, (labels,).

    Args:
        by_truth: posterior totals, shape (labels,).
        damping: prior weight of answer frequencies, in campaigns; multiplied by the noise.
    """
    weight = damping * parameters.pool.noise * parameters.summary.tasks
    damped = np.maximum(by_truth + weight * parameters.pool.label_shares, 1e-12)
    return damped / damped.sum()


def class_prior_log_density(damping: float, parameters: CrowdParameters) -> float:
    """Return the Dirichlet log-density of a prior from `damped_class_prior`, up to a constant."""
    weight = damping * parameters.pool.noise * parameters.summary.tasks
    return weight * float(parameters.pool.label_shares @ np.log(parameters.class_prior))
