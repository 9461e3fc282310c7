"""Enhanced Bayesian classifier combination (Li, Rubinstein and Cohn, ICML 2019), through any channel.

Truth z of a task has a subtype g: P(z = k) = tau_k, P(g = m | z = k) = pi_k[m], and worker i answers by the row
V_i[(k, m), .] of the pair. Workers therefore err together on subtypes. Priors: tau ~ Dirichlet(1), pi_k ~
Dirichlet(a / M), V_i[(k, m), .] ~ Dirichlet with `correct` at k and `wrong` elsewhere.
With posteriors q_j(k, m), variational Bayes alternates
    counts = prior + sums of q_j,   q_j(k, m) ~ exp(E log tau_k + E log pi_k[m] + sum_i E log V_i[(k, m), y_ij]).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.deconvolution import frequencies_of_reports, vote_shares_or_prior
from crowdveil.em.estimate import WorkerTable
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.gold import one_hot_gold
from crowdveil.em.kernels.numpy_backend import ScoreTables
from crowdveil.em.model import EStep, FitInput, GoldBlock, MemoryUse, Summary
from crowdveil.em.saddle_points import jittered_table
from crowdveil.errors import SettingsError
from crowdveil.estimators.confusion.model import (
    M_STEPS,
    CrowdEstimator,
    CrowdStatistics,
    expected_worker_answers,
    full_report_sums,
    log_participation_prior,
    totals_by_group,
)
from crowdveil.estimators.confusion.parameters import CrowdParameters, participation_prior
from crowdveil.estimators.confusion.variational import dirichlet_divergence, expected_log_dirichlet

MAX_NUMBERS = 25_000_000
"""Largest number of Dirichlet parameters of all workers; a fit with as many was measured to take 1.9 GB."""
OTHER_LABEL = -1e5
"""Log-prior of the labels that a gold task does not have."""
START_DEVIATION = 0.3
"""Standard deviation of a task's first scores of subtypes, at the mean number of reports; it reached the highest lower
bounds on public data sets."""


@dataclass(frozen=True, slots=True, eq=False)
class EbccParameters(CrowdParameters):
    """Parameters of the crowd; `class_prior` and `confusion` hold exp(E log) by pair: [pair], [worker, pair, label].

    Attributes:
        classes: Dirichlet parameters of tau, shape (labels,).
        subtypes: Dirichlet parameters of pi, indexed [label, subtype].
        tables: Dirichlet parameters of V, indexed [worker, pair, label]; pair = label * subtypes + subtype.
        start: number of the initial assignment of subtypes.
    """

    classes: NDArray[np.float64] = None  # type: ignore[assignment]
    subtypes: NDArray[np.float64] = None  # type: ignore[assignment]
    tables: NDArray[np.float64] = None  # type: ignore[assignment]
    start: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ebcc(CrowdEstimator[EbccParameters]):
    """Variational Bayes from the (deconvolved) votes; the start with the highest lower bound is returned.

    The first subtypes of a task are pseudo-random numbers that follow from counts of its reports: tasks, workers and
    labels in any order, and with other names, give the same estimate.

    Attributes:
        subtypes: number M of subtypes of each label; unused ones die out.
        concentration: a, sum of the Dirichlet parameters of the subtypes of a label.
        correct, wrong: Dirichlet parameters of a right and of each wrong answer.
        starts: number of fits from different subtypes.
        max_steps, tolerance: as in every estimator.

    Raises:
        SettingsError: a setting out of range.
    """

    name: ClassVar[str] = "ebcc"
    ranges: ClassVar[Mapping[str, str]] = {"concentration": "(0, inf)", "correct": "(0, inf)", "wrong": "(0, inf)"}
    state_fields: ClassVar[Mapping[str, StateField]] = {
        "tables": StateField("real"),
        "participation": StateField("probability"),
        "classes": StateField("real", by_worker=False),
        "subtypes": StateField("real", by_worker=False),
    }
    subtypes: int = 10
    concentration: float = 0.1
    correct: float = 4.0
    wrong: float = 1.0
    starts: int = 2
    max_steps: int = 500
    tolerance: float = 1e-3

    def initialize(self, summary: Summary) -> EbccParameters:
        """Return the prior for every worker; the first posterior is the share of votes, spread over subtypes.

        Raises:
            SettingsError: more than `MAX_NUMBERS` Dirichlet parameters.
        """
        labels, many = summary.labels, self.subtypes
        if summary.workers * labels**2 * many > MAX_NUMBERS:
            raise SettingsError(
                f"{self.name} keeps workers x labels x subtypes x labels numbers, at most {MAX_NUMBERS:,}",
                value=f"{summary.workers:,} x {labels} x {many} x {labels}",
                hint="Use hierarchical-dawid-skene, or from Python fewer subtypes.",
            )
        pool = frequencies_of_reports(summary)
        tables = np.broadcast_to(
            self._dirichlet_prior_by_pair_and_label(labels), (summary.workers, labels * many, labels)
        )
        return with_geometric_mean_probabilities(
            EbccParameters(
                summary=summary,
                pool=pool,
                dirichlet_prior=np.zeros((labels, labels)),
                participation_pseudo_counts=participation_prior(summary, pool, 5 * pool.noise / pool.participation),
                confusion=np.empty(0),
                participation=np.full(summary.workers, pool.participation),
                class_prior=np.empty(0),
                is_initial=True,
                classes=np.ones(labels),
                subtypes=np.full((labels, many), self.concentration / many),
                tables=tables,
            )
        )

    def initializations(self, data: FitInput) -> tuple[EbccParameters, ...]:
        """Return the initial parameters of every start."""
        initial = self.initialize(data.summary)
        return tuple(replace(initial, start=start) for start in range(self.starts))

    def memory(self, summary: Summary, parameters: EbccParameters) -> MemoryUse:
        """Return the size of the posterior sums, of the tables, and of a block's posteriors of pairs."""
        pairs = summary.labels * self.subtypes
        tables = 48 * summary.workers * pairs * max(summary.labels, summary.model.full_table.shape[1])
        return MemoryUse(summary.workers * summary.symbols * pairs, tables, per_thread=32 * pairs * summary.tasks)

    def e_step(self, block: GoldBlock, parameters: EbccParameters) -> EStep[CrowdStatistics]:
        """Return posteriors of the block's tasks, and the sums of those of pairs by worker and report."""
        model, labels = parameters.pool.model, parameters.pool.labels
        of_task = model.task_group[block.block.first : block.block.stop]
        if parameters.is_initial:
            pairs = self._first_posterior_of_pairs(block, parameters)
            by_row, likelihood = block.coded.table_row_sums(pairs), np.nan
            by_truth = totals_by_group(pairs, of_task, model.task_groups)
        else:
            tables = parameters.score_tables or parameters.compute_score_tables()
            group = of_task * (labels + 1) + block.gold + 1
            step = block.coded.confusion_step(
                self._with_groups_by_gold_label(tables, labels), group, np.full(len(group), -1)
            )
            pairs, by_row, likelihood = step.posterior, step.by_row, step.log_likelihood
            by_truth = step.by_truth.reshape(model.task_groups, labels + 1, -1).sum(axis=1)
        if not parameters.pool.noise:  # tasks of which nothing is known; behind a channel no report may be a report
            empty = (np.bincount(block.block.task, minlength=len(of_task)) == 0) & (block.gold < 0)
            by_truth = by_truth - totals_by_group(pairs[empty], of_task[empty], model.task_groups)
            likelihood -= int(empty.sum()) * np.log(1.0 if parameters.is_initial else parameters.class_prior.sum())
        posterior = one_hot_gold(pairs.reshape(-1, labels, self.subtypes).sum(axis=2), block.gold)
        sums = by_row.reshape(-1, model.listed_symbol_count, pairs.shape[1]).transpose(0, 2, 1)
        return EStep(CrowdStatistics(sums, by_truth, likelihood), posterior)

    def m_step(self, statistics: CrowdStatistics, parameters: EbccParameters) -> EbccParameters:
        """Return the Dirichlet posteriors from expected answers, and participations."""
        labels = parameters.pool.labels
        by_pair = statistics.by_truth.sum(axis=0).reshape(labels, self.subtypes)
        parameters = replace(
            parameters,
            classes=1 + by_pair.sum(axis=1),
            subtypes=self.concentration / self.subtypes + by_pair,
        )
        reports = full_report_sums(statistics, parameters)
        for _ in range(M_STEPS if parameters.pool.noise else 1):
            answers, participation = expected_worker_answers(reports, parameters)
            parameters = with_geometric_mean_probabilities(
                replace(
                    parameters,
                    tables=answers + self._dirichlet_prior_by_pair_and_label(labels),
                    participation=participation,
                    is_initial=False,
                    score_tables=None,
                )
            )
        return parameters

    def worker_table(self, statistics: CrowdStatistics, parameters: EbccParameters) -> WorkerTable:
        """Return posterior mean confusion matrices, averaged over subtypes, and abilities under the class prior."""
        labels, many = parameters.subtypes.shape
        shares = parameters.subtypes / parameters.subtypes.sum(axis=1, keepdims=True)
        rows = parameters.tables / parameters.tables.sum(axis=2, keepdims=True)
        confusion = np.einsum("wkml,km->wkl", rows.reshape(-1, labels, many, labels), shares)
        prior = parameters.summary.prior
        classes = parameters.classes / parameters.classes.sum() if prior is None else prior
        return WorkerTable(
            quality=np.einsum("wkk,k->w", confusion, classes),
            quality_name="ability",
            confusion=confusion,
            participation=parameters.participation if parameters.pool.protected else None,
        )

    def log_prior(self, parameters: EbccParameters) -> float:
        """Return minus the divergences of the posteriors from their priors, and the Beta log-density."""
        learned = parameters.summary.prior is None
        divergence = dirichlet_divergence(parameters.classes, np.ones(1)) if learned else 0.0
        divergence += dirichlet_divergence(parameters.subtypes, np.full(1, self.concentration / self.subtypes))
        divergence += dirichlet_divergence(
            parameters.tables, self._dirichlet_prior_by_pair_and_label(parameters.pool.labels)
        )
        return log_participation_prior(parameters) - divergence

    def jitter_parameters(self, parameters: EbccParameters, direction: float, seed: int) -> EbccParameters:
        """Return the parameters with slightly changed counts."""
        tables = jittered_table(parameters.tables, direction, seed)
        return with_geometric_mean_probabilities(replace(parameters, tables=tables, score_tables=None))

    def from_state(self, initial: EbccParameters, state: FitState) -> EbccParameters:
        """Return the parameters of the state; new workers keep the prior."""
        known = CrowdEstimator.from_state(self, initial, state)
        if known.subtypes.shape != (known.pool.labels, self.subtypes):
            raise ValueError(f"subtypes has the shape {known.subtypes.shape}")
        return with_geometric_mean_probabilities(known)

    def _dirichlet_prior_by_pair_and_label(self, labels: int) -> NDArray[np.float64]:
        """Return the Dirichlet parameters of every worker's rows, indexed [pair, label]."""
        return np.repeat(self.wrong + (self.correct - self.wrong) * np.eye(labels), self.subtypes, axis=0)

    def _first_posterior_of_pairs(self, block: GoldBlock, parameters: EbccParameters) -> NDArray[np.float64]:
        """Return vote shares times pseudo-random shares of subtypes, indexed [task, pair]."""
        summary = parameters.summary
        rng = np.random.default_rng(parameters.start)
        spread = START_DEVIATION * np.sqrt(summary.tasks / max(int(summary.per_worker.sum()), 1))
        kinds, kind_of = np.unique(worker_symbol_features(summary), axis=0, return_inverse=True)
        scores = rng.normal(0, spread, (len(kinds), self.subtypes))[kind_of.ravel()]
        nobody = np.full(block.block.tasks, -1)
        step = block.coded.confusion_step(ScoreTables(scores, np.zeros((1, self.subtypes))), 0 * nobody, nobody)
        shares = one_hot_gold(vote_shares_or_prior(block, summary, parameters.pool), block.gold)
        return (shares[:, :, None] * step.posterior[:, None, :]).reshape(len(shares), -1)

    def _with_groups_by_gold_label(self, tables: ScoreTables, labels: int) -> ScoreTables:
        """Return the tables with labels + 1 groups for each group of tasks: gold unknown, then each gold label."""
        excluded = OTHER_LABEL * (1 - np.eye(labels)).repeat(self.subtypes, axis=1)
        by_gold = np.concatenate((np.zeros((1, excluded.shape[1])), excluded))
        initial = tables.initial_scores[:, None, :] + by_gold
        return ScoreTables(tables.report_scores, initial.reshape(-1, initial.shape[2]))


def worker_symbol_features(summary: Summary) -> NDArray[np.float64]:
    """Return what identifies a worker's report of a symbol without their order, [worker * symbols + symbol, number].

    The numbers are this worker's reports of the symbol, those of all workers, and this worker's reports by symbol, in
    ascending order.
    """
    own = summary.symbol_counts
    everyone = np.broadcast_to(own.sum(axis=0), own.shape)
    ascending = np.repeat(np.sort(own, axis=1), own.shape[1], axis=0)
    return np.column_stack([own.ravel(), everyone.ravel(), ascending])


def with_geometric_mean_probabilities(parameters: EbccParameters) -> EbccParameters:
    """Return the parameters with exp(E log) of tau and pi in `class_prior`, and of V in `confusion`."""
    prior = parameters.summary.prior
    classes = expected_log_dirichlet(parameters.classes) if prior is None else np.log(prior)
    pairs = np.exp(classes[:, None] + expected_log_dirichlet(parameters.subtypes)).ravel()
    return replace(parameters, class_prior=pairs, confusion=np.exp(expected_log_dirichlet(parameters.tables)))
