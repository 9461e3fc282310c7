"""Which prior of truths, and which mixture of errors, a crowd has when nothing is known of any single worker.

Reports on a task are then independent draws from one mixture, so the likelihood of a task's counts is exact; its prior
can be chosen even where reports hold next to no information about any one worker or task.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from crowdveil.em.deconvolution import estimate_frequencies

TINY = 1e-300
SAYS_NOTHING = 1e-13
"""By how much a probability may differ between truths for rounding alone."""
WEIGHT = 100.0
"""Pseudo-reports of each sigma in the pooled mixture: pooled counts alone hardly tell errors from spread-out truths."""


MOST_NUMBERS = 1 << 25
"""Numbers of all tables that are held at once: 256 MB."""
TILTS = np.linspace(-2.0, 2.0, 9)
"""Powers of sigma in proportion to which workers may have it, where reports are too few to tell."""
HALVES = (0.25, 0.5, 0.75)
"""Shares of the better workers where there are two kinds: under a public prior only, or too many would be tried."""


@dataclass(frozen=True, eq=False)
class AnonymousWorkerModels:
    """Candidate crowds: every prior with every mixture of sigmas that it may go with.

    A mixture is either the one that explains the pooled reports best under its prior, or one that is the same under
    all priors: in proportion to a power of sigma, or of two sigmas only.

    Attributes:
        family: log-probabilities, indexed [prior, truth]; the widest prior is last.
        sigma_shares: indexed [mixture, prior, sigma], sum to 1 over sigma; mixture 0 is that of the prior.
        reports: P(report | truth) of every sigma, indexed [report, sigma, truth]: symbols, then silent NULLs.
        logs: log P(report | truth) of mixture 0 under every prior, then of the other mixtures, indexed [report, crowd,
            truth]; None where the scale is so long that they are made anew whenever they are needed.
    """

    family: NDArray[np.float64]
    sigma_shares: NDArray[np.float64]
    reports: NDArray[np.float64]
    logs: NDArray[np.float64] | None

    @property
    def widest(self) -> NDArray[np.float64]:
        """Log P(report | truth) of mixture 0 under the widest prior, indexed [report, truth]."""
        return next(self._tables(len(self.family) - 1))

    def evidence(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-likelihood of all counts [task, report] for every crowd, indexed [mixture, prior]."""
        priors, tables = np.exp(self.family), self._tables(0)
        # Few of the many reports of a long scale are of one task.
        sent: Any = counts if self.logs is not None else csr_array(counts)
        fitted = [_evidence(sent @ next(tables), prior) for prior in priors[:, None]]
        return np.stack((np.concatenate(fitted), *(_evidence(sent @ table, priors) for table in tables)))

    def _tables(self, first: int) -> Iterator[NDArray[np.float64]]:
        """Yield the tables of `logs` from that crowd on, each indexed [report, truth]."""
        every = np.concatenate((self.sigma_shares[0], self.sigma_shares[1:, 0]))
        for crowd in range(first, len(every)):
            if self.logs is None:
                yield _mixed_logs(every[crowd : crowd + 1], self.reports)[:, 0]
            else:
                yield self.logs[:, crowd]


def _evidence(scores: NDArray[np.float64], priors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log-likelihood of all tasks, from scores [task, truth], under every prior [prior, truth]."""
    top = scores.max(axis=1, keepdims=True)
    likelihood = np.maximum(np.exp(scores - top) @ priors.T, TINY)
    return np.asarray((np.log(likelihood) + top).sum(axis=0))


def nameless_crowds(
    family: NDArray[np.float64],
    reports: NDArray[np.float64],
    counts: NDArray[np.float64],
    sigmas: NDArray[np.float64],
) -> AnonymousWorkerModels:
    """Find the mixture of sigmas for every prior, from pooled counts (`estimate_frequencies`).

    Args:
        family: log-probabilities, indexed [prior, truth].
        reports: P(report | truth) of every sigma, indexed [report, sigma, truth].
        counts: pooled reports, shape (reports,).
        sigmas: the sigmas.
    """
    # Reports that say the same of every truth and sigma, as most NULL reports do, would only add rounding errors.
    counts = np.where(np.ptp(reports, axis=(1, 2)) > SAYS_NOTHING, counts, 0.0)
    by_prior = np.einsum("ht,yst->hsy", np.exp(family), reports, optimize=True)
    shares = np.array([estimate_frequencies(counts, table, np.full(len(table), WEIGHT)) for table in by_prior])
    common = _common_mixtures(sigmas, pairs=len(family) == 1)
    every = np.concatenate((shares[None], np.repeat(common[:, None], len(family), axis=1)))
    mixtures = np.concatenate((shares, common))
    held = len(mixtures) * len(reports) * reports.shape[2] <= MOST_NUMBERS
    return AnonymousWorkerModels(family, every, reports, _mixed_logs(mixtures, reports) if held else None)


def _mixed_logs(mixtures: NDArray[np.float64], reports: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log P(report | truth) of mixtures [mixture, sigma], indexed [report, mixture, truth]."""
    mixed = np.einsum("hs,yst->yht", mixtures, reports, optimize=True)
    return np.asarray(np.log(np.maximum(mixed, TINY)))


def _common_mixtures(sigmas: NDArray[np.float64], *, pairs: bool) -> NDArray[np.float64]:
    """Return mixtures of sigmas that any crowd may have, indexed [mixture, sigma]; rows sum to 1."""
    powers = (sigmas / sigmas[-1]) ** TILTS[:, None]
    found = list(powers / powers.sum(axis=1, keepdims=True))
    if pairs:
        one = np.eye(len(sigmas))
        found += [share * one[k] + (1 - share) * one[m] for m in range(len(one)) for k in range(m) for share in HALVES]
    return np.array(found)
