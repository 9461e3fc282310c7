"""Sentences on patterns in labels: repeated labels, copies, agreement by chance, and too few answers to tell."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories
from crowdveil.display.counts import number_of
from crowdveil.estimators.copies.compared_answers import has_few_pairs
from crowdveil.quality.review.label_patterns import LabelPatterns, closest_copies
from crowdveil.quality.review.listing import Listing

MOST_ANSWERS, NAMED_LABELS = 0.9, 3
"""Share of a worker's answers whose labels are named, and the largest number of them."""
ONE_LABEL, ENOUGH = 0.6, 25
"""Share of the most frequent label from which it hides who repeats it, and answers that are usually enough."""
MANY_PAIRS = "Copies were not searched for: the tasks have too many pairs of answers."


def add_label_reasons(listing: Listing, reports: Reports, patterns: LabelPatterns) -> None:
    """Add the reasons that labels give, unperturbed."""
    _add_repeated_labels(listing, reports, patterns)
    listing.groups += patterns.copying_groups()
    _add_copies(listing, reports, patterns)
    _add_agreement_by_chance(listing, patterns)
    _add_unclear_workers(listing, reports, patterns)
    listing.agrees_well = patterns.agrees_well
    listing.notes += _notes(reports, patterns)


def _add_repeated_labels(listing: Listing, reports: Reports, patterns: LabelPatterns) -> None:
    for worker in np.flatnonzero(patterns.repeats).tolist():
        text = f"{_labels_text(reports, patterns.votes.counts[worker])}; others contradict about "
        text += f"{patterns.wrong[worker]:.0f} of them."
        listing.add(worker, "repeats", text, float(patterns.bayes_factor[worker]))


def _add_agreement_by_chance(listing: Listing, patterns: LabelPatterns) -> None:
    for worker in np.flatnonzero(patterns.near_chance).tolist():
        kappa = float(patterns.kappa_and_error[0][worker])
        more = "barely more" if kappa > 0 else "no more"
        less = "less than by chance" if patterns.below_chance[worker] else f"{more} than by chance"
        question = ": are labels swapped?" if patterns.below_chance[worker] else "."
        listing.add(worker, "chance", f"Agrees with others {less} (kappa {kappa:.2f}){question}", -kappa)


def _labels_text(reports: Reports, counts: NDArray[np.float64]) -> str:
    """Return words for the labels of most answers of a worker."""
    assert isinstance(reports.alphabet, Categories)
    order, total = np.argsort(-counts, kind="stable"), int(counts.sum())
    number = int(np.searchsorted(np.cumsum(counts[order]), MOST_ANSWERS * total)) + 1
    if number > NAMED_LABELS:
        return f"The {number_of(total, 'answer')} have {int((counts > 0).sum())} labels"
    names = " or ".join(repr(reports.alphabet.names[code]) for code in order[:number].tolist())
    covered = int(counts[order[:number]].sum())
    return f"{'All' if covered == total else f'{covered:,} of'} {total:,} answers are {names}"


def _add_copies(listing: Listing, reports: Reports, patterns: LabelPatterns) -> None:
    """Add for each copy the worker with whom it has the most in common; groups stay together."""
    if patterns.votes.copies is None:
        return
    closest = closest_copies(reports, patterns.votes.copies)
    for place, group in enumerate(listing.groups):
        for worker in group.workers.tolist():
            common, same, other = closest[worker]
            listing.add(worker, "copies", _copy_text(reports, other, common, same), float(-place))


def _copy_text(reports: Reports, other: int, common: int, same: int) -> str:
    """Return the sentence on a copy."""
    equal = f"{same:,} of {common:,} shared answers are equal"
    return f"Answers like {str(reports.workers[other])!r}: {equal}, more than independent work explains."


def _add_unclear_workers(listing: Listing, reports: Reports, patterns: LabelPatterns) -> None:
    counts, totals = patterns.votes.counts, patterns.votes.counts.sum(axis=0)
    for worker in np.flatnonzero(patterns.may_repeat).tolist():
        label = int(counts[worker].argmax())
        others = totals - counts[worker]
        share = 100 * others[label] / max(others.sum(), 1)
        text = f"{_labels_text(reports, counts[worker])} (others: {share:.0f} %): a repeated label or careful work?"
        listing.add(worker, "unclear", text, float(patterns.bayes_factor[worker]))


class HiddenRepeaters(NamedTuple):
    """Why workers who repeat the most frequent label would not be seen, and what would be enough.

    Attributes:
        workers: number of workers among whom they would not be seen.
        why: clause without its end.
        advice: sentence after a space; empty for none.
    """

    workers: int
    why: str
    advice: str


def why_repeaters_are_hidden(reports: Reports, patterns: LabelPatterns) -> HiddenRepeaters | None:
    """Return why most workers could repeat the most frequent label unseen; None if they could not."""
    totals, hidden = patterns.votes.counts.sum(axis=1), int(patterns.hides_repeaters.sum())
    if 2 * hidden <= int((totals > 0).sum()):
        return None
    label, middle = int(patterns.votes.frequencies.argmax()), int(np.median(totals[totals > 0]))
    if middle < ENOUGH:
        why = f"Too few tasks to tell workers apart (median: {number_of(middle, 'answer')} each)"
        return HiddenRepeaters(hidden, why, f" About {ENOUGH} answers each are usually enough.")
    if patterns.votes.frequencies[label] >= ONE_LABEL:
        assert isinstance(reports.alphabet, Categories)
        name = repr(reports.alphabet.names[label])
        return HiddenRepeaters(hidden, f"Most answers are {name}, so workers cannot be told apart", "")
    return HiddenRepeaters(hidden, "Answers agree too little to tell workers apart", "")


def _notes(reports: Reports, patterns: LabelPatterns) -> list[str]:
    """Return what the answers do not tell."""
    notes, hidden = list[str](), why_repeaters_are_hidden(reports, patterns)
    if hidden is not None:
        assert isinstance(reports.alphabet, Categories)
        name = repr(reports.alphabet.names[int(patterns.votes.frequencies.argmax())])
        answering = int((patterns.votes.counts.sum(axis=1) > 0).sum())
        notes.append(
            f"{hidden.why}: a worker who always answers {name} could not be found among {hidden.workers:,} of "
            f"{number_of(answering, 'worker')}, and the truths may follow such workers.{hidden.advice}"
        )
    if reports.alphabet is not None and int(np.max(reports.per_task)) > 1 and not has_few_pairs(reports):
        notes.append(MANY_PAIRS)
    return notes
