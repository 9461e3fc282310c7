"""Learned parameters of a fit, from which another one can start."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.identifiers import Identifiers


class StateField(NamedTuple):
    """Declaration of one array of a `FitState`.

    Attributes:
        values: range: "distribution" (the last axis sums to 1), "probability" or "real".
        by_worker: whether the first axis is workers.
    """

    values: Literal["distribution", "probability", "real"]
    by_worker: bool = True


@dataclass(frozen=True, eq=False)
class FitState:
    """Learned parameters that another fit of the same method can start from.

    Attributes:
        method: name of the estimator.
        workers: names, in the order of the rows of `by_worker`.
        by_worker: arrays whose first axis is workers, by name; empty if nothing was learned.
        shared: other arrays, by name.
    """

    method: str
    workers: Identifiers
    by_worker: Mapping[str, NDArray[np.float64]]
    shared: Mapping[str, NDArray[np.float64]]

    @classmethod
    def of_arrays(
        cls,
        method: str,
        fields: Mapping[str, StateField],
        workers: Identifiers,
        arrays: Mapping[str, NDArray[np.float64]],
    ) -> Self:
        """Return the state with arrays by name, divided as their fields declare."""
        by_worker = {name: array for name, array in arrays.items() if fields[name].by_worker}
        return cls(method, workers, by_worker, {name: arrays[name] for name in arrays if name not in by_worker})

    def aligned_to_workers(self, workers: Identifiers) -> Self:
        """Return the state with rows in the order of other worker names, nan for workers who are not in it."""
        row = {str(name): place for place, name in enumerate(self.workers.tolist())}
        found = np.array([row.get(str(name), -1) for name in workers.tolist()], dtype=np.int64)
        arrays = {name: np.array(array[found], dtype=float) for name, array in self.by_worker.items()}
        for array in arrays.values():
            array[found < 0] = np.nan
        return replace(self, workers=workers, by_worker=arrays)

    def worker_rows_or_default(self, name: str, default: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return an array by worker, with the rows of `default` for workers who are not in the state.

        Raises:
            LookupError: there is no such array.
            ValueError: it has another shape.
        """
        if self.by_worker[name].shape != default.shape:
            raise ValueError(f"{name} has the shape {self.by_worker[name].shape}")
        return np.where(np.isnan(self.by_worker[name]), default, self.by_worker[name])
