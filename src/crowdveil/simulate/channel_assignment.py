"""Channels and assignment of a campaign: one mechanism for all cells, or channels by worker or task."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable, table_by_task
from crowdveil.channels.guarantee import Guarantee
from crowdveil.data.assignment import Assignment
from crowdveil.data.ingest.column_readers import delimiter_and_roles
from crowdveil.data.ingest.csv_files import read_csv_table
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms import Mechanism
from crowdveil.privacy.mechanism_from_settings import MechanismSettings, build_mechanism

UNPROTECTED = "unprotected"
"""Text in place of an epsilon: these cells are sent without randomization. It must be explicit."""
KNOWN_COLUMNS = ("worker", "task", "epsilon", "cuts")
CUT_SEPARATOR = "|"


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
    channels: Path | None = None,
    assignment: Assignment | None = None,
) -> ChannelAssignment:
    """Build the mechanism and, where cells differ, the table of channels.

    Args:
        requested: the mechanism.
        alphabet: what an answer can be.
        answers: only their lists of tasks and workers are read; if these are not public, there is no guarantee.
        channels: CSV file with a column `worker` or `task` and `epsilon` or `cuts` (or both) of each.
        assignment: the cells that report; None for all.

    Raises:
        SettingsError: a mechanism without a channel per cell, several groups of cuts and a file of channels, or
            settings that the mechanism refuses.
        ReportsError: a damaged file.
    """
    mechanism = build_mechanism(requested, alphabet, tasks=len(answers.tasks))
    if channels is not None and requested.dealt_cuts:
        raise SettingsError(
            "cuts are assigned to workers in turn or given in a file of channels, not both",
            value=str(channels),
            hint="Leave one of them out.",
        )
    table = None
    if requested.dealt_cuts:
        table = _channels_by_group_of_cuts(requested, alphabet, answers)
    elif channels is not None:
        table = read_channel_table_of_settings(channels, requested, alphabet, tasks=len(answers.tasks))
    if (table is not None or assignment is not None) and mechanism.channel() is None:
        raise SettingsError(
            "assigned tasks and channels by name need a mechanism with a channel per cell",
            value=mechanism.name,
            hint="Use randomized-response, quantized-response, designed, one-layer or laplace.",
        )
    return ChannelAssignment(mechanism=mechanism, table=table, assignment=assignment)


def read_channel_table_of_settings(
    path: Path, requested: MechanismSettings, alphabet: Alphabet, *, tasks: int
) -> ChannelTable:
    """Return the table of channels of a file with settings by worker or task, one channel for each distinct row.

    Raises:
        ReportsError: not one of the columns `worker` and `task`, neither `epsilon` nor `cuts`, an unknown column, a
            name that is empty or repeated, or an epsilon that is not a number.
        SettingsError: the mechanism refuses a setting.
    """
    source, (delimiter, (key, *settings)) = str(path), delimiter_and_channel_columns(path)
    columns = read_csv_table(path, [key, *settings], delimiter)
    names = [str(name) for name in columns[key].to_pylist()]
    if "" in names or len(set(names)) != len(names):
        raise ReportsError(
            f"every {key} must have one row", source=source, hint="Complete the file, and leave repeated rows out."
        )
    rows = list(zip(*([str(cell) for cell in columns[name].to_pylist()] for name in settings), strict=True))
    channel_of_row = {row: index for index, row in enumerate(dict.fromkeys(rows))}
    built = [
        _row_channel(dict(zip(settings, row, strict=True)), requested, alphabet, tasks, source)
        for row in channel_of_row
    ]
    groups = {name: channel_of_row[row] for name, row in zip(names, rows, strict=True)}
    make = ChannelTable.by_worker if key == "worker" else table_by_task
    return make(built, groups)


def delimiter_and_channel_columns(path: Path) -> tuple[str, list[str]]:
    """Return the delimiter of a file of channels, and its columns: worker or task first.

    Errors are those of `read_channel_table_of_settings`.
    """
    delimiter, columns = delimiter_and_roles(path, _require_channel_columns)
    return delimiter, list(columns)


def _require_channel_columns(found: Sequence[str], source: str) -> dict[str, str]:
    key, settings = ([name for name in names if name in found] for names in (KNOWN_COLUMNS[:2], KNOWN_COLUMNS[2:]))
    if not set(found) <= {*KNOWN_COLUMNS} or len(key) != 1 or not settings:
        raise ReportsError(
            "a file of channels has the column worker or task, and epsilon or cuts",
            source=source,
            examples=", ".join(found),
            hint="Name its columns so, such as worker,epsilon.",
        )
    return {name: name for name in (*key, *settings)}


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
    if channel is None:
        raise SettingsError("channels by cell need a mechanism with a channel per cell", value=mechanism.name)
    return channel
