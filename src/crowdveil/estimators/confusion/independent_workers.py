"""Workers whose answers do not depend on the truth: their probability, a learned share, and the weights that follow.

A worker is informed, or answers independently of the truth (the spamming component of Hovy et al. 2013). With D of
`dirichlet_multinomial`, answer frequencies p, label counts n_i of worker i and expected answers N_i[z, x],
    E1_i = D(n_i; 2 p),     E0_i = max(sum_z D(N_i[z]; prior of row z), coin_i(5), coin_i(20)),
    coin_i(s) = D((right_i, wrong_i); s (A, 1 - A)) + sum of N_i[z, x] log(p without z)[x] over x other than z,
A the crowd's share of right answers. The probability that worker i is independent is
    rho_i = sigma(log pi + E1_i - log(1 - pi) - E0_i),     pi = (sum rho + 1) / (workers + 10),
and every answer of the worker counts 1 - rho_i. Earlier answers of a history are given: D is their difference.

First weights, before there are truths: in three rounds, with s_ti(z) the share of label z among the other answers to
the task, weighted 1 - rho, N_i[z, x] is the sum of s_ti(z) over the answers x of i, the prior of row z is .5 + 3 F_z
with F_z the shares of sum_i (1 - rho_i) N_i[z] + .5, n_i = sum_z N_i[z], and there is no coin.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from crowdveil.em.kernels.reductions import floored_log
from crowdveil.estimators.confusion.dirichlet_multinomial import log_dirichlet_multinomial, log_evidence_of_rows
from crowdveil.estimators.confusion.own_ability import TINY, OwnPrior

FIRST_SHARE, SHARE_WORKERS = 0.1, 10.0
"""Share of independent workers before anything is known, and workers that it counts as."""
LABEL_STRENGTH = 2.0
"""Pseudo-answers of the answer frequencies in the label counts of an independent worker."""
COIN_STRENGTHS = (5.0, 20.0)
"""Candidates of the pseudo-answers s in the prior of abilities."""
OTHERS_SMOOTHING, OTHERS_STRENGTH = 0.5, 3.0
"""Pseudo-answers of each cell, and of the crowd's row, in the first weights."""
ROUNDS = 3
LEARNING_STEPS = frozenset({0, 1, 2, 4, 7})
"""M-steps, from 0, that learn rho; in others it stays."""
DECIMALS = 12
"""Decimals of probabilities: rounding errors do not decide symmetric data."""


@dataclass(frozen=True, eq=False)
class Independence:
    """Independence of the workers from the truth.

    Attributes:
        probability: rho, shape (workers,).
        share: pi.
        label_evidence: E1, shape (workers,).
        frequencies: answer frequencies with the first weights, of the first posterior; shape (labels,).
        answered_tasks: number of tasks with answers; processes that only see blocks do not count them.
        step: number of M-steps so far.
    """

    probability: NDArray[np.float64]
    share: float
    label_evidence: NDArray[np.float64]
    frequencies: NDArray[np.float64]
    answered_tasks: int = 0
    step: int = 0

    @classmethod
    def first(
        cls,
        probability: NDArray[np.float64],
        counts: NDArray[np.float64],
        frequencies: NDArray[np.float64],
        answered_tasks: int,
    ) -> Self:
        """Return the independence before the first step.

        Args:
            probability: first rho.
            counts: weighted answers, [worker, label]; behind noise reports.
            frequencies: of answers with the first weights, shape (labels,).
            answered_tasks: number of tasks with answers.
        """
        shares = counts.sum(axis=0) + 1.0
        evidence = log_dirichlet_multinomial(counts, LABEL_STRENGTH * shares / shares.sum())
        return cls(probability, FIRST_SHARE, evidence, frequencies, answered_tasks)

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weight of each worker's answers, 1 - rho, shape (workers,)."""
        return 1 - self.probability

    @property
    def is_due(self) -> bool:
        """Whether the next M-step learns the probability; evidences of all workers take as long as a pass of EM."""
        return self.step in LEARNING_STEPS

    def updated(self, informed_evidence: NDArray[np.float64]) -> Self:
        """Return the independence given E0, shape (workers,)."""
        odds = logit(self.share) + self.label_evidence - informed_evidence
        probability = np.round(expit(odds), DECIMALS)
        return replace(self, probability=probability, share=share_of_independent_workers(probability))


def total_answers(answers: NDArray[np.float64], weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return the sum over workers of answers, [worker, truth, label], with weights of workers; None for 1."""
    if weights is None:
        return np.asarray(answers.sum(axis=0))
    workers, truths, labels = answers.shape
    cells = answers.transpose(0, 2, 1).reshape(workers, -1)  # the order in memory
    return np.asarray(np.einsum("w,wk->k", weights, cells).reshape(labels, truths).T)


def share_of_independent_workers(probability: NDArray[np.float64]) -> float:
    """Return pi from the probability of each worker."""
    return float((probability.sum() + FIRST_SHARE * SHARE_WORKERS) / (len(probability) + SHARE_WORKERS))


def informed_evidence(
    answers: NDArray[np.float64],
    earlier: NDArray[np.float64] | None,
    dirichlet_prior: NDArray[np.float64],
    own: OwnPrior,
    *,
    compiled: bool = False,
) -> NDArray[np.float64]:
    """Return E0 of each worker, shape (workers,).

    Args:
        answers: expected answers, [worker, truth, label].
        earlier: those of a history, alike; None without any.
        dirichlet_prior: pseudo-counts, [truth, label].
        own: with the crowd's ability.
        compiled: from `use_compiled`.
    """
    known = answers if earlier is None else answers + earlier
    rows = log_evidence_of_rows(known, dirichlet_prior, compiled=compiled)
    best = np.maximum(rows, log_evidence_of_coins(known, own, COIN_STRENGTHS, compiled=compiled).max(axis=0))
    return best if earlier is None else best - informed_evidence(earlier, None, dirichlet_prior, own, compiled=compiled)


def log_evidence_of_coins(
    answers: NDArray[np.float64], own: OwnPrior, strengths: tuple[float, ...], *, compiled: bool = False
) -> NDArray[np.float64]:
    """Return coin_i(s) of each strength and worker, [strength, worker]; arguments as in `informed_evidence`."""
    logs = floored_log(own.errors, TINY)
    np.fill_diagonal(logs, 0.0)
    right, cells = np.einsum("wzz->w", answers), answers.transpose(0, 2, 1).reshape(len(answers), -1)
    counts = np.stack((right, np.einsum("wk->w", cells) - right), axis=1)
    mean = np.array([own.ability, 1 - own.ability])
    abilities = [log_dirichlet_multinomial(counts, strength * mean, compiled=compiled) for strength in strengths]
    return np.stack(abilities) + np.einsum("wk,k->w", cells, logs.T.ravel())


def first_probabilities(
    other_votes: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    workers: int,
    frequencies: NDArray[np.float64],
    *,
    compiled: bool = False,
) -> NDArray[np.float64]:
    """Return rho of each worker from the votes of others, shape (workers,).

    Args:
        other_votes: returns N, [worker, truth, label], from the weights of workers.
        workers: number of workers.
        frequencies: p.
        compiled: from `use_compiled`.
    """
    probability, share = np.zeros(workers), FIRST_SHARE
    for _ in range(ROUNDS):
        weights = 1 - probability
        sums = other_votes(weights)
        crowd = total_answers(sums, weights) + OTHERS_SMOOTHING
        prior = OTHERS_SMOOTHING + OTHERS_STRENGTH * crowd / crowd.sum(axis=1, keepdims=True)
        label_evidence = log_dirichlet_multinomial(sums.sum(axis=1), LABEL_STRENGTH * frequencies, compiled=compiled)
        independence = Independence(probability, share, label_evidence, frequencies)
        independence = independence.updated(log_evidence_of_rows(sums, prior, compiled=compiled))
        probability, share = independence.probability, independence.share
    return probability
