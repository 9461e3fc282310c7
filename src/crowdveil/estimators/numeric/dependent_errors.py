"""Dependence of the errors of two workers on one task, seen in pairs of workers with common tasks.

Errors of independent workers about a mean with weights 1 / variance have the covariance -V_j, where V_j is the variance
of that mean. With x_ij = e_ij sqrt(u_ij w_i), an error over its deviation, and w_i = 1 / variance, over pairs i < k:
    p_j = x_ij x_kj + V_j sqrt(w_i w_k),   C = sum_j p_j,   D = sum_j p_j^2,   N common tasks;
    q = sum L (C^2 - D) / sum L (N^2 - N),   L = v_i v_k,   v_i = min(w_i, median of w).
q is the mean squared correlation of errors. C^2 - D holds products of different tasks only, so that tasks of unequal
difficulty hardly raise it. L spares workers who only guess, and does not leave the judgement to the most precise ones:
where these copy one another, truths are their answers, and only the others' errors show it. Errors that all workers
share do not show: a prior opinion about them is used for intervals.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.reports import Block
from crowdveil.em.model import Summary

LARGEST_ERROR = 4.0
"""Bound of an error in deviations: one answer far away says nothing about its pair."""
BUSIEST_WORKERS = 1000
PRODUCTS = 1 << 16
"""Workers whose pairs count, and products p_j that are aimed at: fewer workers where more would arise."""
CHUNK = 1 << 15
"""Products that are formed at once."""
LOWER_ERRORS, LOWER_ERRORS_OF_WEIGHTS = 1.645, 2.33
"""Standard errors by which q is lowered for intervals and for weights: what can be chance is no dependence. Weights
pulled together by chance, now in one crowd of a hundred, cost much where most workers guess."""
SHARE_PER_CORRELATION, RHO_PER_CORRELATION, LARGEST_RHO = 5.5, 3.0, 0.7
"""Factors of the lower ends of the correlation for weights and for intervals, and upper bound of rho."""
PRIOR_RHO, PRIOR_WEIGHT = 0.45, 0.1
"""Correlation without evidence, and its weight where the standard error of q is `PRIOR_ERROR`."""
PRIOR_ERROR, SMALLEST_ERROR = 0.01, 1e-4

Products = tuple[tuple[NDArray[np.int32], NDArray[np.float64]], ...]
"""Pair and p_j of each common task, a part for each block."""


class Dependence(NamedTuple):
    """Dependence of errors.

    Attributes:
        share: part of an error's variance that counts as common in the weights, phi.
        correlation: of two errors on one task, rho, for intervals.
    """

    share: float
    correlation: float


INDEPENDENT_SO_FAR = Dependence(0.0, PRIOR_RHO)


def busiest_workers(summary: Summary) -> NDArray[np.int32]:
    """Return the rank of each worker among those whose pairs count, -1 for others; shape (workers,).

    Workers with most answers first, so many that about `PRODUCTS` products arise if they meet by chance.
    """
    order = np.argsort(-summary.per_worker, kind="stable")[:BUSIEST_WORKERS]
    counts = np.asarray(summary.per_task, dtype=float)
    shares = np.cumsum(summary.per_worker[order]) / max(int(summary.per_worker.sum()), 1)
    expected = float((counts * (counts - 1) / 2).sum()) * shares**2
    kept = order[: max(int((expected <= PRODUCTS).sum()), 2)]
    ranks = np.full(summary.workers, -1, dtype=np.int32)
    ranks[kept] = np.arange(len(kept), dtype=np.int32)
    return ranks


def products_of_pairs(
    block: Block,
    used: NDArray[np.bool_],
    scaled: NDArray[np.float64],
    precision: NDArray[np.float64],
    spread: NDArray[np.float64],
    ranks: NDArray[np.int32],
    share: float,
) -> Products:
    """Return the products p_j of a block: of every k-th task where more arise than its part of `PRODUCTS`, twice over.

    Args:
        block: the reports.
        used: reports that count, shape (reports,).
        scaled, precision: x_ij and w_i, shape (reports,).
        spread: V_j, shape (tasks,).
        ranks: of `busiest_workers`.
        share: of the block in all reports.
    """
    rank = ranks[block.worker]
    rows = np.flatnonzero(used & (rank >= 0))
    task = block.task[rows]
    count = np.bincount(task, minlength=block.tasks)
    thinned = math.ceil(int((count * (count - 1) // 2).sum()) / max(2 * PRODUCTS * share, 1))
    first = np.concatenate(([0], np.cumsum(count)[:-1]))
    root = np.sqrt(precision[rows])
    scaled = np.clip(scaled[rows], -LARGEST_ERROR, LARGEST_ERROR)
    keys, values, side = [np.empty(0, np.int32)], [np.empty(0)], int(ranks.max(initial=0)) + 1
    own = rank[rows]
    for number in np.unique(count[count > 1]).tolist():
        tasks = np.flatnonzero(count == number)
        tasks = tasks[(tasks + block.first) % max(thinned, 1) == 0]
        one, other = np.triu_indices(number, 1)
        for part in np.array_split(tasks, max(len(tasks) * len(one) // CHUNK, 1)):
            i, k = first[part, None] + one, first[part, None] + other
            product = scaled[i] * scaled[k] + spread[part, None] * root[i] * root[k]
            low, high = np.minimum(own[i], own[k]), np.maximum(own[i], own[k])
            apart = low < high
            keys.append((low * side + high)[apart])
            values.append(product[apart])
    return ((np.concatenate(keys), np.concatenate(values)),)


def squared_correlation(
    products: Products, ranks: NDArray[np.int32], precision: NDArray[np.float64], *, bounded: bool
) -> tuple[float, float]:
    """Return q and its standard error, infinite where no pair has two common tasks.

    Args:
        products: of all blocks.
        ranks: of `busiest_workers`.
        precision: w_i, shape (workers,).
        bounded: whether v_i is bounded by the median, or w_i: Student errors keep their weights.
    """
    key, value = (np.concatenate(columns) for columns in zip(*products, strict=True))
    pairs, place, common = np.unique(key, return_inverse=True, return_counts=True)
    sums = np.bincount(place, value, len(pairs))
    cross = sums**2 - np.bincount(place, value**2, len(pairs))
    by_rank = np.empty(int(ranks.max(initial=0)) + 1)
    by_rank[ranks[ranks >= 0]] = precision[ranks >= 0] / precision.max()
    by_rank = np.minimum(by_rank, np.median(by_rank)) if bounded else by_rank
    weight = by_rank[pairs // len(by_rank)] * by_rank[pairs % len(by_rank)]
    ordered = common.astype(float) * (common - 1)
    total = float((weight * ordered).sum())
    if not total > 0:
        return 0.0, math.inf
    found = float((weight * cross).sum()) / total
    return found, math.sqrt(float(((weight * (cross - found * ordered)) ** 2).sum())) / total


def dependence_of(found: float, error: float, *, normal: bool) -> Dependence:
    """Return the dependence from q and its standard error; Student errors have independent weights."""
    ends = (LOWER_ERRORS, LOWER_ERRORS_OF_WEIGHTS) if math.isfinite(error) else (0.0, 0.0)
    least, surer = (math.sqrt(max(found - number * error, 0.0)) if number else 0.0 for number in ends)
    known = (PRIOR_ERROR / max(error, SMALLEST_ERROR)) ** 2
    rho = known * min(LARGEST_RHO, RHO_PER_CORRELATION * least) + PRIOR_WEIGHT * PRIOR_RHO
    return Dependence(min(1.0, SHARE_PER_CORRELATION * surer) if normal else 0.0, rho / (known + PRIOR_WEIGHT))
