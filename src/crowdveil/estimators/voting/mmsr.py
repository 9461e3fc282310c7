"""M-MSR: worker skills by robust rank-one completion of their agreement (Ma and Olshevsky, NeurIPS 2020).

For workers i, j with n_ij common tasks and a share a_ij of equal answers, C_ij = (K a_ij - 1) / (K - 1) has the mean
s_i s_j, where s_i = (K p_i - 1) / (K - 1) and p_i = P(right). The sizes |s| = u = v follow from
    u_i <- mean of |C_ij| / v_j over co-workers j, without up to F values above u_i and up to F below,
and the same for v. Signs follow the agreements, with a positive sum. s_i is kept 1 / sqrt(tasks)
inside its range, where tasks have answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.estimate import WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.em.model import EStep, GoldBlock, MemoryUse, Summary
from crowdveil.estimators.voting.skill_votes import shares
from crowdveil.estimators.voting.worker_pairs import CHUNK_PAIRS, WorkerPairs, pairs_of_block
from crowdveil.estimators.weighted_vote import log_odds_weight

MAX_ROUNDS = 1000
SETTLED = 1e-10
"""Largest change of a product u_i v_j, and of an entry of the eigenvector, at which rounds end."""
SIGN_ROUNDS = 100
BYTES_PER_PAIR = 240
"""Bytes of the completion per pair of workers, and of a block per pair of reports."""


@dataclass(frozen=True, eq=False)
class MmsrParameters:
    """Counts of the reports, and P(right) of each worker, shape (workers,); None before the first step."""

    summary: Summary
    ability: NDArray[np.float64] | None


class MmsrStatistics(NamedTuple):
    """Agreement of pairs of workers; none once abilities are known."""

    pairs: WorkerPairs


class Agreement(NamedTuple):
    """Entries of C in both directions: row and column worker, and value; shapes (entries,), ascending by row."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    value: NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Mmsr(Estimator[MmsrParameters, MmsrStatistics]):
    """Abilities from pairs of workers, then one vote weighted by their log-odds.

    A worker without co-workers has the mean s of the others. Memory follows the pairs of workers with a common task.

    Attributes:
        trimmed: F, values that are left out on either side; by default half the fewest co-workers of a worker, less 1,
            but not below 0.
        max_steps: 2 are the method.
        tolerance: 1 ends the fit after the weighted vote.

    Raises:
        SettingsError: `trimmed` below 0.
    """

    name: ClassVar[str] = "m-msr"
    ranges: ClassVar[Mapping[str, str]] = {"trimmed": "[0, inf)"}
    state_fields: ClassVar[Mapping[str, StateField]] = {"ability": StateField("probability")}
    trimmed: int | None = None
    max_steps: int = 2
    tolerance: float = 1.0

    def initialize(self, summary: Summary) -> MmsrParameters:
        """Return no abilities."""
        return MmsrParameters(summary, None)

    def memory(self, summary: Summary, parameters: MmsrParameters) -> MemoryUse:
        """Return an upper bound of the pairs of workers, and of the pairs of reports listed at once."""
        per_task = summary.per_task.astype(np.int64)
        listed = int((per_task * (per_task - 1) // 2).sum())
        pairs = min(listed, summary.workers**2 // 2)
        at_once = min(listed, 2 * CHUNK_PAIRS)
        return MemoryUse(3 * pairs + summary.workers, BYTES_PER_PAIR * pairs, BYTES_PER_PAIR * at_once)

    def e_step(self, block: GoldBlock, parameters: MmsrParameters) -> EStep[MmsrStatistics]:
        """Return first the shares of votes and the pairs, then the posterior of votes weighted by log-odds."""
        summary = parameters.summary
        if parameters.ability is None:
            votes = block.coded.vote_sums(np.ones(summary.workers))
            pairs = pairs_of_block(block.block, summary.workers)
            return EStep(MmsrStatistics(pairs), shares(votes, block.gold))
        weight = log_odds_weight(parameters.ability, summary.labels)
        prior = np.full(summary.labels, 1 / summary.labels) if summary.prior is None else summary.prior
        step = block.coded.one_coin_step(weight, np.log(prior), block.gold)
        return EStep(MmsrStatistics(WorkerPairs.none()), step.posterior)

    def m_step(self, statistics: MmsrStatistics, parameters: MmsrParameters) -> MmsrParameters:
        """Return the abilities of the rank-one completion."""
        summary = parameters.summary
        entries = agreement(statistics.pairs, summary.workers, summary.labels)
        known = np.bincount(entries.row, minlength=summary.workers) > 0
        skill = np.zeros(summary.workers)
        skill[known] = (signs(entries, summary.workers) * self._sizes(entries, summary))[known]
        margin = min(max(int((summary.per_task > 0).sum()), 1) ** -0.5, 0.5)
        skill = np.clip(skill, margin - 1 / (summary.labels - 1), 1 - margin)
        skill[~known] = skill[known].mean() if known.any() else 1 - margin
        return replace(parameters, ability=(skill * (summary.labels - 1) + 1) / summary.labels)

    def worker_table(self, statistics: MmsrStatistics, parameters: MmsrParameters) -> WorkerTable:
        """Return the abilities, nan without reports."""
        known = self.m_step(statistics, parameters) if parameters.ability is None else parameters
        assert known.ability is not None
        return WorkerTable(np.where(parameters.summary.per_worker > 0, known.ability, np.nan), "ability")

    def from_state(self, initial: MmsrParameters, state: FitState) -> MmsrParameters:
        """Return the abilities of the state, their mean for new workers."""
        mean = float(np.nanmean(state.by_worker["ability"]))
        return replace(initial, ability=state.rows("ability", np.full(initial.summary.workers, mean)))

    def _sizes(self, entries: Agreement, summary: Summary) -> NDArray[np.float64]:
        """Return |s| of each worker by alternating trimmed means, shape (workers,)."""
        degree = np.bincount(entries.row, minlength=summary.workers)
        trimmed = self.trimmed
        if trimmed is None:
            trimmed = max(int(degree[degree > 0].min(initial=0)) // 2 - 1, 0)
        matrix, smallest = abs(_sparse(entries, summary.workers)), 1 / np.sqrt(summary.tasks)
        u = v = np.sqrt(matrix.sum(axis=1) / np.maximum(degree, 1))
        products = np.repeat(u, degree) * v[entries.column]
        for _ in range(MAX_ROUNDS):
            v = _means(matrix, entries.row, np.maximum(u, smallest), v, trimmed)
            u = _means(matrix, entries.row, np.maximum(v, smallest), u, trimmed)
            before, products = products, np.repeat(u, degree) * v[entries.column]
            if np.abs(products - before).max(initial=0.0) < SETTLED:
                break
        return np.asarray(np.sqrt(u * v))


def _sparse(entries: Agreement, workers: int) -> Any:
    """Return C as a sparse matrix, [worker, worker]."""
    from scipy.sparse import csr_array  # slow to import

    pointers = np.append(0, np.cumsum(np.bincount(entries.row, minlength=workers)))
    return csr_array((entries.value, entries.column, pointers), shape=(workers, workers))


def _means(
    matrix: Any, row: NDArray[np.int64], divisor: NDArray[np.float64], own: NDArray[np.float64], trimmed: int
) -> NDArray[np.float64]:
    """Return the trimmed mean of |C_ij| / divisor_j of each worker i, own where there is no entry."""
    if trimmed:
        return trimmed_means(row, matrix.data / divisor[matrix.indices], own, trimmed)
    degree = np.diff(matrix.indptr)
    return np.divide(matrix @ (1 / divisor), degree, out=own.copy(), where=degree > 0)


def agreement(pairs: WorkerPairs, workers: int, labels: int) -> Agreement:
    """Return the entries of C, in both directions."""
    one, other = np.divmod(pairs.pair, max(workers, 1))
    common, same = pairs.counts.T
    value = (labels * same / common - 1) / (labels - 1)
    row, column = np.append(other, one), np.append(one, other)  # columns ascend in each row, since pairs do
    order = np.argsort(row.astype(np.min_scalar_type(workers)), kind="stable")
    return Agreement(row[order], column[order], np.append(value, value)[order])


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


def signs(entries: Agreement, workers: int) -> NDArray[np.float64]:
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
