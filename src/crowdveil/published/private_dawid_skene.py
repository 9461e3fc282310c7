"""Private Dawid-Skene (Wang & Xu, Algorithm 1), for sparse reports and any number of labels.

The curator's half only: steps 4 to 8. Randomizing (steps 1 to 3) is `randomized-response` with public participation.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import NULL
from crowdveil.channels.channel import Channel
from crowdveil.em.estimate import WorkerTable
from crowdveil.em.estimator import Estimator, estimators_with_capabilities_text
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.gold import one_hot_gold
from crowdveil.em.model import EStep, GoldBlock, Summary
from crowdveil.em.saddle_points import jittered_table
from crowdveil.errors import SettingsError
from crowdveil.estimators.confusion.parameters import (
    ability_log_density,
    candidate_mean_abilities,
    most_likely_index,
)
from crowdveil.estimators.weighted_vote import log_odds_weight, right_report_shares

DEFAULT_PROJECTION = 0.001
"""Default lambda: keeps P(report right) away from 0 and 1 if the channel does not."""
EXPECTED_ABILITY = 0.7
"""Prior mean of the crowd's ability, as a probability of knowing the answer; workers guess otherwise."""
EQUALITY_TOLERANCE = 1e-12
"""Largest difference of equal table entries; rounding to the device's denominator changes them by 2^-48."""


@dataclass(frozen=True, eq=False)
class ReportAccuracy:
    """Probability that a non-NULL report is right, linear in the worker's ability: base + gain * ability.

    Attributes:
        base, gain: shape (workers,); a worker whose reports hold no information has base 1 / labels and gain 0.
        participation: estimated share of tasks answered, shape (workers,); None where participation is public.
    """

    base: NDArray[np.float64]
    gain: NDArray[np.float64]
    participation: NDArray[np.float64] | None

    def abilities_from_report_accuracy(self, right: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return abilities from P(report right) (step 7), clipped to [0, 1]; nan where reports hold no information."""
        ability = np.full(len(right), np.nan)
        np.divide(right - self.base, self.gain, out=ability, where=self.gain > EQUALITY_TOLERANCE)
        return np.clip(ability, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class DawidSkeneParameters:
    """Counts of the reports, report accuracies, and learned parameters.

    Attributes:
        accuracy: P(report right) as a function of the ability.
        right: P(report right) of each worker, shape (workers,); None at the start.
        crowd_ability: mean that abilities are shrunk to, as a probability of knowing the answer.
    """

    summary: Summary
    accuracy: ReportAccuracy
    right: NDArray[np.float64] | None
    crowd_ability: float


class DawidSkeneStatistics(NamedTuple):
    """Expected number of right reports of each worker, shape (workers,), and the log-likelihood (nan at the start)."""

    agreement: NDArray[np.float64]
    log_likelihood: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateDawidSkene(Estimator[DawidSkeneParameters, DawidSkeneStatistics]):
    """EM over truths and P(report right); the channel is inverted in the abilities at the end.

    Starts from the private majority vote, the y(0) of Algorithm 1: each label's share of the reports. Other starts can
    end with all labels flipped. Truths have a uniform prior unless one is given. T iterations of the algorithm are
    T + 1 steps: the first step makes y(0).

    Attributes:
        projection: lambda: P(report right) is kept in [2 lambda / K, 1 - lambda], for two labels the paper's
            [lambda, 1 - lambda]. None: the interval that the channel allows, [1 / (e^epsilon + 1),
            e^epsilon / (e^epsilon + 1)] for binary randomized response, intersected with lambda = 0.001;
            without a channel, lambda = 0.001 alone.
        shrinkage: prior weight, in answers, of the learned crowd ability in each worker's; 0, as published, is no
            shrinkage.
        max_steps: largest number of steps.
        tolerance: stop when no posterior changes by more than this.

    Raises:
        SettingsError: `projection` outside (0, 0.5), or `shrinkage` negative or not finite.
    """

    name: ClassVar[str] = "private-dawid-skene"
    ranges: ClassVar[Mapping[str, str]] = {"projection": "(0, 0.5)", "shrinkage": "[0, inf)"}
    state_fields: ClassVar[Mapping[str, StateField]] = {
        "right": StateField("probability"),
        "centre": StateField("probability", by_worker=False),
    }
    projection: float | None = None
    shrinkage: float = 0.0
    max_steps: int = 1000
    tolerance: float = 1e-8

    def initialize(self, summary: Summary) -> DawidSkeneParameters:
        """Return parameters without abilities: the first truths are votes.

        Raises:
            SettingsError: the channel is not symmetric in the labels.
        """
        return DawidSkeneParameters(summary, report_accuracy_by_ability(summary), None, EXPECTED_ABILITY)

    def e_step(self, block: GoldBlock, parameters: DawidSkeneParameters) -> EStep[DawidSkeneStatistics]:
        """Return soft truths [task, label]: equations (7) and (8) in log-odds, vote shares at the start."""
        summary, labels = parameters.summary, parameters.summary.labels
        prior = np.full(labels, 1.0 / labels) if summary.prior is None else summary.prior
        if parameters.right is None:
            votes = block.coded.symbol_weights(np.ones(summary.workers))
            total = votes.sum(axis=1, keepdims=True)
            truths = np.where(total > 0, votes / np.maximum(total, 1.0), prior)
            posterior = one_hot_gold(truths, block.gold)
            return EStep(DawidSkeneStatistics(block.coded.agreement_sums(posterior), math.nan), posterior)
        weight = log_odds_weight(parameters.right, labels)
        step = block.coded.one_coin_step(weight, np.log(prior), block.gold, block.before)
        wrong = np.log((1 - parameters.right) / (labels - 1))
        likelihood = step.log_normaliser + float(block.coded.worker_counts @ wrong)
        return EStep(DawidSkeneStatistics(step.agreement, likelihood), step.posterior, change=step.change)

    def jitter_parameters(self, parameters: DawidSkeneParameters, direction: float, seed: int) -> DawidSkeneParameters:
        """Return the parameters with slightly changed P(report right)."""
        assert parameters.right is not None
        return replace(parameters, right=jittered_table(parameters.right, direction, seed))

    def m_step(self, statistics: DawidSkeneStatistics, parameters: DawidSkeneParameters) -> DawidSkeneParameters:
        """Return the projected share of right reports: equation (10), averaged over each worker's own reports."""
        parameters = replace(parameters, right=self._abilities_clipped_to_feasible(statistics, parameters))
        if not self.shrinkage:
            return parameters
        choices = candidate_mean_abilities(EXPECTED_ABILITY)
        informative, right, wrong = self._right_and_wrong_pseudo_reports(parameters, choices)
        assert parameters.right is not None
        best = most_likely_index(
            EXPECTED_ABILITY, parameters.right[informative], right[:, informative], wrong[:, informative]
        )
        return replace(parameters, crowd_ability=float(choices[best]))

    def log_prior(self, parameters: DawidSkeneParameters) -> float:
        """Return the log-density of abilities and crowd ability; 0 without shrinkage."""
        if not self.shrinkage or parameters.right is None:
            return 0.0
        informative, right, wrong = self._right_and_wrong_pseudo_reports(
            parameters, np.array([parameters.crowd_ability])
        )
        density = ability_log_density(
            parameters.crowd_ability,
            EXPECTED_ABILITY,
            parameters.right[informative],
            right[:, informative],
            wrong[:, informative],
        )
        return float(density[0])

    def worker_table(self, statistics: DawidSkeneStatistics, parameters: DawidSkeneParameters) -> WorkerTable:
        """Return the abilities of step 7 from p(T), clipped to [0, 1]; nan without informative reports.

        p(T) determines the last truths y(T). After a single step, p(1) replaces it.
        """
        accuracy = parameters.accuracy
        right = (
            self._abilities_clipped_to_feasible(statistics, parameters)
            if parameters.right is None
            else parameters.right
        )
        ability = accuracy.abilities_from_report_accuracy(right)
        ability[parameters.summary.per_worker == 0] = np.nan
        return WorkerTable(ability, "ability", participation=accuracy.participation)

    def to_state(self, parameters: DawidSkeneParameters) -> Mapping[str, NDArray[np.float64]]:
        """Return P(report right) of each worker and the crowd ability; empty before the first M-step."""
        return (
            {}
            if parameters.right is None
            else {"right": parameters.right, "centre": np.array(parameters.crowd_ability)}
        )

    def from_state(self, initial: DawidSkeneParameters, state: FitState) -> DawidSkeneParameters:
        """Return the parameters of the state; new workers have the crowd ability."""
        crowd_ability = float(state.shared["centre"])
        default = initial.accuracy.base + initial.accuracy.gain * (
            crowd_ability + (1 - crowd_ability) / initial.summary.labels
        )
        return replace(initial, right=state.worker_rows_or_default("right", default), crowd_ability=crowd_ability)

    def _abilities_clipped_to_feasible(
        self, statistics: DawidSkeneStatistics, parameters: DawidSkeneParameters
    ) -> NDArray[np.float64]:
        summary, accuracy = parameters.summary, parameters.accuracy
        share = right_report_shares(statistics.agreement, summary.per_worker, summary.labels)
        if self.shrinkage:
            informative, extra, wrong = self._right_and_wrong_pseudo_reports(
                parameters, np.array([parameters.crowd_ability])
            )
            total = summary.per_worker + extra[0] + wrong[0]
            share[informative] = (statistics.agreement + extra[0])[informative] / total[informative]
        projection = DEFAULT_PROJECTION if self.projection is None else self.projection
        right = np.clip(share, 2 * projection / summary.labels, 1 - projection)
        if self.projection is not None:
            return right
        # Both intervals contain chance, so the second clip never leaves the first.
        return np.clip(right, accuracy.base, accuracy.base + accuracy.gain)

    def _right_and_wrong_pseudo_reports(
        self, parameters: DawidSkeneParameters, crowd_ability: NDArray[np.float64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
        """Return the mask of workers with informative reports, and their right and wrong pseudo-reports.

        A report carries the information of gain^2 answers, so `shrinkage` answers equal shrinkage / gain^2 reports.
        Shapes (workers,), and twice [crowd ability, worker].
        """
        accuracy, labels = parameters.accuracy, parameters.summary.labels
        informative = (accuracy.gain > EQUALITY_TOLERANCE) & (parameters.summary.per_worker > 0)
        pseudo_reports = np.where(informative, self.shrinkage / np.where(informative, accuracy.gain, 1.0) ** 2, 0.0)
        ability = crowd_ability + (1 - crowd_ability) / labels
        share = accuracy.base + accuracy.gain * ability[:, None]
        return informative, pseudo_reports * share, pseudo_reports * (1 - share)


def report_accuracy_by_ability(summary: Summary) -> ReportAccuracy:
    """Return P(report right) as a function of the ability, behind the summary's channel.

    A cell of a worker with ability a and participation s sends its true label with probability
    (1 - s) fill + s (flip + a (keep - flip)) and any label with sent = (1 - s) K fill + s (keep + (K - 1) flip), where
    fill = P(label | NULL). Their quotient is base + gain * a; s follows in closed form from the share of non-NULL
    reports. If the channel sends as many labels for NULL as for an answer, s is not identified and set to 1; the
    ability then counts unanswered cells as guesses.

    Raises:
        SettingsError: see `symmetric_entries`.
    """
    labels, workers = summary.labels, summary.workers
    if summary.channel is None:
        return ReportAccuracy(np.zeros(workers), np.ones(workers), None)
    assert isinstance(summary.channel, Channel)
    keep, flip, fill = symmetric_entries(summary.channel)
    if fill is None:
        answered = keep + (labels - 1) * flip
        return ReportAccuracy(np.full(workers, flip / answered), np.full(workers, (keep - flip) / answered), None)
    blank, answered = labels * fill, keep + (labels - 1) * flip
    share = np.ones(workers)
    if abs(answered - blank) > EQUALITY_TOLERANCE:
        share = np.clip((summary.per_worker / max(summary.tasks, 1) - blank) / (answered - blank), 0.0, 1.0)
    sent = share * answered + (1 - share) * blank
    base, gain = np.full(workers, 1.0 / labels), np.zeros(workers)
    np.divide((1 - share) * fill + share * flip, sent, out=base, where=sent > EQUALITY_TOLERANCE)
    np.divide(share * (keep - flip), sent, out=gain, where=sent > EQUALITY_TOLERANCE)
    return ReportAccuracy(base, gain, share)


def _any_channel_hint() -> str:
    methods = estimators_with_capabilities_text(kind="categorical", reads_channel_tables=True)
    return f"Use {methods}, which read any channel."


def symmetric_entries(channel: Channel) -> tuple[float, float, float | None]:
    """Return P(label | same label), P(label | other label) and P(label | NULL), None if NULL is no input.

    Raises:
        SettingsError: the channel is not symmetric in the labels, or keeps an answer less often than it sends another.
    """
    labels = channel.alphabet.size
    table = channel.probabilities[:, [k for k, name in enumerate(channel.outputs) if name != NULL]]
    same = np.eye(labels, dtype=bool)
    parts = [table[:labels][same], table[:labels][~same], table[labels:].ravel()]
    if any(np.ptp(part) > EQUALITY_TOLERANCE for part in parts if part.size):
        raise SettingsError(
            "private-dawid-skene needs a channel that treats all labels alike",
            value=channel.mechanism,
            hint=_any_channel_hint(),
        )
    keep, flip = float(parts[0].mean()), float(parts[1].mean())
    if keep < flip - EQUALITY_TOLERANCE:
        raise SettingsError(
            "private-dawid-skene needs a channel that keeps an answer at least as often as it sends a given other one",
            value=(keep, flip),
            hint=_any_channel_hint(),
        )
    return keep, flip, float(parts[2].mean()) if parts[2].size else None
