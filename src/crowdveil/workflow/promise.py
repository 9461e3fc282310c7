"""Guarantee of a collection in words, and the reasons why there is none."""

from collections.abc import Sequence

from crowdveil.errors import SettingsError
from crowdveil.public_lists import ListName, in_words
from crowdveil.workflow.setup import Setup

HOLDER = (
    "whoever holds the answers sees them all; these reports protect only against those who get the reports and "
    "nothing else"
)
"""Said of reports that were made from answers that someone already held."""
SIMULATION = "these reports follow from the seed: a simulation, which carries no privacy"
OPTIONS: dict[ListName, str] = {"labels": "--labels or --scale", "tasks": "--tasks", "workers": "--workers"}


def stated(setup: Setup) -> str:
    """Return the guarantee that public lists give: with an assignment, what it hides and what not."""
    promise = str(setup.mechanism.guarantee if setup.table is None else setup.table.guarantee)
    if setup.assignment is None or setup.mechanism.participation == "public":
        return promise
    return f"{promise}; hidden: which of the assigned tasks a worker skipped; not hidden: which were assigned"


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
