"""How one epsilon is divided over tasks, so that it holds per claim or per worker; which public weights claims bear."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.guarantee import Participation, Unit
from crowdveil.channels.rounding import float_rounded_up
from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.discrete_noise import EPSILON_BITS, budget
from crowdveil.synthesis.release import Curve, CurvePoint

Integers = NDArray[np.int64]

FIXED_POINT = 64
"""Weights are multiples of 1/64, and none is smaller: the floor that keeps one worker's claim from ruling a task."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Budgets:
    """What one release of each task may cost, and what all of them together cost a claim or a worker.

    Attributes:
        epsilon: what was asked.
        unit: whose loss it bounds.
        participation: whether neighbours replace claims ("public"), or also add and remove them ("protected").
        most_claims: claims of one worker that are used; None for all.
        parts: every task may spend epsilon / parts on a claim that is replaced, shape (tasks,); a claim that comes or
            goes costs half of that.
        per_worker: claims of each worker that are used, shape (workers,); unknown, hence empty, if participation is
            protected.
        costliest: largest budget among the tasks of each worker, shape as `per_worker`.
    """

    epsilon: float
    unit: Unit
    participation: Participation
    most_claims: int | None
    parts: Integers
    per_worker: Integers
    costliest: NDArray[np.float64]

    @cached_property
    def exact(self) -> dict[int, Fraction]:
        """Budget of a task by its number of parts."""
        return {int(part): budget(self.epsilon / int(part)) for part in np.unique(self.parts)}

    @cached_property
    def of_tasks(self) -> NDArray[np.float64]:
        """Budget of every task, shape (tasks,)."""
        return np.array([float(self.exact[int(part)]) for part in self.parts])

    def used(self, claims: Claims, source: Source) -> NDArray[np.bool_]:
        """Choose which claims are used: all, or `most_claims` of each worker at random; shape (claims,)."""
        if self.most_claims is None:
            return np.ones(len(claims), dtype=bool)
        order = np.lexsort((source.words(len(claims)), claims.worker))
        worker = claims.worker[order]
        chosen = np.empty(len(claims), dtype=bool)
        chosen[order] = np.arange(len(claims)) - np.searchsorted(worker, worker) < self.most_claims
        return chosen

    def curves(self) -> tuple[Curve, Curve]:
        """Return what is promised per claim and per worker, for any change of one claim or of all of one worker's.

        With protected participation and `most_claims`, a claim that comes may put another one out of use: two tasks
        pay half of their budget each. Per worker, up to `most_claims` used claims go and as many come.
        """
        reason = ""
        if self.participation == "public":
            # Budgets are multiples of 2**-EPSILON_BITS: products are whole numbers of them, without rounding.
            steps = np.ldexp(self.costliest, EPSILON_BITS).astype(np.int64)
            cell, worker = (
                float_rounded_up(Fraction(int(np.max(paid, initial=0)), 2**EPSILON_BITS))
                for paid in (steps, self.per_worker * steps)
            )
        else:
            task = max(self.exact.values(), default=Fraction(0))
            cell, worker = (float_rounded_up(task * count) for count in (1, self.most_claims or 0))
            if self.most_claims is None:
                worker, reason = float("inf"), "any number of claims of one worker is used: give most_claims"
        participation = self.participation
        return (
            Curve(unit="cell", exact=(CurvePoint(cell, 0.0),), participation=participation),
            Curve(unit="worker", exact=(CurvePoint(worker, 0.0),), reason=reason, participation=participation),
        )


def divide(
    claims: Claims, *, epsilon: float, unit: Unit, participation: Participation, most_claims: int | None
) -> Budgets:
    """Divide an epsilon over the tasks of a crowd.

    Per claim every task may spend everything: a change of one claim replaces one used claim, or makes one come and one
    go, at half the price each. A worker with r used claims pays for r: per worker, a task spends epsilon / r for the
    largest r among its workers (protected: r = most_claims), and no worker's sum exceeds epsilon.
    """
    tasks = len(claims.tasks)
    per_worker = claims.per_worker if most_claims is None else np.minimum(claims.per_worker, most_claims)
    parts = np.ones(tasks, dtype=np.int64)
    if unit == "worker" and participation == "protected":
        parts[:] = most_claims or 1
    elif unit == "worker":
        np.maximum.at(parts, claims.task, per_worker[claims.worker])
    known = participation == "public"
    made = Budgets(
        epsilon=epsilon,
        unit=unit,
        participation=participation,
        most_claims=most_claims,
        parts=parts,
        per_worker=per_worker if known else np.zeros(0, dtype=np.int64),
        costliest=np.zeros(len(claims.workers) if known else 0),
    )
    if known:
        np.maximum.at(made.costliest, claims.worker, made.of_tasks[claims.task])
    return made


def fixed_weights(claims: Claims, weights: Mapping[str, float]) -> Integers:
    """Return the weight of every worker as an integer, FIXED_POINT for full trust; all 1 if all are trusted alike.

    Raises:
        SettingsError: a weight outside (0, 1], or of a worker who is not there.
    """
    for name, weight in weights.items():
        if not 0 < weight <= 1:
            raise SettingsError("weights must be in (0, 1]", value=(name, weight))
    codes = {str(name): code for code, name in enumerate(claims.workers)}
    unknown = [name for name in weights if name not in codes]
    if unknown:
        raise SettingsError("weights must name workers of the claims", value=unknown[:5])
    trust = np.ones(len(claims.workers))
    for name, weight in weights.items():
        trust[codes[name]] = weight
    return in_fixed_point(trust)


def in_fixed_point(trust: NDArray[np.float64]) -> Integers:
    """Return weights in (0, 1] as integers 1 .. FIXED_POINT; all 1 if all are alike."""
    fixed = np.maximum(np.rint(trust * FIXED_POINT).astype(np.int64), 1)
    return np.ones_like(fixed) if (fixed == fixed[:1]).all() else fixed
