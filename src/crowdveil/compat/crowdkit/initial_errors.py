"""Error matrices known before the data, for the first M-step of Dawid-Skene."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdveil.compat.crowdkit.answer_table import AnswerTable, load_pandas
from crowdveil.errors import SettingsError

if TYPE_CHECKING:
    import pandas as pd

ROWS = ["worker", "label"]


def add_initial_errors(
    counts: NDArray[np.float64], table: AnswerTable, initial: "pd.DataFrame | None", strategy: str | None
) -> NDArray[np.float64]:
    """Return expected counts, [worker, answer, truth], replaced by or added to given ones; nan where there is neither.

    Raises:
        SettingsError: unknown strategy, other index names, or "assign" with a worker or label that is missing or with
            probabilities that do not sum to 1.
    """
    if initial is None or strategy is None:
        return counts
    if strategy not in ("assign", "addition"):
        raise SettingsError('initial_error_strategy must be "assign" or "addition"', value=strategy)
    if list(initial.index.names) != ROWS:
        raise SettingsError(
            "the index of initial_error must have the names worker and label", value=initial.index.names
        )
    rows = load_pandas().MultiIndex.from_product([table.workers, table.labels], names=ROWS)
    given = initial.reindex(index=rows, columns=table.labels).to_numpy(dtype=float).reshape(counts.shape)
    if strategy == "addition":
        nothing = np.isnan(counts) & np.isnan(given).all(axis=2, keepdims=True)
        return np.where(nothing, np.nan, np.nan_to_num(counts) + np.nan_to_num(given))
    missing = np.isnan(given) & ~np.isnan(counts)
    if missing.any():
        workers = int(missing.any(axis=(1, 2)).sum())
        raise SettingsError(
            "initial_error must have every answer of every worker, found workers without", value=workers
        )
    sums = np.nansum(given, axis=1)
    if np.nanmax(given) <= 1 and not np.allclose(sums, 1):
        raise SettingsError(
            "The sum of each worker's error matrix in initial_error should be 1.0 for every truth",
            value=float(sums.min()),
        )
    return given
