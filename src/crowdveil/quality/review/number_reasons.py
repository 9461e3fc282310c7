"""Sentences on patterns in numbers: repeated numbers, copies, answers by chance, and answers that are far away."""

import numpy as np

from crowdveil.answers.reports import Reports
from crowdveil.display.counts import number_of
from crowdveil.estimators.copies.compared_answers import MAX_PAIRS, MIN_COMMON
from crowdveil.quality.review.label_reasons import MANY_PAIRS
from crowdveil.quality.review.listing import Listing
from crowdveil.quality.review.number_patterns import MIN_ANSWERS, RARE, NumberPatterns


def add_number_reasons(listing: Listing, reports: Reports, patterns: NumberPatterns) -> None:
    """Add the reasons that numbers give, unperturbed."""
    value, count = patterns.repeated
    for worker in np.flatnonzero(patterns.repeats).tolist():
        total = int(patterns.answers[worker])
        some = "All" if total == count[worker] else f"{int(count[worker]):,} of"
        text = f"{some} {total:,} answers are {value[worker]:g}. Others contradict {patterns.wrong[worker]:,} of them."
        listing.add(worker, "repeats", text, float(count[worker]))
    listing.groups += patterns.copying_groups()
    _add_copies(listing, patterns)
    for worker in np.flatnonzero(patterns.near_chance).tolist():
        found = patterns.correlation[worker]
        text = f"The answers barely correlate with those of others (rank correlation {found:.2f})."
        listing.add(worker, "chance", text, -float(found))
    for worker in np.flatnonzero(patterns.far_away).tolist():
        text = (
            f"{int(patterns.far[worker]):,} of {number_of(int(patterns.answers[worker]), 'answer')} are far from those "
        )
        text += "of others: another unit, or typing errors?"
        listing.add(worker, "far", text, float(patterns.far[worker] / patterns.answers[worker]))
    listing.notes += _notes(reports, patterns)


def add_equal_answers(listing: Listing, reports: Reports) -> None:
    """Add workers all of whose answers are equal, labels or numbers, where that is rare among all answers."""
    values, codes, counts = np.unique(reports.value, return_inverse=True, return_counts=True)
    first = np.zeros(len(reports.workers), dtype=np.int64)
    first[reports.worker[::-1]] = codes[::-1]
    others = np.bincount(reports.worker, codes != first[reports.worker], len(first))
    totals = np.asarray(reports.per_worker)
    constant = (others == 0) & ((counts / len(codes))[first] ** totals < RARE)
    for worker in np.flatnonzero(constant).tolist():
        value = values[first[worker]]
        name = f"{value:g}" if reports.alphabet is None else repr(reports.alphabet.names[int(value)])
        listing.add(worker, "repeats", f"All {int(totals[worker]):,} answers are {name}.", float(totals[worker]))


def _add_copies(listing: Listing, patterns: NumberPatterns) -> None:
    if patterns.copies is None:
        return
    closest: dict[int, tuple[float, int, int, int]] = {}
    for first, second, common, same in zip(*(column.tolist() for column in patterns.copies), strict=True):
        for worker, other in ((first, second), (second, first)):
            closest[worker] = max(closest.get(worker, (0.0, 0, 0, 0)), (same / common, common, same, -other))
    for place, group in enumerate(listing.groups):
        for worker in group.workers.tolist():
            listing.add(worker, "copies", _copy_text(patterns.reports, *closest[worker]), float(-place))


def _copy_text(reports: Reports, share: float, common: int, same: int, other: int) -> str:
    equal = f"{same:,} of {common:,} shared answers are equal, or nearly"
    return f"Answers like {str(reports.workers[-other])!r}: {equal}, more than independent work explains."


def _notes(reports: Reports, patterns: NumberPatterns) -> list[str]:
    """Return what the numbers do not tell."""
    notes, answered = list[str](), patterns.answers[patterns.answers > 0]
    middle = int(np.median(answered)) if len(answered) else 0
    if middle < MIN_ANSWERS or not np.isfinite(patterns.residual).any():
        few = f"too few answers (median: {middle:,} each), or too few to a task"
        notes.append(f"Workers cannot be told apart: {few}. {MIN_COMMON} answers each, three to a task, are enough.")
    counts = np.asarray(reports.per_task).astype(np.int64)
    if int((counts * (counts - 1) // 2).sum()) > MAX_PAIRS:
        notes.append(MANY_PAIRS)
    away = int(patterns.far.sum())
    if away:
        notes.append(f"{away:,} of {number_of(len(patterns.value), 'answer')} are far from the others to their task.")
    return notes
