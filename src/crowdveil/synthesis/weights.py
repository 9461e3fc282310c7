"""The weight of every claim in its task's density: combined, global, local, uniform, or public (Huai et al., 4-5).

Whatever is learned from the claims tells of them: a finite epsilon needs uniform or public weights.
"""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.global_weights import GlobalRule, Progress
from crowdveil.synthesis.kernels import Kernel
from crowdveil.synthesis.local_weights import LocalRule

Kind = Literal["combined", "global", "local", "uniform", "public"]
KINDS = ("combined", "global", "local", "uniform", "public")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighting:
    """How claims are weighted.

    Attributes:
        kind: "combined": local times global, as printed; "global" or "local" alone; "uniform"; "public": `workers`.
        global_rule, local_rule: how the learned weights are learned.
        minimiser: combine by the square root of local times global. That, and not the product, is the minimiser of
            the paper's equation (4).
        floor: this share of every task's weight is spread evenly over its claims, so that none has weight 0.
        workers: weights that were known before any claim, in the order of `claims.workers`; only for "public".
    """

    kind: Kind = "combined"
    global_rule: GlobalRule = field(default_factory=GlobalRule)
    local_rule: LocalRule = field(default_factory=LocalRule)
    minimiser: bool = False
    floor: float = 0.0
    workers: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SettingsError(f"weights must be one of {', '.join(KINDS)}", value=self.kind)
        if not 0 <= self.floor <= 1:
            raise SettingsError("floor must be in [0, 1]", value=self.floor)
        if (self.kind == "public") != bool(self.workers):
            raise SettingsError(
                "a weight for every worker goes with kind 'public'", value=(self.kind, self.workers[:3])
            )
        if not all(math.isfinite(weight) and weight > 0 for weight in self.workers):
            raise SettingsError("public weights must be positive numbers", value=min(self.workers))

    @property
    def public(self) -> bool:
        """Whether the weights are known without looking at the claims."""
        return self.kind in ("uniform", "public")

    def of(
        self, claims: Claims, bandwidth: NDArray[np.float64], kernel: Kernel, *, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """Return every claim's weight, shape (claims,), non-negative and summing to 1 over each task.

        Args:
            claims: of all tasks.
            bandwidth: shape (tasks,).
            kernel: whose Hilbert space the learned weights use.
            progress: called after every step of the global weights.

        Raises:
            SettingsError: public weights that are not one for each worker.
        """
        weight = np.ones(len(claims))
        if self.kind == "public":
            if len(self.workers) != len(claims.workers):
                raise SettingsError(f"{len(claims.workers)} workers need as many weights", value=len(self.workers))
            weight = np.asarray(self.workers)[claims.worker]
        if self.kind in ("combined", "local"):
            weight = self.local_rule.fit(claims, bandwidth, kernel)
        if self.kind in ("combined", "global"):
            shared = self.global_rule.fit(claims, bandwidth, kernel, progress=progress).weight
            weight = combined(weight, shared[claims.worker], minimiser=self.minimiser and self.kind == "combined")
        equal = task_shares(np.ones(len(claims)), claims)
        return (1 - self.floor) * task_shares(weight, claims) + self.floor * equal


def combined(
    local: NDArray[np.float64], shared: NDArray[np.float64], *, minimiser: bool = False
) -> NDArray[np.float64]:
    """Return local times global weights, not normalised (equation 5), or their square root (the minimiser of 4)."""
    product = local * shared
    return np.sqrt(product) if minimiser else product


def task_shares(weight: NDArray[np.float64], claims: Claims) -> NDArray[np.float64]:
    """Return weights that sum to 1 over each task, shape (claims,); equal ones where all of a task's are 0."""
    total = np.bincount(claims.task, weights=weight, minlength=len(claims.tasks))[claims.task]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, weight / total, 1 / claims.per_task[claims.task])
