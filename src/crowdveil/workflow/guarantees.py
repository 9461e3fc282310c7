"""Guarantee of a collection, what is said beside it, and the reasons why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crowdveil.channels.certificate import has_no_privacy_mark
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.guarantee import Guarantee
from crowdveil.data.public_lists import NO_GUARANTEE_PREFIXES, ListName, guarantee_text, join_words
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.workflow.export import CROWD_FILE, Crowd

if TYPE_CHECKING:
    from crowdveil.workflow.channel_assignment import Setup

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


def bears_mark(channel: Channel | ChannelTable) -> bool:
    """Return whether a channel, or any of a table, says that nothing is promised."""
    channels = channel.channels if isinstance(channel, ChannelTable) else (channel,)
    return any(has_no_privacy_mark(one.mechanism) for one in channels)


def with_guarantee(crowd: Crowd | None, channel: Channel | ChannelTable | None) -> Crowd | None:
    """Return a crowd whose guarantee is that of the certificate, if there is one; a text that promises nothing stays.

    Raises:
        ReportsError: the crowd promises something where the certificate says that nothing is promised.
    """
    if crowd is None or channel is None or crowd["guarantee"].startswith(NO_GUARANTEE_PREFIXES):
        return crowd
    if bears_mark(channel):
        raise ReportsError(
            f"the {CROWD_FILE} must not promise what its certificate says is not promised",
            source=CROWD_FILE,
            examples=f"{crowd['guarantee'][:100]}; certificate: {channel.mechanism[:100]}",
            hint=f"Use the {CROWD_FILE} that was written with the reports.",
        )
    assigned = crowd["assignment_sha256"] is not None
    notes = notes_of(assigned=assigned, protected=protects_participation(channel), simulation=False)
    return {**crowd, "guarantee": guarantee_text(channel.guarantee, (), simulation=False, notes=notes)}


def protects_participation(channel: Channel | ChannelTable) -> bool:
    """Return whether NULL is an answer like any other to a channel, or to one of a table."""
    if isinstance(channel, ChannelTable):
        return channel.protects_participation
    return channel.participation == "protected"


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
        value=f"{join_words(missing)} taken from the answers",
        hint=f"Give {options}{files}. To look only, without any privacy: --lists-from-answers, or --seed for a "
        "simulation.",
    )
