"""What the kernels are asked and what they answer, compiled or not."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """Scores of labels, shared by all blocks of a step.

    Attributes:
        table: what a report adds to its task's scores, indexed [worker * symbols + symbol, label].
        first: scores before any report, indexed [task group, label].
    """

    table: NDArray[np.float64]
    first: NDArray[np.float64]


class TableStep(NamedTuple):
    """Posterior, [task, label]; its sums by table row, [row, label], and by group of tasks, [group, label]; and the
    log-likelihood, gold tasks counted with their known label. `moved` as in `VoteStep`."""

    posterior: NDArray[np.float64]
    by_row: NDArray[np.float64]
    by_truth: NDArray[np.float64]
    log_likelihood: float
    moved: float | None = None


class VoteStep(NamedTuple):
    """Posterior, [task, label]; what it gives to the labels that each worker sent, shape (workers,); and the sum of the
    logarithms of the tasks' normalisers (of a gold task: its label's score), 0 for an election.

    `moved` is the largest change of the posterior from the one that it was written over; None if it was over none."""

    posterior: NDArray[np.float64]
    agreement: NDArray[np.float64]
    log_normaliser: float
    moved: float | None = None


class MeanStep(NamedTuple):
    """Weighted means, shape (tasks,), and the sums of squared differences from them, shape (workers,); `moved` as in
    `VoteStep`."""

    truth: NDArray[np.float64]
    squares: NDArray[np.float64]
    moved: float | None = None


class CodedBlock(Protocol):
    """A block in the form its sums need, made once per fit.

    `gold` holds label codes with -1, or numbers with nan, where a truth is not known, shape (tasks,); gold tasks have
    certain posteriors. `group` is the group of each task, shape (tasks,). `before` is what an earlier step gave,
    posterior or means: a step may write over it.
    """

    @property
    def worker_counts(self) -> NDArray[np.int64]:
        """Reports of each worker, shape (workers,)."""
        ...

    def table_step(
        self,
        tables: ScoreTables,
        group: NDArray[np.int64],
        gold: NDArray[np.int64],
        before: NDArray[np.float64] | None = None,
    ) -> TableStep:
        """Soft-max the scores of each task and sum what follows."""
        ...

    def table_sums(self, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum a posterior, [task, label], by the rows of each task's reports; indexed [row, label]."""
        ...

    def squares(self, table: NDArray[np.float64], posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up, for each worker, the squared means of a report's row, [row, label], under its task's posterior."""
        ...

    def coin_step(
        self,
        weight: NDArray[np.float64],
        first: NDArray[np.float64],
        gold: NDArray[np.int64],
        before: NDArray[np.float64] | None = None,
    ) -> VoteStep:
        """Soft-max the votes, each of its worker's weight, that labels have beside their first score, (labels,)."""
        ...

    def election(
        self,
        weight: NDArray[np.float64],
        tie: float,
        labels: int,
        gold: NDArray[np.int64],
        before: NDArray[np.float64] | None = None,
    ) -> VoteStep:
        """Elect the label with most votes; labels that come within `tie` of it share the task."""
        ...

    def vote_sums(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up the weights of the workers who sent each symbol, indexed [task, symbol]."""
        ...

    def agreement(self, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up what a posterior, [task, symbol], gives to the symbols that each worker sent, shape (workers,)."""
        ...

    def mean_step(
        self,
        weight: NDArray[np.float64],
        rounding: float,
        gold: NDArray[np.float64],
        before: NDArray[np.float64] | None = None,
    ) -> MeanStep:
        """Average the numbers; a difference below the share `rounding` of a number is none. For numbers only."""
        ...

    def largest_change(self, new: NDArray[np.float64], old: NDArray[np.float64]) -> float:
        """Return the largest difference of two posteriors; nan, where nothing is known, has not moved."""
        ...
