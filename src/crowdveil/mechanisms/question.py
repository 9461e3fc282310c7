"""What a campaign asks and what is publicly known of it: the measure by which channels are chosen.

Nothing here sees an answer: prior, participation rate and worker model are public, so a channel chosen by them costs no
privacy.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.guarantee import Participation
from crowdveil.labels import Alphabet

Objective = Literal["information", "correct"]
"""`information`: mutual information of truth and report, in nats per cell. `correct`: probability that the best guess
from one report is right, 1 - the Bayes error."""

SLACK = 1e-9
"""What probabilities read from text may miss one by."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Question:
    """A truth with a public prior, seen through a worker of a public model who answers some of the tasks.

    Attributes:
        alphabet: what an answer can be.
        prior: P(truth), shape (truths,); sums to 1. Truths need not be labels.
        answers: P(answer | truth) of a worker who answers, shape (truths, labels), averaged over kinds of workers;
            rows sum to 1.
        participation_rate: share of cells that are answered, in (0, 1].
        participation: "protected": a cell's input may be NULL; "public": only answered cells are reported.
        objective: what a channel is chosen by.

    Raises:
        SettingsError: a shape, a negative number, a sum that is not 1, or a rate outside (0, 1].
    """

    alphabet: Alphabet
    prior: NDArray[np.float64]
    answers: NDArray[np.float64]
    participation_rate: float = 1.0
    participation: Participation = "protected"
    objective: Objective = "information"

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", _distribution("prior", self.prior, 1))
        object.__setattr__(self, "answers", _distribution("worker model", self.answers, 2))
        if self.answers.shape != (len(self.prior), self.alphabet.size):
            raise SettingsError(
                f"the worker model must have shape ({len(self.prior)}, {self.alphabet.size}): truths, labels",
                value=self.answers.shape,
            )
        if not 0 < self.participation_rate <= 1:
            raise SettingsError("the participation rate must be in (0, 1]", value=self.participation_rate)

    @cached_property
    def inputs(self) -> NDArray[np.float64]:
        """P(input | truth) of a reported cell, shape (truths, inputs); the last input is NULL where protected."""
        if self.participation == "public":
            return self.answers
        null = np.full((len(self.prior), 1), 1 - self.participation_rate)
        return np.hstack((self.participation_rate * self.answers, null))

    @property
    def reported(self) -> float:
        """Share of cells that send a report."""
        return self.participation_rate if self.participation == "public" else 1.0

    def gains(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what each report symbol adds to the objective of a reported cell; homogeneous in the column.

        Args:
            columns: P(report | input), shape (inputs, reports), also of part of a channel or unnormalised.

        Returns:
            Shape (reports,). Their sum over a whole channel is the objective.
        """
        seen = self.inputs @ columns
        joint = self.prior[:, None] * seen
        if self.objective == "correct":
            return joint.max(axis=0)
        return _information(self.prior, seen)

    def score(self, table: NDArray[np.float64]) -> float:
        """Return the objective of a whole channel, shape (inputs, reports): larger is better, in nats or as a share.

        Cells that send nothing (participation public) say nothing: no nats, and the prior's best guess.
        """
        silent = (1 - self.reported) * float(self.prior.max()) if self.objective == "correct" else 0.0
        return self.reported * float(self.gains(table).sum()) + silent


def _information(prior: NDArray[np.float64], seen: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sum over truths of P(t) P(y|t) ln(P(y|t) / P(y)) for each y.

    Written as P(y) sum P(t) ((1 + d) ln(1 + d) - d) with P(y|t) = P(y) (1 + d): the terms are never negative, and small
    ones (d is of the order of epsilon) do not drown in rounding.
    """
    total = prior @ seen
    excess = np.divide(seen - total, total, out=np.zeros_like(seen), where=total > 0)
    log = np.log1p(excess, out=np.zeros_like(seen), where=excess > -1)
    return total * (prior @ ((1 + excess) * log - excess))


def _distribution(name: str, numbers: NDArray[np.float64], axes: int) -> NDArray[np.float64]:
    """Return a read-only copy whose last axis sums to 1."""
    table = np.array(numbers, dtype=float)
    if table.ndim != axes or not table.size:
        raise SettingsError(f"the {name} must be an array of {axes} axes", value=table.shape)
    sums = table.sum(axis=-1, keepdims=True)
    if not ((table >= 0).all() and (abs(sums - 1) <= SLACK).all()):
        raise SettingsError(
            f"the {name} must hold probabilities that sum to 1", value=(float(table.min()), float(sums.max()))
        )
    table /= sums
    table.flags.writeable = False
    return table
