"""Parameters of normal or Student errors, and the sums over reports that they are learned from."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import psi

from crowdveil.em.model import Summary
from crowdveil.estimators.numeric.dependent_errors import Dependence, Products
from crowdveil.estimators.numeric.first_residuals import Gaps
from crowdveil.estimators.numeric.rater_bias import RaterBiases
from crowdveil.estimators.numeric.worker_precisions import WorkerPrecisions

NU_GRID = np.array([1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 30.0])
"""Degrees of freedom to choose from."""

Phase = Literal["scale", "gate", "fit", "pairs"]


@dataclass(frozen=True, eq=False)
class StudentParameters:
    """Parameters of the errors.

    Attributes:
        summary: counts of the reports.
        ranks: workers whose pairs count, see `busiest_workers`.
        precisions: of the workers.
        phase: what the step is for: the scale of the residuals about medians; their tails without answers far away; the
            fit; the same, with sums for biases and pairs.
        nu: degrees of freedom; infinity for normal errors.
        geometric2: squared geometric mean of the first residuals.
        far2: squared distance from which answers do not count; infinity for none.
        largest: upper bound of a precision.
        dependence: of errors; None before it is known.
        biases: of the workers; None where they are not fitted.
        steps: number of steps of the fit.
        settled: whether truths change so little, or so long, that a fit of Student errors ends.
        intervals: whether the step is the last one, which makes intervals.
    """

    summary: Summary
    ranks: NDArray[np.int32]
    precisions: WorkerPrecisions
    phase: Phase = "scale"
    nu: float = math.inf
    geometric2: float = 0.0
    far2: float = math.inf
    largest: float = math.inf
    dependence: Dependence | None = None
    biases: RaterBiases | None = None
    steps: int = 0
    settled: bool = False
    intervals: bool = False

    @property
    def normal(self) -> bool:
        """Whether errors are normal."""
        return math.isinf(self.nu)

    @property
    def share(self) -> float:
        """Common part of the errors, phi."""
        return 0.0 if self.dependence is None else self.dependence.share

    @property
    def crowd2(self) -> float:
        """Squared scale of the crowd's errors, from the geometric mean of the first residuals."""
        tail = math.log(2) if self.normal else math.log(self.nu) - float(psi(self.nu / 2))
        return self.geometric2 * math.exp(-float(psi(0.5)) - tail)


class StudentStatistics(NamedTuple):
    """Sums over reports; those that a step does not need are empty or 0.

    Attributes:
        moments: of all residuals about medians, and of the near ones, indexed [all or near, moment].
        gaps: differences of answers.
        squares, shares, dropped: Q_i, sum of h_ij, and answers that do not count, of each worker.
        log_densities: log-density of the errors for each nu of the grid; minus infinity where it is not computed.
        changes: truths, and sum of their squared relative changes.
        bias_sums: see `rater_bias.worker_residual_sums`, indexed [sum, worker].
        products: of pairs.
    """

    moments: NDArray[np.float64]
    gaps: Gaps
    squares: NDArray[np.float64]
    shares: NDArray[np.float64]
    dropped: NDArray[np.float64]
    log_densities: NDArray[np.float64]
    changes: NDArray[np.float64]
    bias_sums: NDArray[np.float64]
    products: Products
