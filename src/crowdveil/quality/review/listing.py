"""Reasons to review workers, by kind and strength."""

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Kind = Literal["repeats", "copies", "chance", "unclear", "far", "ability"]
"""Kind of the strongest reason, in the order of the list."""
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class CopyingGroup:
    """Workers who answer alike.

    Attributes:
        workers: their codes, ascending.
        weights: mean weight of the answers of each that copying leaves in the truths; nan if it has no weights.
    """

    workers: NDArray[np.int64]
    weights: NDArray[np.float64]

    def weight_of(self, worker: int) -> float:
        """Return the weight of the answers of a worker of the group."""
        return float(self.weights[np.searchsorted(self.workers, worker)])


@dataclass
class Listing:
    """Workers with their reasons: the first reason of a worker is the strongest.

    Attributes:
        reasons: sentences of each worker.
        kinds: kind of the first reason of each worker.
        strengths: by which workers of a kind are ordered, the largest first.
        groups: of copies.
        notes: sentences on what the answers do not tell.
        agrees_well: whether each worker agrees with others as the median worker does, or better; None if not measured.
    """

    reasons: dict[int, list[str]] = field(default_factory=dict)
    kinds: dict[int, Kind] = field(default_factory=dict)
    strengths: dict[int, float] = field(default_factory=dict)
    groups: list[CopyingGroup] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    agrees_well: NDArray[np.bool_] | None = None

    def add(self, worker: int, kind: Kind, reason: str, strength: float = 0.0) -> None:
        """Add a reason; kinds are added in their order."""
        self.reasons.setdefault(worker, []).append(reason)
        self.kinds.setdefault(worker, kind)
        self.strengths.setdefault(worker, strength)

    def ordered(self) -> list[int]:
        """Return the listed workers, in the order of the kinds, then of strength."""
        return sorted(self.reasons, key=lambda one: (KINDS.index(self.kinds[one]), -self.strengths[one], one))
