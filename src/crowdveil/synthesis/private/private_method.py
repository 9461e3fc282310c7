"""Private release methods: common settings, checks of public inputs, and sampling of the records."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.guarantee import Participation, Unit, require_epsilon
from crowdveil.errors import SettingsError
from crowdveil.hints import advice
from crowdveil.randomness import Source
from crowdveil.synthesis.budgets import TaskBudgets, allocated_budgets
from crowdveil.synthesis.original_claims import Claims
from crowdveil.synthesis.private.histogram_density import HistogramDensities
from crowdveil.synthesis.release import SECURE, Release, Withheld

Progress = Callable[[int, int], None]
"""Callback with the number of finished tasks and the number of all tasks."""


@dataclass(frozen=True, kw_only=True)
class PrivateMethod(ABC):
    """Method that samples its records from private densities: pure epsilon for any number of records.

    Attributes:
        epsilon: privacy loss of one unit over the whole release, in nats.
        records: synthetic claims per task, without privacy loss.
        unit: "cell": one claim; "worker": all claims of one worker.
        most_claims: number of claims of one worker that are used, chosen at random; None for all.
        least_claims: tasks with fewer claims release nothing.

    Raises:
        SettingsError: epsilon is out of range, or a number is not positive.
    """

    name: ClassVar[str]
    epsilon: float
    records: int = 30
    unit: Unit = "cell"
    most_claims: int | None = None
    least_claims: int = 1

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        if self.records < 1 or self.least_claims < 1:
            raise SettingsError(
                "records and least_claims must be positive",
                value=(self.records, self.least_claims),
                hint="Such as 30 records, of tasks with 5 claims or more.",
            )
        if self.most_claims is not None and self.most_claims < 1:
            raise SettingsError(
                "most_claims must be positive",
                value=self.most_claims,
                hint="Give the number of claims of a worker that are used.",
            )

    @abstractmethod
    def private_densities(
        self, claims: Claims, source: Source = SECURE, *, progress: Progress | None = None
    ) -> tuple[HistogramDensities, TaskBudgets]:
        """Return the densities of the records, covered by the same epsilon, and the budgets; errors as `release`."""

    def _prepared(
        self, claims: Claims, source: Source, participation: Participation
    ) -> tuple[TaskBudgets, NDArray[np.bool_]]:
        """Return the budgets, and which claims are used, shape (claims,).

        Raises:
            SettingsError: participation is protected, and the list of tasks follows from the claims.
        """
        if participation == "protected" and not claims.public_tasks:
            raise SettingsError(
                "protected participation needs a public list of tasks: one taken from the claims names every task with "
                "a claim",
                value="tasks taken from the claims",
                hint=f"List all tasks independently of the claims{advice(': {tasks}')}.",
            )
        budgets = allocated_budgets(
            claims,
            epsilon=self.epsilon,
            unit=self.unit,
            participation=participation,
            most_claims=self.most_claims,
        )
        return budgets, budgets.sample_used(claims, source)

    def release(self, claims: Claims, source: Source = SECURE, *, progress: Progress | None = None) -> Release:
        """Return `records` synthetic claims for every task with enough claims.

        Raises:
            SettingsError: with protected participation, a list of tasks that depends on the claims.
        """
        densities, budgets = self.private_densities(claims, source, progress=progress)
        value = densities.stratified_samples(self.records, source)
        missing = len(claims.tasks) - len(densities.task)
        if budgets.participation == "protected":
            reason = f"noisy number of claims below {self.least_claims}"
        else:
            reason = "no claim" if self.least_claims == 1 else f"fewer than {self.least_claims} claims"
        return Release(
            method=self.name,
            task=np.repeat(densities.task, self.records).astype(np.int32),
            value=value.ravel(),
            tasks=claims.tasks,
            guarantees=budgets.guarantees(),
            withheld=(Withheld(reason, missing, missing * self.records),) if missing else (),
            simulation=source.simulation,
        )
