"""Messages between workers and tasks by compiled loops; imported only where a table is large enough to be worth it."""

import numpy as np
from numpy.typing import NDArray

from crowdveil.data.reports import Block
from crowdveil.em.kernels.numba_loops import belief_propagation as loops

LOG_2 = float(np.log(2.0))


class NumbaWorkerLikelihood:
    """What reports have said of their workers so far: products, which never vanish, in place of sums of logarithms.

    Attributes:
        views: shares, and participation given sigma; indexed [worker, sigma].
        parts: P(symbol) by part, indexed [symbol, part, truth].
        mixing: how parts make up a class, indexed [part, class], padded.
        limits: least probability of a report, by how much one may speak against a kind of worker, and how many
            probabilities are multiplied before a power of two is taken out.
        product, power: product * 2^power, indexed [worker, class], padded.
        heard: how many reports of each worker are in its products, shape (workers,).
    """

    def __init__(
        self,
        views: tuple[NDArray[np.float64], NDArray[np.float64]],
        parts: NDArray[np.float64],
        mixing: NDArray[np.float64],
        limits: tuple[float, float, int],
    ) -> None:
        self.views, self.parts, self.limits, self.classes = views, parts, limits, len(mixing)
        self.mixing = _padded(mixing.T, loops.PARTS)
        self.product = np.ones((len(views[0]), self.mixing.shape[1]))
        self.power = np.zeros(self.product.shape, np.int64)
        self.heard = np.zeros(len(self.product), np.int64)

    def talk(self, part: Block, known: NDArray[np.bool_]) -> "NumbaMessages":
        """Return the talk about a few tasks; `known` says whose truth is, shape (tasks,)."""
        return NumbaMessages(part, known, self)

    def scores(self) -> NDArray[np.float64]:
        """Return log-likelihoods, indexed [worker, class]."""
        return _logarithm(self.product, self.power, self.classes)


class NumbaMessages:
    """Reports of a few tasks and what passes between them and their workers; methods as in the plain one.

    Attributes:
        reports: where each task's begin, shape (tasks + 1,); worker and symbol of each.
        known: whether a task's truth is, shape (tasks,).
        truths: how many there are.
        parts: P(symbol) by part, indexed [symbol, part, truth], padded.
        weights: of the parts in each report's message, indexed [report, part], padded.
    """

    def __init__(self, part: Block, known: NDArray[np.bool_], hearing: NumbaWorkerLikelihood) -> None:
        self.reports, self.known, self.hearing = (part.pointers, part.worker, part.value), known, hearing
        self.truths, self.parts = hearing.parts.shape[2], _padded(hearing.parts, loops.PARTS)
        self.weights = np.zeros((len(part.worker), self.parts.shape[1]))

    def keep(self, kept: NDArray[np.int64]) -> None:
        """Go on with some truths only."""
        self.truths, self.parts = len(kept), _padded(self.parts[:, :, kept], loops.PARTS)

    def first(self) -> NDArray[np.float64]:
        """Return the logarithms of what workers say of tasks before they hear of any, indexed [task, truth]."""
        return self.exchange(np.empty((0, self.truths)))

    def exchange(self, belief: NDArray[np.float64]) -> NDArray[np.float64]:
        """Tell workers what is believed of tasks, [task, truth]; return the logarithms of what they then say."""
        product = np.empty((len(self.known), self.parts.shape[2]))
        power = np.empty(product.shape, np.int64)
        loops.exchange(
            self.reports,
            *self.hearing.views,
            self.parts,
            _padded(belief, 1),
            self.known,
            self.weights,
            self.hearing.limits,
            product,
            power,
        )
        return _logarithm(product, power, self.truths)

    def teach(self, belief: NDArray[np.float64]) -> None:
        """Add what is believed of tasks, [task, truth], to what kinds of workers heard."""
        hearing = self.hearing
        loops.teach(
            self.reports,
            self.parts,
            _padded(belief, 1),
            self.known,
            self.weights,
            hearing.limits,
            hearing.mixing,
            hearing.product,
            hearing.power,
            hearing.heard,
        )


def _padded(table: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    """Return a table with zeros up to whole tiles of truths, and as many parts as are added up at once."""
    short = [(0, 0)] * (table.ndim - 2) + [(0, -table.shape[-2] % rows), (0, -table.shape[-1] % loops.TILE)]
    return np.ascontiguousarray(np.pad(table, short))


def _logarithm(product: NDArray[np.float64], power: NDArray[np.int64], columns: int) -> NDArray[np.float64]:
    return np.log(product[:, :columns]) + LOG_2 * power[:, :columns]
