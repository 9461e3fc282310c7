"""Warnings about labels that look like one label spelled in several ways.

Warnings about columns that are not read although they may say how often a row counts.
"""

from pathlib import Path

import numpy as np

from crowdveil.channels.alphabet import Categories
from crowdveil.data.ingest.labels import group_spellings
from crowdveil.data.ingest.readers import read_column_names
from crowdveil.data.reports import Reports

WEIGHT_NAMES = frozenset({"count", "counts", "votes", "weight", "weights", "n", "frequency"})
"""Names, in small letters, of columns that often hold repeated votes or weights."""


def weight_notes(path: Path) -> tuple[str, ...]:
    """Return a warning that names such columns of a CSV or Parquet file; nothing if there are none.

    Raises:
        ReportsError: the file cannot be read.
    """
    found = [repr(name) for name in read_column_names(path) if name.strip().lower() in WEIGHT_NAMES]
    if not found:
        return ()
    return (f"Not read: {', '.join(found)}. Each row is one answer of one worker, whatever stands in other columns.",)


SHOWN = 3
"""Labels whose spellings are listed; spellings listed of each."""


def spelling_notes(reports: Reports) -> tuple[str, ...]:
    """Return a warning with the spellings of the same label and how many reports have each; nothing if there are none.

    Labels are meant that were taken from the reports; given ones differ on purpose.
    """
    if not isinstance(reports.alphabet, Categories) or "labels" in reports.public_lists:
        return ()
    names = reports.alphabet.names
    groups = group_spellings(names)
    if not groups:
        return ()
    counts = np.zeros(len(names), dtype=np.int64)
    for block in reports.blocks():
        counts += np.bincount(block.value, minlength=len(names))
    listed = "; ".join(
        ", ".join(f"{names[code]!r} ({_reports(int(counts[code]))})" for code in group[:SHOWN])
        for group in groups[:SHOWN]
    )
    more = "; and more" if len(groups) > SHOWN or any(len(group) > SHOWN for group in groups) else ""
    return (f"These are read as different labels: {listed}{more}. --merge-labels makes one of each.",)


def _reports(count: int) -> str:
    return f"{count:,} report" + ("" if count == 1 else "s")
