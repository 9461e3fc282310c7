"""Marginal likelihood of truth priors and error mixtures when workers are exchangeable.

Without worker identities, the reports on a task are independent draws from one mixture over sigmas, so the likelihood
of a task's report counts is exact:
log p(counts) = log sum_mu prior(mu) prod_y (sum_s share(s) P(y | mu, s))^counts(y).
It selects the prior even if reports are too few to tell workers apart.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from crowdveil.em.deconvolution import estimate_frequencies
from crowdveil.estimators.gaussian.belief_propagation import Priors

TINY = 1e-300
MIN_INFORMATIVE_RANGE = 1e-13
"""Range of P(report | truth) up to which differences count as rounding."""
PSEUDO_REPORTS = 100.0
"""Pseudo-reports per sigma in the pooled mixture, since pooled counts hardly separate errors from spread-out truths."""
MAX_TABLE_NUMBERS = 1 << 25
"""Numbers of all log tables up to which they are stored: 256 MB."""
NEGLIGIBLE_WEIGHT = 1e-6
"""Posterior weight of a candidate model up to which it is left out of the average."""
SIGMA_POWERS = np.linspace(-2.0, 2.0, 9)
"""Exponents of the mixtures with weights proportional to a power of sigma."""
PAIR_SHARES = (0.25, 0.5, 0.75)
"""Shares of the smaller sigma in mixtures of two sigmas, which are tried under a single public prior only."""


@dataclass(frozen=True, eq=False)
class AnonymousWorkerModels:
    """Candidate models of a crowd: every prior with every mixture of sigmas.

    Mixture 0 is fitted to the pooled reports under each prior. The others are the same under all priors: proportional
    to a power of sigma, or of two sigmas.

    Attributes:
        family: log-probabilities, indexed [prior, truth]; the widest prior is last.
        sigma_shares: indexed [mixture, prior, sigma], sum to 1 over sigma.
        mixture_weights: hyperprior of the mixtures, shape (mixtures,), sum 1.
        reports: P(report | truth, sigma), indexed [report, sigma, truth]: symbols, then implicit NULL.
        logs: log P(report | truth) of mixture 0 under every prior, then of the other mixtures, indexed
            [report, model, truth]; None if the tables are too large to store and are computed on demand.
    """

    family: NDArray[np.float64]
    sigma_shares: NDArray[np.float64]
    mixture_weights: NDArray[np.float64]
    reports: NDArray[np.float64]
    logs: NDArray[np.float64] | None

    @property
    def widest_prior_log_likelihood(self) -> NDArray[np.float64]:
        """Log P(report | truth) of mixture 0 under the widest prior, indexed [report, truth]."""
        return next(self._log_table_of_each_model(len(self.family) - 1))

    def model_log_evidence(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-likelihood of all counts, [task, report], of every model, indexed [mixture, prior]."""
        priors, tables = np.exp(self.family), self._log_table_of_each_model(0)
        # A task has few of the many symbols of a long scale.
        matrix: Any = counts if self.logs is not None else csr_array(counts)
        fitted = [_log_likelihood_per_prior(matrix @ next(tables), prior) for prior in priors[:, None]]
        return np.stack(
            (np.concatenate(fitted), *(_log_likelihood_per_prior(matrix @ table, priors) for table in tables))
        )

    def posterior(self, counts: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the models' posteriors, times their weights [mixture, prior], indexed [task, truth]."""
        priors, sums = np.exp(self.family), np.zeros((len(counts), self.family.shape[1]))
        by_table = np.concatenate((np.diag(weights[0]), weights[1:]))
        for share, table in zip(by_table, self._log_table_of_each_model(0), strict=True):
            if (chosen := share > NEGLIGIBLE_WEIGHT).any():
                sums += share[chosen].sum() * Priors(priors[chosen], share[chosen]).posterior_from_log_likelihoods(
                    counts @ table
                )
        return sums

    def _log_table_of_each_model(self, first: int) -> Iterator[NDArray[np.float64]]:
        """Yield the tables of `logs` from model `first` on, each indexed [report, truth]."""
        if self.logs is not None:
            yield from self.logs[:, first:].swapaxes(0, 1)
            return
        symbols, sigmas, truths = self.reports.shape
        # Transposed once for all models.
        by_sigma = self.reports.swapaxes(0, 1).reshape(sigmas, -1)
        for mixture in np.concatenate((self.sigma_shares[0], self.sigma_shares[1:, 0]))[first:]:
            yield np.log(np.maximum(mixture @ by_sigma, TINY)).reshape(symbols, truths)


def _log_likelihood_per_prior(scores: NDArray[np.float64], priors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log-likelihood of all tasks under every prior [prior, truth], from scores [task, truth]."""
    maximum = scores.max(axis=1, keepdims=True)
    likelihood = np.maximum(np.exp(scores - maximum) @ priors.T, TINY)
    return np.asarray((np.log(likelihood) + maximum).sum(axis=0))


def fit_anonymous_models(
    family: NDArray[np.float64],
    reports: NDArray[np.float64],
    counts: NDArray[np.float64],
    sigmas: NDArray[np.float64],
    candidates: int = 1,
) -> AnonymousWorkerModels:
    """Return the candidate models, mixture 0 of each prior fitted to pooled counts by `estimate_frequencies`.

    Args:
        family: log-probabilities, indexed [prior, truth].
        reports: P(report | truth, sigma), indexed [report, sigma, truth].
        counts: pooled reports, shape (reports,).
        sigmas: ascending, shape (sigmas,).
        candidates: number of such sets, which share the memory.
    """
    # Uninformative reports, as most NULL reports are, would only add rounding errors.
    counts = np.where(np.ptp(reports, axis=(1, 2)) > MIN_INFORMATIVE_RANGE, counts, 0.0)
    by_prior = np.einsum("ht,yst->hsy", np.exp(family), reports, optimize=True)
    pseudo = np.full(len(sigmas), PSEUDO_REPORTS)
    fitted = estimate_frequencies(np.broadcast_to(counts, (len(by_prior), len(counts))), by_prior, pseudo)
    shared = _sigma_mixtures_without_prior(sigmas, with_pairs=len(family) == 1)
    sigma_shares = np.concatenate((fitted[None], np.repeat(shared[:, None], len(family), axis=1)))
    mixtures = np.concatenate((fitted, shared))
    fits_memory = len(mixtures) * len(reports) * reports.shape[2] <= MAX_TABLE_NUMBERS // candidates
    logs = _mixture_log_likelihoods(mixtures, reports) if fits_memory else None
    return AnonymousWorkerModels(family, sigma_shares, _hyperprior_of_mixtures(len(sigma_shares)), reports, logs)


def _hyperprior_of_mixtures(mixtures: int) -> NDArray[np.float64]:
    """Return the hyperprior of mixtures, proportional to exp(-exponent) for powers of sigma, to 1 for the others.

    Errors as large as the scale are unlikely before any report.
    """
    weights = np.ones(mixtures)
    weights[1 : 1 + len(SIGMA_POWERS)] = np.exp(-SIGMA_POWERS)
    return weights / weights.sum()


def _mixture_log_likelihoods(mixtures: NDArray[np.float64], reports: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log P(report | truth) of mixtures [mixture, sigma], indexed [report, mixture, truth]."""
    mixed = np.einsum("hs,yst->yht", mixtures, reports, optimize=True)
    return np.asarray(np.log(np.maximum(mixed, TINY)))


def _sigma_mixtures_without_prior(sigmas: NDArray[np.float64], *, with_pairs: bool) -> NDArray[np.float64]:
    """Return the mixtures of sigmas that do not depend on the prior, indexed [mixture, sigma]; rows sum to 1."""
    powers = (sigmas / sigmas[-1]) ** SIGMA_POWERS[:, None]
    mixtures = list(powers / powers.sum(axis=1, keepdims=True))
    if with_pairs:
        one = np.eye(len(sigmas))
        mixtures += [
            share * one[k] + (1 - share) * one[m] for m in range(len(one)) for k in range(m) for share in PAIR_SHARES
        ]
    return np.array(mixtures)
