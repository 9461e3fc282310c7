"""Near-copies: pairs of workers who answer more alike than independent work explains, and the share they copy.

For the least agreement t = .97, .9, .8, .7, .6:
1. Pairs with at least `MIN_COMMON` common tasks and an agreement of t or more link groups. With the upper bound b of
   the ability of a group's first worker (`copies`), independent workers agree in at most e = b^2 + (1 - b)^2 of the
   tasks. Pairs that agree more, with a binomial probability below `RARE`, pass, if others answered most of their tasks.
2. Groups by the pairs that pass; below `EXACT`, of at least `MIN_GROUP` workers.
3. Excellent workers agree much, too, but with all others. With kappa = (K agreement - 1) / (K - 1), pooled over the
   common tasks inside a group (in), between group and others (x), and among the others (o, of M pairs of answers),
   independent workers obey in * o = x^2 (a tetrad, Spearman 1904); copies exceed it. A group stays if
       o > `TETRAD` max(x, 0)^2 / in + 3 sqrt((K - 1) / (K^2 M)) K / (K - 1).
4. Pairs of the group with a binomial probability below `LIKELY` have the share c = (a - e) / (1 - e), the largest
   over t.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from crowdveil.data.reports import Reports
from crowdveil.em.kernels.report_weights import PairShares
from crowdveil.evaluation.copies import (
    RARE,
    AlikePairs,
    ability_upper_bounds,
    first_worker_of_each_group,
    has_few_pairs,
    mostly_on_tasks_others_answered,
    one_answer_per_copying_group,
    pairs_alike,
)

AGREEMENTS = (0.97, 0.9, 0.8, 0.7, 0.6)
"""Least agreements of linked pairs."""
EXACT, MIN_GROUP = 0.85, 4
"""Least agreement from which a pair is a group, and the least number of workers of a group below it."""
TETRAD, TETRAD_ERRORS = 1.25, 3.0
LIKELY = 1e-3


class PooledAgreement(NamedTuple):
    """Chance-corrected agreement of some pairs of workers, and the number of pairs of their answers."""

    kappa: float
    pairs: int


def find_near_copies(reports: Reports, kept: NDArray[np.bool_]) -> PairShares | None:
    """Return the pairs of near-copies with their shares; None if there are none, or too many answers to look.

    Args:
        reports: labels, unperturbed.
        kept: workers that are compared: not those who repeat answers, whom independent work makes alike.
    """
    if not has_few_pairs(reports) or np.count_nonzero(kept) < 2:
        return None
    workers = len(reports.workers)
    reports = reports if kept.all() else answers_of_workers(reports, kept)
    pairs = pairs_alike(reports, AGREEMENTS[-1])
    if not len(pairs.first):
        return None
    share, every = np.zeros(len(pairs.first)), None
    agreement = pairs.same / pairs.common
    for least in AGREEMENTS:
        linked = AlikePairs(*(column[agreement >= least] for column in pairs))
        found = _groups_and_expected_agreement(reports, linked, least)
        if found is None:
            continue
        group, expected = found
        every = pairs_alike(reports, 0.0, least_common=1) if every is None else every
        of_group = _first_of_groups_beyond_tetrad(every, group, reports.labels)
        inside = of_group[group[pairs.first]] & (group[pairs.first] == group[pairs.second])
        chance = expected[pairs.first]
        copied = inside & (betainc(pairs.same, pairs.common - pairs.same + 1, chance) < LIKELY)
        excess = np.maximum((agreement - chance) / np.maximum(1 - chance, 1e-12), 0.0)
        share = np.where(copied, np.maximum(share, excess), share)
    some = share > 0
    return PairShares(pairs.first[some], pairs.second[some], share[some], workers) if some.any() else None


def answers_of_workers(reports: Reports, kept: NDArray[np.bool_]) -> Reports:
    """Return the answers of some workers; codes and names stay."""
    rows = np.flatnonzero(kept[reports.worker])
    columns = reports.task[rows], reports.worker[rows], reports.value[rows]
    return Reports(*columns, reports.tasks, reports.workers, reports.alphabet, reports.asked, reports.original)


def _groups_and_expected_agreement(
    reports: Reports, linked: AlikePairs, least: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """Return each worker's group by the pairs that pass, and the expected agreement; None if none passes."""
    if not len(linked.first):
        return None
    workers = len(reports.workers)
    group = first_worker_of_each_group(linked, workers)
    single = one_answer_per_copying_group(reports, group)
    passed = _binomial(linked, 0.5) < RARE
    passed &= mostly_on_tasks_others_answered(reports, single)[group[linked.first]]
    if not passed.any():
        return None
    ability = ability_upper_bounds(single)[group]
    expected = ability**2 + (1 - ability) ** 2
    passed &= _binomial(linked, expected[linked.first]) < RARE
    if not passed.any():
        return None
    found = first_worker_of_each_group(AlikePairs(*(column[passed] for column in linked)), workers)
    size = np.bincount(found, minlength=workers)[found]
    small = size < (MIN_GROUP if least < EXACT else 2)
    if small.all():
        return None
    return np.where(small, np.arange(workers), found), expected


def _binomial(pairs: AlikePairs, expected: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Return the probability of an agreement as large, if this share of tasks is expected to agree."""
    return np.asarray(betainc(pairs.same, pairs.common - pairs.same + 1, expected))


def _first_of_groups_beyond_tetrad(pairs: AlikePairs, group: NDArray[np.int64], labels: int) -> NDArray[np.bool_]:
    """Return whether a worker is the first of a group that agrees more than excellent workers would."""
    copied = np.zeros(len(group), dtype=bool)
    for first in np.unique(group[np.bincount(group, minlength=len(group))[group] > 1]).tolist():
        members = group == first
        number = members[pairs.first].astype(int) + members[pairs.second]
        inside, across, others = (_pooled(pairs, number == count, labels) for count in (2, 1, 0))
        error = np.sqrt((labels - 1) / (labels**2 * max(others.pairs, 1))) * labels / (labels - 1)
        bound = TETRAD * max(across.kappa, 0.0) ** 2 / max(inside.kappa, 1e-12) + TETRAD_ERRORS * error
        copied[first] = others.pairs > 0 and others.kappa > bound
    return copied


def _pooled(pairs: AlikePairs, some: NDArray[np.bool_], labels: int) -> PooledAgreement:
    """Return the agreement of some pairs of workers."""
    common, same = int(pairs.common[some].sum()), int(pairs.same[some].sum())
    return PooledAgreement((labels * same / max(common, 1) - 1) / (labels - 1), common)
