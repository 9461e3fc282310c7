"""Message passing of Karger, Oh and Shah (2014) with the interface and the random start of crowd-kit; two labels."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.compat.crowdkit.answer_table import COLUMNS, load_pandas, read_answers
from crowdveil.errors import SettingsError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(eq=False)
class KOS:
    """Messages between tasks and workers, from normal ones with mean 1; rescaled in each round.

    Attributes:
        n_iter: number of rounds.
        random_state: seed of the first messages, one per row of the frame.
        labels_: label by task.
    """

    n_iter: int = 100
    random_state: int = 0
    labels_: "pd.Series" = field(init=False, repr=False)

    def fit(self, data: "pd.DataFrame") -> Self:
        """Fit to answers (columns task, worker, label).

        Raises:
            KeyError: a column is missing.
            ReportsError: a value is missing.
            SettingsError: there are not exactly two labels.
        """
        frame = data[COLUMNS]
        if not len(frame):
            self.labels_ = load_pandas().Series([], dtype="O", name="agg_label")
            return self
        table = read_answers(frame)
        if len(table.labels) != 2:
            raise SettingsError("KOS needs exactly two labels", value=len(table.labels))
        sign = np.where(table.label == 0, 1.0, -1.0)
        trust = np.random.RandomState(self.random_state).normal(1, 1, len(table))
        for _ in range(self.n_iter):
            trust = others(table.worker, sign, others(table.task, sign, trust))
        total = np.bincount(table.task, sign * trust, len(table.tasks))
        self.labels_ = table.label_series(np.stack((total, -total), axis=1))
        return self

    def fit_predict(self, data: "pd.DataFrame") -> "pd.Series":
        """Fit and return `labels_`; errors as `fit`."""
        return self.fit(data).labels_


def others(group: NDArray[np.int32], sign: NDArray[np.float64], message: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each answer's sum of signed messages over the other answers of its group, at most 1 in size."""
    signed = sign * message
    result = np.bincount(group, signed)[group] - signed
    largest = np.abs(result).max()
    return np.asarray(result / largest if largest > 0 else result)
