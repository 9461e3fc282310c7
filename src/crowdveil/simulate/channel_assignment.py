"""Channels and assignment of a campaign: one mechanism for all cells, or channels by worker or task."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable, table_by_task
from crowdveil.channels.guarantee import Guarantee
from crowdveil.design.mechanism_from_settings import MechanismSettings, build_mechanism
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms import Mechanism

UNPROTECTED = "unprotected"
"""Text in place of an epsilon: these cells are sent without randomization. It must be explicit."""
CUT_SEPARATOR = "|"


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelRows:
    """Settings of the channels of workers or tasks, as text.

    Attributes:
        key: whose they are.
        settings: their names: epsilon, cuts, or both.
        rows: settings of each name, in this order; an empty one is that of the command.
        source: name for error messages.
    """

    key: Literal["worker", "task"]
    settings: tuple[str, ...]
    rows: Mapping[str, tuple[str, ...]]
    source: str = "channels"


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelAssignment:
    """Channel of every cell, and the cells that report.

    Attributes:
        mechanism: requested mechanism, with the epsilon and the first cuts of the command.
        table: channel of each cell; None if the mechanism perturbs all cells.
        assignment: the cells that report; None if all do.
    """

    mechanism: Mechanism
    table: ChannelTable | None = None
    assignment: Assignment | None = None

    @property
    def channel(self) -> Channel | ChannelTable | None:
        """Channel or table of channels; None if cells are not perturbed independently."""
        return self.mechanism.channel() if self.table is None else self.table

    @property
    def least_protected_cell_guarantee(self) -> Guarantee:
        """Guarantee of the least protected cell, if all lists are public."""
        return self.mechanism.guarantee if self.table is None else self.table.guarantee


def assign_channels(
    requested: MechanismSettings,
    alphabet: Alphabet,
    answers: Reports,
    *,
    channels: ChannelRows | None = None,
    assignment: Assignment | None = None,
) -> ChannelAssignment:
    """Build the mechanism and, where cells differ, the table of channels.

    Args:
        requested: the mechanism.
        alphabet: what an answer can be.
        answers: only their lists of tasks and workers are read; if these are not public, there is no guarantee.
        channels: settings of each worker or task.
        assignment: the cells that report; None for all.

    Raises:
        SettingsError: a mechanism without a channel per cell, several groups of cuts and channels by name, or
            settings that the mechanism refuses.
        ReportsError: an epsilon that is not a number.
    """
    mechanism = build_mechanism(requested, alphabet, tasks=len(answers.tasks))
    if channels is not None and requested.dealt_cuts:
        raise SettingsError(
            "cuts are assigned to workers in turn or given in a file of channels, not both",
            value=channels.source,
            hint="Leave one of them out.",
        )
    if (requested.dealt_cuts or channels is not None or assignment is not None) and mechanism.channel() is None:
        raise SettingsError(
            "assigned tasks and channels by name need a mechanism with a channel per cell",
            value=mechanism.name,
            hint="Use randomized-response, quantized-response, designed, one-layer or laplace.",
        )
    table = None
    if requested.dealt_cuts:
        table = _channels_by_group_of_cuts(requested, alphabet, answers)
    elif channels is not None:
        table = channel_table_of_settings(channels, requested, alphabet, tasks=len(answers.tasks))
    return ChannelAssignment(mechanism=mechanism, table=table, assignment=assignment)


def channel_table_of_settings(
    channels: ChannelRows, requested: MechanismSettings, alphabet: Alphabet, *, tasks: int
) -> ChannelTable:
    """Return the table of channels of settings by worker or task, one channel for each distinct row.

    Raises:
        ReportsError: an epsilon that is not a number.
        SettingsError: the mechanism refuses a setting.
    """
    channel_of_row = {row: index for index, row in enumerate(dict.fromkeys(channels.rows.values()))}
    built = [
        _row_channel(dict(zip(channels.settings, row, strict=True)), requested, alphabet, tasks, channels.source)
        for row in channel_of_row
    ]
    groups = {name: channel_of_row[row] for name, row in channels.rows.items()}
    make = ChannelTable.by_worker if channels.key == "worker" else table_by_task
    return make(built, groups)


def _row_channel(
    row: dict[str, str], requested: MechanismSettings, alphabet: Alphabet, tasks: int, source: str
) -> Channel:
    """Return the channel of one row; empty cells have the settings of the command."""
    changes: dict[str, Any] = {}
    epsilon = row.get("epsilon", "")
    if epsilon == UNPROTECTED:
        return Channel.identity(alphabet, "public")
    if epsilon:
        try:
            changes["epsilon"] = float(epsilon)
        except ValueError as error:
            raise ReportsError(
                f"an epsilon is a number, or {UNPROTECTED!r} where answers are sent as they are",
                source=source,
                examples=repr(epsilon),
                hint="Correct the cell.",
            ) from error
    if row.get("cuts"):
        changes["cuts"] = tuple(row["cuts"].split(CUT_SEPARATOR))
    return _required_channel(build_mechanism(replace(requested, **changes), alphabet, tasks=tasks))


def _channels_by_group_of_cuts(requested: MechanismSettings, alphabet: Alphabet, answers: Reports) -> ChannelTable:
    """Return one channel for each group of cuts, assigned in turn to the workers in list order."""
    built = [
        _required_channel(build_mechanism(replace(requested, cuts=cuts), alphabet, tasks=len(answers.tasks)))
        for cuts in requested.dealt_cuts
    ]
    groups = {str(name): place % len(built) for place, name in enumerate(answers.workers)}
    if len(groups) < len(built):
        raise SettingsError("each group of cuts needs a worker", value=len(groups))
    return ChannelTable.by_worker(built, groups)


def _required_channel(mechanism: Mechanism) -> Channel:
    channel = mechanism.channel()
    assert channel is not None  # checked by assign_channels
    return channel
