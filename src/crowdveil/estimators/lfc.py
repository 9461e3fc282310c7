"""Learning from crowds: Dawid-Skene with Dirichlet priors, fitted by MAP-EM (Raykar et al., JMLR 2010, section 2.6).

With gamma_j(z) the posterior of task j, the M-step of worker i's confusion matrix, [truth z, label y], is
    C_i[z, y] = (a[z, y] + sum_{j: y_ij = y} gamma_j(z)) / sum of the row,   a = Dirichlet parameters - 1.
"""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.deconvolution import AnswerFrequencies
from crowdveil.estimators.confusion.model import DirichletEstimator


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Lfc(DirichletEstimator):
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
    max_steps: int = 1000
    tolerance: float = 1e-6
    smoothing: float = 1.0
    shrinkage: float = 1.0
    anchor_ability: float = 0.7
    damping: float = 0.0

    def dirichlet_prior(self, pool: AnswerFrequencies, ability: float, full: bool = False) -> NDArray[np.float64]:
        """Return the Dirichlet parameters - 1 of a worker's rows, [truth, label], whatever the noise."""
        return self.smoothing + self.shrinkage * np.eye(pool.labels)
