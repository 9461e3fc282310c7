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
        tables: log P(report | truth) of the mixture, indexed [report, prior, truth]: symbols, then silent NULLs.
    """

    family: NDArray[np.float64]
    sigma_shares: NDArray[np.float64]
    tables: NDArray[np.float64]

    def scores(self, counts: NDArray[np.float64], prior: int) -> NDArray[np.float64]:
        """Return the log-likelihood of counts [task, report] at every truth, indexed [task, truth]."""
        return counts @ self.tables[:, prior]

    def evidence(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-likelihood of all counts [task, report] under every prior, shape (priors,)."""
        found = np.zeros(len(self.family))
        for prior, logs in enumerate(self.family):
            scores = self.scores(counts, prior) + logs
            top = scores.max(axis=1, keepdims=True)
            found[prior] = (top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))).sum()
        return found


def nameless_crowds(
    family: NDArray[np.float64], reports: NDArray[np.float64], counts: NDArray[np.float64]
) -> NamelessCrowds:
    """Find the mixture of sigmas for every prior, from pooled counts (`pooled_shares`).

    Args:
        family: log-probabilities, indexed [prior, truth].
        reports: P(report | truth) of every sigma, indexed [report, sigma, truth].
        counts: pooled reports, shape (reports,).
    """
    by_prior = np.einsum("ht,yst->hsy", np.exp(family), reports, optimize=True)
    shares = np.array([pooled_shares(counts, table, np.full(len(table), WEIGHT)) for table in by_prior])
    mixed = np.einsum("hs,yst->yht", shares, reports, optimize=True)
    return NamelessCrowds(family, shares, np.log(np.maximum(mixed, TINY)))
