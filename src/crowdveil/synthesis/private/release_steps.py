"""Steps shared by the private methods: checks of settings and of public inputs, and sampling of the records."""

from collections.abc import Callable
from typing import ClassVar, Protocol

import numpy as np

from crowdveil.channels.guarantee import Participation, require_epsilon
from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis.budgets import TaskBudgets
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.private.histogram_density import HistogramDensities
from crowdveil.synthesis.release import Release, Withheld, number_workers

Progress = Callable[[int, int], None]
"""Callback with the number of finished tasks and the number of all tasks."""


def check_settings(epsilon: float, records: int, least_claims: int, most_claims: int | None) -> None:
    """Refuse settings that no private method accepts.

    Raises:
        SettingsError: epsilon is out of range, or a number is not positive.
    """
    require_epsilon(epsilon)
    if records < 1 or least_claims < 1:
        raise SettingsError("records and least_claims must be positive", value=(records, least_claims))
    if most_claims is not None and most_claims < 1:
        raise SettingsError("most_claims must be positive", value=most_claims)


def require_public_inputs(claims: Claims, participation: Participation) -> None:
    """Refuse claims whose bounds, list of tasks or number depend on what is protected.

    Raises:
        SettingsError: the bounds or the list of tasks follow from the claims, or claims were left out by their value.
    """
    if not claims.public_bounds:
        raise SettingsError(
            "bounds must be public: bounds taken from the claims reveal the smallest and the largest claim",
            value="bounds derived from the claims",
            hint="Give bounds that are known independently of the claims.",
        )
    if participation == "protected" and not claims.public_tasks:
        raise SettingsError(
            "protected participation needs a public list of tasks: one taken from the claims names every task with a "
            "claim",
            value="tasks taken from the claims",
            hint="List all tasks independently of the claims: tasks=..., on the command line --tasks FILE.",
        )
    if participation == "public":
        for left_out, description, remedy in (
            (claims.dropped, "claims outside the bounds", "Use outside='clip'"),
            (claims.missing, "rows without a number", "Leave out all rows of these tasks or workers beforehand"),
        ):
            if left_out:
                raise SettingsError(
                    "the number of claims must not depend on their values",
                    value=f"{left_out} {description} left out",
                    hint=f"{remedy}, or protect participation.",
                )


class DensityMethod(Protocol):
    """Settings of a method that samples its records from private densities."""

    name: ClassVar[str]

    @property
    def records(self) -> int:
        """Number of synthetic claims per task."""

    @property
    def least_claims(self) -> int:
        """Smallest number of claims of a task with records."""


def sample_release(
    method: DensityMethod, claims: Claims, densities: HistogramDensities, budgets: TaskBudgets, source: Source
) -> Release:
    """Return a release of `records` numbers from each density; tasks without a density are withheld."""
    records, least_claims = method.records, method.least_claims
    value = densities.sample(records, source)
    task = np.repeat(densities.task, records).astype(np.int32)
    missing = len(claims.tasks) - len(densities.task)
    if budgets.participation == "protected":
        reason = f"noisy number of claims below {least_claims}"
    else:
        reason = "no claim" if least_claims == 1 else f"fewer than {least_claims} claims"
    return Release(
        method=method.name,
        task=task,
        worker=number_workers(task),
        value=value.ravel(),
        tasks=claims.tasks,
        curves=budgets.curves(),
        withheld=(Withheld(reason, missing, missing * records),) if missing else (),
        simulation=source.simulation,
    )
