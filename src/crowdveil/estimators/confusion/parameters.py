"""Parameters of crowds with confusion matrices, worker types, and empirical-Bayes hyperpriors.

The report of a worker with participation s and confusion matrix C has P(y | z) = (1 - s) Q[NULL, y] + s (C Q)[z, y].
Hyperpriors: the Beta prior of participation is fitted to report counts, and the mean ability of the Dirichlet prior to
the workers' abilities.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from crowdveil.em.deconvolution import AnswerFrequencies
from crowdveil.em.kernels.numpy_backend import Discount, ScoreTables
from crowdveil.em.kernels.reductions import floored_log
from crowdveil.em.model import Summary
from crowdveil.estimators.confusion.independent_workers import Independence
from crowdveil.estimators.confusion.own_ability import OwnPrior

TINY = 1e-300
ABILITY_DEVIATION = 0.1
"""Standard deviation of the hyperprior of the crowd's mean ability."""
N_CANDIDATES = 20
MIN_PROBABILITY = 1e-12
CONCENTRATIONS = np.geomspace(1.0, 1e5, 26)
"""Candidate concentrations of the Beta prior of participation, in cells; the last one means equal workers."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Mixture of worker types, each with one confusion matrix.

    Attributes:
        type_confusion: P(answer | truth, answered) of each type, indexed [type, truth, label], rows sum to 1.
        expected: prior shares of types, shape (types,), sum 1.
        shares: learned shares of types.
        responsibility: P(type) of each worker, indexed [worker, type], rows sum to 1.
    """

    type_confusion: NDArray[np.float64]
    expected: NDArray[np.float64]
    shares: NDArray[np.float64]
    responsibility: NDArray[np.float64]

    def confusion_of_each_worker(self) -> NDArray[np.float64]:
        """Return every worker's posterior mean confusion matrix, indexed [worker, truth, label]."""
        return np.tensordot(self.responsibility, self.type_confusion, axes=1)

    def report_tables_by_type(
        self, full_table: NDArray[np.float64], participation: NDArray[np.float64]
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Yield for each type P(report | truth, answered) and P(report | truth).

        Args:
            full_table: P(report | input), indexed [input, report]; NULL is the last input if it is protected.
            participation: shape (workers,).

        Yields:
            Indexed [truth, report], and [worker, truth, report].
        """
        labels = self.type_confusion.shape[2]
        answering = participation[:, None, None]
        unanswered = (1 - answering) * full_table[labels] if len(full_table) > labels else np.zeros(1)
        for table in self.type_confusion:
            answered = table @ full_table[:labels]
            yield answered, answering * answered + unanswered

    def log_report_given_truth(
        self, full_table: NDArray[np.float64], participation: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return log P(report | truth), averaged over each worker's types, indexed [worker, truth, report]."""
        logs = np.zeros((len(participation), self.type_confusion.shape[1], full_table.shape[1]))
        for index, (_, table) in enumerate(self.report_tables_by_type(full_table, participation)):
            logs += self.responsibility[:, index, None, None] * np.log(np.maximum(table, TINY))
        return logs

    def responsibility_divergence(self) -> float:
        """Return the sum over workers of KL(responsibility || shares)."""
        own = self.responsibility
        return float((own * (np.log(np.maximum(own, TINY)) - np.log(self.shares))).sum())


@dataclass(frozen=True, slots=True, eq=False)
class CrowdParameters:
    """Parameters of the crowd.

    Attributes:
        summary, pool: counts of the reports, and the answer frequencies estimated from them.
        dirichlet_prior: pseudo-counts of each worker's confusion matrix, indexed [truth, label].
        participation_pseudo_counts: concentration of the Beta prior of participation, whose mean is the crowd's rate.
        confusion: P(answer | truth, answered), indexed [worker, truth, label], rows sum to 1.
        participation: P(answered), shape (workers,); all 1 if participation is public.
        class_prior: P(truth), shape (labels,).
        is_initial: True before the first M-step, when the posterior is the share of votes.
        mixture: types of workers, if confusion matrices are averages over types; else None.
        score_tables: cached result of `compute_score_tables`.
        prior_hold_steps: number of further steps that keep the class prior.
        discount: factor of the scores of each task in the last E-step, whose posterior is reported; else None.
        own_prior: prior of each worker's rows by the own ability; None if there is none.
        own_steps: number of further steps in which rows are those of the own ability alone.
        independence: of the workers from the truth; None where all count as informed.
        balanced_start: whether the first posterior is that of an ability with labels as frequent.
    """

    summary: Summary
    pool: AnswerFrequencies
    dirichlet_prior: NDArray[np.float64]
    participation_pseudo_counts: float
    confusion: NDArray[np.float64]
    participation: NDArray[np.float64]
    class_prior: NDArray[np.float64]
    is_initial: bool
    mixture: Mixture | None = None
    score_tables: ScoreTables | None = None
    prior_hold_steps: int = 0
    discount: Discount | None = None
    own_prior: OwnPrior | None = None
    own_steps: int = 0
    independence: Independence | None = None
    balanced_start: bool = False

    def input_symbol_probabilities(self) -> NDArray[np.float64]:
        """Return P(input symbol | truth), indexed [worker, truth, input]; NULL is last if it is protected."""
        if not self.pool.protected:
            return self.confusion
        answered = self.participation[:, None, None] * self.confusion
        null = np.broadcast_to((1 - self.participation)[:, None, None], (*answered.shape[:2], 1))
        return np.concatenate([answered, null], axis=2)

    def compute_score_tables(self) -> ScoreTables:
        """Return the scores of reports, and the scores of tasks with implicit NULL reports only."""
        model, labels = self.pool.model, self.confusion.shape[1]
        logs, nulls = np.split(self.log_report_given_truth(), [model.listed_symbol_count], axis=2)
        if self.independence is not None:
            logs *= self.independence.weights[:, None, None]
        base = np.zeros((model.task_groups, labels))
        if model.implicit_null_count:
            for group in range(model.task_groups):
                base[group] = np.einsum("ws,wzs->z", model.implicit_null_of_worker(group), nulls)
            logs = logs - nulls @ model.replaced_nulls().T
        table = np.ascontiguousarray(logs.transpose(0, 2, 1)).reshape(-1, labels)
        return ScoreTables(table, base + np.log(self.class_prior), self.discount)

    def log_report_given_truth(self) -> NDArray[np.float64]:
        """Return log P(report | truth), averaged over types of workers, [worker, truth, report]."""
        full_table = self.pool.model.full_table
        if self.mixture is not None:
            return self.mixture.log_report_given_truth(full_table, self.participation)
        if not self.pool.model.is_identity:
            return np.log(np.maximum(self.input_symbol_probabilities() @ full_table, TINY))
        return floored_log(self.confusion, TINY, compiled=self.summary.uses_compiled_confusion_fit)


def candidate_mean_abilities(expected: float) -> NDArray[np.float64]:
    """Return candidates of the crowd's mean ability in [0, 1), the expected one included; ascending."""
    return np.unique(np.append(np.arange(N_CANDIDATES) / N_CANDIDATES, expected))


def ability_log_density(
    mean: NDArray[np.float64] | float,
    expected: float,
    share: NDArray[np.float64],
    right: NDArray[np.float64],
    wrong: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the joint log-density of a mean ability and of the workers' abilities, Beta distributed in log-odds.

    Args:
        mean: the crowd's mean ability, shape (candidates,) or one number.
        expected: mean of its normal hyperprior.
        share: each worker's probability of a right answer, shape (workers,).
        right, wrong: pseudo-counts of the Beta prior, indexed [candidate, worker] or broadcast to that.

    Returns:
        Shape (candidates,), up to one constant.
    """
    logs = np.log(np.maximum(share, MIN_PROBABILITY)), np.log(np.maximum(1 - share, MIN_PROBABILITY))
    workers = right * logs[0] + wrong * logs[1] - betaln(right, wrong)
    return np.sum(workers, axis=-1) - 0.5 * ((np.asarray(mean) - expected) / ABILITY_DEVIATION) ** 2


def most_likely_index(
    expected: float, share: NDArray[np.float64], right: NDArray[np.float64], wrong: NDArray[np.float64]
) -> int:
    """Return the index of the candidate with the highest `ability_log_density`."""
    return int(ability_log_density(candidate_mean_abilities(expected), expected, share, right, wrong).argmax())


def fit_participation_prior(reports: NDArray[np.float64], pool: AnswerFrequencies, min_pseudo_counts: float) -> float:
    """Return the pseudo-counts of the Beta prior of participation, at least `min_pseudo_counts`.

    The concentration with the highest evidence, times the crowd's noise. Each worker's log-likelihood is approximated
    by a parabola around the crowd's rate with slope g and curvature I, so that a prior of variance v has the evidence
    prod_i (1 + v I_i)^(-1/2) exp(v g_i^2 / (2 + 2 v I_i)).

    Args:
        reports: of each worker, implicit NULL included, in the order of `full_table`; [worker, report].
        pool: answer frequencies of the crowd.
        min_pseudo_counts: lower bound; with 0, as without noise, nothing is learned.
    """
    if not (pool.protected and min_pseudo_counts):
        return min_pseudo_counts
    full_table, rate = pool.model.full_table, pool.participation
    answered, unanswered = pool.label_shares @ full_table[: pool.labels], full_table[pool.labels]
    slope = (answered - unanswered) / np.maximum(rate * answered + (1 - rate) * unanswered, TINY)
    slope_sums, curvature = (reports @ slope)[:, None], (reports @ slope**2)[:, None]
    variance = rate * (1 - rate) / CONCENTRATIONS
    inflation = 1 + variance * curvature
    evidence = 0.5 * (variance * slope_sums**2 / inflation - np.log(inflation)).sum(axis=0)
    return max(min_pseudo_counts, pool.noise * float(CONCENTRATIONS[evidence.argmax()]))


def participation_prior(summary: Summary, pool: AnswerFrequencies, min_pseudo_counts: float) -> float:
    """Return the participation pseudo-counts that `summary` supports."""
    return (
        fit_participation_prior(report_counts_by_worker(summary), pool, min_pseudo_counts)
        if pool.protected and min_pseudo_counts
        else min_pseudo_counts
    )


def report_counts_by_worker(summary: Summary) -> NDArray[np.float64]:
    """Return each worker's report counts in the order of `full_table`, implicit NULL included; [worker, report]."""
    model, listed = summary.model, summary.symbol_counts
    implicit_counts = -listed @ model.replaced_nulls()
    for group, tasks in enumerate(np.bincount(model.task_group, minlength=model.task_groups)):
        implicit_counts = implicit_counts + tasks * model.implicit_null_of_worker(group)
    return np.concatenate((listed, np.maximum(implicit_counts, 0.0)), axis=1)
