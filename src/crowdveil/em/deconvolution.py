"""Deconvolution: answer frequencies, pooled and per task, from report counts behind a channel.

Counts of reports y are modelled as draws from sum_x f(x) Q[x, y] with unknown answer shares f (NULL included where it
is protected). The pool's f is found by Newton's method, each task's by expectation-maximization from there; with the
identity channel a task's f is exactly its share of votes.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.kernels.numpy_backend import row_sums
from crowdveil.em.model import GoldBlock, Summary
from crowdveil.em.observation_model import ObservationModel

POOL_STEPS = 100
TASK_STEPS = 200
MIN_CHANGE = 1e-12
"""Change of a share below which the iteration of a task stops."""
NULL_WEIGHT = 1e-4
"""Pseudo-counts of NULL per cell; negligible if reports distinguish NULL from answers."""
MIN_DECREMENT = 1e-9
"""Newton decrement below which the iteration stops; convergence is quadratic."""
MAX_KEY = 2.0**53
"""Integers below it are exact in double precision."""
SAFE_DECREMENT = 0.25
"""Full Newton steps from here on converge (self-concordance; Boyd and Vandenberghe, Convex Optimization, 9.6)."""
BASE_RATE_WEIGHT = 0.25
"""Weight of the pooled shares relative to one task's cells, if reports hold no information."""

MAX_TIE = 1e-9
"""Difference of two shares of votes that counts as a tie."""
TOTAL_WEIGHT, MIN_DISTANCE = 1e3, 1e-6
"""Weight of the condition that shares sum to 1, and distance of NULL from the answers that counts as rounding."""


@dataclass(frozen=True, eq=False)
class AnswerFrequencies:
    """Answer frequencies of all workers, estimated from report counts.

    Attributes:
        model: P(symbol | answer).
        shares: estimated share of each input symbol among all cells, shape (inputs,), sums to 1.
        noise: share of non-NULL reports that are independent of their answer, in [0, 1]; 0 for the identity.
        cells: reports per task, implicit NULL reports included.
        reports: all reports, implicit NULL reports included.
    """

    model: ObservationModel
    shares: NDArray[np.float64]
    noise: float
    cells: float
    reports: float

    @property
    def labels(self) -> int:
        """Number of labels."""
        return self.model.labels

    @property
    def protected(self) -> bool:
        """Whether NULL is an input."""
        return self.model.protected

    @property
    def participation(self) -> float:
        """Estimated share of answered cells; 1 if participation is public."""
        return float(self.shares[: self.labels].sum())

    @cached_property
    def log_participation_deviation(self) -> float:
        """Standard deviation of the logarithm of the estimated participation, for the least favourable answers.

        By the chi-squared distance of NULL's row from all mixtures of the answers' rows: infinite if NULL is sent as a
        mixture of answers, 0 if participation is public.
        """
        if not self.protected:
            return 0.0
        # The import is slow, and only fits of numbers need it.
        from scipy.optimize import nnls

        null = self.model.full_table[-1]
        table = self.model.full_table[: self.labels, null > 0] / np.sqrt(null[null > 0])
        total = np.full((1, self.labels), TOTAL_WEIGHT)
        distance = nnls(np.vstack((table.T, total)), np.append(np.sqrt(null[null > 0]), TOTAL_WEIGHT))[1]
        if distance < MIN_DISTANCE:
            return float("inf")
        return float(np.sqrt(null.sum() / self.reports) / (self.participation * distance))

    @property
    def label_shares(self) -> NDArray[np.float64]:
        """Estimated share of each label among answers, shape (labels,), sums to 1."""
        return self.shares[: self.labels] / self.participation

    @cached_property
    def largest_share_deviation(self) -> float:
        """Standard deviation of the largest of `label_shares`, from the expected information and the pseudo-counts."""
        table, shares, inputs = self.model.full_table, self.shares, len(self.shares)
        joint = shares[:, None] * table / np.sqrt(np.maximum(shares @ table, np.finfo(float).tiny))
        # Steps are relative to the shares, and sum to 0.
        bordered = np.zeros((inputs + 1, inputs + 1))
        bordered[:-1, :-1] = self.reports * joint @ joint.T
        bordered[:-1, :-1] += np.diag(input_pseudo_counts(self.model, self.reports))
        bordered[:-1, -1] = bordered[-1, :-1] = shares
        slope = np.zeros(inputs + 1)
        slope[: self.labels] = -self.label_shares.max() * self.label_shares
        slope[self.label_shares.argmax()] += self.label_shares.max()
        return float(np.sqrt(slope @ np.linalg.solve(bordered, slope)))


def frequencies_of_reports(summary: Summary, weight: float = 1.0) -> AnswerFrequencies:
    """Return the answer frequencies of a summary, with `weight` pseudo-counts of each label."""
    counts = summary.model.full_report_totals(summary.symbol_counts.sum(axis=0))
    perturbed = summary.channel is not None
    return frequencies_of_counts(counts, summary.model, tasks=summary.tasks, perturbed=perturbed, weight=weight)


def frequencies_of_counts(
    counts: NDArray[np.float64], model: ObservationModel, *, tasks: int, perturbed: bool, weight: float = 1.0
) -> AnswerFrequencies:
    """Return the answer frequencies from report counts in the order of `ObservationModel.full_table`."""
    cells = float(counts.sum())
    shares = estimate_frequencies(counts, model.full_table, input_pseudo_counts(model, cells, weight))
    return AnswerFrequencies(
        model, shares, _noise_share_of_label_reports(counts, shares, model) if perturbed else 0.0, cells / tasks, cells
    )


def input_pseudo_counts(model: ObservationModel, cells: float, weight: float = 1.0) -> NDArray[np.float64]:
    """Return the pseudo-counts of each input symbol, shape (inputs,): `weight` per label, more for NULL.

    Some channels do not identify the share of NULL, such as a Laplace table whose NULL row is the mean of the others.
    The larger pseudo-count then selects the solution with the largest share of NULL and the least information.
    """
    counts = np.full(len(model.table), weight)
    if model.protected:
        counts[-1] = max(weight, NULL_WEIGHT * cells)
    return counts


def estimate_frequencies(
    counts: NDArray[np.float64], table: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the shares f that maximize sum_y counts[y] log (f Q)[y] + sum_x weight[x] log f[x], by Newton's method.

    EM would need about 1 / retention^2 steps: millions at small epsilon.

    Args:
        counts: whole numbers of reports by symbol, shape (..., outputs): one problem for each of the leading indices.
        table: P(report | answer), indexed [..., input, output].
        weight: pseudo-counts of each input symbol, shape (inputs,); at least 1 each, as the step size control requires.

    Returns:
        Shape (..., inputs); positive, sums to 1.
    """
    inputs = table.shape[-2]
    shares = np.full((*counts.shape[:-1], inputs), 1 / inputs)
    bordered = np.zeros((*shares.shape[:-1], inputs + 1, inputs + 1))
    right = np.zeros((*shares.shape[:-1], inputs + 1, 1))
    for _ in range(POOL_STEPS):
        # Steps are relative to the shares: the equations stay well conditioned with rare symbols.
        joint = shares[..., None] * table / (shares[..., None, :] @ table)
        slope = (joint @ counts[..., None])[..., 0] + weight
        curvature = (joint * counts[..., None, :]) @ joint.swapaxes(-1, -2) + np.diag(weight)
        bordered[..., :-1, :-1], right[..., :-1, 0] = curvature, slope
        bordered[..., :-1, -1] = bordered[..., -1, :-1] = shares
        step = np.asarray(np.linalg.solve(bordered, right)[..., :-1, 0], dtype=np.float64)
        decrement = np.sqrt(np.einsum("...x,...xy,...y->...", step, curvature, step))
        shares = shares * (
            1 + _step_sizes_by_backtracking(counts, table, shares, step, weight, decrement)[..., None] * step
        )
        if decrement.max() < MIN_DECREMENT:
            break
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def _step_sizes_by_backtracking(
    counts: NDArray[np.float64],
    table: NDArray[np.float64],
    shares: NDArray[np.float64],
    step: NDArray[np.float64],
    weight: NDArray[np.float64],
    decrement: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return step sizes by backtracking: inside the simplex, with a hundredth of the predicted gain (Armijo)."""
    growth = (((shares * step)[..., None, :] @ table) / (shares[..., None, :] @ table))[..., 0, :]
    promise = (counts * growth).sum(axis=-1) + step @ weight
    size = np.ones_like(decrement)
    searched = decrement > SAFE_DECREMENT
    while searched.any():
        relative = size[..., None] * step
        outside = relative.min(axis=-1) <= -1
        gain = (counts * np.log1p(np.where(outside[..., None], 0.0, size[..., None] * growth))).sum(axis=-1)
        gain = gain + np.log1p(np.where(outside[..., None], 0.0, relative)) @ weight
        searched = searched & (outside | (gain < 0.01 * size * promise))
        size = np.where(searched, size / 2, size)
    return size


def _noise_share_of_label_reports(
    counts: NDArray[np.float64], shares: NDArray[np.float64], model: ObservationModel
) -> float:
    """Return the share of label reports beyond those of answers that survive their channels, in [0, 1]."""
    is_informative = np.append(model.is_informative, np.zeros(model.implicit_null_count, dtype=bool))
    noisy = model.retention < 1
    sent = float(counts[is_informative].sum())
    through_noise = float(counts[is_informative & noisy].sum())
    surviving = float((counts * model.retention)[noisy].sum()) * float(shares[: model.labels].sum())
    if not noisy.any():
        return 0.0
    return max(through_noise - surviving, 0.0) / sent if sent > 0 else 1.0


def deconvolve(
    counts: NDArray[np.float64], table: NDArray[np.float64], base: NDArray[np.float64], *, weight: float, steps: int
) -> NDArray[np.float64]:
    """Return maximum a posteriori estimates of answer shares from report counts, one estimate per row.

    Args:
        counts: reports by symbol, indexed [row, output].
        table: P(report | answer), indexed [input, output].
        base: mean of the Dirichlet prior, and initial shares; shape (inputs,).
        weight: pseudo-counts of the prior; 0 gives maximum likelihood.
        steps: largest number of steps.

    Returns:
        Indexed [row, input]; rows sum to 1 (all zero where a row has no reports and no prior).
    """
    shares = np.repeat(base[None, :], len(counts), axis=0)
    total = counts.sum(axis=1, keepdims=True) + weight
    for _ in range(steps):
        expected = np.maximum(shares @ table, np.finfo(float).tiny)
        new = (shares * ((counts / expected) @ table.T) + weight * base) / np.maximum(total, np.finfo(float).tiny)
        moved = float(np.abs(new - shares).max(initial=0.0))
        shares = new
        if moved < MIN_CHANGE:
            break
    return shares


def task_symbol_counts(block: GoldBlock) -> NDArray[np.float64]:
    """Return the number of listed reports of each task by symbol, indexed [task, symbol]."""
    return block.coded.symbol_weights(np.ones(block.coded.workers))


def vote_shares_or_prior(
    block: GoldBlock,
    summary: Summary,
    pool: AnswerFrequencies,
    votes: NDArray[np.float64] | None = None,
    *,
    ranked: bool = False,
) -> NDArray[np.float64]:
    """Return each task's shares of votes by label; the prior for tasks without information.

    Args:
        block: its reports.
        summary: with the prior.
        pool: frequencies of answers in all reports.
        votes: `task_symbol_counts` of the block, if they have been counted.
        ranked: whether the order of labels is that of the votes alone, and not of the answer frequencies, too; tied
            labels then have equal shares. Not for labels that are reported alike.

    Returns:
        Indexed [task, label]; rows sum to 1; the exact shares of votes behind the identity channel.
    """
    votes = task_symbol_counts(block) if votes is None else votes
    if pool.model.is_identity:
        shares = votes
    else:
        ranked = ranked and summary.prior is None and distinguishes_labels(pool.model)
        shares = _expected_answers_by_label(votes, block, summary, pool, ranked=ranked)
    total = row_sums(shares)[:, None]
    if (total > 0).all():
        return shares / total
    nothing = summary.prior if summary.prior is not None else np.full(pool.labels, 1 / pool.labels)
    return np.where(total > 0, shares / np.where(total > 0, total, 1.0), nothing)


def _expected_answers_by_label(
    votes: NDArray[np.float64], block: GoldBlock, summary: Summary, pool: AnswerFrequencies, *, ranked: bool
) -> NDArray[np.float64]:
    """Return the expected answers by label behind votes by symbol and implicit NULL, indexed [task, label]."""
    model = pool.model
    of_task = model.task_group[block.block.first : block.block.stop]
    counts = np.concatenate((votes, model.implicit_null_counts(votes, of_task)), axis=1)
    weight = BASE_RATE_WEIGHT * pool.noise * pool.cells
    base = pool.shares
    if summary.prior is not None:
        base = np.concatenate([summary.prior * pool.participation, pool.shares[pool.labels :]])
    return _deconvolve_each_distinct_row_once(counts, model, base, weight, ranked=ranked)[:, : pool.labels]


def _deconvolve_each_distinct_row_once(
    counts: NDArray[np.float64],
    model: ObservationModel,
    base: NDArray[np.float64],
    weight: float,
    *,
    ranked: bool,
) -> NDArray[np.float64]:
    """Deconvolve each distinct row of counts once; a million tasks with ten reports have a few thousand."""
    wide = counts.max(axis=0, initial=0.0) + 1
    key = counts @ np.append(np.cumprod(wide[::-1])[-2::-1], 1.0) if wide.prod() < MAX_KEY else np.arange(len(counts))
    _, rows, places = np.unique(key, return_index=True, return_inverse=True)
    shares = deconvolve(counts[rows], model.full_table, base, weight=weight, steps=TASK_STEPS)
    if ranked:
        labels, listed = model.labels, counts[rows]
        start = np.append(np.full(labels, base[:labels].mean()), base[labels:])
        votes = deconvolve(listed, model.full_table, start, weight=0.0, steps=TASK_STEPS)[:, :labels]
        voted = listed[:, : model.listed_symbol_count].any(axis=1)
        shares[voted, :labels] = _ranked_as(shares[voted, :labels], votes[voted])
    return shares[places]


def _ranked_as(shares: NDArray[np.float64], votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the shares of each row in the order of its votes, equal where those are; all [row, label]."""
    order = np.argsort(votes, axis=1, kind="stable")
    ascending = np.take_along_axis(votes, order, axis=1)
    ascending = ascending / np.maximum(ascending.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    above = np.diff(ascending, axis=1, prepend=-1.0) > MAX_TIE
    group = (np.cumsum(above.ravel()) - 1).reshape(above.shape)
    mean = np.bincount(group.ravel(), np.sort(shares, axis=1).ravel()) / np.bincount(group.ravel())
    ranked = np.empty_like(shares)
    np.put_along_axis(ranked, order, mean[group], axis=1)
    return ranked


def distinguishes_labels(model: ObservationModel) -> bool:
    """Return whether no two labels are reported alike, as those of a block are."""
    return len(np.unique(model.full_table[: model.labels], axis=0)) == model.labels
