"""Abilities from the agreement of pairs of workers, by robust rank-one completion (Ma and Olshevsky, NeurIPS 2020).

For workers i, j with n_ij common tasks and a share a_ij of equal answers, C_ij = (K a_ij - 1) / (K - 1) has the mean
s_i s_j, where s_i = (K p_i - 1) / (K - 1) and p_i = P(right). The sizes |s| = u = v follow from
    u_i <- mean of |C_ij| / v_j over co-workers j, without up to F values above u_i and up to F below,
and the same for v; F is half the fewest co-workers of a worker, less 1, but not below 0. Signs follow the agreements,
with a positive sum. s_i is kept 1 / sqrt(tasks) inside its range, where tasks have answers.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.blocks import Block
from crowdveil.em.kernels.report_weights import report_pairs_by_distance

MAX_ROUNDS = 1000
SETTLED = 1e-10
"""Largest change of a product u_i v_j, and of an entry of the eigenvector, at which rounds end."""
SIGN_ROUNDS = 100
MERGED_PAIRS = 1 << 13
"""Listed pairs of workers from which they are added to the others."""


class WorkerPairs(NamedTuple):
    """Pairs of workers with common tasks.

    Attributes:
        pair: first worker * workers + second worker, ascending, first < second; shape (pairs,).
        common, same: common tasks, and those with the same answer; shapes (pairs,).
    """

    pair: NDArray[np.int64]
    common: NDArray[np.int64]
    same: NDArray[np.int64]

    @classmethod
    def of_blocks(cls, blocks: Iterable[Block], workers: int, often: NDArray[np.bool_] | None = None) -> Self:
        """Return the pairs of workers in these answers; memory is that of the pairs, not of their answers.

        Args:
            blocks: the answers.
            workers: number of workers.
            often: whether pairs with these last bits of `pair` are listed, a power of two of them; None for all.
        """
        found, parts = cls(*np.zeros((3, 0), dtype=np.int64)), list[Self]()
        for pair, same in (listed for block in blocks for listed in report_pairs_by_task(block, workers)):
            kept = slice(None) if often is None else often[pair & (len(often) - 1)]
            parts.append(cls.from_listed_pairs(pair[kept], same[kept]))
            if sum(len(part.pair) for part in parts) > len(found.pair) + MERGED_PAIRS:
                found, parts = cls.merged([found, *parts]), []
        return cls.merged([found, *parts])

    @classmethod
    def from_listed_pairs(cls, pair: NDArray[np.int64], same: NDArray[np.bool_]) -> Self:
        """Return the sums of listed pairs, as of `report_pairs_by_task`."""
        key = np.sort(2 * pair + same)
        first = np.flatnonzero(np.diff(key >> 1, prepend=-1))
        return cls(key[first] >> 1, np.diff(first, append=len(key)), np.add.reduceat(key & 1, first))

    @classmethod
    def merged(cls, parts: list[Self]) -> Self:
        """Return the sums of parts."""
        pair = np.concatenate([part.pair for part in parts])
        order = np.argsort(pair, kind="stable")
        pair = pair[order]
        first = np.flatnonzero(np.diff(pair, prepend=-1))
        common, same = (
            np.add.reduceat(np.concatenate([part[column] for part in parts])[order], first) for column in (1, 2)
        )
        return cls(pair[first], common, same)


def report_pairs_by_task(block: Block, workers: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Yield pairs of reports on one task: the pair of workers of each, and whether the two are equal."""
    for one, other in report_pairs_by_distance(block.pointers):
        first, second, same = block.worker[one], block.worker[other], block.value[one] == block.value[other]
        pair, apart = first.astype(np.int64) * workers + second, first != second
        yield (pair, same) if apart.all() else (pair[apart], same[apart])


class AnswerNumbers(NamedTuple):
    """Numbers of the answers that pairs are made of: labels, tasks, tasks with answers, and answers of each worker."""

    labels: int
    tasks: int
    answered: int
    per_worker: NDArray[np.int64]


class PairAgreements(NamedTuple):
    """Entries of C in both directions: row and column worker, and value; shapes (entries,), ascending by row."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    value: NDArray[np.float64]


def abilities_from_pair_agreements(pairs: WorkerPairs, answers: AnswerNumbers) -> NDArray[np.float64]:
    """Return P(right) of each worker, shape (workers,), nan without answers; without co-workers by the mean s."""
    labels, workers = answers.labels, len(answers.per_worker)
    entries = chance_corrected_agreements(pairs, workers, labels)
    known = np.bincount(entries.row, minlength=workers) > 0
    skill = np.zeros(workers)
    skill[known] = (skill_signs(entries, workers) * _absolute_skills(entries, workers, answers.tasks))[known]
    margin = min(max(answers.answered, 1) ** -0.5, 0.5)
    skill = np.clip(skill, margin - 1 / (labels - 1), 1 - margin)
    skill[~known] = skill[known].mean() if known.any() else 1 - margin
    return np.where(answers.per_worker > 0, (skill * (labels - 1) + 1) / labels, np.nan)


def _absolute_skills(entries: PairAgreements, workers: int, tasks: int) -> NDArray[np.float64]:
    """Return |s| of each worker by alternating trimmed means, shape (workers,)."""
    degree = np.bincount(entries.row, minlength=workers)
    trimmed = max(int(degree[degree > 0].min(initial=0)) // 2 - 1, 0)
    matrix, smallest = abs(_sparse(entries, workers)), 1 / np.sqrt(tasks)
    u = v = np.sqrt(matrix.sum(axis=1) / np.maximum(degree, 1))
    products = np.repeat(u, degree) * v[entries.column]
    for _ in range(MAX_ROUNDS):
        v = _trimmed_mean_ratios(matrix, entries.row, np.maximum(u, smallest), v, trimmed)
        u = _trimmed_mean_ratios(matrix, entries.row, np.maximum(v, smallest), u, trimmed)
        before, products = products, np.repeat(u, degree) * v[entries.column]
        if np.abs(products - before).max(initial=0.0) < SETTLED:
            break
    return np.asarray(np.sqrt(u * v))


def _sparse(entries: PairAgreements, workers: int) -> Any:
    """Return C as a sparse matrix, [worker, worker]."""
    from scipy.sparse import csr_array  # slow to import

    pointers = np.append(0, np.cumsum(np.bincount(entries.row, minlength=workers)))
    return csr_array((entries.value, entries.column, pointers), shape=(workers, workers))


def _trimmed_mean_ratios(
    matrix: Any, row: NDArray[np.int64], divisor: NDArray[np.float64], own: NDArray[np.float64], trimmed: int
) -> NDArray[np.float64]:
    """Return the trimmed mean of |C_ij| / divisor_j of each worker i, own where there is no entry."""
    if trimmed:
        return trimmed_means(row, matrix.data / divisor[matrix.indices], own, trimmed)
    degree = np.diff(matrix.indptr)
    return np.divide(matrix @ (1 / divisor), degree, out=own.copy(), where=degree > 0)


def chance_corrected_agreements(pairs: WorkerPairs, workers: int, labels: int) -> PairAgreements:
    """Return the entries of C, in both directions."""
    one, other = np.divmod(pairs.pair, max(workers, 1))
    value = (labels * pairs.same / pairs.common - 1) / (labels - 1)
    row, column = np.append(other, one), np.append(one, other)  # columns ascend in each row, since pairs do
    order = np.argsort(row.astype(np.min_scalar_type(workers)), kind="stable")
    return PairAgreements(row[order], column[order], np.append(value, value)[order])


def trimmed_means(
    row: NDArray[np.int64], ratio: NDArray[np.float64], own: NDArray[np.float64], trimmed: int
) -> NDArray[np.float64]:
    """Return each row's mean without up to `trimmed` ratios above its own value and as many below.

    Args:
        row: ascending worker of each ratio, shape (entries,).
        ratio: shape (entries,).
        own: present value of each worker, shape (workers,); it stays where no ratio is left.
        trimmed: F.
    """
    kept = np.ones(len(row))
    if trimmed:
        ratio = ratio[np.lexsort((ratio, row))]
        degree = np.bincount(row, minlength=len(own))
        rank = np.arange(len(row)) - (np.cumsum(degree) - degree)[row]
        below = np.minimum(np.bincount(row, ratio < own[row], len(own)), trimmed)
        above = np.minimum(np.bincount(row, ratio > own[row], len(own)), trimmed)
        kept = ((rank >= below[row]) & (rank < (degree - above)[row])).astype(float)
    left = np.bincount(row, kept, len(own))
    return np.divide(np.bincount(row, kept * ratio, len(own)), left, out=own.copy(), where=left > 0)


def skill_signs(entries: PairAgreements, workers: int) -> NDArray[np.float64]:
    """Return the signs of s, shape (workers,): those of the leading eigenvector of C with normalized rows.

    Power iteration from equal entries; the sum is positive, and an entry without a sign counts as positive.
    """
    matrix = _sparse(entries, workers)
    total, vector = np.maximum(abs(matrix).sum(axis=1), 1e-300), np.ones(workers)
    for _ in range(SIGN_ROUNDS):
        before, vector = vector, (vector + matrix @ vector / total) / 2
        vector /= max(float(np.abs(vector).max(initial=0.0)), 1e-300)
        if np.abs(vector - before).max(initial=0.0) < SETTLED:
            break
    vector = -vector if vector.sum() < 0 else vector
    return np.where(vector < 0, -1.0, 1.0)
