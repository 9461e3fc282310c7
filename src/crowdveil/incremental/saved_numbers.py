"""The numbers of a saved fit: each field has a range, and a number out of it is refused before anything uses it.

Seals find damage, not forgery: numbers under good seals may still be none that a fit can have.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from crowdveil.estimators.learned import SUMS_BY_WORKER, Learned

DISTRIBUTIONS = frozenset(
    {"confusion", "responsibility", "quality", "q", "class_prior", "kinds", "sigma_shares", "participation_shares"}
)
"""Learned fields whose last axis sums to 1."""
PROBABILITIES = frozenset({"participation", "ability", "right", "centre"})
"""Learned fields of single probabilities."""
WEIGHTS = frozenset({"weight"})
"""Learned fields of any finite numbers."""
COUNTS = frozenset({"by_report", "by_truth", "right", "agreement", "squares"})
"""Sums that are never negative."""
LOGARITHMS = frozenset({"log_likelihood", "worker_scores", "evidence"})
"""Sums of any finite numbers."""
ROUNDING = 1e-6
"""How far rounding may take a probability, or a sum of them, beyond 1."""


def check_learned(learned: Learned) -> None:
    """Refuse learned numbers that no fit can have.

    Raises:
        ValueError: naming the field.
    """
    for name, array in (learned.by_worker | learned.shared).items():
        _check_finite(name, array)
        if name in DISTRIBUTIONS:
            _require(bool((array >= 0).all()), name, "probabilities of 0 or more")
            _require(bool((np.abs(array.sum(axis=-1) - 1) <= ROUNDING).all()), name, "probabilities that sum to 1")
        elif name in PROBABILITIES:
            _require(bool(((array >= 0) & (array <= 1 + ROUNDING)).all()), name, "probabilities, from 0 to 1")
        else:
            _require(name in WEIGHTS, name, "the name of a field that fits have")


def check_sums(sums: Mapping[str, NDArray[np.float64]], workers: int) -> None:
    """Refuse statistics that no fit of so many workers can have; the first axis is blocks.

    Raises:
        ValueError: naming the field.
    """
    for name, array in sums.items():
        _check_finite(name, array)
        _require(name in COUNTS | LOGARITHMS, name, "the name of a field that fits have")
        _require(name in LOGARITHMS or bool((array >= 0).all()), name, "counts of 0 or more")
        _require(name not in SUMS_BY_WORKER or array.shape[1:2] == (workers,), name, "a number for every worker")


def _check_finite(name: str, array: NDArray[np.float64]) -> None:
    _require(bool(np.isfinite(array).all()), name, "finite numbers")


def _require(holds: bool, name: str, what: str) -> None:
    if not holds:
        raise ValueError(f"the field {name!r} must hold {what}")
