"""Design objective of a channel: mutual information of truth and report, in nats per cell, under a public model.

The prior, the participation rate and the worker model are public. A channel that is chosen by them costs no privacy.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.guarantee import Participation
from crowdveil.errors import SettingsError

SUM_TOLERANCE = 1e-6
"""Largest accepted |sum - 1| of a distribution, so that probabilities may be read from text."""

COLUMNS_PER_BATCH = 1024
"""Report symbols evaluated together; bounds memory."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DesignObjective:
    """Value of a channel for learning a truth with a public prior from workers of a public model.

    The objective is averaged over worker types as if each worker's type were known, since many cells of one worker
    reveal it. For indistinguishable workers, give one averaged table.

    Attributes:
        alphabet: possible answers.
        prior: P(truth), shape (truths,); sums to 1. Truths need not be labels.
        worker_model: P(answer | truth) of answered cells for worker types with equal shares, shape (types, truths,
            labels), or (truths, labels) for one type; sums to 1 over labels.
        participation_rate: share of cells that are answered, in (0, 1].
        participation: "protected": a cell's input may be NULL; "public": only answered cells are reported.

    Raises:
        SettingsError: a shape, a negative number, a sum that is not 1, or a rate outside (0, 1].
    """

    alphabet: Alphabet
    prior: NDArray[np.float64]
    worker_model: NDArray[np.float64]
    participation_rate: float = 1.0
    participation: Participation = "protected"

    def __post_init__(self) -> None:
        prior = _normalized_distribution("prior", self.prior, 1)
        model = _normalized_distribution("worker model", np.array(self.worker_model, ndmin=3), 3)
        if model.shape[1:] != (len(prior), self.alphabet.size):
            raise SettingsError(
                f"the worker model must have shape ({len(prior)}, {self.alphabet.size}): truths, labels",
                value=model.shape,
            )
        if not 0 < self.participation_rate <= 1:
            raise SettingsError(
                "the participation rate must be in (0, 1]",
                value=self.participation_rate,
                hint="Such as 0.3: three tenths of the cells are answered.",
            )
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "worker_model", model)

    @cached_property
    def input_given_truth(self) -> NDArray[np.float64]:
        """P(input | truth) of a reported cell, shape (types, truths, inputs); NULL is the last input if protected."""
        if self.participation == "public":
            return self.worker_model
        null = np.full((*self.worker_model.shape[:2], 1), 1 - self.participation_rate)
        return np.concatenate((self.participation_rate * self.worker_model, null), axis=2)

    @property
    def input_count(self) -> int:
        """Number of inputs: the labels, and NULL where protected."""
        return self.input_given_truth.shape[2]

    @cached_property
    def marginal_answer_distribution(self) -> NDArray[np.float64]:
        """P(answer), shape (labels,), over all truths and worker types."""
        return (self.prior @ self.worker_model).mean(axis=0)

    def column_objective_terms(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each report symbol's term of the objective of a reported cell, shape (reports,).

        The terms of a whole channel sum to its objective. A term is homogeneous in its column.

        Args:
            columns: P(report | input), shape (inputs, reports); also part of a channel, or unnormalised.
        """
        gains = np.zeros(columns.shape[1])
        for first in range(0, len(gains), COLUMNS_PER_BATCH):
            part = slice(first, first + COLUMNS_PER_BATCH)
            for inputs in self.input_given_truth:
                gains[part] += _information_by_report(self.prior, inputs @ columns[:, part]) / len(
                    self.input_given_truth
                )
        return gains

    def objective_of_channel(self, table: NDArray[np.float64]) -> float:
        """Return the objective of a channel P(report | input), shape (inputs, reports).

        With public participation an unanswered cell gives no information.
        """
        reported = float(self.column_objective_terms(table).sum())
        return reported if self.participation == "protected" else self.participation_rate * reported


def _information_by_report(prior: NDArray[np.float64], likelihood: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sum over truths t of P(t) P(y | t) ln(P(y | t) / P(y)) for each report y, shape (reports,).

    With P(y | t) = P(y) (1 + d) it is P(y) sum P(t) ((1 + d) ln(1 + d) - d). No term is negative, so small terms
    (d is of the order of epsilon) are not lost to rounding.
    """
    total = prior @ likelihood
    excess = np.divide(likelihood - total, total, out=np.zeros_like(likelihood), where=total > 0)
    log = np.log1p(excess, out=np.zeros_like(likelihood), where=excess > -1)
    return total * (prior @ ((1 + excess) * log - excess))


def _normalized_distribution(name: str, numbers: NDArray[np.float64], axes: int) -> NDArray[np.float64]:
    """Return a normalised read-only copy; sums over the last axis must be within `SUM_TOLERANCE` of 1."""
    table = np.array(numbers, dtype=float)
    if table.ndim != axes or not table.size:
        raise SettingsError(f"the {name} must be a non-empty array of {axes} axes", value=table.shape)
    sums = table.sum(axis=-1, keepdims=True)
    if not ((table >= 0).all() and (abs(sums - 1) <= SUM_TOLERANCE).all()):
        raise SettingsError(
            f"{name}: probabilities must be at least 0 and sum to 1", value=(float(table.min()), float(sums.max()))
        )
    table /= sums
    table.flags.writeable = False
    return table
