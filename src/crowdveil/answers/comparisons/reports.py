"""Comparisons as reports on tasks that are pairs, for devices, and back, with the cells that report NULL."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.comparisons.repeats import without_repeats
from crowdveil.answers.comparisons.values import ANSWERS, EXAMPLES, Comparisons
from crowdveil.answers.evidence import Evidence, sends_null_reports
from crowdveil.answers.ingest.column_checks import Duplicates
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import NULL
from crowdveil.channels.channel import Channel
from crowdveil.channels.compared_pairs import (
    COMPARISON_ANSWERS,
    Pair,
    checked_pairs,
    pair_of_name,
    refuse_repeated_pairs,
)
from crowdveil.errors import ReportsError

MAX_CELLS = 1 << 26
"""Largest number of cells that are read, those that report NULL included."""
LEAST_RATE = 0.05
"""Smallest estimate of the share of comparisons that are answered."""


class PublicPairs(NamedTuple):
    """Public lists of a collection of comparisons: pairs, workers and assigned cells; None if not given."""

    pairs: Sequence[Pair] | None = None
    workers: Sequence[str] | None = None
    assignment: Assignment | None = None


def reports_of_comparisons(rows: Comparisons, lists: PublicPairs, duplicates: Duplicates = "error") -> Reports:
    """Return comparisons as reports on pairs, each in the order of the public lists; a reversed row is turned.

    Without an order in the lists a pair has the order of its two names: that of a row may depend on the answer, as
    where the winner is always written left. `duplicates` says which row of a worker counts for a pair.

    Raises:
        ReportsError: a worker compares a pair twice, or a pair that is not listed or not assigned.
    """
    if duplicates in ("first", "last"):
        rows = without_repeats(rows, duplicates)
    shown = _pairs_of_rows(rows)
    workers = [str(name) for name in rows.workers[rows.worker].tolist()]
    refuse_repeated_pairs(shown, workers, rows.source)
    asked = _listed_order(lists)
    listed = [
        pair.question if asked is None else asked.get((owner, pair.question)) or asked.get(("", pair.question))
        for owner, pair in zip(workers, shown, strict=True)
    ]
    unlisted = [place for place, pair in enumerate(listed) if pair is None]
    if unlisted:
        raise ReportsError(
            "a worker compares pairs that were assigned to them"
            if lists.assignment is not None
            else "every pair that is compared must be in the list of pairs",
            source=rows.source,
            rows=tuple(place + 1 for place in unlisted[:EXAMPLES]),
            examples=", ".join(repr(shown[place].name) for place in unlisted[:EXAMPLES])[:200],
            hint="Complete the list, which is made before anyone answers; the order of two items does not matter.",
        )
    turned = np.array([one != other for one, other in zip(shown, listed, strict=True)])
    answer = np.where(turned, len(ANSWERS) - 1 - rows.answer, rows.answer)
    return Reports.from_arrays(
        np.array([pair.name for pair in listed if pair is not None], dtype=object),
        np.array(workers, dtype=object),
        np.array(ANSWERS, dtype=object)[answer],
        alphabet=COMPARISON_ANSWERS,
        tasks=None if lists.pairs is None else [pair.name for pair in lists.pairs],
        workers=lists.workers,
        source=str(rows.source),
    )


def _pairs_of_rows(rows: Comparisons) -> list[Pair]:
    lists = None if rows.lists == ("",) else np.array(rows.lists, dtype=object)[rows.list_of_item[rows.left]]
    return checked_pairs(rows.items[rows.left].tolist(), rows.items[rows.right].tolist(), lists, rows.source)


def _listed_order(lists: PublicPairs) -> dict[tuple[str, Pair], Pair] | None:
    """Return the pair as it is asked, by worker and question, without an assignment for all; None without lists."""
    cells = lists.assignment
    if cells is not None:
        pairs = [pair_of_name(str(name)) for name in cells.tasks.tolist()]
        asked = zip(cells.workers[cells.worker].tolist(), cells.task.tolist(), strict=True)
        return {(str(worker), pairs[task].question): pairs[task] for worker, task in asked}
    return None if lists.pairs is None else {("", pair.question): pair for pair in lists.pairs}


def comparisons_of_evidence(evidence: Evidence, source: str) -> Comparisons:
    """Return the comparisons of a collection whose tasks are pairs; cells that report NULL are rows.

    Raises:
        ReportsError: a task is no pair, or there are too many cells.
    """
    reports, channel = evidence.reports, evidence.channel
    symbols = channel.outputs if isinstance(channel, Channel) else ANSWERS
    task, worker, answer = (
        _cells_with_null(evidence, symbols) if sends_null_reports(channel) else _sent(evidence, symbols)
    )
    pairs = [pair_of_name(str(name), source) for name in np.asarray(reports.tasks).tolist()]
    names = sorted({(pair.list, item) for pair in pairs for item in (pair.left, pair.right)})
    code = {name: place for place, name in enumerate(names)}
    lists = tuple(dict.fromkeys(name for name, _ in names))
    sides = np.array(
        [[code[pair.list, pair.left], code[pair.list, pair.right]] for pair in pairs], dtype=np.int32
    ).reshape(-1, 2)
    return Comparisons(
        left=sides[task, 0],
        right=sides[task, 1],
        worker=worker,
        answer=answer,
        items=np.array([item for _, item in names], dtype=object),
        workers=np.array([str(name) for name in np.asarray(reports.workers).tolist()], dtype=object),
        list_of_item=np.array([lists.index(name) for name, _ in names], dtype=np.int32),
        lists=lists,
        symbols=symbols,
        source=source,
    )


Columns = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]


def _sent(evidence: Evidence, symbols: tuple[str, ...]) -> Columns:
    """Return task, worker and symbol of each report."""
    reports = evidence.reports
    names = () if reports.alphabet is None else reports.alphabet.names
    unknown = [name for name in names if name not in symbols]
    if unknown or not names:
        hint = "Give the reports on pairs of items."
        raise ReportsError("comparisons have the answers left, tie and right", source="reports",
                           examples=", ".join(unknown), hint=hint)  # fmt: skip
    code = np.array([symbols.index(name) for name in names], dtype=np.int32)
    return reports.task.astype(np.int32), reports.worker.astype(np.int32), code[reports.value]


def _cells_with_null(evidence: Evidence, symbols: tuple[str, ...]) -> Columns:
    """Return task, worker and symbol of each cell that was asked; cells without a report are NULL."""
    reports, asked = evidence.reports, evidence.assignment
    workers = len(reports.workers)
    count = len(reports.tasks) * workers if asked is None else len(asked)
    if count > MAX_CELLS:
        raise ReportsError(
            f"at most {MAX_CELLS:,} comparisons are read, those without an answer included",
            source="reports",
            examples=f"{count:,}",
            hint="Assign pairs to workers.",
        )
    cells = np.arange(count) if asked is None else asked.recoded_cells(reports.tasks, reports.workers)
    answer = np.full(count, symbols.index(NULL), dtype=np.int32)
    task, worker, sent = _sent(evidence, symbols)
    answer[np.searchsorted(cells, task.astype(np.int64) * workers + worker)] = sent
    own = np.divmod(cells, workers)
    return own[0].astype(np.int32), own[1].astype(np.int32), answer


def participation_of_reports(rows: Comparisons, channel: Channel) -> float | None:
    """Return the estimated share of the comparisons asked that were answered; None where no report is NULL.

    The share of NULL reports is a mixture of that of answers and that of "no answer", which the channel states.
    """
    null = channel.null_output
    if null is None or not channel.protects_participation:
        return None
    *answers, none = channel.probabilities[:, null]
    if max(answers) - min(answers) > 1e-9 or none <= answers[0]:
        return None
    found = (none - float((rows.answer == null).mean())) / (none - answers[0])
    return float(np.clip(found, LEAST_RATE, 1.0))
