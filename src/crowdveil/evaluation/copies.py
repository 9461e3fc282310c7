"""Workers who answer as one: groups whose answers agree more than independent work explains.

Two workers are alike if at least `ALIKE` of at least `MIN_COMMON` common tasks have the same answer; groups are linked
by alike pairs. Excellent workers are alike, too. Therefore the skills s of workers follow from the agreement of pairs
of different groups (`pair_abilities`) in answers of which each group gives one per task. The standard error of s_i is
    about (sum_k n_ik s_k^2)^(-1/2)
for n_ik common tasks with worker k. With the ability a of s_i + `ERRORS` standard errors, two such workers agree with a
probability of at most a^2 + (1 - a)^2 if they work independently. Those who agree more, with a binomial probability
below `RARE`, are copies. A group is judged only where at least two other workers have answered most of its tasks.
Common answers of copies count once.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from crowdveil.data.reports import Reports
from crowdveil.em.kernels.dispatch import use_compiled
from crowdveil.evaluation.pair_abilities import (
    WorkerPairs,
    abilities_from_pair_agreements,
    pairs_of_reports_on_each_task,
)

ALIKE, MIN_COMMON, RARE, ERRORS = 0.97, 20, 1e-12, 3.0
MIN_OTHERS = 2
"""Other workers who have answered a task on which a group is judged."""
MAX_PAIRS = 5_000_000
"""Largest number of pairs of answers to a task, up to which copies are looked for."""

LISTED_REPORTS = 1 << 16
"""Reports whose pairs are listed together, in a core's own cache."""
MAX_BUCKETS = 1 << 22
"""Largest number of counts of equal answers, a power of two; more pairs of workers share them."""


class AlikePairs(NamedTuple):
    """Pairs of workers who are alike: codes with first < second, common tasks, and those with equal answers."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    common: NDArray[np.int64]
    same: NDArray[np.int64]


class Copies(NamedTuple):
    """Workers who answer as one.

    Attributes:
        group: code of the first worker of each worker's group, its own if there is no other; shape (workers,).
        pairs: pairs of copies.
    """

    group: NDArray[np.int64]
    pairs: AlikePairs

    @property
    def copied_workers(self) -> int:
        """Number of workers who are copies of an earlier one."""
        return int((self.group != np.arange(len(self.group))).sum())


def find_copies(reports: Reports) -> Copies | None:
    """Return the workers who answer as one; None if there are none, or too many answers to look.

    Args:
        reports: labels, unperturbed.
    """
    if not has_few_pairs(reports):
        return None
    alike = pairs_alike(reports, ALIKE)
    if not len(alike.first):
        return None
    group = first_worker_of_each_group(alike, len(reports.workers))
    single = one_answer_per_copying_group(reports, group)
    copied = (
        _agree_more_than_chance(alike, 0.5) & mostly_on_tasks_others_answered(reports, single)[group[alike.first]]
    )  # no expected share is smaller
    if copied.any():
        ability = ability_upper_bounds(single)[group[alike.first]]
        copied &= _agree_more_than_chance(alike, ability**2 + (1 - ability) ** 2)
    if not copied.any():
        return None
    pairs = AlikePairs(*(column[copied] for column in alike))
    return Copies(first_worker_of_each_group(pairs, len(reports.workers)), pairs)


def has_few_pairs(reports: Reports) -> bool:
    """Return whether there are pairs of labels on a task, few enough to look for copies."""
    counts = np.asarray(reports.per_task).astype(np.int64)
    return reports.alphabet is not None and 0 < int((counts * (counts - 1) // 2).sum()) <= MAX_PAIRS


def one_answer_per_copying_group(reports: Reports, group: NDArray[np.int64]) -> Reports:
    """Return the reports with one answer of each group to each task, that of its first worker who gave one."""
    of_groups = (np.bincount(group) > 1)[group[reports.worker]]
    rows = np.flatnonzero(of_groups)
    key = np.asarray(reports.task)[rows].astype(np.int64) * len(group) + group[reports.worker[rows]]
    order = np.lexsort((reports.worker[rows], key))
    of_groups[rows[order[np.append(True, np.diff(key[order]) > 0)]]] = False
    kept = np.flatnonzero(~of_groups)
    columns = reports.task[kept], reports.worker[kept], reports.value[kept]
    return Reports(*columns, reports.tasks, reports.workers, reports.alphabet, reports.asked, reports.original)


def pairs_alike(reports: Reports, agreement: float, *, least_common: int = MIN_COMMON) -> AlikePairs:
    """Return the pairs with this agreement or more, ascending.

    A pair is sorted only if enough equal answers are in its bucket.

    Args:
        reports: labels.
        agreement: least share of equal answers to common tasks.
        least_common: least number of common tasks.
    """
    workers = len(reports.workers)
    equal = int(np.ceil(agreement * least_common))
    buckets = min(1 << (workers**2).bit_length(), MAX_BUCKETS)
    if use_compiled(len(reports)) and equal:
        often = _equal_answer_counts_by_pair_bucket(reports, buckets) >= equal
        if not often.any():
            return AlikePairs(*np.zeros((4, 0), dtype=np.int64))
        pair, same = _all_report_pairs(reports)
    else:
        pair, same = _all_report_pairs(reports)
        often = np.bincount(pair[same] % buckets, minlength=buckets) >= equal
    kept = np.flatnonzero(often[pair % buckets])
    pairs = WorkerPairs.from_listed_pairs(pair[kept], same[kept])
    found = np.flatnonzero((pairs.common >= least_common) & (pairs.same >= agreement * pairs.common))
    return AlikePairs(*np.divmod(pairs.pair[found], workers), pairs.common[found], pairs.same[found])


def _equal_answer_counts_by_pair_bucket(reports: Reports, buckets: int) -> NDArray[np.uint8]:
    """Return the pairs of equal answers by pair of workers modulo `buckets`, a power of two; at most 255 each.

    By a compiled loop, which takes a ninth of the time of a list of all pairs.
    """
    from crowdveil.em.kernels.numba_loops.pairs import count_equal_answers_by_hash_of_pair

    counts = np.zeros(buckets, dtype=np.uint8)
    for block in reports.blocks(LISTED_REPORTS):
        count_equal_answers_by_hash_of_pair(block.pointers, block.worker, block.value, len(reports.workers), counts)
    return counts


def _all_report_pairs(reports: Reports) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the pairs of all reports, as `pairs_of_reports_on_each_task`."""
    listed = (pairs_of_reports_on_each_task(block, len(reports.workers)) for block in reports.blocks(LISTED_REPORTS))
    pair, same = map(np.concatenate, zip(*listed, strict=True))
    return pair, same


def first_worker_of_each_group(pairs: AlikePairs, workers: int) -> NDArray[np.int64]:
    """Return the code of the first worker of the group that pairs link, for each worker."""
    from scipy.sparse import coo_array  # these imports are slow
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(pairs.first)), (pairs.first, pairs.second)), shape=(workers, workers))
    label = connected_components(links, directed=False)[1]
    first = np.full(label.max() + 1, workers, dtype=np.int64)
    np.minimum.at(first, label, np.arange(workers))
    return first[label]


def ability_upper_bounds(single: Reports) -> NDArray[np.float64]:
    """Return an upper bound of each worker's ability from the agreement with workers of other groups."""
    labels, workers = single.labels, len(single.workers)
    pairs = WorkerPairs.from_listed_pairs(*_all_report_pairs(single))
    ability = abilities_from_pair_agreements(pairs, single)
    skill = np.nan_to_num((labels * ability - 1) / (labels - 1), nan=1.0)
    first, second = np.divmod(pairs.pair, workers)
    information = np.bincount(first, pairs.common * skill[second] ** 2, workers)
    information += np.bincount(second, pairs.common * skill[first] ** 2, workers)
    skill = np.minimum(skill + ERRORS / np.sqrt(np.maximum(information, 1e-12)), 1.0)
    return np.asarray((skill * (labels - 1) + 1) / labels)


def _agree_more_than_chance(alike: AlikePairs, expected: NDArray[np.float64] | float) -> NDArray[np.bool_]:
    """Return which pairs agree more than chance explains if they are expected to agree in this share of tasks."""
    return np.asarray(betainc(alike.same, alike.common - alike.same + 1, expected) < RARE)


def mostly_on_tasks_others_answered(reports: Reports, single: Reports) -> NDArray[np.bool_]:
    """Return whether most answers of each worker are to tasks that enough workers of other groups have answered."""
    others = np.asarray(single.per_task)[reports.task] - 1
    enough = np.bincount(reports.worker, others >= MIN_OTHERS, minlength=len(reports.workers))
    return np.asarray(2 * enough > np.asarray(reports.per_worker))
