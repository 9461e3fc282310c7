"""What the sound modes share: what must be public, and a release drawn from private densities."""

from collections.abc import Callable

import numpy as np

from crowdveil.errors import SettingsError
from crowdveil.guarantee import Participation
from crowdveil.randomness import Source
from crowdveil.synthesis.budgets import Budgets
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.densities import Densities
from crowdveil.synthesis.release import Release, Withheld, fresh_workers

Progress = Callable[[int, int], None]
"""Called as the work goes on with the tasks that are done and their number."""


def require_public(claims: Claims, participation: Participation) -> None:
    """Refuse claims whose bounds, list of tasks or number tell of what is protected.

    Raises:
        SettingsError: naming the bounds, the list, or the claims that were left out.
    """
    if not claims.public_bounds:
        raise SettingsError(
            "bounds must be public: taken from the claims, they tell of the smallest and the largest",
            value="bounds derived from the claims",
            way_out="Give bounds that are known without looking at the claims.",
        )
    if participation == "protected" and not claims.public_tasks:
        raise SettingsError(
            "protected participation needs a public list of tasks: one taken from the claims names every task with a "
            "claim",
            value="tasks taken from the claims",
            way_out="List all tasks without looking at the claims: tasks=..., on the command line --tasks FILE.",
        )
    if participation == "public":
        _refuse_left_out(claims)


def _refuse_left_out(claims: Claims) -> None:
    for left_out, what, instead in (
        (claims.dropped, "claims outside the bounds", "Use outside='clip'"),
        (claims.missing, "rows without a number", "Leave out all rows of these tasks or workers beforehand"),
    ):
        if left_out:
            raise SettingsError(
                "the number of claims must not depend on their values",
                value=f"{left_out} {what} left out",
                way_out=f"{instead}, or protect participation.",
            )


def drawn_release(
    mode: str, claims: Claims, densities: Densities, budgets: Budgets, records: int, few: str, source: Source
) -> Release:
    """Draw `records` numbers from each density; tasks without one are withheld, `few` says why."""
    value = densities.sample(records, source)
    task = np.repeat(densities.task, records).astype(np.int32)
    missing = len(claims.tasks) - len(densities.task)
    return Release(
        mode=mode,
        task=task,
        worker=fresh_workers(task),
        value=value.ravel(),
        tasks=claims.tasks,
        curves=budgets.curves(),
        withheld=(Withheld(few, missing, missing * records),) if missing else (),
        simulation=source.simulation,
    )


def few_claims(least: int) -> str:
    """Say why a task is withheld where the number of claims is public."""
    return "no claim" if least == 1 else f"fewer than {least} claims"
