"""Methods of ranking: hierarchical Davidson, Davidson, Bradley-Terry and counting.

Davidson, R. R. (1970): On extending the Bradley-Terry model to accommodate ties in paired comparison experiments. JASA.
Davidson, R. R. and Beaver, R. J. (1977): On extending the Bradley-Terry model to incorporate within-pair order effects.
Bradley, R. A. and Terry, M. E. (1952): Rank analysis of incomplete block designs. Biometrika.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, final

import numpy as np

from crowdveil.answers.comparisons.values import TIE, Comparisons
from crowdveil.arguments import require_whole_number
from crowdveil.errors import SettingsError
from crowdveil.estimators.ranking.fit import (
    MAX_SWEEPS,
    NOTHING_KNOWN,
    FittedRanking,
    Hyperparameters,
    Known,
    Problem,
    fit,
)
from crowdveil.estimators.ranking.item_system import DENSE
from crowdveil.estimators.ranking.likelihood import Floats, row_terms
from crowdveil.estimators.ranking.posterior import (
    EXACT,
    ScorePosterior,
    drawn_posterior,
    evidence_of,
    normal_posterior,
    posterior_of,
)
from crowdveil.registry import RANKING_ENTRIES, LazyClasses

POOLED = Hyperparameters(slope_mean=1.0, side=1.0, tie=1.0)
"""Priors of the side effect and of ties where all workers share them."""

NARROW = Hyperparameters(slope=0.05)
"""Priors of the start for workers with few answers."""
DRAWN_ROWS = 10_000
"""Comparisons up to which the posterior is drawn, which takes up to three seconds."""
FEW = 10
"""Mean number of answers of a worker, or of reports worth as many, below which slopes are hard to find."""


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores with their uncertainty.

    Attributes:
        fitted: the fit that they come from; None for counting.
        counted: posterior without a fit.
        by_draws: whether the posterior is drawn by Markov chain Monte Carlo, not approximated by a normal one.
        few: whether workers have too few answers for draws.
    """

    fitted: FittedRanking | None
    counted: ScorePosterior | None = None
    by_draws: bool = False
    few: bool = False

    @property
    def scores(self) -> Floats:
        """Score of each item, shape (items,)."""
        return self.posterior.scores if self.fitted is None else self.fitted.point.scores

    @cached_property
    def posterior(self) -> ScorePosterior:
        """Posterior of the scores; computed on first use, which takes longer than many a fit."""
        if self.counted is not None:
            return self.counted
        assert self.fitted is not None
        return drawn_posterior(self.fitted) if self.by_draws else posterior_of(self.fitted)


@dataclass(frozen=True, kw_only=True)
class RankingMethod(ABC):
    """Method of ranking.

    Attributes:
        name: name on the command line.
        reads_channel: whether it has a likelihood of all three answers, which reads a channel and predicts answers.
        max_sweeps: largest number of sweeps.
    """

    name: ClassVar[str]
    reads_channel: ClassVar[bool] = True
    max_sweeps: int = MAX_SWEEPS

    def __post_init__(self) -> None:
        require_whole_number("max_sweeps", self.max_sweeps, least=1)

    def fit(self, comparisons: Comparisons, table: Floats | None = None, known: Known = NOTHING_KNOWN) -> Scored:
        """Return the scores.

        Args:
            comparisons: the answers, or the reports of a channel.
            table: P(report | answer) of the channel, rows left, tie and right, shape (3, reports); None for answers.
            known: pairs of items whose order is known (gold).

        Raises:
            SettingsError: a channel, or known orders, that the method does not use.
        """
        if not self.reads_channel and (table is not None or len(known)):
            what = "a channel" if table is not None else "known orders"
            hint = "Use 'davidson' or 'hierarchical-davidson'."
            raise SettingsError(f"{self.name} does not use {what}", value=self.name, hint=hint, value_in_rule=True)
        return self._fit(comparisons, table, known)

    @abstractmethod
    def _fit(self, comparisons: Comparisons, table: Floats | None, known: Known) -> Scored:
        """Return the scores."""


@final
@dataclass(frozen=True, kw_only=True)
class HierarchicalDavidson(RankingMethod):
    """Davidson's model with a signed slope, a side bias and a tie parameter for each worker; priors are learned.

    The learned variance of the slopes depends on the start. A wide start finds workers who guess or reverse the order;
    with few answers of a worker it can end where slopes follow single answers. There a narrow start is tried, too, and
    the fit with the higher marginal likelihood is kept; of few reports behind noise, all slopes stay equal, unless
    known orders are given. With enough answers of a worker, the uncertainty of up to 10,000 comparisons of 400 items
    is that of draws.
    """

    name: ClassVar[str] = "hierarchical-davidson"

    def _fit(self, comparisons: Comparisons, table: Floats | None, known: Known) -> Scored:
        ties, items = TIE in comparisons.answer_names, len(comparisons.items)
        few = len(comparisons) * _information_share(table) < FEW * len(comparisons.workers)
        by_draws = not few and len(comparisons) <= DRAWN_ROWS and items <= DENSE
        if by_draws:
            comparisons = comparisons.in_canonical_order
        slopes = not few or table is None or len(known) > 0
        problem = Problem(comparisons=comparisons, table=table, known=known, free=(slopes, True, ties))
        found = fit(problem, max_sweeps=self.max_sweeps)
        if few and slopes and items <= EXACT:
            other = fit(replace(problem, start=NARROW), max_sweeps=self.max_sweeps)
            found = max(found, other, key=evidence_of)
        return Scored(found, by_draws=by_draws, few=few)


def _information_share(table: Floats | None) -> float:
    """Return the information of a report on the order of two items, of that of an answer."""
    eta, tie, report = np.array([0.5]), np.array([-0.5]), np.zeros(1, dtype=np.int32)
    through, known = (row_terms(eta, tie, report, one).eta_eta[0] for one in (table, None))
    return float(through / known)


@final
@dataclass(frozen=True, kw_only=True)
class Davidson(RankingMethod):
    """Davidson's model with a side effect: all workers are alike; the variance of the scores is learned."""

    name: ClassVar[str] = "davidson"

    def _fit(self, comparisons: Comparisons, table: Floats | None, known: Known) -> Scored:
        free = False, True, TIE in comparisons.answer_names
        problem = Problem(comparisons=comparisons, table=table, known=known, free=free, pooled=True, start=POOLED)
        found = fit(problem, max_sweeps=self.max_sweeps)
        return Scored(found)


@final
@dataclass(frozen=True, kw_only=True)
class BradleyTerry(RankingMethod):
    """Bradley-Terry: a tie is half a win of each item; the variance of the scores is learned."""

    name: ClassVar[str] = "bradley-terry"
    reads_channel: ClassVar[bool] = False

    def _fit(self, comparisons: Comparisons, table: Floats | None, known: Known) -> Scored:
        free = False, False, False
        problem = Problem(comparisons=_with_split_ties(comparisons), free=free, pooled=True, start=POOLED)
        found = fit(problem, max_sweeps=self.max_sweeps)
        return Scored(found)


def _with_split_ties(comparisons: Comparisons) -> Comparisons:
    """Return the rows with each tie as half an answer for the left item and half for the right."""
    tied = np.flatnonzero(comparisons.answer == 1)
    rows = np.concatenate([np.arange(len(comparisons)), tied])
    weight = np.ones(len(rows)) if comparisons.weight is None else comparisons.weight[rows]
    weight = weight * np.where(comparisons.answer[rows] == 1, 0.5, 1.0)
    split = comparisons.only_rows(rows)
    answer = np.where(split.answer == 1, 0, split.answer)
    answer[len(comparisons) :] = 2
    return split.with_answers(answer).with_weights(weight)


@final
@dataclass(frozen=True, kw_only=True)
class Counting(RankingMethod):
    """Share of comparisons won, a tie as half, with one win and one loss added."""

    name: ClassVar[str] = "counting"
    reads_channel: ClassVar[bool] = False

    def _fit(self, comparisons: Comparisons, table: Floats | None, known: Known) -> Scored:
        count = len(comparisons.items)
        weight = np.ones(len(comparisons)) if comparisons.weight is None else comparisons.weight
        left = weight * (1 - comparisons.answer / 2)
        wins = np.bincount(comparisons.left, left, count) + np.bincount(comparisons.right, weight - left, count)
        both = np.bincount(comparisons.left, weight, count) + np.bincount(comparisons.right, weight, count)
        share = (wins + 1) / (both + 2)
        return Scored(None, normal_posterior(share, np.diag(share * (1 - share) / (both + 3))))


RANKING_METHODS: Mapping[str, type[RankingMethod]] = LazyClasses(RANKING_ENTRIES)
"""Methods by name; the first is the default."""
