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

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from crowdveil.answers.reports import Reports
from crowdveil.em.kernels.report_weights import PairShares
from crowdveil.estimators.copies.compared_answers import (
    AlikePairs,
    ComparedAnswers,
    ability_upper_bounds,
    first_worker_per_group,
    has_few_pairs,
    pairs_alike,
)
from crowdveil.estimators.copies.pair_abilities import report_pairs_by_task

AGREEMENTS = (0.97, 0.9, 0.8, 0.7, 0.6)
"""Least agreements of linked pairs."""
EXACT, MIN_GROUP = 0.85, 4
"""Least agreement from which a pair is a group, and the least number of workers of a group below it."""
TETRAD, TETRAD_ERRORS = 1.25, 3.0
RARE, LIKELY = 1e-12, 1e-3


def find_near_copies(reports: Reports, kept: NDArray[np.bool_]) -> PairShares | None:
    """Return the pairs of near-copies with their shares; None if there are none, or too many answers to look.

    Args:
        reports: labels, unperturbed.
        kept: workers that are compared: not those who repeat answers, whom independent work makes alike.
    """
    if not has_few_pairs(reports) or np.count_nonzero(kept) < 2:
        return None
    workers, answers = len(reports.workers), ComparedAnswers(reports, None if kept.all() else kept)
    pairs = pairs_alike(answers, AGREEMENTS[-1])
    if not len(pairs.first):
        return None
    share, bounds = np.zeros(len(pairs.first)), dict[bytes, NDArray[np.float64]]()
    agreement = pairs.same / pairs.common
    for least in AGREEMENTS:
        linked = AlikePairs(*(column[agreement >= least] for column in pairs))
        found = _groups_and_expected_agreement(answers, linked, least, bounds)
        if found is None:
            continue
        group, expected = found
        of_group = _first_beyond_tetrad(answers, group)
        inside = of_group[group[pairs.first]] & (group[pairs.first] == group[pairs.second])
        chance = expected[pairs.first]
        copied = inside & (betainc(pairs.same, pairs.common - pairs.same + 1, chance) < LIKELY)
        excess = np.maximum((agreement - chance) / np.maximum(1 - chance, 1e-12), 0.0)
        share = np.where(copied, np.maximum(share, excess), share)
    some = share > 0
    return PairShares(pairs.first[some], pairs.second[some], share[some], workers) if some.any() else None


def _groups_and_expected_agreement(
    answers: ComparedAnswers, linked: AlikePairs, least: float, bounds: dict[bytes, NDArray[np.float64]]
) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """Return each worker's group by the pairs that pass, and the expected agreement; None if none passes.

    Args:
        answers: all answers of the workers.
        linked: pairs that link groups.
        least: their least agreement.
        bounds: bounds of abilities by the bytes of groups, which are added to.
    """
    if not len(linked.first):
        return None
    workers = answers.workers
    group = first_worker_per_group(linked, workers)
    single = replace(answers, group=group)
    passed = _binomial(linked, 0.5) < RARE
    passed &= single.mostly_on_shared_tasks()[group[linked.first]]
    if not passed.any():
        return None
    if group.tobytes() not in bounds:
        bounds[group.tobytes()] = ability_upper_bounds(single)
    ability = bounds[group.tobytes()][group]
    expected = ability**2 + (1 - ability) ** 2
    passed &= _binomial(linked, expected[linked.first]) < RARE
    if not passed.any():
        return None
    found = first_worker_per_group(AlikePairs(*(column[passed] for column in linked)), workers)
    size = np.bincount(found, minlength=workers)[found]
    small = size < (MIN_GROUP if least < EXACT else 2)
    if small.all():
        return None
    return np.where(small, np.arange(workers), found), expected


def _binomial(pairs: AlikePairs, expected: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Return the probability of an agreement as large, if this share of tasks is expected to agree."""
    return np.asarray(betainc(pairs.same, pairs.common - pairs.same + 1, expected))


def _first_beyond_tetrad(answers: ComparedAnswers, group: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether a worker is the first of a group that agrees more than excellent workers would."""
    labels, copied = answers.reports.labels, np.zeros(len(group), dtype=bool)
    inside, touching, every = _answer_pairs_by_group(answers, group)
    for first in np.flatnonzero(np.bincount(group, minlength=len(group)) > 1).tolist():
        across, others = touching[first] - 2 * inside[first], every - touching[first] + inside[first]
        (kappa_in, _), (kappa_x, _), (kappa_o, pairs) = (_kappa(one, labels) for one in (inside[first], across, others))
        error = np.sqrt((labels - 1) / (labels**2 * max(pairs, 1))) * labels / (labels - 1)
        bound = TETRAD * max(kappa_x, 0.0) ** 2 / max(kappa_in, 1e-12) + TETRAD_ERRORS * error
        copied[first] = pairs > 0 and kappa_o > bound
    return copied


def _answer_pairs_by_group(
    answers: ComparedAnswers, group: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of answers to common tasks, [..., all or equal]: inside each group, with an answer of it for
    each such answer, and all.
    """
    inside, touching = np.zeros((2, len(group), 2), dtype=np.int64)
    for block in answers.blocks():
        for pair, same in report_pairs_by_task(block, answers.workers):
            for column, some in enumerate((pair, pair[same])):
                one, other = (group[side] for side in np.divmod(some, answers.workers))
                inside[:, column] += np.bincount(one[one == other], minlength=len(group))
                for side in (one, other):
                    touching[:, column] += np.bincount(side, minlength=len(group))
    return inside, touching, touching.sum(axis=0) // 2


def _kappa(pairs: NDArray[np.int64], labels: int) -> tuple[float, int]:
    """Return the chance-corrected agreement of some pairs of answers, all and equal ones, and the number of all."""
    common, same = pairs.tolist()
    return (labels * same / max(common, 1) - 1) / (labels - 1), common
