"""Belief propagation by loops that numba compiles (`numba_loops.belief_propagation`); imported for large data only."""

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.reports import Block
from crowdveil.em.kernels.numba_loops import belief_propagation as loops

LOG_2 = float(np.log(2.0))


class NumbaWorkerLikelihood:
    """Accumulated likelihoods of workers' error classes, kept as rescaled products instead of sums of logarithms.

    Attributes:
        views: posterior of sigma, and participation given sigma; indexed [worker, sigma].
        components: P(symbol | component, truth), indexed [symbol, component, truth].
        mixing: weight of each component in an error class, indexed [component, class], padded.
        limits: as in `update_messages`.
        product, power: likelihood = product * 2^power, indexed [worker, class], padded.
        counts: factors in each worker's products, shape (workers,).
    """

    def __init__(
        self,
        views: tuple[NDArray[np.float64], NDArray[np.float64]],
        components: NDArray[np.float64],
        mixing: NDArray[np.float64],
        limits: tuple[float, float, int],
    ) -> None:
        self.views, self.components, self.limits, self.classes = views, components, limits, len(mixing)
        self.mixing = _padded_to_multiples(mixing.T, loops.UNROLLED_COMPONENTS)
        self.product = np.ones((len(views[0]), self.mixing.shape[1]))
        self.power = np.zeros(self.product.shape, np.int64)
        self.counts = np.zeros(len(self.product), np.int64)

    def messages_of_task_chunk(self, part: Block, known: NDArray[np.bool_]) -> "NumbaMessages":
        """Return the messages of a few tasks; `known` marks gold tasks, shape (tasks,)."""
        return NumbaMessages(part, known, self)

    def scores(self) -> NDArray[np.float64]:
        """Return log-likelihoods, indexed [worker, class]."""
        return _log_of_product_and_power(self.product, self.power, self.classes)


class NumbaMessages:
    """Messages between a few tasks and their workers.

    Attributes:
        reports: pointers to each task's reports, shape (tasks + 1,); worker and symbol of each report.
        known: whether a task's truth is gold, shape (tasks,).
        truths: number of truths on the grid.
        components: P(symbol | component, truth), indexed [symbol, component, truth], padded.
        weights: of the components in each report's message, indexed [report, component], padded.
    """

    def __init__(self, part: Block, known: NDArray[np.bool_], workers: NumbaWorkerLikelihood) -> None:
        self.reports, self.known, self.workers = (part.pointers, part.worker, part.value), known, workers
        self.truths = workers.components.shape[2]
        self.components = _padded_to_multiples(workers.components, loops.UNROLLED_COMPONENTS)
        self.weights = np.zeros((len(part.worker), self.components.shape[1]))

    def restrict_grid(self, kept: NDArray[np.int64]) -> None:
        """Restrict the grid to the truths with indices `kept`."""
        self.truths = len(kept)
        self.components = _padded_to_multiples(self.components[:, :, kept], loops.UNROLLED_COMPONENTS)

    def first_log_product(self) -> NDArray[np.float64]:
        """Return the logarithm of the first messages to tasks, indexed [task, truth]."""
        return self.pass_messages(np.empty((0, self.truths)))

    def pass_messages(self, belief: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-product of messages to each task, given its posterior in the last pass; both [task, truth]."""
        product = np.empty((len(self.known), self.components.shape[2]))
        power = np.empty(product.shape, np.int64)
        loops.update_messages(
            self.reports,
            *self.workers.views,
            self.components,
            _padded_to_multiples(belief, 1),
            self.known,
            self.weights,
            self.workers.limits,
            product,
            power,
        )
        return _log_of_product_and_power(product, power, self.truths)

    def update_workers(self, belief: NDArray[np.float64]) -> None:
        """Multiply the cavity likelihoods of all reports into the workers' products; `belief` is [task, truth]."""
        workers = self.workers
        loops.multiply_cavity_likelihoods(
            self.reports,
            self.components,
            _padded_to_multiples(belief, 1),
            self.known,
            self.weights,
            workers.limits,
            workers.mixing,
            workers.product,
            workers.power,
            workers.counts,
        )


def _padded_to_multiples(table: NDArray[np.float64], rows_multiple: int) -> NDArray[np.float64]:
    """Return a table padded with zeros to multiples of `rows_multiple` rows and of a tile of truths."""
    short = [(0, 0)] * (table.ndim - 2) + [
        (0, -table.shape[-2] % rows_multiple),
        (0, -table.shape[-1] % loops.TILE_TRUTHS),
    ]
    return np.ascontiguousarray(np.pad(table, short))


def _log_of_product_and_power(
    product: NDArray[np.float64], power: NDArray[np.int64], columns: int
) -> NDArray[np.float64]:
    return np.log(product[:, :columns]) + LOG_2 * power[:, :columns]
