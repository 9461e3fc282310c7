"""Ordered labels: Dawid-Skene whose workers are of a few kinds, by noise and bias on the scale of the labels.

Mean field: q_i(c), who is of which kind, and the truths' posteriors are updated in turn, each given the other; the
kinds' tables stand behind the channel as those of any worker do.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.estimators.ability_interval import Path, Spread
from crowdveil.estimators.confusion_model import (
    CrowdEstimator,
    CrowdStatistics,
    all_reports,
    damped_shares,
    log_damping,
    log_participation_prior,
    share_answered,
)
from crowdveil.estimators.confusion_parameters import CrowdParameters
from crowdveil.estimators.fitting import Summary
from crowdveil.estimators.mixture import TINY, Mixture
from crowdveil.estimators.one_coin import OneCoin
from crowdveil.estimators.ordered_kinds import ordered_kinds
from crowdveil.estimators.participation_law import crowd_cells
from crowdveil.estimators.room import NUMBER, Beside
from crowdveil.estimators.votes import pool_reports

PER_KIND = 48
"""Bytes that fits take for each kind that a worker may be of."""
HELD_STEPS = 10
"""Steps in which tables form before a class prior is learned that did not start from the votes."""
FIRMEST = 16.0
"""Strength of the crowd's law in intervals of abilities, at most."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinalDawidSkene(CrowdEstimator):
    """Dawid-Skene for ordered labels, with few parameters a worker and a learned mixture of kinds to shrink them to.

    What the trace shows is the mean-field bound of the log-likelihood, priors included; it never falls.

    Attributes:
        shrinkage: pseudo-workers of the expected kinds in the learned mixture.
        pseudo_answers: least answers by which a worker's participation is drawn to the pool's (more where workers
            answer alike), in proportion to the noise.
        damping: weight of the crowd's base rate in the class prior, in campaigns, in proportion to the noise.
        max_steps: largest number of steps.
        tolerance: stop when no posterior changes by more than this.

    Raises:
        SettingsError: one of them is out of range.
    """

    name: ClassVar[str] = "ordinal-dawid-skene"
    needs_order: ClassVar[bool] = True
    max_steps: int = 1000
    tolerance: float = 1e-6
    shrinkage: float = 100.0
    pseudo_answers: float = 5.0
    damping: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.shrinkage < np.inf:
            raise SettingsError("shrinkage must be positive and finite", value=self.shrinkage)
        if not (0 <= self.pseudo_answers < np.inf and 0 <= self.damping < np.inf):
            raise SettingsError(
                "pseudo_answers and damping must not be negative", value=(self.pseudo_answers, self.damping)
            )

    def start(self, summary: Summary) -> CrowdParameters:
        """Return the expected mixture of kinds for every worker; the first posterior is the share of votes."""
        pool = pool_reports(summary)
        least = self.pseudo_answers * pool.noise / pool.participation
        tables, expected = ordered_kinds(pool.label_shares)
        mixture = Mixture(tables, expected, expected, np.tile(expected, (summary.workers, 1)))
        return CrowdParameters(
            summary=summary,
            pool=pool,
            anchor=np.zeros(tables.shape[1:]),
            pseudo_cells=crowd_cells(summary, pool, least),
            confusion=mixture.confusion(),
            participation=np.full(summary.workers, pool.participation),
            class_prior=pool.label_shares if summary.prior is None else summary.prior,
            at_start=True,
            mixture=mixture,
        )

    def beside(self, parameters: CrowdParameters) -> Beside:
        """Return what kinds take, scores and responsibilities of each worker, and the posteriors of the first start."""
        summary, mixture = parameters.summary, parameters.mixture
        assert mixture is not None
        own = PER_KIND * mixture.responsibility.size + NUMBER * summary.tasks * summary.labels
        return Beside(CrowdEstimator.beside(self, parameters).crowd + own, 0)

    def starts(self, summary: Summary) -> tuple[CrowdParameters | None, ...]:
        """Return two where the class prior is learned: at once, or from a uniform one when tables have formed.

        A prior that is learned from votes can starve a rare label before the workers' tables defend it.
        """
        if summary.prior is not None:
            return (None,)
        usual = self.start(summary)
        uniform = np.full(summary.labels, 1 / summary.labels)
        return (usual, replace(usual, class_prior=uniform, held=HELD_STEPS))

    def maximize(self, statistics: CrowdStatistics, parameters: CrowdParameters) -> CrowdParameters:
        """Return everybody's kinds, then the mixture, participations and the class prior that follow."""
        assert parameters.mixture is not None
        reports = all_reports(statistics, parameters)
        scores = kind_scores(reports, parameters, parameters.mixture) + np.log(parameters.mixture.shares)
        own = np.exp(scores - scores.max(axis=1, keepdims=True))
        own /= own.sum(axis=1, keepdims=True)
        learned = own.sum(axis=0) + self.shrinkage * parameters.mixture.expected
        mixture = replace(parameters.mixture, responsibility=own, shares=learned / learned.sum())
        participation = parameters.participation
        if parameters.pool.protected:
            answered = expected_answers(reports, parameters, mixture)
            participation = share_answered(answered, reports.sum(axis=(1, 2)), parameters)
        prior = parameters.class_prior
        if parameters.summary.prior is None and not parameters.held:
            prior = damped_shares(statistics.by_truth.sum(axis=0), self.damping, parameters)
        return replace(
            parameters,
            mixture=mixture,
            confusion=mixture.confusion(),
            participation=participation,
            class_prior=prior,
            at_start=False,
            held=max(parameters.held - 1, 0),
        )

    def spread(self, statistics: CrowdStatistics, parameters: CrowdParameters) -> tuple[Spread, Path]:
        """Return that of one ability for all rows, as `one-coin` reads it from these posteriors.

        Kinds hold one answer in five for a guess, so that no mean of theirs comes near 1, however many answers say so.
        Posteriors are averages over kinds, not over tables shrunk to one centre: workers who look alike may be alike,
        and the crowd's law may be firm. Of answers, its mean is also the better ability; behind noise it is no better.
        """
        spread, path = OneCoin().shrunk_spread(statistics, parameters)
        return replace(spread, firmest=FIRMEST, averaged=True, told=not parameters.pool.noise), path

    def log_prior(self, parameters: CrowdParameters) -> float:
        """Return what the mean-field bound adds to the tasks' part, with the log-densities of all priors."""
        mixture = parameters.mixture
        assert mixture is not None
        kinds = self.shrinkage * float(mixture.expected @ np.log(mixture.shares)) - mixture.divergence()
        learned = 0.0 if parameters.summary.prior is not None else log_damping(self.damping, parameters)
        return kinds + log_participation_prior(parameters) + learned


def kind_scores(reports: NDArray[np.float64], parameters: CrowdParameters, mixture: Mixture) -> NDArray[np.float64]:
    """Return the expected log-probability of each worker's reports if he were of each kind, indexed [worker, kind]."""
    seen = mixture.reports(parameters.pool.model.everything, parameters.participation)
    return np.stack([(reports * np.log(np.maximum(table, TINY))).sum(axis=(1, 2)) for _, table in seen], axis=1)


def expected_answers(
    reports: NDArray[np.float64], parameters: CrowdParameters, mixture: Mixture
) -> NDArray[np.float64]:
    """Return how many of each worker's reports are expected to stand for an answer rather than for NULL; (workers,)."""
    answers = np.zeros(len(reports))
    seen = mixture.reports(parameters.pool.model.everything, parameters.participation)
    for kind, (answered, table) in enumerate(seen):
        share = parameters.participation[:, None, None] * answered / np.maximum(table, TINY)
        answers += mixture.responsibility[:, kind] * (reports * share).sum(axis=(1, 2))
    return answers
