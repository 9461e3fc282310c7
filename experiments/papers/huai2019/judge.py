"""Judge: errors of released claims against the original densities, by combined and by equal weights.

The paper judges by the density that its own method estimates (combined weights).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from experiments.papers.huai2019.algorithm1.huai_published import HuaiPublished
from experiments.papers.huai2019.algorithm1.kernel_density import KERNELS, WeightedKernelDensity
from experiments.synthesis.density_error import (
    DensityCurve,
    Errors,
    TruthGap,
    integrated_squared_error,
    kernel_curve,
    summarize,
    truth_gap,
)
from numpy.typing import NDArray

from crowdveil.answers.reports import Reports
from crowdveil.synthesis.original_claims import Claims

Floats = NDArray[np.float64]
Reference = Literal["combined", "uniform"]


@dataclass(frozen=True, eq=False)
class Judge:
    """Comparison of releases with the originals.

    Attributes:
        claims: the originals.
        combined: the paper's method, with its weights.
        uniform: the same with equal weights.
        most: about how many of the tasks with at least k claims are judged, evenly over their order.
    """

    claims: Claims
    combined: HuaiPublished
    uniform: HuaiPublished
    most: int

    @cached_property
    def tasks(self) -> list[int]:
        """Judged tasks."""
        held = np.flatnonzero(self.claims.per_task >= self.combined.test.k)
        return [int(task) for task in held[:: max(1, len(held) // self.most)]]

    @cached_property
    def original(self) -> Reports:
        """The claims as reports."""
        claims = self.claims
        return Reports(
            claims.task_of_each_claim.astype(np.int32), claims.worker, claims.value, claims.tasks, claims.workers
        )

    def errors(self, made: Reports, reference: Reference) -> Errors:
        """Return the errors of the judged tasks that released anything."""
        ends = np.searchsorted(made.task, np.arange(len(made.tasks) + 1))
        references = self._references[reference]
        return summarize(
            [
                integrated_squared_error(self._curve(task, made.value[ends[task] : ends[task + 1]]), references[task])
                for task in self.tasks
                if ends[task + 1] > ends[task]
            ]
        )

    def truth_gap(self, made: Reports) -> TruthGap:
        """Return the difference of the truths inferred from a release and from the originals."""
        return truth_gap(self.original, made)

    @cached_property
    def _width(self) -> Floats:
        return self.combined.bandwidth.for_tasks(self.claims)

    @cached_property
    def _references(self) -> dict[Reference, dict[int, DensityCurve]]:
        found: dict[Reference, dict[int, DensityCurve]] = {}
        methods: dict[Reference, HuaiPublished] = {"combined": self.combined, "uniform": self.uniform}
        for name, method in methods.items():
            weight = method.densities(self.claims).weight
            found[name] = {
                task: self._curve(task, self.claims.claims_of_task(task), weight[self.claims.pointers[task] :])
                for task in self.tasks
            }
        return found

    def _curve(self, task: int, value: Floats, weight: Floats | None = None) -> DensityCurve:
        """Return the kernel density of some numbers on a task, with the bandwidth of the originals."""
        weight = np.full(len(value), 1 / len(value)) if weight is None else weight[: len(value)]
        return kernel_curve(
            WeightedKernelDensity(
                value=value, weight=weight, bandwidth=float(self._width[task]), kernel=KERNELS[self.combined.kernel]
            )
        )
