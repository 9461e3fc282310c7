"""Where a task's claims gather, found privately: the cell of a grid with most claims around it, in integers.

A cell's score sums, over claims, a triangle that is highest at the cell and 0 one spread away. Whatever happens to one
claim, no score changes by more than the top of the triangle, and the exponential mechanism of `window` applies.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crowdveil.randomness import Source
from crowdveil.synthesis.discrete_noise import Integers, two_sided_geometric, uniform_below
from crowdveil.synthesis.private.noisy_counts import Positions
from crowdveil.synthesis.private.range_selection import Windows, decayed

FINE = 8
"""Cells per spread, and the top of the triangle."""
CELLS_AT_ONCE = 1 << 21
COVERED = 0.9
"""The spread is the finest width at which the fullest windows hold this share of all claims; picked, as `shared.REACH`,
on weather_temperature and population_tf (docs/explanation/synthesis/utility.md)."""


def captured(claims: Positions, windows: Windows) -> Integers:
    """Return, for every level of windows, the claims in the fullest window of each task, added up; shape (levels + 1,).

    A claim that is replaced, comes or goes changes each of these numbers by at most 1.
    """
    found = np.zeros(windows.levels + 1, dtype=np.int64)
    rows = max(1, CELLS_AT_ONCE // windows.steps)
    for part in _parts(claims, rows):
        step = np.minimum((part.place * windows.steps).astype(np.int64), windows.steps - 1)
        inside = windows.weight_inside(step, part.task, part.weight, part.tasks)
        starts = np.flatnonzero(np.diff(windows.level, prepend=-1))
        found += np.maximum.reduceat(inside, starts, axis=1).sum(axis=0)
    return found


def kinds(nats: NDArray[np.float64], finest: int) -> tuple[Integers, Integers]:
    """Return kind and level of every task: tasks that can be located equally well share a spread.

    A score that n claims raise above 0 counts for n epsilon / 2 nats, enough for as many places: 2**level.

    Args:
        nats: number of claims times what a place may spend, both public, shape (tasks,).
        finest: level of the common spread.
    """
    kind = np.rint(2.0 * np.log2(nats)).astype(np.int64)
    affordable = np.floor(2.0 ** (kind / 2.0) / (2.0 * math.log(2.0))).astype(np.int64)
    return kind - (kind.min() if len(kind) else 0), np.clip(affordable, 0, finest)


def finest_level(claims: Positions, epsilon: Fraction, source: Source) -> int:
    """Return the level of the common spread, epsilon-private: every level's number moves by 1 at most for one claim."""
    windows = Windows()
    exact = captured(claims, windows)[1:]
    noise = two_sided_geometric(len(exact) / epsilon, len(exact), source)
    enough = exact + noise >= COVERED * claims.counted.sum()
    return int(np.flatnonzero(enough).max(initial=-1)) + 1


def locate(claims: Positions, level: int, epsilon: float, source: Source) -> NDArray[np.float64]:
    """Choose a place in the unit interval for every task, epsilon-private for one claim; shape (tasks,).

    Args:
        claims: of the tasks; claims of weight 0 do not count, others count once.
        level: the spread is 2**-level, cells are a FINE-th of it.
        epsilon: above `window.ROUNDING`.
        source: of randomness.
    """
    cells = FINE << level
    chosen = np.empty(claims.tasks, dtype=np.int64)
    rows = max(1, CELLS_AT_ONCE // cells)
    for number, part in enumerate(_parts(claims, rows)):
        weight = decayed(scores(part, cells), epsilon=epsilon, largest=FINE)
        below = np.cumsum(weight, axis=1)
        drawn = uniform_below(below[:, -1], source)
        chosen[number * rows : number * rows + part.tasks] = (below <= drawn[:, None]).sum(axis=1)
    return (chosen + 0.5) / cells


def scores(claims: Positions, cells: int) -> Integers:
    """Return the sum of triangles at every cell, shape (tasks, cells): FINE in a claim's cell, 1 less per cell away."""
    cell = np.minimum((claims.place * cells).astype(np.int64), cells - 1)
    used = claims.weight > 0
    flat = np.bincount((claims.task * cells + cell)[used], minlength=claims.tasks * cells)
    padded = np.zeros((claims.tasks, cells + 2 * FINE), dtype=np.int64)
    padded[:, FINE:-FINE] = flat.reshape(claims.tasks, cells)
    # A triangle is a box moved over a box; each box is a difference of sums.
    for _ in range(2):
        total = np.cumsum(padded, axis=1)
        padded = total
        padded[:, FINE:] -= total[:, :-FINE].copy()
    return padded[:, 2 * FINE - 1 : 2 * FINE - 1 + cells]


def _parts(claims: Positions, rows: int) -> list[Positions]:
    """Return the claims of successive ranges of tasks; claims come in the order of their tasks."""
    firsts = np.arange(0, claims.tasks, rows)
    ends = np.searchsorted(claims.task, np.append(firsts, claims.tasks))
    return [
        Positions(
            min(rows, claims.tasks - int(first)),
            claims.task[start:stop] - first,
            claims.place[start:stop],
            claims.weight[start:stop],
        )
        for first, start, stop in zip(firsts, ends[:-1], ends[1:], strict=True)
    ]
