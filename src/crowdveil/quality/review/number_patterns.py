"""Patterns in numbers, read from the answers alone: repeated numbers, copies, answers without relation to the task.

The median of the other answers to a task stands for its truth (`medians_of_others`), the residual of an answer is its
difference from that; d is the median size of all residuals. Worker i
    repeats a number if it is `MOST` of the answers, with a binomial probability below `RARE` at its share in those of
        workers who do not, and at least `MIN_WRONG` of them, and a quarter, are more than 1.5 d from the truth;
    answers by chance if the rank correlation with the truths is below half of the upper quartile of workers (99 % on
        one side);
    copies worker k if their answers are within `CLOSE` d in a common tasks of n, more than independent errors explain:
        with a binomial probability below `COPIED` at R times the share of pairs of their residuals, of any tasks, that
        are as close, R being the median over pairs of workers of that ratio: easy tasks make all answers close; nor
        the same share of their numbers, of any tasks: some say 0 to most;
    is far away if `FAR_SHARE` of the answers have residuals above `FAR` d.
Who repeats, or answers by chance, says no truths. Copies are looked for twice: with the answers of all others, and with
one answer of each group that is close in `LINKED` of its tasks, since many copies are a truth of their own.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Scale
from crowdveil.em.kernels.report_weights import report_pairs_by_distance
from crowdveil.estimators.copies.compared_answers import (
    LISTED_REPORTS,
    MAX_PAIRS,
    MIN_COMMON,
    AlikePairs,
    first_worker_per_group,
)
from crowdveil.estimators.copies.pair_abilities import WorkerPairs
from crowdveil.quality.review.listing import CopyingGroup

MOST, RARE, MIN_WRONG, WRONG_SHARE, FROM_TRUTH = 0.8, 1e-3, 4, 0.25, 1.5
CLOSE, COPIED, LEAST_CLOSE, LINKED = 0.1, 1e-9, 0.3, 0.7
"""Distance of close answers in units of d, probability below which they are copied, least share of them,
and that of workers in one group."""
FAR, FAR_SHARE, MIN_FAR = 30.0, 0.1, 3
MIN_ANSWERS, CERTAIN, GOOD = 10, 2.33, 0.75
"""Answers from which a correlation is judged, standard errors, and the quantile of workers that it is held to."""
MAX_CANDIDATES = 20_000
"""Largest number of pairs whose residuals are compared, those that are close most often."""


class Repeated(NamedTuple):
    """Most frequent number of each worker, and how often it is given."""

    value: NDArray[np.float64]
    times: NDArray[np.int64]

    def unlike_others(self, value: NDArray[np.float64], answers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether it is most of a worker's answers, more than its share among other workers explains.

        Args:
            value: of each answer of all workers.
            answers: number of answers of each worker.
        """
        often = (self.times >= MOST * answers) & (self.times > 1)
        numbers, totals = np.unique(value, return_counts=True)
        place = np.minimum(np.searchsorted(numbers, self.value), len(numbers) - 1)
        theirs = np.bincount(place[often], self.times[often], len(numbers))
        rest = max(len(value) - int(answers[often].sum()), 0)
        share = (np.maximum(totals - theirs, 0)[place] + 1) / (rest + 2)
        return np.asarray(often & (betainc(np.maximum(self.times, 1), answers - self.times + 1, share) < RARE))


@dataclass(frozen=True, eq=False)
class NumberPatterns:
    """Patterns of each worker.

    Attributes:
        reports: numbers, unperturbed.
        value: of each answer.
        trusted: whether each worker's answers say truths.
        group: code of the worker whose answers stand for those of each worker.
        repeated: most frequent number of each worker.
    """

    reports: Reports
    value: NDArray[np.float64]
    trusted: NDArray[np.bool_]
    group: NDArray[np.int64]
    repeated: Repeated

    @classmethod
    def of_reports(cls, reports: Reports) -> "NumberPatterns":
        """Return the patterns of numbers."""
        scale, codes = reports.alphabet, np.asarray(reports.value)
        value = scale.values[codes] if isinstance(scale, Scale) else codes.astype(np.float64)
        repeated = most_frequent_numbers(np.asarray(reports.worker), value, len(reports.workers))
        often = repeated.unlike_others(value, np.asarray(reports.per_worker).astype(np.int64))
        found = cls(reports, value, ~often, np.arange(len(often)), repeated)
        return replace(found, trusted=~often & ~found.near_chance)

    @cached_property
    def residual(self) -> NDArray[np.float64]:
        """Difference of each answer from the median of others; nan without two others."""
        task, worker = np.asarray(self.reports.task), np.asarray(self.reports.worker)
        unit = np.where(self.trusted, self.group, -1)[worker]
        return self.value - medians_of_others(task, unit, self.value, len(self.reports.tasks))

    @cached_property
    def usual(self) -> float:
        """d; nan without any residual."""
        known = np.abs(self.residual[np.isfinite(self.residual)])
        return float(np.median(known[known > 0])) if (known > 0).any() else float("nan")

    @cached_property
    def answers(self) -> NDArray[np.int64]:
        """Number of answers of each worker."""
        return np.asarray(self.reports.per_worker).astype(np.int64)

    @cached_property
    def wrong(self) -> NDArray[np.int64]:
        """Number of answers with the most frequent number of the worker that are more than 1.5 d from the truth."""
        worker = np.asarray(self.reports.worker)
        own = self.value == self.repeated.value[worker]
        return np.bincount(worker, own & (np.abs(self.residual) > FROM_TRUTH * self.usual), len(self.answers)).astype(
            np.int64
        )

    @cached_property
    def repeats(self) -> NDArray[np.bool_]:
        """Whether each worker repeats a number."""
        often = self.repeated.unlike_others(self.value, self.answers)
        return np.asarray(often & (self.wrong >= MIN_WRONG) & (self.wrong >= WRONG_SHARE * self.repeated.times))

    @cached_property
    def correlation(self) -> NDArray[np.float64]:
        """Rank correlation of each worker's answers with the truths that others say; nan where it is not judged."""
        found = np.full(len(self.answers), np.nan)
        for worker, rows in enumerate(self._rows_by_worker):
            rows = rows[np.isfinite(self.residual[rows])]
            if len(rows) >= MIN_ANSWERS:
                found[worker] = rank_correlation(self.value[rows], (self.value - self.residual)[rows])
        return found

    @cached_property
    def near_chance(self) -> NDArray[np.bool_]:
        """Whether the answers hardly follow the truths that others say."""
        known = self.correlation[np.isfinite(self.correlation)]
        if not len(known):
            return np.zeros(len(self.answers), dtype=bool)
        bound = max(float(np.quantile(known, GOOD)), 0.0) / 2
        error = CERTAIN / np.sqrt(np.maximum(self.answers - 3, 1))
        upper = np.tanh(np.arctanh(np.clip(self.correlation, -0.999, 0.999)) + error)
        return np.asarray((upper < bound) & ~self.repeats)

    @cached_property
    def far(self) -> NDArray[np.int64]:
        """Number of answers of each worker that are far from the truth that others say."""
        away = np.abs(self.residual) > FAR * self.usual
        return np.bincount(np.asarray(self.reports.worker), away, len(self.answers)).astype(np.int64)

    @cached_property
    def far_away(self) -> NDArray[np.bool_]:
        """Whether many answers of a worker are far from the truth that others say."""
        return np.asarray((self.far >= MIN_FAR) & (self.far >= FAR_SHARE * self.answers) & ~self.repeats)

    @cached_property
    def copies(self) -> AlikePairs | None:
        """Pairs of copies; None for none, or too many pairs of answers to look."""
        pairs = self._close_pairs()
        if pairs is None:
            return None
        enough = (pairs.common >= MIN_COMMON) & (pairs.same >= LEAST_CLOSE * pairs.common)
        linked = enough & (pairs.same >= LINKED * pairs.common)
        group = first_worker_per_group(AlikePairs(*(column[linked] for column in pairs)), len(self.answers))
        copied = self._copied(pairs, enough) | replace(self, group=group)._copied(pairs, enough)
        return AlikePairs(*(column[copied] for column in pairs)) if copied.any() else None

    def _copied(self, pairs: AlikePairs, enough: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which pairs are close more often than their residuals, or their numbers, explain."""
        chance = self._chance_of(pairs, self.residual)
        known = (pairs.common >= MIN_COMMON) & (chance > 0)
        ratio = pairs.same[known] / pairs.common[known] / chance[known]
        usual = max(float(np.median(ratio)), 1.0) if len(ratio) else 1.0
        expected = np.clip(np.maximum(usual * chance, self._chance_of(pairs, self.value)), 0, 1)
        return np.asarray(enough & (betainc(pairs.same, pairs.common - pairs.same + 1, expected) < COPIED))

    def copying_groups(self) -> list[CopyingGroup]:
        """Return the groups of workers who answer alike, the largest first."""
        if self.copies is None:
            return []
        group = first_worker_per_group(self.copies, len(self.answers))
        codes = np.flatnonzero(np.bincount(group, minlength=len(group)) > 1)
        groups = (np.flatnonzero(group == code) for code in codes.tolist())
        found = [CopyingGroup(workers, np.full(len(workers), np.nan)) for workers in groups]
        return sorted(found, key=lambda one: -len(one.workers))

    @cached_property
    def _rows_by_worker(self) -> list[NDArray[np.int64]]:
        order = np.argsort(np.asarray(self.reports.worker), kind="stable")
        return np.split(order, np.cumsum(self.answers)[:-1])

    def _close_pairs(self) -> AlikePairs | None:
        """Return the pairs of workers who repeat no number, with their common tasks and close answers."""
        counts = np.asarray(self.reports.per_task).astype(np.int64)
        pairs = int((counts * (counts - 1) // 2).sum())
        if not 0 < pairs <= MAX_PAIRS or np.isnan(self.usual):
            return None
        workers, start, listed = len(self.answers), 0, list[WorkerPairs]()
        for block in self.reports.blocks(LISTED_REPORTS):
            value = self.value[start : start + len(block.worker)]
            start += len(block.worker)
            for one, other in report_pairs_by_distance(block.pointers):
                kept = ~(self.repeats[block.worker[one]] | self.repeats[block.worker[other]])
                one, other = one[kept], other[kept]
                pair = block.worker[one].astype(np.int64) * workers + block.worker[other]
                close = np.abs(value[one] - value[other]) <= CLOSE * self.usual
                listed.append(WorkerPairs.from_listed_pairs(pair, close))
        found = WorkerPairs.merged(listed)
        if not len(found.pair):
            return None
        return AlikePairs(*np.divmod(found.pair, workers), found.common, found.same)

    def _chance_of(self, pairs: AlikePairs, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of pairs of a worker's number and another one's, of any tasks, that are close.

        It is 1 for pairs that are not compared.
        """
        chance, width = np.ones(len(pairs.first)), CLOSE * self.usual
        share = np.where(pairs.common >= MIN_COMMON, pairs.same / pairs.common, -1.0)
        compared = np.argsort(-share, kind="stable")[: min(MAX_CANDIDATES, int((share >= 0).sum()))]
        of_workers = [np.sort(numbers[rows][np.isfinite(numbers[rows])]) for rows in self._rows_by_worker]
        for place in compared.tolist():
            one, other = of_workers[int(pairs.first[place])], of_workers[int(pairs.second[place])]
            if min(len(one), len(other)) >= MIN_ANSWERS:
                inside = np.searchsorted(other, one + width, side="right") - np.searchsorted(other, one - width)
                chance[place] = inside.sum() / (len(one) * len(other))
        return chance


def most_frequent_numbers(worker: NDArray[np.integer], value: NDArray[np.float64], workers: int) -> Repeated:
    """Return the most frequent number of each worker; the first one of several.

    Args:
        worker, value: of each answer.
        workers: number of workers.
    """
    numbers, code = np.unique(value, return_inverse=True)
    cells, counts = np.unique(worker.astype(np.int64) * len(numbers) + code, return_counts=True)
    order = np.lexsort((-cells, counts))
    found, times = np.full(workers, np.nan), np.zeros(workers, dtype=np.int64)
    owner, number = np.divmod(cells[order], len(numbers))
    found[owner], times[owner] = numbers[number], counts[order]
    return Repeated(found, times)


def medians_of_others(
    task: NDArray[np.integer], unit: NDArray[np.int64], value: NDArray[np.float64], tasks: int
) -> NDArray[np.float64]:
    """Return the median of the answers of other units to the task of each answer; nan with fewer than two.

    Args:
        task: of each answer, ascending.
        unit: worker or group of each answer, whose first answer to a task counts; below 0 for answers that do not.
        value: of each answer.
        tasks: number of tasks.
    """
    counted = np.flatnonzero(unit >= 0)
    key = task.astype(np.int64) * (int(unit.max(initial=0)) + 1) + unit
    cells, first_rows = np.unique(key[counted], return_index=True)
    rows = counted[first_rows]
    rows = rows[np.lexsort((value[rows], task[rows]))]
    number = np.bincount(task[rows], minlength=tasks)
    first = np.cumsum(number) - number
    place = np.zeros(len(cells), dtype=np.int64)
    place[np.searchsorted(cells, key[rows])] = np.arange(len(rows)) - first[task[rows]]
    has = unit >= 0
    own = np.where(has, place[np.minimum(np.searchsorted(cells, key), max(len(cells) - 1, 0))], 0) if len(cells) else 0
    others = number[task] - has
    ordered = np.append(value[rows], np.nan)

    def other_at(rank: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(ordered[np.clip(first[task] + rank + (has & (rank >= own)), 0, len(rows))])

    return np.where(others >= 2, (other_at((others - 1) // 2) + other_at(others // 2)) / 2, np.nan)


def rank_correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return Spearman's rank correlation, 0 where one side is constant."""
    first, second = (_mean_ranks(side) for side in (one, other))
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _mean_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, code, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[code], dtype=float)
