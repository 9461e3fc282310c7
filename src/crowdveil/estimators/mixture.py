"""Workers of a few kinds, each with one confusion table: who may be of which kind, and how that shows in reports."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Mixture:
    """Kinds of workers and what is known of everybody's kind.

    Attributes:
        tables: P(answer | truth, answered) of each kind, indexed [kind, truth, label], rows sum to 1.
        expected: share of each kind among workers before anything is known, shape (kinds,), sums to 1.
        shares: the same as learned.
        responsibility: P(kind) of each worker, indexed [worker, kind], rows sum to 1.
    """

    tables: NDArray[np.float64]
    expected: NDArray[np.float64]
    shares: NDArray[np.float64]
    responsibility: NDArray[np.float64]

    def confusion(self) -> NDArray[np.float64]:
        """Return every worker's mean table, indexed [worker, truth, label]."""
        return np.tensordot(self.responsibility, self.tables, axes=1)

    def reports(
        self, everything: NDArray[np.float64], participation: NDArray[np.float64]
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Yield for each kind P(report | truth) of its answers and of every worker who were of it.

        Args:
            everything: P(report | input), indexed [input, report]; NULL is the last input where it is protected.
            participation: shape (workers,).

        Yields:
            Indexed [truth, report], and [worker, truth, report]: the first times participation, and NULL's reports.
        """
        labels = self.tables.shape[2]
        answering = participation[:, None, None]
        silent = (1 - answering) * everything[labels] if len(everything) > labels else np.zeros(1)
        for table in self.tables:
            answered = table @ everything[:labels]
            yield answered, answering * answered + silent

    def log_reports(self, everything: NDArray[np.float64], participation: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log P(report | truth), averaged over each worker's kinds, indexed [worker, truth, report]."""
        logs = np.zeros((len(participation), self.tables.shape[1], everything.shape[1]))
        for kind, (_, seen) in enumerate(self.reports(everything, participation)):
            logs += self.responsibility[:, kind, None, None] * np.log(np.maximum(seen, TINY))
        return logs

    def divergence(self) -> float:
        """Return the sum over workers of the Kullback-Leibler divergence of their kinds from the learned shares."""
        own = self.responsibility
        return float((own * (np.log(np.maximum(own, TINY)) - np.log(self.shares))).sum())
