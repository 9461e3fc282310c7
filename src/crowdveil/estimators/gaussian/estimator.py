"""Gaussian error model for numbers through a channel, fitted by belief propagation and EM over error classes.

A worker of class c = (sigma, s) sends report y on a task of truth mu with probability
R_c[mu, y] = (1 - s) Q[NULL, y] + s sum_x C_sigma[mu, x] Q[x, y] (`discretization`). The posteriors of workers, q_i(c),
and of tasks, gamma_j(mu), follow from `belief_propagation`; the prior of truths from `marginal_likelihood`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.reports import Block, Reports
from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.em.deconvolution import AnswerFrequencies, frequencies_of_reports
from crowdveil.em.estimate import Estimate, WorkerTable
from crowdveil.em.estimator import Estimator, to_estimate, validated_input
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.kernels.dispatch import use_compiled
from crowdveil.em.kernels.numpy_backend import softmax
from crowdveil.em.loop import run_em
from crowdveil.em.model import EStep, GoldBlock, MemoryUse, S, Summary
from crowdveil.errors import SettingsError
from crowdveil.estimators.gaussian import discretization as grid
from crowdveil.estimators.gaussian.belief_propagation import DAMPING, Priors, propagate
from crowdveil.estimators.gaussian.discretization import (
    MAX_PARTICIPATION,
    TINY,
    ErrorClasses,
    crossed_error_classes,
    geometric_sigma_grid,
    initial_participation_shares,
    neighbour_smoothing_matrix,
    participation_grid,
)
from crowdveil.estimators.gaussian.marginal_likelihood import AnonymousWorkerModels, fit_anonymous_models

CHUNK_TASKS = 4096
BYTES_PER_CLASS, BYTES_PER_POINT = 240, 96
"""Bytes per worker and error class, and bytes of a thread per task and grid point."""
M_STEPS = 400
"""Upper bound of mixture updates in an M-step; belief propagation costs far more."""
MIXTURE_TOLERANCE = 1e-6
"""Largest change of a share of sigma at convergence of the mixtures."""
PARTICIPATION_FACTOR = 2.0
"""Width, as a factor, of the 90 % interval of participation from which on it is averaged over, or truths are refused.

The distance of the learned prior from the replacement of NULL is inversely proportional to the participation.
"""
MAX_PARTICIPATION_DEVIATION = np.log(PARTICIPATION_FACTOR) / (2 * 1.645)
"""Standard deviation of the logarithm of the participation with that interval."""
EVIDENCE_POWER = 0.5
"""Power of the marginal likelihood that weights participations: it counts a worker's reports as independent."""
LEVELS = (0.05, 0.5, 0.95)
"""Quantile levels: interval ends and median."""


@dataclass(frozen=True, eq=False)
class GaussianParameters:
    """Parameters of workers and of the prior of truths.

    Attributes:
        summary: counts of the reports.
        points: the grid of truths.
        classes: error classes of workers.
        q: responsibilities q_i(c), indexed [worker, class], rows sum to 1.
        sigma_shares, participation_shares: the mixture over classes is their product; each sums to 1.
        anonymous_models: candidate priors of truths, with mixtures of sigmas for each; one prior if it is public. One
            set for each candidate of the crowd's participation, only one if it is determined or the prior is public.
        average: posterior weights of all candidates, indexed [participation, mixture, prior], if participation is
            averaged over and the first step is done; else None.
        constant: the truth of every task if the reports do not identify the truths; else None.
        weights: posterior weight of each prior, shape (priors,), sums to 1.
        anonymous: True in the first step, which ignores worker identities and weights priors and mixtures by their
            marginal likelihood.
        learned: True if `q` was estimated from the reports of each worker.
        public_prior: True if the prior is public, so that tasks without reports have an estimate too.
    """

    summary: Summary
    points: NDArray[np.float64]
    classes: ErrorClasses
    q: NDArray[np.float64]
    sigma_shares: NDArray[np.float64]
    participation_shares: NDArray[np.float64]
    anonymous_models: tuple[AnonymousWorkerModels, ...]
    weights: NDArray[np.float64]
    anonymous: bool
    learned: bool
    public_prior: bool
    average: NDArray[np.float64] | None = None
    constant: float | None = None

    @property
    def log_shares_of_classes(self) -> NDArray[np.float64]:
        """Logarithm of the mixture over classes, shape (classes,)."""
        product = self.sigma_shares[:, None] * self.participation_shares
        return np.log(np.maximum(product, TINY)).ravel()

    def with_worker_responsibilities(self) -> "GaussianParameters":
        """Return the parameters with the mixture over classes, and the history, as every worker's responsibilities."""
        if self.summary.history is None:
            return replace(self, q=np.tile(np.exp(self.log_shares_of_classes), (self.summary.workers, 1)))
        return replace(self, q=softmax(self.log_shares_of_classes + self.log_likelihood_of_history())[0])

    def log_likelihood_of_history(self) -> NDArray[np.float64]:
        """Return the log-likelihood of each worker's earlier errors in each class, [worker, class]; zeros without."""
        earlier, sigmas = self.summary.history, self.classes.sigmas
        if earlier is None:
            return np.zeros((1, 1))
        scores = -earlier.number[:, None] * (np.log(sigmas) + (earlier.quality[:, None] / sigmas) ** 2 / 2)
        return np.repeat(scores, len(self.classes.participations), axis=1)


class GaussianStatistics(NamedTuple):
    """Sums over tasks.

    `worker_scores`, indexed [worker, class]: log-likelihood of a worker's cells. `evidence`, indexed [participation,
    mixture, prior]: marginal log-likelihood of the tasks' report counts, in the first step only.
    """

    worker_scores: NDArray[np.float64]
    evidence: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Estimator[GaussianParameters, GaussianStatistics]):
    """Gaussian errors on a scale (or on positions of ordered labels), with the channel in the likelihood.

    Truths are posterior medians, clipped to the scale, with 5 % and 95 % quantiles. `log_likelihoods` is empty, since
    belief propagation maximizes no bound.

    Attributes:
        prior_mean, prior_deviation: a public normal prior of the truths before clipping, in units of the answers; None
            for a learned prior, or one given by label to `fit`.
        sigmas: public classes of the workers' deviations, in units of the answers; None for a grid over the scale.
        participations: public classes of the share of tasks a worker answers; None for a grid around the crowd's.
        smoothing: pseudo-workers in every class of the learned mixtures.
        max_steps: largest number of steps.
        tolerance: stop when no truth changes by more than this, in units of the answers.
        points_per_step: upper bound of grid points per step of the answers; fewer are faster and less accurate.

    Raises:
        SettingsError: a setting out of range.

    >>> from crowdveil import Reports, Scale
    >>> answers = {"task": [1, 1, 1, 2, 2, 2], "worker": [*"abcabc"], "value": [1, 2, 9, 5, 5, 6]}
    >>> grades = Reports.from_frame(answers, alphabet=Scale(0, 10))
    >>> Gaussian(prior_mean=5, prior_deviation=2).fit(grades).truth.round(1).tolist()
    [1.7, 5.0]
    """

    name: ClassVar[str] = "gaussian"
    ranges: ClassVar[Mapping[str, str]] = {
        "prior_mean": "(-inf, inf)",
        **dict.fromkeys(("prior_deviation", "smoothing", "sigmas"), "(0, inf)"),
        "participations": "(0, 1]",
    }
    state_fields: ClassVar[Mapping[str, StateField]] = {
        "q": StateField("distribution"),
        "sigma_shares": StateField("distribution", by_worker=False),
        "participation_shares": StateField("distribution", by_worker=False),
    }
    prior_mean: float | None = None
    prior_deviation: float | None = None
    sigmas: tuple[float, ...] | None = None
    participations: tuple[float, ...] | None = None
    smoothing: float = 0.01
    max_steps: int = 300
    tolerance: float = 1e-3
    points_per_step: int = grid.MAX_POINTS_PER_STEP

    def __post_init__(self) -> None:
        Estimator.__post_init__(self)
        if (self.prior_mean is None) != (self.prior_deviation is None):
            raise SettingsError("a normal prior needs both mean and deviation", value=self.prior_mean)

    def initialize(self, summary: Summary) -> GaussianParameters:
        """Return the initial mixture as the responsibilities of every worker, and the candidate priors.

        Raises:
            SettingsError: both a prior by label and a normal one.
        """
        alphabet = _required_alphabet(summary)
        pool = frequencies_of_reports(summary)
        sigmas = geometric_sigma_grid(alphabet) if self.sigmas is None else np.unique(self.sigmas)
        rates = participation_grid(pool, self.participations)
        points, family = self._grid_and_candidate_log_priors(summary)
        classes = crossed_error_classes(points, alphabet, pool.model, sigmas, rates)
        anonymous_models = self._anonymous_models_by_participation(summary, pool, points, family, sigmas)
        parameters = GaussianParameters(
            summary=summary,
            points=points,
            classes=classes,
            q=np.empty((summary.workers, 0)),
            sigma_shares=anonymous_models[0].sigma_shares[0, -1],
            participation_shares=initial_participation_shares(rates, pool.participation),
            anonymous_models=anonymous_models,
            weights=grid.weights_of_candidate_priors(np.exp(family), points, alphabet),
            anonymous=True,
            learned=False,
            public_prior=self._has_public_prior(summary),
        )
        return parameters.with_worker_responsibilities()

    def _anonymous_models_by_participation(
        self,
        summary: Summary,
        pool: AnswerFrequencies,
        points: NDArray[np.float64],
        family: NDArray[np.float64],
        sigmas: NDArray[np.float64],
    ) -> tuple[AnonymousWorkerModels, ...]:
        """Return the candidate models for each candidate of the crowd's participation, see `GaussianParameters`."""
        determined = pool.log_participation_deviation < MAX_PARTICIPATION_DEVIATION
        fixed = determined or self.participations is not None or self._has_public_prior(summary)
        rates = np.minimum([pool.participation] if fixed else grid.PARTICIPATION_CANDIDATES, MAX_PARTICIPATION)
        counts = pool.model.full_report_totals(summary.symbol_counts.sum(axis=0))
        typical = (
            crossed_error_classes(points, _required_alphabet(summary), pool.model, sigmas, rate)
            for rate in rates[:, None]
        )
        tables = (np.concatenate((found.mixing @ found.components, found.implicit_null)) for found in typical)
        return tuple(fit_anonymous_models(family, table, counts, sigmas, len(rates)) for table in tables)

    def memory(self, summary: Summary, parameters: GaussianParameters) -> MemoryUse:
        """Return the memory of responsibilities, and of posteriors on the grid of truths of `CHUNK_TASKS` tasks."""
        beliefs = BYTES_PER_POINT * CHUNK_TASKS * len(parameters.points)
        return MemoryUse(summary.workers, BYTES_PER_CLASS * parameters.q.size, beliefs)

    def to_state(self, parameters: GaussianParameters) -> Mapping[str, NDArray[np.float64]]:
        """Return the responsibilities and the mixture over classes; empty before they are learned."""
        return {name: getattr(parameters, name) for name in self.state_fields if parameters.learned}

    def from_state(self, initial: GaussianParameters, state: FitState) -> GaussianParameters:
        """Return the parameters of the state; the initial ones if the number of participation classes differs.

        The first step weights the priors of truths by marginal likelihood, as in every fit.
        """
        if initial.q.shape[1:] != state.by_worker["q"].shape[1:]:
            return initial
        return replace(
            initial,
            q=state.worker_rows_or_default("q", initial.q),
            sigma_shares=state.shared["sigma_shares"],
            participation_shares=state.shared["participation_shares"],
            learned=True,
        )

    def e_step(self, block: GoldBlock, parameters: GaussianParameters) -> EStep[GaussianStatistics]:
        """Return posterior medians of the block's tasks with their interval, and the sums for workers and prior."""
        return e_step_in_chunks(
            block, parameters, lambda part, gold: _statistics_and_quantiles_of_tasks(part, gold, parameters)
        )

    def m_step(self, statistics: GaussianStatistics, parameters: GaussianParameters) -> GaussianParameters:
        """Return new weights of priors and mixtures in the first step, then new responsibilities and class shares."""
        if parameters.average is not None:
            return parameters
        if parameters.anonymous:
            return weighted_by_marginal_likelihood(statistics.evidence, parameters)
        scores = statistics.worker_scores + parameters.log_likelihood_of_history()
        kept_share = DAMPING * parameters.learned
        by_sigma, by_rate = self._fitted_shares(scores, parameters)
        settled = replace(parameters, sigma_shares=by_sigma, participation_shares=by_rate)
        log_q = np.log(np.maximum(softmax(scores + settled.log_shares_of_classes)[0], TINY))
        # Damping: the responsibilities of two workers who share a single task could oscillate without it.
        log_q = kept_share * np.log(np.maximum(parameters.q, TINY)) + (1 - kept_share) * log_q
        return replace(settled, q=softmax(log_q)[0], learned=True)

    def _fitted_shares(
        self, scores: NDArray[np.float64], parameters: GaussianParameters
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the shares of sigmas and of participations fitted by EM to the workers' scores [worker, class]."""
        by_sigma, by_rate = parameters.sigma_shares, parameters.participation_shares
        likelihood = np.exp(scores - scores.max(axis=1, keepdims=True))
        # Public classes are distinct and not smoothed.
        smoothing = neighbour_smoothing_matrix(len(by_sigma)) if self.sigmas is None else np.eye(len(by_sigma))
        for _ in range(M_STEPS):
            before, product = by_sigma, np.outer(by_sigma, by_rate)
            # Sums of responsibilities over workers, without the responsibilities themselves.
            sums = (1 / np.maximum(likelihood @ product.ravel(), TINY)) @ likelihood
            split = product * sums.reshape(product.shape)
            by_sigma, by_rate = (
                self._smoothed_shares(split.sum(axis=1)) @ smoothing,
                self._smoothed_shares(split.sum(axis=0)),
            )
            if np.abs(by_sigma - before).max() < MIXTURE_TOLERANCE:
                break
        return by_sigma, by_rate

    def worker_table(self, statistics: GaussianStatistics, parameters: GaussianParameters) -> WorkerTable:
        """Return sigmas (medians, with an interval), weights 1 / sigma, and participation where it was protected."""
        classes = parameters.classes
        split = classes.by_sigma_and_participation(parameters.q)
        by_sigma, by_rate = split.sum(axis=2), split.sum(axis=1)
        sigma = np.exp(self._log_sigma_quantiles(by_sigma, statistics, parameters))
        protected = parameters.summary.model.protected
        return WorkerTable(
            quality=by_sigma @ (1 / classes.sigmas),
            quality_name="weight",
            participation=by_rate @ classes.participations if protected else None,
            sigma_low=sigma[:, 0],
            sigma=sigma[:, 1],
            sigma_high=sigma[:, 2],
        )

    def _log_sigma_quantiles(
        self, by_sigma: NDArray[np.float64], statistics: GaussianStatistics, parameters: GaussianParameters
    ) -> NDArray[np.float64]:
        """Return quantiles of the logarithm of sigma, indexed [worker, level]."""
        sigmas = np.log(parameters.classes.sigmas)
        if self.sigmas is not None:
            # Public classes are exact; grid classes also represent the sigmas between them.
            return grid.quantiles(by_sigma, sigmas, LEVELS)
        scores = parameters.classes.by_sigma_and_participation(
            statistics.worker_scores + parameters.log_likelihood_of_history() + parameters.log_shares_of_classes
        )
        return grid.quantiles(
            *grid.probabilities_refined_by_splines(np.logaddexp.reduce(scores, axis=2), sigmas), LEVELS
        )

    def _smoothed_shares(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        smoothed = counts + self.smoothing
        return np.asarray(smoothed / smoothed.sum())

    def _has_public_prior(self, summary: Summary) -> bool:
        return self.prior_mean is not None or summary.prior is not None

    def _grid_and_candidate_log_priors(self, summary: Summary) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the grid of truths and the log-priors to choose from, [prior, truth]."""
        alphabet = _required_alphabet(summary)
        if self.prior_mean is None or self.prior_deviation is None:
            points = grid.truth_grid_with_margin(alphabet, None, self.points_per_step)
            if summary.prior is None:
                return points, np.log(grid.candidate_normal_priors(points, alphabet))
            return points, grid.label_log_prior(points, alphabet, summary.prior)[None]
        if summary.prior is not None:
            raise SettingsError("a prior is given by label or by mean and deviation, not both", value=self.prior_mean)
        reach = grid.PRIOR_REACH * self.prior_deviation
        bounds = self.prior_mean - reach, self.prior_mean + reach
        points = grid.truth_grid_with_margin(alphabet, bounds, self.points_per_step)
        return points, grid.normal_log_prior(points, self.prior_mean, self.prior_deviation)[None]


def _required_alphabet(summary: Summary) -> Alphabet:
    assert summary.alphabet is not None
    return summary.alphabet


def weighted_by_marginal_likelihood(
    evidence: NDArray[np.float64], parameters: GaussianParameters
) -> GaussianParameters:
    """Return the parameters with candidates weighted by their marginal likelihood, [participation, mixture, prior].

    If several participations are possible, all later steps average over the candidates. If their 90 % interval is wider
    than a factor `PARTICIPATION_FACTOR`, every task has the same truth, the median of the prior.
    """
    models = parameters.anonymous_models
    several = len(models) > 1
    hyperprior = np.log(models[0].mixture_weights[:, None] * parameters.weights)
    scores = (EVIDENCE_POWER if several else 1) * evidence + hyperprior
    joint = softmax(scores.reshape(1, -1))[0].reshape(scores.shape)
    weights = joint.sum(axis=(0, 1)) if several else joint[0].sum(axis=0)
    weighted = replace(parameters, weights=weights, anonymous=False)
    if several:
        return _averaged_parameters(weighted, joint)
    if parameters.learned:
        return weighted
    return replace(
        weighted, sigma_shares=_mean_sigma_shares_over_candidates(joint, models)
    ).with_worker_responsibilities()


def _mean_sigma_shares_over_candidates(
    joint: NDArray[np.float64], models: tuple[AnonymousWorkerModels, ...]
) -> NDArray[np.float64]:
    """Return the shares of sigmas averaged over candidates with weights [participation, mixture, prior]."""
    return np.asarray(
        sum(np.einsum("mh,mhs->s", part, one.sigma_shares) for part, one in zip(joint, models, strict=True))
    )


def _averaged_parameters(parameters: GaussianParameters, joint: NDArray[np.float64]) -> GaussianParameters:
    """Return the parameters that average over the candidates, with one class of participation, the mean."""
    rates, by_rate = np.minimum(grid.PARTICIPATION_CANDIDATES, MAX_PARTICIPATION), joint.sum(axis=(1, 2))
    near = (rates[:, None] <= rates) & (rates <= PARTICIPATION_FACTOR * rates[:, None] * (1 + 1e-5))
    unknown = (near @ by_rate).max() < LEVELS[2] - LEVELS[0]
    prior = parameters.weights @ np.exp(parameters.anonymous_models[0].family)
    constant = float(grid.quantiles(prior[None], parameters.points, LEVELS)[0, 1])
    alphabet, old = _required_alphabet(parameters.summary), parameters.classes
    return replace(
        parameters,
        average=joint,
        classes=crossed_error_classes(old.points, alphabet, old.model, old.sigmas, np.array([by_rate @ rates])),
        sigma_shares=_mean_sigma_shares_over_candidates(joint, parameters.anonymous_models),
        participation_shares=np.ones(1),
        learned=False,
        constant=float(np.clip(constant, *alphabet.values[[0, -1]])) if unknown else None,
    ).with_worker_responsibilities()


def e_step_in_chunks(
    block: GoldBlock,
    parameters: GaussianParameters,
    infer: Callable[[Block, NDArray[np.float64]], tuple[S, NDArray[np.float64]]],
) -> EStep[S]:
    """Return the E-step of a block from statistics and quantiles, [task, level], of `CHUNK_TASKS` tasks at a time.

    Truths are clipped to the scale, those of gold tasks known, and nan without reports unless the prior is public.
    """
    starts = range(0, block.block.tasks, CHUNK_TASKS)
    chunks = [slice(first, min(first + CHUNK_TASKS, block.block.tasks)) for first in starts]
    parts = [infer(block.block.slice_tasks(tasks), block.gold[tasks]) for tasks in chunks]
    statistics = type(parts[0][0])(*(sum(field) for field in zip(*(part[0] for part in parts), strict=True)))
    values = _required_alphabet(parameters.summary).values
    truths = np.clip(np.concatenate([part[1] for part in parts]), values[0], values[-1])
    if not parameters.public_prior:
        truths[np.diff(block.block.pointers) == 0] = np.nan
    fixed = ~np.isnan(block.gold)
    truths[fixed] = block.gold[fixed, None]
    return EStep(statistics, truths[:, 1], truths[:, [0, 2]])


def _statistics_and_quantiles_of_tasks(
    part: Block, gold: NDArray[np.float64], parameters: GaussianParameters
) -> tuple[GaussianStatistics, NDArray[np.float64]]:
    """Return statistics and quantiles of some tasks of a block."""
    if parameters.average is not None:
        return GaussianStatistics(np.zeros_like(parameters.q), np.zeros(1)), averaged_truth_quantiles(
            part, gold, parameters
        )
    if parameters.anonymous:
        statistics, posterior = _candidate_evidence_step(part, gold, parameters)
    else:
        priors = Priors(np.exp(parameters.anonymous_models[0].family), parameters.weights)
        reports = int(parameters.summary.per_worker.sum())
        compiled = use_compiled(reports, reports * len(parameters.points))
        beliefs = propagate(
            part, gold, parameters.q, parameters.classes, priors, learned=parameters.learned, compiled=compiled
        )
        statistics, posterior = GaussianStatistics(beliefs.worker_scores, np.zeros(1)), beliefs.posterior
    return statistics, grid.quantiles(posterior, parameters.points, LEVELS)


def _candidate_evidence_step(
    part: Block, gold: NDArray[np.float64], parameters: GaussianParameters
) -> tuple[GaussianStatistics, NDArray[np.float64]]:
    """Return the marginal likelihood of every candidate from report counts, and posteriors under the widest prior."""
    counts, widest = task_symbol_counts(part, parameters.summary), parameters.anonymous_models[-1]
    posterior, _ = softmax(counts @ widest.widest_prior_log_likelihood + widest.family[-1])
    fixed = ~np.isnan(gold)
    posterior[fixed] = grid.point_masses(parameters.points, gold[fixed])
    return GaussianStatistics(
        np.zeros_like(parameters.q), candidate_log_likelihoods(counts, gold, parameters)
    ), posterior


def task_symbol_counts(part: Block, summary: Summary) -> NDArray[np.float64]:
    """Return the number of reports by symbol, then of implicit NULLs, indexed [task, report]."""
    model = summary.model
    cells = np.bincount(
        part.task * model.listed_symbol_count + part.value, minlength=part.tasks * model.listed_symbol_count
    )
    listed = cells.reshape(part.tasks, model.listed_symbol_count).astype(float)
    return np.concatenate(
        (listed, model.implicit_null_counts(listed, model.task_group[part.first : part.stop])), axis=1
    )


def candidate_log_likelihoods(
    counts: NDArray[np.float64], gold: NDArray[np.float64], parameters: GaussianParameters
) -> NDArray[np.float64]:
    """Return the log-likelihood of all counts, [task, report], for every candidate: [participation, mixture, prior]."""
    models, fixed = parameters.anonymous_models, ~np.isnan(gold)
    known = grid.point_masses(parameters.points, gold[fixed]).sum(axis=0) @ models[0].family.T
    return np.stack([one.model_log_evidence(counts[~fixed]) + known for one in models])


def averaged_truth_quantiles(
    part: Block, gold: NDArray[np.float64], parameters: GaussianParameters
) -> NDArray[np.float64]:
    """Return quantiles of some tasks, [task, level], averaged over the candidates; the whole scale for a constant."""
    assert parameters.average is not None
    if parameters.constant is not None:
        ends = _required_alphabet(parameters.summary).values[[0, -1]]
        return np.tile([ends[0], parameters.constant, ends[1]], (part.tasks, 1))
    counts = task_symbol_counts(part, parameters.summary)
    candidates = zip(parameters.anonymous_models, parameters.average, strict=True)
    posterior = np.sum([one.posterior(counts, weights) for one, weights in candidates], axis=0)
    return grid.quantiles(posterior / posterior.sum(axis=1, keepdims=True), parameters.points, LEVELS)


def fit_known(
    estimator: Gaussian,
    reports: Reports,
    *,
    sigma: ArrayLike,
    participation: ArrayLike = 1.0,
    channel: Channel | ChannelTable | None = None,
    assignment: Assignment | None = None,
    prior: dict[str, float] | None = None,
) -> Estimate:
    """Return the exact posterior for known sigmas and participations; its error is a lower bound for any inference.

    Args:
        estimator: with a public prior, here or in `prior`.
        reports, channel, assignment, prior: as in `Gaussian.fit`.
        sigma: deviation of each worker's errors, shape (workers,) or one number.
        participation: share of tasks that each worker answers, shape (workers,) or one number; 1 where public.

    Raises:
        SettingsError: no public prior.
    """
    data = validated_input(estimator, reports, channel, assignment, prior=prior)
    summary = data.summary
    if not estimator._has_public_prior(summary):
        raise SettingsError("exact posteriors need a public prior", value=None, hint="Give prior_mean.")
    protected = summary.model.protected
    shares = np.minimum(np.broadcast_to(participation if protected else 1.0, summary.workers), MAX_PARTICIPATION)
    sigmas, of_sigma = np.unique(np.broadcast_to(sigma, summary.workers), return_inverse=True)
    rates, of_rate = np.unique(shares, return_inverse=True)
    known = replace(estimator, sigmas=tuple(sigmas), participations=tuple(rates), max_steps=1)
    one_hot = np.eye(len(sigmas) * len(rates))[of_sigma * len(rates) + of_rate]
    initial = replace(known.initialize(summary), q=one_hot, anonymous=False)
    return to_estimate(run_em(known, initial, data), data)
