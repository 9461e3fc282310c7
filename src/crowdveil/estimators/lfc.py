"""Learning from crowds: Dawid-Skene with Dirichlet priors, fitted by MAP-EM (Raykar et al., JMLR 2010, section 2.6).

With gamma_j(z) the posterior of task j, the M-step of worker i's confusion matrix, [truth z, label y], is
    C_i[z, y] = (a[z, y] + sum_{j: y_ij = y} gamma_j(z)) / sum of the row,   a = Dirichlet parameters - 1.
"""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.deconvolution import AnswerFrequencies
from crowdveil.em.kernels import normalize_confusion, use_compiled
from crowdveil.estimators.confusion.model import ConfusionEstimator, damped_shares, log_damping, log_dirichlet
from crowdveil.estimators.confusion.parameters import CrowdParameters
from crowdveil.registry import Capabilities, capabilities_of


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Lfc(ConfusionEstimator):
    """MAP-EM from the (deconvolved) majority vote, with the same Dirichlet prior of every worker and row.

    Attributes:
        smoothing: Dirichlet parameters - 1 of every cell, with or without a channel.
        shrinkage: pseudo-counts added to the diagonal of each row, with or without a channel.
        anchor_ability: initial ability; only used before the first M-step.
        damping: as in `DawidSkene`; 0 is the paper's learned class prior.
        max_steps, tolerance: as in every estimator.

    Raises:
        SettingsError: a setting out of range.
    """

    name: ClassVar[str] = "lfc"
    capabilities: ClassVar[Capabilities] = capabilities_of("lfc")
    max_steps: int = 1000
    tolerance: float = 1e-6
    smoothing: float = 1.0
    shrinkage: float = 1.0
    anchor_ability: float = 0.7
    damping: float = 0.0

    def dirichlet_prior(self, pool: AnswerFrequencies, ability: float, full: bool = False) -> NDArray[np.float64]:
        """Return the Dirichlet parameters - 1 of a worker's rows, [truth, label], whatever the noise."""
        return self.smoothing + self.shrinkage * np.eye(pool.labels)

    def estimate_confusion(
        self, answers: NDArray[np.float64], dirichlet_prior: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the modes of the rows' Dirichlet posteriors."""
        return normalize_confusion(answers, dirichlet_prior)

    def estimate_confusions(self, answers: NDArray[np.float64], parameters: CrowdParameters) -> NDArray[np.float64]:
        """Return all confusion matrices, by compiled code for large data."""
        compiled = use_compiled(int(parameters.summary.per_worker.sum()))
        return normalize_confusion(answers, parameters.dirichlet_prior, compiled=compiled)

    def update_prior(self, parameters: CrowdParameters) -> NDArray[np.float64]:
        """Return the fixed Dirichlet prior."""
        return parameters.dirichlet_prior

    def log_confusion_prior(self, parameters: CrowdParameters) -> float:
        """Return the Dirichlet log-densities of the rows."""
        return log_dirichlet(parameters)

    def estimate_class_prior(self, by_truth: NDArray[np.float64], parameters: CrowdParameters) -> NDArray[np.float64]:
        """Return the mean posterior."""
        return damped_shares(by_truth, self.damping, parameters)

    def log_class_prior(self, parameters: CrowdParameters) -> float:
        """Return the Dirichlet log-density of the class prior; 0 without damping."""
        return log_damping(self.damping, parameters)
