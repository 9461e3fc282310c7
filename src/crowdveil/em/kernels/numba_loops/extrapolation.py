"""Compiled loops of accelerated EM over the coordinates of three steps; all arrays are flat."""

from typing import Any

from crowdveil.em.kernels.jit import compile_with_numba
from crowdveil.em.kernels.numba_loops.special_functions import FAST


@compile_with_numba(fastmath={"reassoc", *FAST})
def squared_changes(first: Any, second: Any, third: Any) -> tuple[float, float]:
    """Return the squared lengths of r = second - first and of (third - second) - r."""
    change = change_of_change = 0.0
    for i in range(len(first)):
        r = second[i] - first[i]
        v = third[i] - second[i] - r
        change += r * r
        change_of_change += v * v
    return change, change_of_change


@compile_with_numba(fastmath=FAST)
def extrapolate(first: Any, second: Any, third: Any, length: Any, found: Any) -> None:
    """Fill `found` with first + 2 length r + length^2 v, see `squared_changes`."""
    square = length * length
    weights = 1 - 2 * length + square, 2 * length - 2 * square
    for i in range(len(first)):
        found[i] = weights[0] * first[i] + weights[1] * second[i] + square * third[i]
