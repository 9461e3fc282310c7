"""Which prior of truths, and which mixture of errors, a crowd has when nothing is known of any single worker.

Reports on a task are then independent draws from one mixture, so the likelihood of a task's counts is exact; its prior
can be chosen even where reports hold next to no information about any one worker or task.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.estimators.votes import pooled_shares

TINY = 1e-300
WEIGHT = 100.0
"""Pseudo-reports of each sigma in the pooled mixture: pooled counts alone hardly tell errors from spread-out truths."""


@dataclass(frozen=True, eq=False)
class NamelessCrowds:
    """Candidate priors, each with the mixture of sigmas that explains the pooled reports best under it.

    Attributes:
        family: log-probabilities, indexed [prior, truth]; the widest prior is last.
        sigma_shares: indexed [prior, sigma], rows sum to 1.
        tables: log P(report | truth) of the mixture, less NULL's where it is reported; indexed [symbol, prior, truth].
        null: log P(NULL | truth), indexed [prior, truth]; zeros where blank cells are no reports.
    """

    family: NDArray[np.float64]
    sigma_shares: NDArray[np.float64]
    tables: NDArray[np.float64]
    null: NDArray[np.float64]

    def scores(self, counts: NDArray[np.float64], workers: int, prior: int) -> NDArray[np.float64]:
        """Return the log-likelihood of counts [task, symbol] at every truth, indexed [task, truth]."""
        return counts @ self.tables[:, prior] + workers * self.null[prior]

    def evidence(self, counts: NDArray[np.float64], workers: int) -> NDArray[np.float64]:
        """Return the log-likelihood of all counts [task, symbol] under every prior, shape (priors,)."""
        found = np.zeros(len(self.family))
        for prior, logs in enumerate(self.family):
            scores = self.scores(counts, workers, prior) + logs
            top = scores.max(axis=1, keepdims=True)
            found[prior] = (top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))).sum()
        return found


def nameless_crowds(
    family: NDArray[np.float64], tables: NDArray[np.float64], null: NDArray[np.float64], counts: NDArray[np.float64]
) -> NamelessCrowds:
    """Find the mixture of sigmas for every prior, from pooled counts (`pooled_shares`).

    Args:
        family: log-probabilities, indexed [prior, truth].
        tables: log P(report | truth) of every sigma, less NULL's, indexed [symbol, sigma, truth].
        null: log P(NULL | truth), indexed [sigma, truth].
        counts: pooled reports by symbol, NULL reports last (0 where they are not reported).
    """
    each = np.exp(np.concatenate((tables + null, null[None])))
    by_prior = np.einsum("ht,yst->hsy", np.exp(family), each, optimize=True)
    shares = np.array([pooled_shares(counts, reports, np.full(len(reports), WEIGHT)) for reports in by_prior])
    mixed = np.log(np.maximum(np.einsum("hs,yst->yht", shares, each, optimize=True), TINY))
    return NamelessCrowds(family, shares, mixed[:-1] - mixed[-1], mixed[-1])
