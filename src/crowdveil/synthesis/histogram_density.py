"""Densities that may be published: piecewise constant, one per task, and synthetic claims drawn from them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis.discrete_noise import unit_interval

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Densities:
    """One density per task: equal cells inside a window, one cell on either side of it.

    Attributes:
        task: codes of the tasks that have a density, ascending, shape (tasks,).
        low, high: bounds, shape (tasks,).
        window_low, window_high: the finer part, within the bounds, shape (tasks,).
        mass: probability of every cell, shape (tasks, cells + 2): below the window, the cells, above; rows sum to one.
    """

    task: NDArray[np.int64]
    low: Floats
    high: Floats
    window_low: Floats
    window_high: Floats
    mass: Floats

    @property
    def cells(self) -> int:
        """Equal cells inside a window."""
        return self.mass.shape[1] - 2

    def edges(self, rows: slice = slice(None)) -> Floats:
        """Return the ends of all cells, ascending, shape (tasks, cells + 3); outer cells may have width 0."""
        low, high = self.window_low[rows, None], self.window_high[rows, None]
        inner = low + (high - low) * (np.arange(self.cells + 1) / self.cells)
        inner[:, -1:] = high
        return np.concatenate((self.low[rows, None], inner, self.high[rows, None]), axis=1)

    def at(self, row: int, points: Floats) -> Floats:
        """Return the density of one row at some points; 0 outside the bounds."""
        edges = self.edges(slice(row, row + 1))[0]
        width = np.diff(edges)
        height = np.divide(self.mass[row], width, out=np.zeros(len(width)), where=width > 0)
        cell = np.clip(np.searchsorted(edges, points, side="right") - 1, 0, len(width) - 1)
        return np.where((points >= edges[0]) & (points <= edges[-1]), height[cell], 0.0)

    def sample(self, records: int, source: Source) -> Floats:
        """Draw `records` numbers per task, spread evenly over its density and then shuffled; shape (tasks, records).

        Every number is distributed as the density; one falls into each of `records` parts of equal probability, which
        describes the density better than independent draws. Nothing here costs privacy.
        """
        if records < 1:
            raise SettingsError("at least one record per task is drawn", value=records)
        found = np.empty((len(self.task), records))
        rows_at_once = max(1, (1 << 22) // (records + self.mass.shape[1]))
        for first in range(0, len(found), rows_at_once):
            rows = slice(first, first + rows_at_once)
            found[rows] = self._sampled(rows, records, source)
        return found

    def _sampled(self, rows: slice, records: int, source: Source) -> Floats:
        mass, edges = self.mass[rows], self.edges(rows)
        tasks = len(mass)
        below = np.concatenate((np.zeros((tasks, 1)), np.cumsum(mass, axis=1)), axis=1)
        below /= below[:, -1:]
        u = (np.arange(records) + unit_interval(tasks * records, source).reshape(tasks, records)) / records
        # Rows are shifted by their number, so that one search serves all of them.
        shift = np.arange(tasks)[:, None] * 2.0
        cell = np.searchsorted((below[:, 1:] + shift).ravel(), (u + shift).ravel(), side="right").reshape(u.shape)
        cell = np.minimum(cell - np.arange(tasks)[:, None] * mass.shape[1], mass.shape[1] - 1)
        start, width = _picked(edges[:, :-1], cell), _picked(np.diff(edges, axis=1), cell)
        share = _picked(mass / mass.sum(axis=1, keepdims=True), cell)
        part = np.divide(u - _picked(below[:, :-1], cell), share, out=np.zeros_like(u), where=share > 0)
        drawn = np.clip(start + width * np.clip(part, 0.0, 1.0), edges[:, :1], edges[:, -1:])
        order = np.argsort(source.words(u.size).reshape(u.shape), axis=1)
        return _picked(drawn, order)


def _picked(table: Floats, column: NDArray[np.integer]) -> Floats:
    return np.take_along_axis(table, column, axis=1)
