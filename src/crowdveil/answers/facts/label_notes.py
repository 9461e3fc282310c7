"""Warnings about labels that were taken from the answers, and refusal of numbers outside a scale."""

from collections.abc import Sequence

import numpy as np

from crowdveil.answers.ingest.column_readers import normal_name
from crowdveil.answers.ingest.labels import spelling_groups
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.display.counts import number_of
from crowdveil.errors import ReportsError
from crowdveil.hints import advice, command_advice

ABSENT = frozenset({"na", "n/a", "none", "null", "nil", "<na>"})
"""Lower-case labels by which other programs write "no answer"; they can be labels, too."""
MIN_GRADES = 3
"""Fewest whole numbers as labels that look like grades."""
SHOWN_SPELLINGS = 3
"""Number of labels, and of spellings of a label, in a warning."""


WEIGHT_NAMES = frozenset({"count", "counts", "votes", "weight", "weights", "n", "frequency"})
"""Normal names of columns that often hold repeated votes or weights."""
CONFIDENCE_NAMES = frozenset({"confidence", "certainty", "confidence_score", "worker_confidence", "sure"})
"""Normal names of columns that often say how sure a worker was of an answer."""


def notes_on_unread_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Return notes that name columns of weights, and of the confidence of answers, among those that are not read."""
    weights, sure = (
        [str(name) for name in columns if normal_name(name) in names] for names in (WEIGHT_NAMES, CONFIDENCE_NAMES)
    )
    notes = list[str]()
    if weights:
        notes.append(f"Not read: {', '.join(map(repr, weights))}. Each row counts as one answer of one worker.")
    if sure:
        used = advice(" {weight} uses it if it helps.", weight=sure[0])
        listed = ", ".join(map(repr, sure))
        notes.append(f"Not read: {listed}. All answers count the same, however sure the workers were.{used}")
    return tuple(notes)


def spelling_notes(reports: Reports) -> tuple[str, ...]:
    """Return a warning with the spellings of the same label and their counts, for labels taken from the reports."""
    if not isinstance(reports.alphabet, Categories) or "labels" in reports.asked.stated:
        return ()
    names = reports.alphabet.names
    groups = spelling_groups(names)
    if not groups:
        return ()
    counts = np.zeros(len(names), dtype=np.int64)
    for block in reports.blocks():
        counts += np.bincount(block.value, minlength=len(names))
    spellings = "; ".join(
        ", ".join(f"{names[code]!r} ({number_of(int(counts[code]), 'report')})" for code in group[:SHOWN_SPELLINGS])
        for group in groups[:SHOWN_SPELLINGS]
    )
    more = (
        "; and more" if len(groups) > SHOWN_SPELLINGS or any(len(group) > SHOWN_SPELLINGS for group in groups) else ""
    )
    merged = advice(" {merge_labels} merges them.", merge_labels=True)
    return (f"These are read as different labels: {spellings}{more}.{merged}",)


def no_answer_warnings(reports: Reports) -> tuple[str, ...]:
    """Return a warning with the labels that mean "no answer" in other programs, for labels taken from the reports."""
    if not isinstance(reports.alphabet, Categories) or "labels" in reports.asked.stated:
        return ()
    found = [repr(name) for name in reports.alphabet.names if name.strip().lower() in ABSENT]
    if not found:
        return ()
    return (f"Read as labels: {', '.join(found)}. If they stand for no answer, leave these rows out or write NULL.",)


def grades_hint(reports: Reports) -> tuple[str, ...]:
    """Return a hint that labels taken from the reports look like grades, which have an order; empty if they do not."""
    alphabet = reports.alphabet
    if not isinstance(alphabet, Categories) or alphabet.ordered or "labels" in reports.asked.stated:
        return ()
    if alphabet.size < MIN_GRADES or not all(name.isdecimal() for name in alphabet.names):
        return ()
    stated = command_advice(", state {labels} {ordered}", ", state their order", labels=alphabet, ordered=True)
    return (f"Whole numbers are read as labels without order. If they are grades{stated}.",)


def refuse_numbers_outside(reports: Reports, scale: Scale) -> None:
    """Refuse numbers outside a scale.

    Raises:
        ReportsError: with the first of them.
    """
    outside = (reports.numbers < scale.low) | (reports.numbers > scale.high)
    if outside.any():
        raise ReportsError(
            f"scores must be on the scale from {scale.low:g} to {scale.high:g}",
            examples=f"{reports.numbers[outside][0]:g}, and {int(outside.sum()) - 1:,} others",
            hint="Correct these scores, leave them out, or give a wider scale.",
        )
