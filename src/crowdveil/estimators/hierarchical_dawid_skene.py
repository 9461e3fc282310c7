"""Hierarchical Dawid-Skene: confusion matrices shrunk to the crowd's, early stopping, and discounted confidence.

Model (Dawid and Skene 1979; shrinkage to a crowd as in Paun et al. 2018, section 3.1). Row z of worker i's matrix has a
Dirichlet prior with `shrinkage` pseudo-counts and the mean
    m_z = c F_z + (1 - c) (a e_z + (1 - a) p),
F_z = shares of the crowd's expected answers on truth z, renewed in each step, p = answer frequencies, a =
`anchor_ability`, c = `crowd_share`. Class prior: mean posterior with pseudo-tasks, `uniform_share` of all, spread
evenly over labels; behind noise fewer, and `expected_class_shares`. Answers have weights, by `independent_workers`
and, without noise, `near_copies`. EM starts from the vote shares and, with weight (1 - noise)^2 max p, the posterior
under ability a and class prior p: most votes for a rare label are mistakes (or as `compared_starts` says). It stops
after `max_steps` steps.

Confidence. Answers to one task share causes, so n of them are worth n / (1 + (n - 1) `error_correlation`) independent
ones: the log posterior is divided by 1 + (n - 1) `error_correlation` after the fit, and probabilities are mixed with
`vote_share` of the vote shares. A label without a vote gets at most half the probability of the best label with one.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.deconvolution import (
    AnswerFrequencies,
    frequencies_of_counts,
    frequencies_of_reports,
    vote_shares_or_prior,
)
from crowdveil.em.estimate import NORMAL_QUANTILE, WorkerTable
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.gold import one_hot_gold
from crowdveil.em.kernels.numpy_backend import Discount, row_maxima, row_sums, softmax
from crowdveil.em.kernels.reductions import floored_log, normalize_confusion, row_chunks
from crowdveil.em.model import EStep, FitInput, FitResult, GoldBlock, MemoryUse, Summary
from crowdveil.estimators.confusion.compared_starts import start_with_largest_evidence
from crowdveil.estimators.confusion.independent_workers import (
    Independence,
    informed_evidence,
    share_of_independent_workers,
    total_answers,
)
from crowdveil.estimators.confusion.measured_crowd import (
    preparation_bytes,
    with_first_weights,
    with_measured_crowd,
)
from crowdveil.estimators.confusion.model import (
    M_STEPS,
    ConfusionEstimator,
    CrowdEstimator,
    CrowdStatistics,
    expected_worker_answers,
    full_report_sums,
    with_earlier_answers,
)
from crowdveil.estimators.confusion.own_ability import (
    OwnPrior,
    distribution_of_wrong_answers,
    own_ability_prior,
)
from crowdveil.estimators.confusion.parameters import TINY, CrowdParameters, report_counts_by_worker
from crowdveil.estimators.dawid_skene import DawidSkene

CLEAR_VOTE = 0.05
"""Expected answers from which a label counts as voted for, behind a channel."""
UNVOTED_SHARE = 0.5
"""Largest probability of a label without a vote, relative to the best label with one."""
VOTE_SMOOTHING = 0.5
"""Pseudo-votes of a task, spread evenly over labels, in the shares of votes."""
SHARE_WEIGHT = 3.0
"""Pseudo-counts of each label in the answer frequencies, if reports are all noise; 1 without noise."""
MAX_NOISE = 0.75
"""Noise up to which the independence of workers is learned."""
NO_MAJORITY, MAJORITY = 0.4, 0.5
"""Share of the most frequent answer up to which, and from which on, frequencies of truths are expected to be even, or
those of answers."""
PSEUDO_TASKS = 2.0
"""Tasks without information that a posterior is the mean with, beside all tasks with answers: six say little."""
TRUTH_DOUBT, NOISY_TRUTH_DOUBT = 0.5, 0.25
"""Standard deviation of an ability that shared mistakes in the truths cause, relative to the mean doubt of the truths;
the second one is for reports behind a channel.

Intervals then hold 97 % of the time on the ten sets of `experiments/methods`, and 84 % on other sets, on which nothing
was chosen. With 0.3 it was 93 % and 71 %."""
DECIMALS = 12
"""Decimals of confusion matrices: rounding errors do not decide symmetric data."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchicalDawidSkene(ConfusionEstimator):
    """EM for confusion matrices that are shrunk to the crowd's matrix, with or without a channel.

    Attributes:
        smoothing, shrinkage, anchor_ability: as in `DawidSkene`; `smoothing` is added to each cell of the prior.
        crowd_share: weight of the crowd's matrix in the mean of the prior, in [0, 1].
        uniform_share: pseudo-tasks of the class prior, relative to all tasks; multiplied by (1 - noise)^2.
        damping: prior weight of `expected_class_shares` in the class prior, in campaigns; multiplied by the noise.
        error_correlation: assumed correlation of the errors of two answers to one task, in [0, 1]; it counts less where
            one ability explains all rows of a worker.
        vote_share: weight of the vote shares in the reported probabilities, in [0, 1].
        max_steps: number of steps.
        tolerance: stop earlier when no posterior changes by more than this.

    Raises:
        SettingsError: a setting out of range.

    >>> answers = {"task": [1, 1, 1, 2, 2, 2], "worker": [*"abcabc"], "label": [*"yynnnn"]}
    >>> HierarchicalDawidSkene().fit(answers).truth.tolist()
    ['y', 'n']
    """

    name: ClassVar[str] = "hierarchical-dawid-skene"
    state_fields: ClassVar[Mapping[str, StateField]] = {
        **ConfusionEstimator.state_fields,
        "independent": StateField("probability"),
        "reports": StateField("real", by_worker=False),
        "own_prior": StateField("real", by_worker=False),
        "steps_left": StateField("real", by_worker=False),
    }
    stops_early: ClassVar[bool] = True
    ranges: ClassVar[Mapping[str, str]] = {
        **ConfusionEstimator.ranges,
        **dict.fromkeys(("crowd_share", "uniform_share", "error_correlation", "vote_share"), "[0, 1]"),
    }
    max_steps: int = 10
    tolerance: float = 1e-6
    smoothing: float = 0.01
    shrinkage: float = 3.0
    anchor_ability: float = 0.7
    crowd_share: float = 0.75
    uniform_share: float = 0.1
    damping: float = 0.3
    error_correlation: float = 0.25
    vote_share: float = 0.2

    def initializations(self, data: FitInput) -> tuple[CrowdParameters, ...]:
        """Return the initial parameters; those of the start by abilities where the answers ask for it."""
        usual = self.initialize(data.summary)
        return (usual if usual.independence is None else start_with_largest_evidence(self, usual, data),)

    def prepare(self, data: FitInput) -> FitInput:
        """Return the input with near-copies and the first weights of workers; unchanged behind noise."""
        if symbols_are_labels(data.summary):
            return with_measured_crowd(data)
        return with_first_weights(data) if reports_tell_independence(data.summary) else data

    def memory(self, summary: Summary, parameters: CrowdParameters) -> MemoryUse:
        """Return the memory of a fit of confusion matrices, and that of near-copies and first weights."""
        use = ConfusionEstimator.memory(self, summary, parameters)
        return use if summary.independent is None else use._replace(preparation=preparation_bytes(summary))

    def initialize(self, summary: Summary) -> CrowdParameters:
        """Return the prior mean for every worker, under the answer frequencies with the first weights."""
        initial = ConfusionEstimator.initialize(self, summary)
        if summary.independent is None:
            return replace(initial, class_prior=first_class_prior(initial, initial.pool.label_shares))
        answered, first = int(np.count_nonzero(summary.per_task)), weighted_label_shares(summary)
        independence = Independence.first(summary.independent, summary.counted_symbols, first, answered)
        mean = self.anchor_ability * np.eye(len(first)) + (1 - self.anchor_ability) * first
        return replace(
            initial,
            independence=independence,
            confusion=np.broadcast_to(mean, initial.confusion.shape),
            class_prior=first_class_prior(initial, first),
        )

    def first_posterior(self, block: GoldBlock, parameters: CrowdParameters) -> NDArray[np.float64]:
        """Return the weighted mean of the vote shares and of the posterior under the prior mean."""
        pool, independence = parameters.pool, parameters.independence
        by_symbol = weighted_reports_by_symbol(block, parameters)
        # Deconvolution takes long but for whole numbers of reports, of which there are few different ones.
        shares = vote_shares_or_prior(block, parameters.summary, pool, None if pool.noise else by_symbol)
        votes = expected_answers_by_label(by_symbol, pool)
        logs, prior = floored_log(parameters.confusion[0], TINY), floored_log(parameters.class_prior, TINY)
        frequencies = pool.label_shares if independence is None else independence.frequencies
        weight = float(frequencies.max()) * (1 - pool.noise) ** 2
        for tasks in row_chunks(shares):
            scores = np.einsum("ty,zy->tz", votes[tasks], logs)
            if parameters.balanced_start:
                shares[tasks] = softmax(scores)[0]
                continue
            mean = weight * softmax(scores + prior)[0] + (1 - weight) * shares[tasks]
            shares[tasks] = np.where((row_sums(votes[tasks]) > 0)[:, None], mean, shares[tasks])
        return shares

    def estimate_confusions(
        self, answers: NDArray[np.float64], dirichlet_prior: NDArray[np.float64], *, compiled: bool = False
    ) -> NDArray[np.float64]:
        """Return each row's shares of answers with pseudo-counts, rounded where data are small."""
        shares = normalize_confusion(answers, dirichlet_prior, compiled=compiled)
        return shares if compiled else np.round(shares, DECIMALS)

    def answer_frequencies(self, summary: Summary) -> AnswerFrequencies:
        """Return the answer frequencies; with noise, their posterior mean under Dirichlet(3, ..., 3)."""
        pool = frequencies_of_reports(replace(summary, symbol_counts=summary.counted_symbols))
        return frequencies_of_reports(summary, 1 + (SHARE_WEIGHT - 1) * pool.noise) if pool.noise else pool

    def crowd_prior(self, total: NDArray[np.float64], pool: AnswerFrequencies) -> NDArray[np.float64]:
        """Return the pseudo-counts of every confusion matrix from the crowd's expected answers; [truth, label] both.

        A truth with few answers gets the mean a e_z + (1 - a) p, which counts as one answer.
        """
        anchor = self.anchor_ability * np.eye(pool.labels) + (1 - self.anchor_ability) * pool.label_shares
        crowd = (total + anchor) / (total.sum(axis=1, keepdims=True) + 1.0)
        return self.smoothing + self.shrinkage * (self.crowd_share * crowd + (1 - self.crowd_share) * anchor)

    def m_step(self, statistics: CrowdStatistics, parameters: CrowdParameters) -> CrowdParameters:
        """Return the crowd's prior, confusion matrices, participations and class prior from expected answers."""
        reports = full_report_sums(statistics, parameters)
        # Tasks without answers say nothing: the posterior that they have so far is taken away.
        so_far = 1 / parameters.pool.labels if parameters.is_initial else parameters.class_prior
        by_truth = np.maximum(statistics.by_truth.sum(axis=0) - unanswered_task_count(parameters) * so_far, 0.0)
        for _ in range(M_STEPS if parameters.pool.noise else 1):
            answers, participation = expected_worker_answers(reports, parameters)
            weights = None if parameters.independence is None else parameters.independence.weights
            prior = self.crowd_prior(total_answers(answers, weights), parameters.pool)
            parameters = replace(parameters, dirichlet_prior=prior)
            known = with_earlier_answers(answers, parameters)
            own = own_ability_prior(reports, known, participation, parameters.pool, weights)
            compiled = parameters.summary.uses_compiled_confusion_fit
            if parameters.own_steps:
                confusion = own.one_ability_confusion(known, DECIMALS)
            elif own.pseudo_answers_per_row:
                confusion = own.posterior_confusion(known, prior, DECIMALS, compiled=compiled)
            else:
                confusion = self.estimate_confusions(known, prior, compiled=compiled)
            parameters = replace(
                parameters, confusion=confusion, participation=participation, is_initial=False, own_prior=own
            )
        if parameters.independence is not None:
            independence = self.updated_independence(reports, answers, known, parameters)
            parameters = replace(parameters, independence=independence)
        parameters = replace(parameters, own_steps=max(parameters.own_steps - 1, 0))
        if parameters.summary.prior is not None:
            return parameters
        return replace(parameters, class_prior=self.estimate_class_prior(by_truth, parameters))

    def updated_independence(
        self,
        reports: NDArray[np.float64],
        answers: NDArray[np.float64],
        known: NDArray[np.float64],
        parameters: CrowdParameters,
    ) -> Independence:
        """Return the independence of workers after a step, behind noise from reports: who answers without the truth
        reports without it.

        Args:
            reports: posterior sums, [worker, truth, symbol].
            answers: expected answers, [worker, truth, label].
            known: the same with earlier ones.
            parameters: of the step.
        """
        independence, own = parameters.independence, parameters.own_prior
        assert independence is not None
        assert own is not None
        if independence.is_due:
            earlier = None if parameters.summary.history is None else known - answers
            prior = parameters.dirichlet_prior
            if parameters.pool.noise:
                table = parameters.pool.model.table
                answers, earlier, prior = reports, None, prior @ table
                own = own_prior_of_reports(reports, independence.weights, parameters.summary)
            compiled = parameters.summary.uses_compiled_confusion_fit
            independence = independence.updated(informed_evidence(answers, earlier, prior, own, compiled=compiled))
        return replace(independence, step=independence.step + 1)

    def estimate_class_prior(self, by_truth: NDArray[np.float64], parameters: CrowdParameters) -> NDArray[np.float64]:
        """Return the mean posterior with even pseudo-tasks, and `expected_class_shares` in proportion to the noise."""
        pool, tasks = parameters.pool, parameters.summary.tasks - unanswered_task_count(parameters)
        even = (1 - pool.noise) ** 2 * self.uniform_share * tasks / pool.labels
        independence = parameters.independence
        frequencies = pool.label_shares if independence is None else independence.frequencies
        shares = by_truth + 1.0 + even + self.damping * pool.noise * tasks * expected_class_shares(frequencies)
        return np.asarray(shares / shares.sum())

    def log_likelihood(self, statistics: CrowdStatistics) -> None:
        """Return None: the steps maximize no fixed objective."""
        return None

    def last_e_step_parameters(self, parameters: CrowdParameters) -> CrowdParameters:
        """Return the parameters with the discount of correlated errors, less of it where one ability fits all rows."""
        own = 0.0 if parameters.own_prior is None else parameters.own_prior.answer_share
        discount = Discount(self.error_correlation * (1 - own), effective_answers_per_report(parameters))
        return replace(parameters, discount=discount, score_tables=None)

    def e_step(self, block: GoldBlock, parameters: CrowdParameters) -> EStep[CrowdStatistics]:
        """Return posteriors of the block's tasks and their sums; in the last step, labels without a vote are capped."""
        step = CrowdEstimator.e_step(self, block, parameters)
        if parameters.discount is None:
            return step
        votes, pool = expected_votes_by_label(block, parameters), parameters.pool
        weighted = expected_answers_by_label(weighted_reports_by_symbol(block, parameters), pool)
        share, posterior = self.vote_share * (1 - pool.noise) ** 2, step.posterior
        for tasks in row_chunks(posterior):
            capped = cap_unvoted_labels(posterior[tasks], votes[tasks])
            posterior[tasks] = blend_with_votes(capped, weighted[tasks], share)
            if parameters.independence is not None:
                answered = parameters.independence.answered_tasks
                posterior[tasks] *= answered / (answered + PSEUDO_TASKS)
                posterior[tasks] += PSEUDO_TASKS / (pool.labels * (answered + PSEUDO_TASKS))
        return step._replace(posterior=one_hot_gold(posterior, block.gold), change=None)

    def credible_intervals(
        self,
        blocks: Iterable[GoldBlock],
        posterior: NDArray[np.float64],
        result: FitResult[CrowdParameters, CrowdStatistics],
    ) -> WorkerTable:
        """Return the worker table with intervals that allow for mistakes in the truths.

        Without noise the ability is the mean reported posterior of the worker's own answers, with one answer of the
        crowd's; behind noise ability and variance are those of Dawid-Skene.
        """
        parameters = result.parameters
        sums = AnswerSums.of_answers(parameters.summary.symbol_counts.sum(axis=1))
        counted = sums.counted(blocks, posterior, parameters)
        if not reports_are_answers(parameters):
            plain = DawidSkene(smoothing=self.smoothing, anchor_ability=self.anchor_ability)
            return sums.widened_by_truth_doubt(plain.credible_intervals(counted, posterior, result), NOISY_TRUTH_DOUBT)
        deque(counted, maxlen=0)
        table = sums.binomial_worker_table(result.workers, parameters)
        return sums.widened_by_truth_doubt(table, TRUTH_DOUBT)

    def worker_table(self, statistics: CrowdStatistics, parameters: CrowdParameters) -> WorkerTable:
        """Return the worker table with the independence of workers, and their common answers."""
        table, copies = CrowdEstimator.worker_table(self, statistics, parameters), parameters.summary.copies
        independence = parameters.independence
        return replace(
            table,
            independent=None if independence is None else independence.probability,
            copied=None if copies is None else copies.largest_share_per_worker(),
        )

    def to_state(self, parameters: CrowdParameters) -> Mapping[str, NDArray[np.float64]]:
        """Return what was learned, the number of reports, and strength and ability of the own prior; empty at first.

        Near-copies are found again in a resumed fit.
        """
        learned, own = ConfusionEstimator.to_state(self, parameters), parameters.own_prior
        if not learned:
            return {}
        prior = np.zeros(2) if own is None else np.array([own.strength, own.ability])
        matrices = {name: learned[name] for name in ConfusionEstimator.state_fields}
        if parameters.independence is not None:
            matrices["independent"] = parameters.independence.probability
        return {**matrices, "reports": np.array([float(parameters.summary.per_worker.sum())]), "own_prior": prior}

    def interrupted_state(self, parameters: CrowdParameters, number: int) -> Mapping[str, NDArray[np.float64]]:
        """Return the learned arrays with the number of steps that are left, since the fit stops early."""
        learned = self.to_state(parameters)
        return learned and {**learned, "steps_left": np.array([float(self.max_steps - number)])}

    def from_state(self, initial: CrowdParameters, state: FitState) -> CrowdParameters:
        """Return the parameters of the state, with its own prior; new workers keep the initial ones.

        Raises:
            LookupError: the state is of a version that did not learn the independence of workers.
        """
        strength, ability = map(float, state.shared["own_prior"])
        own = OwnPrior(strength, ability, distribution_of_wrong_answers(initial.pool))
        learned = replace(ConfusionEstimator.from_state(self, initial, state), own_prior=own)
        if (independence := initial.independence) is None:
            return learned
        probability = state.worker_rows_or_default("independent", independence.probability)
        share = share_of_independent_workers(probability)
        return replace(learned, independence=replace(independence, probability=probability, share=share))

    def model_for_resumed_fit(self, summary: Summary, state: FitState) -> Self:
        """Return the model with as many steps as the share of new reports asks for, and those left; at least one."""
        new = 1 - min(1.0, float(state.shared["reports"][0]) / max(1, int(summary.per_worker.sum())))
        left = int(state.shared["steps_left"][0]) if "steps_left" in state.shared else 0
        return replace(self, max_steps=min(self.max_steps, 1 + max(left, ceil(new * self.max_steps))))


def expected_class_shares(frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the shares of truths that answer frequencies, shape (labels,), let expect behind noise.

    They are the frequencies where a label has half of the answers, and even where none has `NO_MAJORITY`: among many
    labels, the most frequent answer is often not the most frequent truth.
    """
    weight = np.clip((frequencies.max() - NO_MAJORITY) / (MAJORITY - NO_MAJORITY), 0.0, 1.0)
    return np.asarray(weight * frequencies + (1 - weight) / len(frequencies))


def first_class_prior(parameters: CrowdParameters, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the class prior of the first posterior: a public one, or answer frequencies, as far as there is noise
    `expected_class_shares`."""
    if parameters.summary.prior is not None:
        return parameters.class_prior
    noise = parameters.pool.noise
    return np.asarray((1 - noise) * frequencies + noise * expected_class_shares(frequencies))


def unanswered_task_count(parameters: CrowdParameters) -> int:
    """Return the number of tasks without answers; 0 behind a channel, where no report may be a report."""
    summary = parameters.summary
    return 0 if parameters.pool.noise else summary.tasks - int(np.count_nonzero(summary.per_task))


def symbols_are_labels(summary: Summary) -> bool:
    """Return whether every listed report is its answer: without a channel, or through one that changes none."""
    table, labels = summary.model.table, summary.model.labels
    return np.array_equal(table[:labels], np.eye(labels)) and not table[labels:].any()


def reports_tell_independence(summary: Summary) -> bool:
    """Return whether weights are learned behind a channel with noise: participation is public, each report is most
    probable under its own label, and at least the share 1 - `MAX_NOISE` of reports survives."""
    model = summary.model
    if model.protected or model.implicit_null_count or model.table.shape[0] != model.table.shape[1]:
        return False
    own = bool((model.table.argmax(axis=0) == np.arange(model.labels)).all())
    return own and frequencies_of_reports(summary).noise <= MAX_NOISE


def weighted_label_shares(summary: Summary) -> NDArray[np.float64]:
    """Return the answer frequencies with the first weights of workers, shape (labels,)."""
    assert summary.independent is not None
    counts = np.einsum("w,wx->x", 1 - summary.independent, summary.counted_symbols)
    if symbols_are_labels(summary):
        return np.asarray((counts + 1) / (counts + 1).sum())
    return frequencies_of_counts(counts, summary.model, tasks=summary.tasks, perturbed=True).label_shares


def own_prior_of_reports(reports: NDArray[np.float64], weights: NDArray[np.float64], summary: Summary) -> OwnPrior:
    """Return the crowd's share of right reports, [worker, truth, symbol], and the distribution of wrong ones."""
    right, labels = float(np.einsum("w,wzz->", weights, reports)), reports.shape[2]
    crowd = float((right + 1) / (np.einsum("w,wzx->", weights, reports) + labels))
    counts = summary.symbol_counts.sum(axis=0) + 1.0
    errors = counts / counts.sum() * (1 - np.eye(labels))
    return OwnPrior(0.0, crowd, errors / errors.sum(axis=1, keepdims=True))


def reports_are_answers(parameters: CrowdParameters) -> bool:
    """Return whether every listed report is its answer, with or without an implicit NULL."""
    return not parameters.pool.noise and parameters.pool.model.listed_symbol_count == parameters.pool.labels


@dataclass(frozen=True, slots=True, eq=False)
class AnswerSums:
    """Sums over each worker's reports, shapes (workers,).

    Attributes:
        answers: number of reports.
        right: posterior of the reported label, without noise.
        confidence: largest posterior of the task.
    """

    answers: NDArray[np.float64]
    right: NDArray[np.float64]
    confidence: NDArray[np.float64]

    @classmethod
    def of_answers(cls, answers: NDArray[np.float64]) -> Self:
        """Return the number of reports, with sums of posteriors over none so far."""
        return cls(answers, *np.zeros((2, len(answers))))

    def counted(
        self, blocks: Iterable[GoldBlock], posterior: NDArray[np.float64], parameters: CrowdParameters
    ) -> Iterator[GoldBlock]:
        """Yield the blocks after adding their reports to the sums; `posterior` is indexed [task, label]."""
        for block in blocks:
            own = posterior[block.block.first : block.block.stop]
            highest = np.broadcast_to(row_maxima(own)[:, None], (len(own), parameters.pool.model.listed_symbol_count))
            self.confidence[:] += block.coded.agreement_sums(highest)
            if reports_are_answers(parameters):
                self.right[:] += block.coded.agreement_sums(own)
            yield block

    def binomial_worker_table(self, table: WorkerTable, parameters: CrowdParameters) -> WorkerTable:
        """Return abilities with one answer of the crowd's ability each, and their 90 % binomial intervals.

        As far as all rows of a worker share one ability, it is that of the fitted confusion matrix instead.
        """
        right, answers = self.right, self.answers
        if (earlier := parameters.summary.history) is not None:
            right, answers = right + earlier.right, answers + earlier.right + earlier.wrong
        crowd = (right.sum() + 1.0) / (answers.sum() + parameters.pool.labels)
        ability = (right + crowd) / (answers + 1.0)
        if (own := parameters.own_prior) is not None:
            ability += own.answer_share * (table.quality - ability)
        half = NORMAL_QUANTILE * np.sqrt(ability * (1 - ability) / (answers + 1.0))
        return replace(table, quality=ability, ability_low=ability - half, ability_high=ability + half)

    def widened_by_truth_doubt(self, table: WorkerTable, relative: float) -> WorkerTable:
        """Return the table with intervals that add the doubt about the truths to the variance of the ability."""
        assert table.ability_low is not None
        assert table.ability_high is not None
        doubt = relative * (1 - self.confidence / np.maximum(self.answers, 1.0))
        half = np.hypot((table.ability_high - table.ability_low) / 2, NORMAL_QUANTILE * doubt)
        low, high = np.maximum(table.quality - half, 0.0), np.minimum(table.quality + half, 1.0)
        return replace(table, ability_low=low, ability_high=high)


def weighted_reports_by_symbol(block: GoldBlock, parameters: CrowdParameters) -> NDArray[np.float64]:
    """Return the listed reports of each task by symbol, with the weights of workers and of copies; [task, symbol]."""
    independence = parameters.independence
    weights = np.ones(block.coded.workers) if independence is None else independence.weights
    return block.coded.symbol_weights(weights)


def effective_answers_per_report(parameters: CrowdParameters) -> float:
    """Return the mean number of answers that a listed report is worth, in [0, 1]; 1 without noise.

    A share r of a worker's label reports are answers that survived the channel. Each of them is worth r^2 answers, so
    that a crowd of whom some often answer is worth more than one in which all do rarely.
    """
    model, counts = parameters.pool.model, report_counts_by_worker(parameters.summary)
    if not parameters.pool.noise:
        return 1.0
    labels = np.append(model.is_informative, np.zeros(model.implicit_null_count, dtype=bool))
    sent = counts[:, labels].sum(axis=1)
    surviving = (counts @ model.retention) * parameters.participation
    share = np.minimum(surviving / np.maximum(sent, 1.0), 1.0)
    return float(sent @ share**2) / max(1.0, float(parameters.summary.symbol_counts.sum()))


def expected_votes_by_label(block: GoldBlock, parameters: CrowdParameters) -> NDArray[np.float64]:
    """Return the expected answers of listed reports to each task of the block, [task, label]."""
    coded = block.coded if block.coded.weights is None else replace(block.coded, weights=None)
    return expected_answers_by_label(coded.symbol_weights(np.ones(coded.workers)), parameters.pool)


def expected_answers_by_label(reports: NDArray[np.float64], pool: AnswerFrequencies) -> NDArray[np.float64]:
    """Return expected answers, [task, label], from listed reports by symbol, [task, symbol]."""
    return reports if pool.model.is_identity else reports @ answer_given_symbol(pool)


def answer_given_symbol(pool: AnswerFrequencies) -> NDArray[np.float64]:
    """Return P(answer | symbol) under the crowd's answer frequencies, indexed [symbol, label]."""
    joint = pool.shares[:, None] * pool.model.table
    return np.asarray((joint / np.maximum(joint.sum(axis=0), TINY))[: pool.labels].T)


def blend_with_votes(posterior: NDArray[np.float64], votes: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    """Return the mean of posteriors and smoothed shares of votes; posteriors of tasks without votes do not change.

    Args:
        posterior, votes: as in `cap_unvoted_labels`.
        weight: of the shares of votes, in [0, 1].
    """
    total, labels = row_sums(votes)[:, None], votes.shape[1]
    shares = (votes + VOTE_SMOOTHING / labels) / (total + VOTE_SMOOTHING)
    return np.where(total > 0, (1 - weight) * posterior + weight * shares, posterior)


def cap_unvoted_labels(posterior: NDArray[np.float64], votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the posterior in which a label without a vote is at most half as probable as the best label with one.

    Args:
        posterior: indexed [task, label], rows sum to 1.
        votes: expected answers, indexed alike. From 0 to `CLEAR_VOTE` the bound rises from a half to 1, and then ends.
    """
    voted = np.minimum(votes / CLEAR_VOTE, 1.0)
    best = row_maxima(posterior * voted)[:, None]
    bound = np.where(voted < 1, (UNVOTED_SHARE + (1 - UNVOTED_SHARE) * voted) * best, np.inf)
    capped = np.where(best > 0, np.minimum(posterior, bound), posterior)
    return np.asarray(capped / row_sums(capped)[:, None])
