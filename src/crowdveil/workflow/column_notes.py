"""Warnings about columns that are not read although they may say how often a row counts."""

from pathlib import Path

from crowdveil.ingest.tables import column_names

WEIGHT_NAMES = frozenset({"count", "counts", "votes", "weight", "weights", "n", "frequency"})
"""Names, in small letters, of columns that often hold repeated votes or weights."""


def weight_notes(path: Path) -> tuple[str, ...]:
    """Return a warning that names such columns of a CSV or Parquet file; nothing if there are none.

    Raises:
        ReportsError: the file cannot be read.
    """
    found = [repr(name) for name in column_names(path) if name.strip().lower() in WEIGHT_NAMES]
    if not found:
        return ()
    return (f"Not read: {', '.join(found)}. Each row is one answer of one worker, whatever stands in other columns.",)
