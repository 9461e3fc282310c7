"""What a campaign asks and what is publicly known of it: the measure by which channels are chosen.

Nothing here sees an answer: prior, participation rate and worker model are public, so a channel chosen by them costs no
privacy.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.guarantee import Participation
from crowdveil.errors import SettingsError

Objective = Literal["information", "correct"]
"""`information`: mutual information of truth and report, in nats per cell. `correct`: probability that the best guess
from one report is right, 1 - the Bayes error."""

SLACK = 1e-6
"""What probabilities read from text may miss one by."""

COLUMNS_AT_ONCE = 1024
"""Report symbols measured together, so that many symbols of many truths stay small in memory."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DesignObjective:
    """A truth with a public prior, seen through workers of a public model who answer some of the tasks.

    Workers may be of several kinds. A worker's kind shows over many cells, so a report is measured as if its kind were
    known: the objective is the average over kinds. One table that is already an average stands for a single kind.

    Attributes:
        alphabet: what an answer can be.
        prior: P(truth), shape (truths,); sums to 1. Truths need not be labels.
        answers: P(answer | truth) of a worker who answers, shape (kinds, truths, labels), or (truths, labels) for one
            kind; sums to 1 over labels.
        shares: share of each kind of worker; empty for equal shares.
        participation_rate: share of cells that are answered, in (0, 1].
        participation: "protected": a cell's input may be NULL; "public": only answered cells are reported.
        objective: what a channel is chosen by.

    Raises:
        SettingsError: a shape, a negative number, a sum that is not 1, or a rate outside (0, 1].
    """

    alphabet: Alphabet
    prior: NDArray[np.float64]
    answers: NDArray[np.float64]
    shares: tuple[float, ...] = ()
    participation_rate: float = 1.0
    participation: Participation = "protected"
    objective: Objective = "information"

    def __post_init__(self) -> None:
        prior = _distribution("prior", self.prior, 1)
        answers = _distribution("worker model", np.array(self.answers, ndmin=3), 3)
        if answers.shape[1:] != (len(prior), self.alphabet.size):
            raise SettingsError(
                f"the worker model must have shape ({len(prior)}, {self.alphabet.size}): truths, labels",
                value=answers.shape,
            )
        if self.shares and len(self.shares) != len(answers):
            raise SettingsError(f"there must be one share for each of {len(answers)} kinds", value=self.shares)
        if not 0 < self.participation_rate <= 1:
            raise SettingsError("the participation rate must be in (0, 1]", value=self.participation_rate)
        if self.objective not in ("information", "correct"):
            raise SettingsError("the objective must be 'information' or 'correct'", value=self.objective)
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "answers", answers)
        object.__setattr__(self, "shares", tuple(_distribution("shares", self._or_equal(len(answers)), 1).tolist()))

    def _or_equal(self, kinds: int) -> NDArray[np.float64]:
        return np.array(self.shares) if self.shares else np.full(kinds, 1 / kinds)

    @cached_property
    def inputs(self) -> NDArray[np.float64]:
        """P(input | truth), shape (kinds, truths, inputs), of a reported cell; NULL is the last input if protected."""
        if self.participation == "public":
            return self.answers
        null = np.full((*self.answers.shape[:2], 1), 1 - self.participation_rate)
        return np.concatenate((self.participation_rate * self.answers, null), axis=2)

    @property
    def size(self) -> int:
        """Number of inputs: the labels, and NULL where protected."""
        return self.inputs.shape[2]

    @cached_property
    def expected_answers(self) -> NDArray[np.float64]:
        """P(answer), shape (labels,): how often each label is expected among answers."""
        return np.array(self.shares) @ (self.prior @ self.answers)

    def gains(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what each report symbol adds to the objective of a reported cell; homogeneous in the column.

        Args:
            columns: P(report | input), shape (inputs, reports), also of part of a channel or unnormalised.

        Returns:
            Shape (reports,). Their sum over a whole channel is the objective.
        """
        measure = _information if self.objective == "information" else _correct
        gains = np.zeros(columns.shape[1])
        for first in range(0, len(gains), COLUMNS_AT_ONCE):
            part = slice(first, first + COLUMNS_AT_ONCE)
            for share, inputs in zip(self.shares, self.inputs, strict=True):
                gains[part] += share * measure(self.prior, inputs @ columns[:, part])
        return gains

    def score(self, table: NDArray[np.float64]) -> float:
        """Return the objective of a whole channel, shape (inputs, reports): larger is better, in nats or as a share.

        Cells that send nothing (participation public) say nothing: no nats, and the prior's best guess.
        """
        reported = float(self.gains(table).sum())
        if self.participation == "protected":
            return reported
        silent = float(self.prior.max()) if self.objective == "correct" else 0.0
        return self.participation_rate * reported + (1 - self.participation_rate) * silent


def _correct(prior: NDArray[np.float64], seen: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return max over truths of P(t) P(y|t) for each y: the probability of y and a right guess from it."""
    return (prior[:, None] * seen).max(axis=0)


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
        raise SettingsError(f"the {name} must be an array of {axes} axes, not empty", value=table.shape)
    sums = table.sum(axis=-1, keepdims=True)
    if not ((table >= 0).all() and (abs(sums - 1) <= SLACK).all()):
        raise SettingsError(
            f"{name}: probabilities must be at least 0 and sum to 1", value=(float(table.min()), float(sums.max()))
        )
    table /= sums
    table.flags.writeable = False
    return table
