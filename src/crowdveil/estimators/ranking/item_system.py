"""Linear systems of item scores: a weighted graph Laplacian of the compared pairs, plus the precision of the prior."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DENSE = 400
"""Items up to which systems are solved by a Cholesky factor; larger ones by conjugate gradients."""
NOISE_AT_ONCE = 20
"""Draws of the noise of all pairs that are held at once."""
TOLERANCE = 1e-10
"""Relative residual at which conjugate gradients stop."""


def weighted_counts(codes: NDArray[np.integer], values: Floats, count: int) -> Floats:
    """Return the sum of the values of each code, shape (count,)."""
    found: Floats = np.bincount(codes, values, count).astype(np.float64, copy=False)
    return found


@dataclass(frozen=True, eq=False)
class ItemGraph:
    """Pairs of items that are compared.

    Attributes:
        left, right: codes of the two items of each row.
        items: number of items.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    items: int

    @cached_property
    def _distinct(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Distinct unordered pairs as lower * items + higher, and the position of each row's pair among them."""
        low, high = np.minimum(self.left, self.right), np.maximum(self.left, self.right)
        return np.unique(low.astype(np.int64) * self.items + high, return_inverse=True)

    @cached_property
    def lower(self) -> NDArray[np.int64]:
        """Lower item of each distinct pair."""
        return self._distinct[0] // self.items

    @cached_property
    def higher(self) -> NDArray[np.int64]:
        """Higher item of each distinct pair."""
        return self._distinct[0] % self.items

    @cached_property
    def _pattern(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """Row pointers and columns of the symmetric matrix of pairs, and the pair of each of its entries."""
        rows, columns = np.concatenate([self.lower, self.higher]), np.concatenate([self.higher, self.lower])
        order = np.argsort(rows * self.items + columns)
        pointers = np.searchsorted(rows[order], np.arange(self.items + 1)).astype(np.int32)
        return pointers, columns[order].astype(np.int32), order % max(1, len(self.lower))

    @cached_property
    def incidence(self) -> Any:
        """Sparse matrix of the distinct pairs: 1 at the lower item and -1 at the higher, shape (items, pairs)."""
        from scipy.sparse import csr_array

        pointers, columns, pair = self._pattern
        rows = np.repeat(np.arange(self.items), np.diff(pointers))
        signs = np.where(rows < columns, 1, -1).astype(np.float32)
        return csr_array((signs, pair.astype(np.int32), pointers), shape=(self.items, len(self.lower)))

    def pair_sums(self, values: Floats) -> Floats:
        """Return the sum of the values of the rows of each distinct pair."""
        return weighted_counts(self._distinct[1], values, len(self.lower))

    def difference_sums(self, values: Floats) -> Floats:
        """Return the sum over rows of value * (e_left - e_right), shape (items,)."""
        return weighted_counts(self.left, values, self.items) - weighted_counts(self.right, values, self.items)

    def system(self, information: Floats, precision: float) -> "ItemSystem":
        """Return Q = sum of information * (e_left - e_right)(e_left - e_right)' + precision * I."""
        pairs = self.pair_sums(information)
        diagonal = weighted_counts(self.lower, pairs, self.items) + weighted_counts(self.higher, pairs, self.items)
        return ItemSystem(self, pairs, diagonal + precision)


@dataclass(frozen=True, eq=False)
class ItemSystem:
    """Symmetric positive definite matrix Q of item scores: minus `pairs` off the diagonal, and `diagonal`."""

    graph: ItemGraph
    pairs: Floats
    diagonal: Floats

    @cached_property
    def dense(self) -> Floats:
        """The matrix, shape (items, items)."""
        full = np.diag(self.diagonal)
        full[self.graph.lower, self.graph.higher] = full[self.graph.higher, self.graph.lower] = -self.pairs
        return full

    @cached_property
    def _factor(self) -> Any:
        from scipy.linalg import cho_factor

        return cho_factor(self.dense, check_finite=False)

    @cached_property
    def _sparse(self) -> Any:
        from scipy.sparse import csr_array

        pointers, columns, pair = self.graph._pattern
        return csr_array((-self.pairs[pair], columns, pointers), shape=(len(self.diagonal),) * 2)

    def pair_noise(self, random: np.random.Generator, draws: int) -> Floats:
        """Return draws with mean 0 and covariance Q without the prior, shape (items, draws).

        The noise of each pair is one of 256 quantiles of the normal distribution, which takes a tenth of the time.
        """
        from scipy.special import ndtri

        quantiles = ndtri((np.arange(256) + 0.5) / 256)
        quantiles = (quantiles / quantiles.std()).astype(np.float32)
        root = np.sqrt(self.pairs).astype(np.float32)[:, None]
        found = np.empty((len(self.diagonal), draws))
        for first in range(0, draws, NOISE_AT_ONCE):
            columns = slice(first, min(first + NOISE_AT_ONCE, draws))
            normal = quantiles[random.integers(0, 256, (len(root), columns.stop - first), dtype=np.uint8)]
            normal *= root
            found[:, columns] = self.graph.incidence @ normal
        return found

    def solve(self, right_side: Floats, tolerance: float = TOLERANCE) -> Floats:
        """Return Q^-1 times a vector, or times each column of a matrix; `tolerance` is that of large systems."""
        if len(self.diagonal) > DENSE:
            return self._conjugate_gradients(right_side, tolerance)
        from scipy.linalg import cho_solve

        found: Floats = cho_solve(self._factor, right_side, check_finite=False)
        return found

    def variances(self) -> Floats:
        """Return the diagonal of Q^-1; of large systems the inverse of the diagonal, which is a lower bound."""
        if len(self.diagonal) > DENSE:
            return 1 / self.diagonal
        return np.diag(self.solve(np.eye(len(self.diagonal)))).copy()

    def _conjugate_gradients(self, right_side: Floats, tolerance: float) -> Floats:
        """Return the solution by conjugate gradients, preconditioned by the diagonal; columns are solved together."""
        diagonal = self.diagonal if right_side.ndim == 1 else self.diagonal[:, None]
        solution, residual = np.zeros_like(right_side), right_side.copy()
        direction = residual / diagonal
        size = first = (residual * direction).sum(axis=0)
        for _ in range(10 * len(self.diagonal)):
            if (size <= tolerance**2 * first).all():
                break
            image = self._sparse @ direction + diagonal * direction
            step = size / np.maximum((direction * image).sum(axis=0), np.finfo(float).tiny)
            solution += step * direction
            residual -= step * image
            scaled = residual / diagonal
            size, before = (residual * scaled).sum(axis=0), size
            direction = scaled + size / np.maximum(before, np.finfo(float).tiny) * direction
        return solution
