"""Arguments and results of the sums over one block of reports, by numpy or by compiled loops."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Discount:
    """Exponent of a task's likelihoods and prior, for reports whose errors are correlated within a task.

    n reports are worth n / (1 + (n - 1) correlation) independent ones, so the scores of a task with n listed reports
    are multiplied by temperature / (1 + correlation max(n information - 1, 0)).

    Attributes:
        correlation: of the errors of two answers to one task, at least 0; 0 multiplies by the temperature only.
        information: answers that one report is worth, in [0, 1]; 1 without noise.
        temperature: factor of all scores, positive.
    """

    correlation: float
    information: float = 1.0
    temperature: float = 1.0

    def exponents(self, reports: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the factor of each task's scores from its number of listed reports, shape (tasks,)."""
        return self.temperature / (1 + self.correlation * np.maximum(self.information * reports - 1.0, 0.0))


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """Log-likelihood tables of an E-step, shared by all blocks.

    Attributes:
        report_scores: log P(report | truth), indexed [worker * symbols + symbol, label].
        initial_scores: scores before any report (prior, implicit NULL), indexed [task group, label].
        discount: factor of the scores of each task; None for 1.
    """

    report_scores: NDArray[np.float64]
    initial_scores: NDArray[np.float64]
    discount: Discount | None = None


class TableStep(NamedTuple):
    """Posterior, [task, label]; its sums over the reports of each table row, [row, label], and over the tasks of each
    group, [group, label]; the log-likelihood, gold tasks at their known label.

    `change` is the largest change from the previous posterior if that was overwritten, else None."""

    posterior: NDArray[np.float64]
    by_row: NDArray[np.float64]
    by_truth: NDArray[np.float64]
    log_likelihood: float
    change: float | None = None


class VoteStep(NamedTuple):
    """Posterior, [task, label]; its sum over the labels that each worker sent, shape (workers,); and the sum of the
    tasks' log-normalizers (of a gold task: its label's score), 0 for a plurality vote."""

    posterior: NDArray[np.float64]
    agreement: NDArray[np.float64]
    log_normaliser: float


class MeanStep(NamedTuple):
    """Weighted means, shape (tasks,); sums of squared residuals, shape (workers,); `change` as in `TableStep`."""

    truth: NDArray[np.float64]
    squares: NDArray[np.float64]
    change: float | None = None
