"""Answers compared by pairs of workers, as the search for copies needs them (`near_copies`).

Pairs of workers with `MIN_COMMON` common tasks or more are listed by their agreement, and link groups. Excellent
workers agree much, too. Therefore the skills s of workers follow from the agreement of pairs of different groups
(`pair_abilities`) in answers of which each group gives one per task. The standard error of s_i is
    about (sum_k n_ik s_k^2)^(-1/2)
for n_ik common tasks with worker k. The upper bound of an ability is the ability of s_i + `ERRORS` standard errors.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.blocks import Block
from crowdveil.answers.reports import Reports
from crowdveil.em.kernels.dispatch import use_compiled
from crowdveil.estimators.copies.pair_abilities import (
    AnswerNumbers,
    WorkerPairs,
    abilities_from_pair_agreements,
    report_pairs_by_task,
)

MIN_COMMON, ERRORS = 20, 3.0
MIN_OTHERS = 2
"""Other workers who have answered a task on which a group is judged."""
MAX_PAIRS = 5_000_000
"""Largest number of pairs of answers to a task, up to which copies are looked for."""

LISTED_REPORTS = 1 << 14
"""Reports whose pairs are listed together, in a core's own cache; more only of one task."""
MAX_BUCKETS = 1 << 22
"""Largest number of counts of equal answers, a power of two; more pairs of workers share them."""
BUCKETS_PER_PAIR = 4
"""Counts of equal answers for each pair of answers, about."""
BYTES_PER_PAIR, BYTES_PER_BUCKET, BYTES_PER_LISTED_REPORT, BYTES_PER_WORKER = 256, 5, 128, 256
"""Upper bounds of the memory of a pair of workers, of a count, of a report whose pairs are listed, and of a worker."""


@dataclass(frozen=True, eq=False)
class ComparedAnswers:
    """Answers whose pairs are looked at, block by block.

    Attributes:
        reports: labels.
        kept: whether the answers of a worker are among them, shape (workers,); None for all.
        group: of each worker, shape (workers,): each group has one answer to a task, that of its first worker who gave
            one; None for all answers.
    """

    reports: Reports
    kept: NDArray[np.bool_] | None = None
    group: NDArray[np.int64] | None = None

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self.reports.workers)

    def blocks(self) -> Iterator[Block]:
        """Yield the answers as blocks of tasks."""
        return (block if self.group is None else self._one_of_each_group(block) for block in self.blocks_of_workers())

    def blocks_of_workers(self) -> Iterator[Block]:
        """Yield all answers of the workers as blocks of tasks."""
        for block in self.reports.blocks(LISTED_REPORTS):
            yield block if self.kept is None else selected_reports(block, self.kept[block.worker])

    def _one_of_each_group(self, block: Block) -> Block:
        assert self.group is not None
        left = ~(np.bincount(self.group) > 1)[self.group[block.worker]]
        rows = np.flatnonzero(~left)
        if not len(rows):
            return block
        worker = block.worker[rows]
        key = block.task[rows] * self.workers + self.group[worker]
        order = np.lexsort((worker, key))
        left[rows[order[np.append(True, np.diff(key[order]) > 0)]]] = True
        return selected_reports(block, left)

    def pairs(self, often: NDArray[np.bool_] | None = None) -> WorkerPairs:
        """Return the pairs of workers, as `WorkerPairs.of_blocks`."""
        return WorkerPairs.of_blocks(self.blocks(), self.workers, often)

    def numbers(self) -> AnswerNumbers:
        """Return the numbers of tasks and answers."""
        answered, per_worker = 0, np.zeros(self.workers, dtype=np.int64)
        for block in self.blocks():
            answered += int(np.count_nonzero(np.diff(block.pointers)))
            per_worker += np.bincount(block.worker, minlength=self.workers)
        return AnswerNumbers(self.reports.labels, len(self.reports.tasks), answered, per_worker)

    def mostly_on_shared_tasks(self) -> NDArray[np.bool_]:
        """Return whether most answers of each worker are to tasks that enough workers of other groups have answered."""
        enough, every = np.zeros((2, self.workers), dtype=np.int64)
        for block, single in zip(self.blocks_of_workers(), self.blocks(), strict=True):
            others = (np.diff(single.pointers) - 1)[block.task]
            enough += np.bincount(block.worker, others >= MIN_OTHERS, minlength=self.workers).astype(np.int64)
            every += np.bincount(block.worker, minlength=self.workers)
        return np.asarray(2 * enough > every)


def selected_reports(block: Block, chosen: NDArray[np.bool_]) -> Block:
    """Return the block with some of its reports."""
    pointers = np.append(0, np.cumsum(chosen))[block.pointers]
    return Block(block.first, block.stop, pointers, block.worker[chosen], block.value[chosen])


class AlikePairs(NamedTuple):
    """Pairs of workers who are alike: codes with first < second, common tasks, and those with equal answers."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    common: NDArray[np.int64]
    same: NDArray[np.int64]


def has_few_pairs(reports: Reports) -> bool:
    """Return whether there are pairs of labels on a task, few enough to look for copies."""
    return reports.alphabet is not None and 0 < number_of_report_pairs(reports.per_task) <= MAX_PAIRS


def number_of_report_pairs(per_task: NDArray[np.integer]) -> int:
    """Return the number of pairs of reports to one task from the reports of each."""
    total = 0
    for first in range(0, len(per_task), LISTED_REPORTS):
        reports = np.asarray(per_task[first : first + LISTED_REPORTS]).astype(np.int64)
        total += int((reports * (reports - 1) // 2).sum())
    return total


def bytes_to_compare_workers(per_task: NDArray[np.integer], workers: int) -> int:
    """Return an upper bound of the memory in which copies are looked for."""
    pairs = number_of_report_pairs(per_task)
    if not 0 < pairs <= MAX_PAIRS:
        return 0
    listed = max(LISTED_REPORTS, int(np.max(per_task)))
    of_workers = min(workers * (workers - 1) // 2, pairs)
    return (
        BYTES_PER_PAIR * of_workers
        + BYTES_PER_BUCKET * number_of_buckets(workers, pairs)
        + BYTES_PER_LISTED_REPORT * listed
        + BYTES_PER_WORKER * workers
    )


def number_of_buckets(workers: int, pairs: int) -> int:
    """Return the number of counts of equal answers, a power of two."""
    return min(1 << (workers**2).bit_length(), 1 << (BUCKETS_PER_PAIR * pairs).bit_length(), MAX_BUCKETS)


def pairs_alike(answers: ComparedAnswers, agreement: float) -> AlikePairs:
    """Return the pairs with this agreement or more, ascending.

    A pair is listed only if enough equal answers are in its bucket.

    Args:
        answers: all answers of some workers.
        agreement: least share of equal answers to common tasks.
    """
    equal = max(int(np.ceil(agreement * MIN_COMMON)), 1)
    often = _equal_answers_by_bucket(answers) >= equal
    pairs = answers.pairs(often) if often.any() else WorkerPairs.of_blocks((), answers.workers)
    found = np.flatnonzero((pairs.common >= MIN_COMMON) & (pairs.same >= agreement * pairs.common))
    return AlikePairs(*np.divmod(pairs.pair[found], answers.workers), pairs.common[found], pairs.same[found])


def _equal_answers_by_bucket(answers: ComparedAnswers) -> NDArray[np.integer]:
    """Return the pairs of equal answers by pair of workers modulo the number of buckets; compiled at most 255 each.

    The compiled loop takes a ninth of the time of a list of all pairs.
    """
    size, compiled = len(answers.reports), use_compiled(len(answers.reports))
    buckets = number_of_buckets(answers.workers, number_of_report_pairs(answers.reports.per_task))
    counts: NDArray[Any] = np.zeros(buckets, dtype=np.uint8 if compiled else np.int32)
    for block in answers.blocks() if size else ():
        if compiled:
            from crowdveil.em.kernels.numba_loops.pairs import count_hashed_pairs

            count_hashed_pairs(block.pointers, block.worker, block.value, answers.workers, counts)
            continue
        for pair, same in report_pairs_by_task(block, answers.workers):
            np.add.at(counts, pair[same] & (buckets - 1), 1)
    return counts


def first_worker_per_group(pairs: AlikePairs, workers: int) -> NDArray[np.int64]:
    """Return the code of the first worker of the group that pairs link, for each worker."""
    from scipy.sparse import coo_array  # these imports are slow
    from scipy.sparse.csgraph import connected_components

    ends = pairs.first.astype(np.int32), pairs.second.astype(np.int32)  # older versions of SciPy read no other
    links = coo_array((np.ones(len(ends[0])), ends), shape=(workers, workers))
    label = connected_components(links, directed=False)[1]
    first = np.full(label.max() + 1, workers, dtype=np.int64)
    np.minimum.at(first, label, np.arange(workers))
    return first[label]


def ability_upper_bounds(single: ComparedAnswers) -> NDArray[np.float64]:
    """Return an upper bound of each worker's ability from the agreement with workers of other groups."""
    labels, workers, pairs = single.reports.labels, single.workers, single.pairs()
    ability = abilities_from_pair_agreements(pairs, single.numbers())
    skill = np.nan_to_num((labels * ability - 1) / (labels - 1), nan=1.0)
    first, second = np.divmod(pairs.pair, workers)
    information = np.bincount(first, pairs.common * skill[second] ** 2, workers)
    information += np.bincount(second, pairs.common * skill[first] ** 2, workers)
    skill = np.minimum(skill + ERRORS / np.sqrt(np.maximum(information, 1e-12)), 1.0)
    return np.asarray((skill * (labels - 1) + 1) / labels)
