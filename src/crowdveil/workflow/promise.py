"""Guarantee of a collection, what is said beside it, and the reasons why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crowdveil.errors import SettingsError
from crowdveil.guarantee import Guarantee
from crowdveil.public_lists import ListName, in_words

if TYPE_CHECKING:
    from crowdveil.workflow.setup import Setup

HOLDER = (
    "whoever holds the answers sees them all; these reports protect only against those who get the reports and "
    "nothing else"
)
"""Said of reports that were made from answers that someone already held."""
ASSIGNED = "hidden: which of the assigned tasks a worker skipped; not hidden: which were assigned"
SIMULATION = "these reports follow from the seed: a simulation, which carries no privacy"
OPTIONS: dict[ListName, str] = {"labels": "--labels or --scale", "tasks": "--tasks", "workers": "--workers"}


def guarantee_of(setup: Setup) -> Guarantee:
    """Return the guarantee that public lists give the least protected cell."""
    return setup.mechanism.guarantee if setup.table is None else setup.table.guarantee


def notes_of(*, assigned: bool, protected: bool, simulation: bool) -> tuple[str, ...]:
    """Return what is said beside a guarantee: what an assignment hides and what not, and against whom."""
    hidden = (ASSIGNED,) if assigned and protected else ()
    return hidden if simulation else (*hidden, HOLDER)


def refuse_missing(missing: Sequence[ListName]) -> None:
    """Refuse lists that were taken from the answers, if there are any.

    Raises:
        SettingsError: naming them.
    """
    if not missing:
        return
    options = ", ".join(OPTIONS[name] for name in missing)
    files = " (or --assignment, which lists both)" if {"tasks", "workers"} & set(missing) else ""
    raise SettingsError(
        "labels, tasks and workers must be listed before anyone answers: a list taken from the answers shows who "
        "answered and what",
        value=f"{in_words(missing)} taken from the answers",
        way_out=f"Give {options}{files}. To look only, without any privacy: --lists-from-answers, or --seed for a "
        "simulation.",
    )
