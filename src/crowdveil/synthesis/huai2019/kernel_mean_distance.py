"""Distances between claims and densities in the kernel's Hilbert space, for many tasks of equal degree at once.

The squared distance of a claim's bump from the weighted density of its task is, with the similarities k of the kernel,
1 - 2 sum_t w_t k(s, t) + sum_tu w_t w_u k(t, u), in units of the bump's own squared norm. Huai et al. call the loss
normalized without saying how; without it, tasks with narrow kernels would drown all others.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.huai2019.kernel_density import Kernel

ENTRIES = 1 << 21
"""Similarities held in memory at once: 16 MiB; a task with more is worked on row by row."""
ROUNDING = 1e-12
"""Squared distances up to it are 0: claims that are all equal must not be told apart by their last digits."""
FAR = 1e100
"""Bandwidths from the median at which a claim is as far as can be: its square is still a number."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Tasks with the same number of claims, side by side.

    Attributes:
        tasks: task codes, shape (stacked,).
        rows: positions of their claims, shape (stacked, degree).
        z: the claims in bandwidths, counted from the task's median so that an absurd claim costs the others no digits;
            shape (stacked, degree).
        kernel: whose Hilbert space.
    """

    tasks: NDArray[np.int64]
    rows: NDArray[np.int64]
    z: NDArray[np.float64]
    kernel: Kernel

    @cached_property
    def _similarities(self) -> NDArray[np.float64]:
        return self.kernel.similarity(self.z[:, :, None] - self.z[:, None, :])

    def means(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sum_t weight_t k(s, t) for every claim s; shapes (stacked, degree)."""
        degree = self.z.shape[1]
        if self.z.size * degree <= ENTRIES:
            return np.matmul(self._similarities, weight[:, :, None])[:, :, 0]
        found = np.empty_like(self.z)
        width = max(1, ENTRIES // degree)
        for first in range(0, degree, width):
            part = slice(first, first + width)
            similar = self.kernel.similarity(self.z[:, part, None] - self.z[:, None, :])
            found[:, part] = np.matmul(similar, weight[:, :, None])[:, :, 0]
        return found

    def squared_distances(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the squared distance of every claim's bump from the density with these weights.

        Args:
            weight: sums to 1 over the last axis, shape (stacked, degree).

        Returns:
            Non-negative, shape (stacked, degree); what may be rounding is 0.
        """
        means = self.means(weight)
        norm = (weight * means).sum(axis=1, keepdims=True)
        squared = 1 - 2 * means + norm
        return np.where(squared > ROUNDING, squared, 0)


def stacks(claims: Claims, bandwidth: NDArray[np.float64], kernel: Kernel, *, least_degree: int = 1) -> Iterator[Stack]:
    """Yield every task with at least `least_degree` claims once, in stacks of equal degree of bounded size.

    The work on a task is quadratic in its claims, and linear in the number of tasks.
    """
    degree = claims.per_task
    order = np.argsort(degree, kind="stable")
    order = order[np.searchsorted(degree[order], max(least_degree, 1)) :]
    first = 0
    while first < len(order):
        n = int(degree[order[first]])
        last = int(np.searchsorted(degree[order], n, side="right"))
        stop = min(last, first + max(1, ENTRIES // (n * n)))
        tasks = order[first:stop]
        rows = claims.pointers[tasks][:, None] + np.arange(n)
        value = claims.value[rows]
        z = (value - np.median(value, axis=1, keepdims=True)) / bandwidth[tasks][:, None]
        yield Stack(tasks, rows, np.clip(z, -FAR, FAR), kernel)
        first = stop
