"""Several memoised reports on each cell as one report: the counts of their symbols, which hold all the information."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import NULL
from crowdveil.channels.channel import Channel
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms.memoised import MemoisedTables


def join_rounds(rounds: Sequence[Reports], tables: MemoisedTables) -> tuple[Reports, Channel]:
    """Return the reports of several rounds on the same cells as one collection, and its exact channel.

    Every estimator that reads channels with other symbols than the labels accepts the pair.

    Args:
        rounds: collections through the same tables, over the same tasks and workers, in the same order.
        tables: of the mechanism.

    Raises:
        ReportsError: other tasks, workers or symbols, or, where participation is public, a worker who reported on a
            task in some rounds only.
        SettingsError: no rounds, or more than a joint table can hold.
    """
    channel = tables.joint(len(rounds)) if rounds else None
    if channel is None:
        raise SettingsError("these reports per cell have no joint table", value=len(rounds), hint="Join fewer rounds.")
    first = rounds[0]
    lists = [(list(one.tasks), list(one.workers), one.alphabet) for one in rounds]
    if any(one != (lists[0][0], lists[0][1], tables.report.report_alphabet) for one in lists):
        raise ReportsError("rounds are joined only over the same tasks, workers and report symbols")
    cells = np.unique(np.concatenate([_cells(one) for one in rounds]))
    symbols = np.stack([_symbols(one, cells, tables.report) for one in rounds])
    names = {name: code for code, name in enumerate(channel.report_alphabet.names)}
    code_of = np.array([names.get(name, -1) for name in channel.outputs])
    value = code_of[tables.codes(symbols)]
    kept = value >= 0
    task, worker = np.divmod(cells[kept], len(first.workers))
    joined = Reports(
        task.astype(np.int32),
        worker.astype(np.int32),
        value[kept].astype(np.int16),
        first.tasks,
        first.workers,
        channel.report_alphabet,
        frozenset.intersection(*(one.public_lists for one in rounds)),
    )
    return joined, channel


def _cells(reports: Reports) -> NDArray[np.int64]:
    return reports.task.astype(np.int64) * len(reports.workers) + reports.worker


def _symbols(reports: Reports, cells: NDArray[np.int64], channel: Channel) -> NDArray[np.int64]:
    """Return the output codes of one round for each cell; a cell without a report is NULL where protected."""
    own = _cells(reports)
    if len(np.unique(own)) < len(own):
        raise ReportsError("rounds are joined only with one report per task and worker in each")
    if channel.null_output is None and len(own) < len(cells):
        raise ReportsError("where participation is public, a cell must have a report in every round or in none")
    codes = [channel.outputs.index(name) for name in channel.report_alphabet.names]
    symbols = np.full(len(cells), channel.outputs.index(NULL) if NULL in channel.outputs else -1, dtype=np.int64)
    symbols[np.searchsorted(cells, own)] = np.array(codes)[reports.value]
    return symbols
