"""Warnings about labels that look like one label spelled in several ways."""

import numpy as np

from crowdveil.ingest.spellings import spellings
from crowdveil.labels import Categories
from crowdveil.reports import Reports

SHOWN = 3
"""Labels whose spellings are listed; spellings listed of each."""


def spelling_notes(reports: Reports) -> tuple[str, ...]:
    """Return a warning with the spellings of the same label and how many reports have each; nothing if there are none.

    Labels are meant that were taken from the reports; given ones differ on purpose.
    """
    if not isinstance(reports.alphabet, Categories) or "labels" in reports.public_lists:
        return ()
    names = reports.alphabet.names
    groups = spellings(names)
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
