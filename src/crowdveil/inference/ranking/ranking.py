"""Rankings: items with ranks and their range, standardised scores, pairs that can be told apart, and workers.

Items are ranked within their group: all that comparisons connect. Nothing is stated of two items of different groups.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.answers.comparisons.values import LEFT, RIGHT, Comparisons
from crowdveil.answers.frames import ArrowRows
from crowdveil.arguments import did_you_mean
from crowdveil.display.counts import number_of
from crowdveil.errors import SettingsError
from crowdveil.estimators.ranking.fit import SIDE, SLOPE, TIE
from crowdveil.estimators.ranking.likelihood import Floats, answer_probabilities
from crowdveil.estimators.ranking.methods import RankingMethod, Scored
from crowdveil.estimators.ranking.posterior import EXACT, posterior_of, predict_answers
from crowdveil.estimators.ranking.unseen import PairAnswers, concentration_of, shrunk
from crowdveil.inference.ranking.triples import Triples, intransitive_triples

LEVEL = 0.9
"""Level of intervals of scores and ranks."""
NORMAL = 1.6448536269514722
"""Quantile of the standard normal distribution at (1 + LEVEL) / 2."""
TOLD_APART = 0.95
"""Probability of an order from which two items are told apart."""
NO_MAJORITY = 1 / 3
"""Share of the workers with a clear direction who reverse the order, from which no majority decides which is right."""


class RankColumns(NamedTuple):
    """Rank, its range, standardised score and its interval of each item, in the order of the codes."""

    rank: NDArray[np.int64]
    rank_low: NDArray[np.int64]
    rank_high: NDArray[np.int64]
    score: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranking(ArrowRows):
    """Ranking of the items of comparisons.

    Attributes:
        comparisons: what was compared.
        method: the method.
        scored: scores with their uncertainty.
        table: P(report | answer) of the channel; None for answers.
        known: number of known orders that were used.
        notes: sentences on the data.

    >>> import crowdveil as cv
    >>> answers = {"left": [*"aab"], "right": [*"bcc"], "worker": [1, 1, 2], "label": ["left", "left", "left"]}
    >>> ranking = cv.rank(answers)
    >>> ranking.probability("a", "c") > 0.5
    True
    """

    comparisons: Comparisons
    method: RankingMethod
    scored: Scored
    table: Floats | None = None
    known: int = 0
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return the size and the method."""
        return f"<Ranking of {number_of(len(self.comparisons.items), 'item')} by {self.method.name}>"

    @property
    def converged(self) -> bool:
        """Whether the fit converged; counting needs none."""
        return self.scored.fitted is None or self.scored.fitted.converged

    @cached_property
    def groups(self) -> list[NDArray[np.int64]]:
        """Codes of the items of each group that comparisons connect."""
        group = self.comparisons.group_of_item
        order = np.argsort(group, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(group[order])) + 1)

    @cached_property
    def ranks(self) -> RankColumns:
        """Ranks and standardised scores, within each group."""
        count = len(self.comparisons.items)
        whole, real = np.zeros((3, count), dtype=np.int64), np.zeros((3, count))
        found = RankColumns(whole[0], whole[1], whole[2], real[0], real[1], real[2])
        for members in self.groups:
            for column, values in zip(found, self._ranks_of(members), strict=True):
                column[members] = values
        return found

    def _ranks_of(self, members: NDArray[np.int64]) -> RankColumns:
        posterior = self.scored.posterior
        scores, draws = posterior.scores[members], posterior.draws[:, members]
        rank = _ranks(scores[None])[0]
        drawn = _ranks(draws)
        low = np.minimum(rank, np.quantile(drawn, (1 - LEVEL) / 2, axis=0, method="lower"))
        high = np.maximum(rank, np.quantile(drawn, (1 + LEVEL) / 2, axis=0, method="higher"))
        if self._unordered[self.comparisons.group_of_item[members[0]]]:
            low, high = np.ones_like(rank), np.full_like(rank, len(members))
        centred = self._centred_variances(members)
        deviation = scores - scores.mean()
        scale = np.sqrt(max(float((deviation**2 + centred).mean()), np.finfo(float).tiny))
        margin = NORMAL * np.sqrt(centred)
        return RankColumns(
            rank, low, high, deviation / scale, (deviation - margin) / scale, (deviation + margin) / scale
        )

    def _centred_variances(self, members: NDArray[np.int64]) -> Floats:
        """Return the variance of the difference between each score and the mean of its group."""
        posterior = self.scored.posterior
        if posterior.covariance is None:
            draws = posterior.draws[:, members]
            found: Floats = (draws - draws.mean(axis=1, keepdims=True)).var(axis=0)
            return found
        inside = posterior.covariance[np.ix_(members, members)]
        return np.maximum(np.diagonal(inside) - 2 * inside.mean(axis=0) + inside.mean(), 0)

    def to_arrow(self) -> pa.Table:
        """Return the items by list, group and rank.

        Columns: list (if there are several), item, group (if there are several in a list), rank, rank_low and
        rank_high (90 %), score (standardised within the group), low and high (90 %), comparisons.
        """
        return pa.table({name: pa.array(column) for name, column in self.items().items()})

    def items(self) -> Mapping[str, NDArray[Any]]:
        """Return the columns of `to_arrow`."""
        rows, ranks = self.comparisons, self.ranks
        order = np.lexsort((ranks.rank, rows.group_of_item, rows.list_of_item))
        count = np.bincount(rows.left, minlength=len(rows.items)) + np.bincount(rows.right, minlength=len(rows.items))
        several = rows.groups > len(rows.lists)
        columns = {
            **({"list": np.array(rows.lists)[rows.list_of_item]} if len(rows.lists) > 1 else {}),
            "item": rows.items,
            **({"group": rows.group_of_item + 1} if several else {}),
            **ranks._asdict(),
            "comparisons": count,
        }
        return {name: column[order] for name, column in columns.items()}

    def workers(self) -> Mapping[str, NDArray[Any]]:
        """Return the columns of the workers, the least reliable first; by methods without workers only their counts.

        Where reports of each worker are too few for a slope, all count alike, and there are no columns of the slope.

        slope: how much of the difference of two items decides; 0 for one who guesses, negative for one who reverses.
        slope_low, slope_high: 90 % interval. right_direction: probability of the better item if there is no tie, over
        the pairs of the comparisons. side: bias towards the left, in logits. tie_rate: probability of a tie over the
        worker's own comparisons.
        """
        rows, fitted = self.comparisons, self.scored.fitted
        count = np.bincount(rows.worker, minlength=len(rows.workers))
        if fitted is None or fitted.problem.pooled:
            return {"worker": rows.workers, "comparisons": count}
        slope, side, tie = fitted.point.workers.T
        spread = NORMAL * np.sqrt(np.diagonal(np.linalg.inv(fitted.worker_information), axis1=1, axis2=2)[:, SLOPE])
        distance = np.abs(fitted.point.scores[rows.left] - fitted.point.scores[rows.right])
        grid = np.quantile(distance, np.linspace(0.005, 0.995, 100))
        direction = (1 / (1 + np.exp(-np.clip(slope[:, None] * grid, -700, 700)))).mean(axis=1)
        eta = slope[rows.worker] * (fitted.point.scores[rows.left] - fitted.point.scores[rows.right])
        tied = answer_probabilities((eta + side[rows.worker]) / 2, tie[rows.worker])[1]
        columns: dict[str, NDArray[Any]] = {
            "worker": rows.workers,
            "slope": slope,
            "slope_low": slope - spread,
            "slope_high": slope + spread,
            "right_direction": direction,
            "side": fitted.point.workers[:, SIDE],
            "tie_rate": np.bincount(rows.worker, tied, len(rows.workers)) / np.maximum(count, 1),
            "comparisons": count,
        }
        unknown = [] if fitted.problem.free[TIE] else ["tie_rate"]
        if not fitted.problem.free[SLOPE]:
            unknown += ["slope", "slope_low", "slope_high", "right_direction"]
        for name in unknown:
            columns.pop(name)
        order = np.argsort(slope, kind="stable")
        return {name: column[order] for name, column in columns.items()}

    @property
    def workers_who_may_guess(self) -> int:
        """Number of workers whose interval of the slope has 0; none by methods without workers."""
        table = self.workers()
        return int(((table["slope_low"] <= 0) & (table["slope_high"] >= 0)).sum()) if "slope" in table else 0

    @cached_property
    def _unordered(self) -> NDArray[np.bool_]:
        """Whether no comparison of each group prefers an item, and no known order either."""
        rows = self.comparisons
        sides = [rows.symbols.index(side) for side in (LEFT, RIGHT) if side in rows.symbols]
        found = np.ones(rows.groups, dtype=bool)
        found[rows.group_of_item[rows.left[np.isin(rows.answer, sides)]]] = False
        return found & (self.known == 0)

    def direction_notes(self) -> tuple[str, ...]:
        """Return sentences where nothing says which of two items is better, or which end of the order is the best."""
        found, unordered = [], int(self._unordered.sum())
        if unordered:
            where = "" if unordered == len(self._unordered) else f" of {number_of(unordered, 'group')}"
            found.append(f"No comparison{where} prefers an item, so nothing is ranked: the ranks are arbitrary.")
        table = self.workers()
        if "slope" in table and not self.known:
            follow, reverse = int((table["slope_low"] > 0).sum()), int((table["slope_high"] < 0).sum())
            if reverse and min(follow, reverse) >= NO_MAJORITY * (follow + reverse):
                found.append(
                    f"{number_of(follow, 'worker')} follow the order and {reverse:,} reverse it, both clearly: no "
                    "clear majority says which end is the best, so the order may be reversed. Known orders decide."
                )
        return tuple(found)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Better and worse item of each pair within a group, and the probability of this order."""
        better, worse = list[NDArray[np.int64]](), list[NDArray[np.int64]]()
        for members in self.groups:
            ordered = members[np.argsort(self.ranks.rank[members])]
            first, second = np.triu_indices(len(ordered), 1)
            better.append(ordered[first])
            worse.append(ordered[second])
        first, second = np.concatenate(better), np.concatenate(worse)
        return first, second, self.scored.posterior.probability(first, second)

    @property
    def has_pairs(self) -> bool:
        """Whether all pairs of items are computed: up to 1,500 items."""
        return len(self.comparisons.items) <= EXACT

    @property
    def told_apart(self) -> tuple[int, int]:
        """Number of pairs whose order has a probability of .95 or more, and of all pairs within groups."""
        probability = self._pairs[2]
        return int((probability >= TOLD_APART).sum()), len(probability)

    def pairs(self) -> Mapping[str, NDArray[Any]]:
        """Return the columns of all pairs within groups: list, better, worse, probability, told_apart."""
        first, second, probability = self._pairs
        rows = self.comparisons
        lists = {"list": np.array(rows.lists)[rows.list_of_item[first]]} if len(rows.lists) > 1 else {}
        return {
            **lists,
            "better": rows.items[first],
            "worse": rows.items[second],
            "probability": probability,
            "told_apart": probability >= TOLD_APART,
        }

    @cached_property
    def triples(self) -> Triples | None:
        """Intransitive triples of the votes; None behind a channel, where votes are noise."""
        return None if self.table is not None else intransitive_triples(self.comparisons)

    def _code(self, item: Any, name: str | None) -> int:
        """Return the code of an item of a list."""
        rows = self.comparisons
        inside = np.ones(len(rows.items), dtype=bool)
        if name is not None:
            if name not in rows.lists:
                raise SettingsError("list must be one of the lists", value=name, hint=did_you_mean(name, rows.lists))
            inside = rows.list_of_item == rows.lists.index(name)
        found = np.flatnonzero(inside & (rows.items == item))
        if len(found) != 1:
            hint = "State its list: list=." if len(found) > 1 else did_you_mean(item, map(str, rows.items[inside]))
            raise SettingsError("an item must be one that was compared", value=item, hint=hint)
        return int(found[0])

    def probability(self, better: Any, worse: Any, *, list: str | None = None) -> float:
        """Return the probability that one item is better than another.

        Raises:
            SettingsError: an unknown item, or items of different groups, which no comparison connects.
        """
        first, second = self._code(better, list), self._code(worse, list)
        group = self.comparisons.group_of_item
        if first == second or group[first] != group[second]:
            raise SettingsError(
                "a probability needs two items that comparisons connect",
                value=(better, worse),
                hint="They are not compared, not even over others.",
            )
        return float(self.scored.posterior.probability(np.array([first]), np.array([second]))[0])

    def predict(self, left: Any, right: Any, worker: Any = None, *, list: str | None = None) -> dict[str, float]:
        """Return the probabilities of the answers of a worker; without one, of a worker who was never seen.

        Those of a worker who was never seen are shrunk towards the answers of others to the pair.

        Raises:
            SettingsError: an unknown item or worker, or a method without a model of answers.
        """
        fitted, rows = self.scored.fitted, self.comparisons
        if fitted is None or not self.method.reads_channel:
            hint = "Use 'davidson' or 'hierarchical-davidson'."
            raise SettingsError("this method predicts no answers", value=self.method.name, hint=hint)
        by = np.flatnonzero(rows.workers == worker)
        if worker is not None and not len(by):
            hint = did_you_mean(worker, map(str, rows.workers))
            raise SettingsError("worker must be one who has answered, or None", value=worker, hint=hint)
        first, second = (np.array([self._code(item, list)]) for item in (left, right))
        found = self.predict_rows(first, second, np.array([-1 if worker is None else by[0]]))[0]
        return dict(zip(("left", "tie", "right"), found.tolist(), strict=True))

    def predict_rows(
        self, left: NDArray[np.integer], right: NDArray[np.integer], worker: NDArray[np.integer]
    ) -> Floats:
        """Return the probabilities of left, tie and right for rows of codes, shape (rows, 3); worker -1 is unseen."""
        fitted = self.scored.fitted
        assert fitted is not None
        found = predict_answers(fitted, self.scored.posterior, left, right, worker)
        new = worker < 0
        if new.any() and self.table is None:
            counts = PairAnswers.of(self.comparisons).of_pairs(left[new], right[new])
            found[new] = shrunk(found[new], counts, self._concentration)
        return found

    @cached_property
    def _concentration(self) -> float:
        """Weight of the model against the answers to a pair, for workers who were never seen."""

        def predict(inside: Comparisons, left: NDArray[np.integer], right: NDArray[np.integer]) -> Floats:
            scored = self.method.fit(inside)
            assert scored.fitted is not None
            return predict_answers(scored.fitted, posterior_of(scored.fitted), left, right, np.full(len(left), -1))

        return concentration_of(self.comparisons, predict)


def _ranks(scores: Floats) -> NDArray[np.int64]:
    """Return the ranks of the items in each row of scores, from 1 for the highest."""
    order = np.argsort(-scores, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(1, scores.shape[1] + 1), order.shape), axis=1)
    return ranks
