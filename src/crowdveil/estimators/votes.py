"""What a crowd voted, seen through a channel: shares of answers, pooled and per task, by deconvolution of counts.

Counts of reports y are modelled as draws from sum_x f(x) Q[x, y] with unknown answer shares f (NULL included where it
is protected); expectation-maximization finds the most likely f. With the identity channel f is exactly the vote share.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.estimators.fitting import GoldBlock, Summary
from crowdveil.estimators.voting import vote_sums

POOL_STEPS = 5_000
TASK_STEPS = 200
STILL = 1e-12
LEAST_SHARE = 1e-9
"""No symbol is held to be impossible because the pool's reports do not need it."""
BASE_RATE_WEIGHT = 0.25
"""What the crowd's base rate counts against one task's own cells when reports hold no information at all."""


@dataclass(frozen=True, eq=False)
class Pool:
    """What report counts alone say about the whole crowd.

    Attributes:
        channel: what reports went through; the identity where reports are read as answers.
        protected: whether NULL is an input of the channel.
        shares: estimated share of each input symbol among all cells, shape (inputs,), sums to 1.
        noise: share of non-NULL reports that say nothing about their answer, in [0, 1]; 0 for the identity.
    """

    channel: Channel
    protected: bool
    shares: NDArray[np.float64]
    noise: float

    @property
    def labels(self) -> int:
        """Number of labels."""
        return self.channel.alphabet.size

    @property
    def participation(self) -> float:
        """Estimated share of cells that were answered; 1 where participation is public."""
        return float(self.shares[: self.labels].sum())

    @property
    def label_shares(self) -> NDArray[np.float64]:
        """Estimated share of each label among answers, shape (labels,), sums to 1."""
        return self.shares[: self.labels] / self.participation


def pool_reports(summary: Summary) -> Pool:
    """Estimate what the whole crowd answered from the counts of its reports."""
    assert summary.alphabet is not None
    channel = summary.channel or Channel.identity(summary.alphabet, "public")
    counts = _with_nulls(summary.label_counts.sum(axis=0, keepdims=True), summary.tasks * summary.workers, channel)
    uniform = np.full(len(channel.inputs), 1 / len(channel.inputs))
    shares = deconvolve(counts, channel.probabilities, uniform, weight=0.0, steps=POOL_STEPS)[0]
    shares = np.maximum(shares, LEAST_SHARE) / np.maximum(shares, LEAST_SHARE).sum()
    return Pool(channel, channel.participation == "protected", shares, _noise(counts[0], shares, channel))


def _noise(counts: NDArray[np.float64], shares: NDArray[np.float64], channel: Channel) -> float:
    """Return the share of label reports that the answers which survive the channel do not account for, in [0, 1]."""
    if channel.retention == 1:
        return 0.0
    labels = np.arange(len(channel.outputs)) != channel.null_output
    sent = counts[labels].sum() / max(counts.sum(), 1.0)
    surviving = channel.retention * shares[: channel.alphabet.size].sum()
    return float(np.clip(1 - surviving / sent, 0.0, 1.0)) if sent > 0 else 1.0


def deconvolve(
    counts: NDArray[np.float64], table: NDArray[np.float64], base: NDArray[np.float64], *, weight: float, steps: int
) -> NDArray[np.float64]:
    """Estimate answer shares from report counts, each row on its own, by maximum a posteriori.

    Args:
        counts: reports by symbol, indexed [row, output].
        table: P(report | answer), indexed [input, output].
        base: Dirichlet prior's centre and the start, shape (inputs,).
        weight: pseudo-cells of the prior; 0 gives maximum likelihood.
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
        if moved < STILL:
            break
    return shares


def vote_shares(block: GoldBlock, summary: Summary, pool: Pool) -> NDArray[np.float64]:
    """Estimate each task's share of votes per label; tasks of which nothing is known get the prior.

    Returns:
        Indexed [task, label]; rows sum to 1; the exact share of votes where nothing was perturbed.
    """
    votes = vote_sums(block.block, np.ones(summary.workers), summary.labels)
    counts = _with_nulls(votes, summary.workers, pool.channel)
    cells = summary.workers if pool.channel.null_output is not None else summary.per_worker.sum() / summary.tasks
    weight = BASE_RATE_WEIGHT * pool.noise * cells
    base = pool.shares
    if summary.prior is not None:
        base = np.concatenate([summary.prior * pool.participation, pool.shares[pool.labels :]])
    shares = deconvolve(counts, pool.channel.probabilities, base, weight=weight, steps=TASK_STEPS)[:, : pool.labels]
    total = shares.sum(axis=1, keepdims=True)
    nothing = summary.prior if summary.prior is not None else np.full(pool.labels, 1 / pool.labels)
    return np.where(total > 0, shares / np.where(total > 0, total, 1.0), nothing)


def _with_nulls(votes: NDArray[np.float64], cells: int, channel: Channel) -> NDArray[np.float64]:
    """Put label counts, and for the rest of each row's cells NULL counts, into the order of the channel's outputs."""
    if channel.null_output is None:
        return votes
    return np.insert(votes, channel.null_output, cells - votes.sum(axis=1), axis=1)
