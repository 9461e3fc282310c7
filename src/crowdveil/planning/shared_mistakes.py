"""Mistakes that a crowd shares: a pilot of a few tasks, and the expected error of a campaign after it.

Answers to a task scatter around its consensus, the label that infinitely many such workers would give. On a share h of
the tasks the consensus is a mistake, which no number of workers corrects. With the error e that is planned against the
consensus and the errors c0, c of the best constant, planned and real, the expected error is

    c (r + h (1 - r)),    logit r = logit(e / c0) + d.

The population of crowds, logit h and d, is learned from replays of public sets (`SETS`, measured by
`experiments/utility/pilots.py`): both have the Student distribution that predicts one more set. A pilot weights draws
of (h, d, c) by the likelihood of its wrong tasks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, logit, ndtri, stdtrit

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators.dawid_skene import DawidSkene
from crowdveil.inference.scores.metrics import score

LEVEL = 0.95
"""Nominal probability of an interval after a pilot; it was chosen to hold nine of ten errors of left-out sets."""
DRAWS = 4096
"""Draws of a crowd."""
SMALLEST = 1e-3
"""Smallest distance of a relative error from 0 and 1 before its log-odds are taken."""
EM_STEPS = 100
"""Steps of the fit of one ability and the shares of labels."""
PRIOR_ANSWERS, PRIOR_ABILITY = 10.0, 0.75
"""Weight, in answers, and mean of the prior of the ability."""
MOST_ABILITY = 0.995
"""Largest estimate of the ability."""


@dataclass(frozen=True, slots=True)
class ReplayedSet:
    """Public set, replayed from pilots of 50 tasks.

    Attributes:
        name: of the set.
        share: tasks on which the crowd shares a mistake, h.
        shift: of the log-odds of the relative error against the consensus, d.
        residual: root mean square of the rest of its relative errors.
    """

    name: str
    share: float
    shift: float
    residual: float


SETS = (
    ReplayedSet("adult2", 0.603, -0.913, 0.045),
    ReplayedSet("bluebird", 0.227, 0.473, 0.023),
    ReplayedSet("d_possent", 0.077, -0.741, 0.013),
    ReplayedSet("d_product", 0.261, -0.591, 0.093),
    ReplayedSet("dog", 0.219, -0.868, 0.017),
    ReplayedSet("duchenne", 0.647, -0.349, 0.051),
    ReplayedSet("s_rel", 0.248, -0.055, 0.019),
    ReplayedSet("snow_rte", 0.107, -0.713, 0.03),
    ReplayedSet("snow_wsd", 0.027, -0.775, 0.014),
    ReplayedSet("web_zhou", 0.186, -1.297, 0.099),
)
"""Public sets of labels with at least 100 known truths; a test fits them from the results of the experiment."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pilot:
    """Estimates from the answers to a few random tasks.

    Attributes:
        labels: of its answers.
        tasks, workers: their numbers in the pilot.
        answered: share of its cells that are answered.
        ability: mean probability that an answer is the consensus of its task.
        shares: of the labels among the truths, or among the consensus without gold, shape (labels,).
        wrong: number of tasks whose estimate by `dawid-skene` is not the gold; None without gold.
        known: number of tasks with gold; 0 without.
    """

    labels: tuple[str, ...]
    tasks: int
    workers: int
    answered: float
    ability: float
    shares: NDArray[np.float64]
    wrong: float | None = None
    known: int = 0

    @classmethod
    def of(cls, answers: Reports, gold: Mapping[str, object] | None = None) -> Self:
        """Return the pilot of unprotected answers to random tasks, with the truths of all or some of them.

        Raises:
            SettingsError: answers that are no labels.
            ReportsError: no answer, or no gold for any of the tasks.
        """
        if not isinstance(answers.alphabet, Categories):
            hint = "Describe the workers of a scale by their standard deviations."
            raise SettingsError("the answers of a pilot must be labels", value=answers.alphabet, hint=hint)
        if not len(answers):
            raise ReportsError("a pilot needs at least one answer", source="pilot")
        ability, shares = _shared_ability_and_label_shares(answers)
        tasks, workers = len(answers.tasks), len(answers.workers)
        made = cls(
            labels=answers.alphabet.names,
            tasks=tasks,
            workers=workers,
            answered=len(answers) / (tasks * workers),
            ability=ability,
            shares=shares,
        )
        return made if gold is None else made._with_gold_mistakes(answers, gold)

    def _with_gold_mistakes(self, answers: Reports, gold: Mapping[str, object]) -> Self:
        """Return the pilot with its wrong tasks and the shares of labels by gold."""
        own = {name: str(gold[name]) for name in map(str, answers.tasks) if name in gold}
        if not own or not set(own.values()) <= set(self.labels):
            strange = ", ".join(sorted(set(own.values()) - set(self.labels)))
            rule = "the gold of a pilot must have truths of its tasks, each one of the labels"
            raise ReportsError(rule, source="gold", examples=strange)
        counts = np.array([list(own.values()).count(label) for label in self.labels])
        wrong = score(DawidSkene().fit(answers), own, error="error_rate").error * len(own)
        return replace(self, shares=_smoothed_shares(counts), wrong=wrong, known=len(own))


def _smoothed_shares(counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean of the posterior of shares with a uniform prior."""
    return np.asarray((counts + 1) / (counts.sum() + len(counts)))


def _shared_ability_and_label_shares(answers: Reports) -> tuple[float, NDArray[np.float64]]:
    """Return the ability of one-coin workers who are all alike, and the shares of labels, by EM."""
    tasks, labels = len(answers.tasks), answers.labels
    counts = np.bincount(answers.task * labels + answers.value, minlength=tasks * labels).reshape(tasks, labels)
    posterior = (counts + 1 / labels) / (counts.sum(axis=1, keepdims=True) + 1)
    for _ in range(EM_STEPS):
        shares = _smoothed_shares(posterior.sum(axis=0))
        right = float((posterior * counts).sum()) + PRIOR_ANSWERS * PRIOR_ABILITY
        ability = min(right / (counts.sum() + PRIOR_ANSWERS), MOST_ABILITY)
        scores = np.log(shares) + counts * np.log(ability * (labels - 1) / (1 - ability))
        posterior = np.exp(scores - scores.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
    return ability, shares


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedMistakes:
    """Real crowds as weighted draws, given a pilot.

    Attributes:
        pilot: its estimates.
        relative: planned error of the pilot against the consensus, divided by that of the best constant.
        sets: from which the population is learned.
    """

    pilot: Pilot
    relative: float
    sets: tuple[ReplayedSet, ...] = SETS

    @cached_property
    def _mistake_parameter_draws(self) -> tuple[NDArray[np.float64], ...]:
        """Return share, shift, constant, standard normal deviate and weight of each draw."""
        uniform = _uniform_points(4)
        share = expit(_predictive_quantiles(logit([one.share for one in self.sets]), uniform[0]))
        shift = _predictive_quantiles([one.shift for one in self.sets], uniform[1])
        pilot, labels = self.pilot, len(self.pilot.shares)
        size = pilot.known or pilot.tasks
        usual = float(self.pilot.shares.max()) * (size + labels) - 1
        mode = betaincinv(usual + 0.5, size - usual + 0.5, uniform[2])
        constant = 1 - np.maximum(mode, 1 / labels)
        if pilot.wrong is None:
            weight = np.ones(DRAWS)
        else:
            error = _errors_with_shared_mistakes(self.relative, share, shift, constant)
            log_weight = pilot.wrong * np.log(error) + (pilot.known - pilot.wrong) * np.log1p(-error)
            weight = np.exp(log_weight - log_weight.max())
        return share, shift, constant, ndtri(uniform[3]), weight / weight.sum()

    @property
    def pilot_summary_sentence(self) -> str:
        """Sentence on the estimates of the pilot, and the share of tasks on which such crowds share a mistake."""
        pilot, (share, _, _, _, weight) = self.pilot, self._mistake_parameter_draws
        wrong = "no gold" if pilot.wrong is None else f"{pilot.wrong:g} wrong of {pilot.known} with gold"
        low, high = _central_weighted_interval(share, weight, LEVEL)
        return (
            f"A pilot of {pilot.tasks} tasks: ability {pilot.ability:.2f} against the consensus, {wrong}. Crowds with "
            f"such a pilot share a mistake on {low:.0%} to {high:.0%} of the tasks."
        )

    def expected_error_interval(self, relative: float, tasks: int, level: float = LEVEL) -> tuple[float, float, float]:
        """Return the expected error of a campaign, and the ends of its interval.

        Args:
            relative: planned error against the consensus, divided by that of the best constant.
            tasks: of the campaign.
            level: probability of the interval.
        """
        share, shift, constant, normal, weight = self._mistake_parameter_draws
        error = _errors_with_shared_mistakes(relative, share, shift, constant)
        residual = constant**2 * float(np.mean([one.residual**2 for one in self.sets]))
        run = np.clip(error + np.sqrt(error * (1 - error) / tasks + residual) * normal, 0.0, 1.0)
        return float(weight @ error), *_central_weighted_interval(run, weight, level)


def _central_weighted_interval(
    values: NDArray[np.float64], weight: NDArray[np.float64], level: float
) -> tuple[float, float]:
    """Return the ends of the central interval of weighted values."""
    order = np.argsort(values)
    at = np.searchsorted(np.cumsum(weight[order]), [(1 - level) / 2, (1 + level) / 2])
    low, high = values[order][at].tolist()
    return low, high


def _errors_with_shared_mistakes(
    relative: float, share: NDArray[np.float64], shift: NDArray[np.float64], constant: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the error of each draw."""
    consensus = expit(logit(np.clip(relative, SMALLEST, 1 - SMALLEST)) + shift)
    return constant * (consensus + share * (1 - consensus))


def _predictive_quantiles(values: object, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return quantiles of the Student distribution that predicts one more of normal values."""
    known = np.asarray(values, dtype=float)
    scale = known.std(ddof=1) * np.sqrt(1 + 1 / len(known))
    return np.asarray(known.mean() + scale * stdtrit(len(known) - 1, uniform))


def _uniform_points(dimensions: int) -> NDArray[np.float64]:
    """Return evenly spread points in the unit cube, shape (dimensions, DRAWS): an additive recurrence.

    Its irrational steps are powers of the root of x^(d + 1) = x + 1, see Roberts (2018).
    """
    root = 2.0
    for _ in range(40):
        root = (1 + root) ** (1 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1)
    return np.asarray((0.5 + steps[:, np.newaxis] * np.arange(1, DRAWS + 1)) % 1)
