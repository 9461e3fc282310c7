"""Public lists of a collection of comparisons: pairs, workers and assigned pairs, from tables of any form."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.comparisons.columns import NO_COMPARISON_NAMES, OPTIONAL, ComparisonNames
from crowdveil.answers.comparisons.reading import comparisons_of_source
from crowdveil.answers.comparisons.reports import PublicPairs, reports_of_comparisons
from crowdveil.answers.importers.export_file import read_given_columns
from crowdveil.answers.ingest.column_checks import Duplicates
from crowdveil.answers.sources.answer_source import AnswerSource
from crowdveil.channels.compared_pairs import COMPARISON_ANSWERS, Pair, checked_pairs, refuse_repeated_pairs
from crowdveil.errors import ReportsError
from crowdveil.storage.answers import AnswersRead, read_name_column


class _PairRows(NamedTuple):
    pairs: list[Pair]
    workers: list[str]


def read_pairs(path: Path) -> list[Pair]:
    """Return the pairs of a table with the columns left and right, and maybe list; each is listed once.

    Raises:
        ReportsError: a damaged file, a missing column, no pair, an item against itself, or a pair that is listed twice.
    """
    found = _read_pair_rows(path, ()).pairs
    if not found:
        raise ReportsError("a list of pairs must have a row", source=str(path), hint="Write a row for each pair.")
    refuse_repeated_pairs(found, None, str(path))
    return found


def read_public_pairs(
    *, tasks: Path | None = None, workers: Path | None = None, assignment: Path | None = None
) -> PublicPairs:
    """Return the public lists of comparisons; lists without a file follow from the assignment.

    Args:
        tasks: pairs, as of `read_pairs`.
        workers: column worker.
        assignment: columns left, right and worker, and maybe list: the pairs of each worker, as they are shown.

    Raises:
        ReportsError: as `read_pairs`, or an assigned pair or worker that the lists lack.
    """
    pairs = None if tasks is None else read_pairs(tasks)
    names = None if workers is None else read_name_column(workers, "worker")
    if assignment is None:
        return PublicPairs(pairs, names)
    rows, source = _read_pair_rows(assignment, ("worker",)), str(assignment)
    refuse_repeated_pairs(rows.pairs, rows.workers, source)
    if pairs is not None:
        listed = {pair.question for pair in pairs}
        missing = [place for place, pair in enumerate(rows.pairs) if pair.question not in listed]
        if missing:
            raise ReportsError(
                "every assigned pair must be listed",
                source=source,
                rows=tuple(place + 1 for place in missing[:3]),
                examples=rows.pairs[missing[0]].name,
                hint="Complete the list of pairs.",
            )
    asked = Assignment.from_arrays(
        np.array([pair.name for pair in rows.pairs], dtype=object),
        np.array(rows.workers, dtype=object),
        workers=names,
        source=source,
    )
    shown = list(dict.fromkeys(rows.pairs))
    ordered = {pair.name: pair for pair in shown}
    return PublicPairs([ordered[str(name)] for name in asked.tasks], list(map(str, asked.workers)), asked)


def _read_pair_rows(path: Path, more: tuple[str, ...]) -> _PairRows:
    if not path.exists():
        raise ReportsError(
            "a list of pairs must be a file", source=str(path), hint="Give a table with the columns left and right."
        )
    roles = {name: (name,) for name in ("left", "right", *more)}
    read = read_given_columns(path, roles, optional=(OPTIONAL,))
    cells = {name: [str(cell) for cell in column.cells.tolist()] for name, column in read.coded.items()}
    pairs = checked_pairs(cells["left"], cells["right"], cells.get(OPTIONAL), read.source)
    return _PairRows(pairs, cells.get("worker", []))


def read_comparison_answers(
    source: AnswerSource,
    lists: PublicPairs,
    names: ComparisonNames = NO_COMPARISON_NAMES,
    *,
    duplicates: Duplicates | None = None,
    private: bool,
    public_participation: bool,
) -> AnswersRead:
    """Return unprotected comparisons as answers to pairs.

    Args:
        source: tables of comparisons, and unless they are private also exports.
        lists: public lists.
        names: columns that are stated.
        duplicates: policy for a pair that a worker compares twice, in whatever order; by default "error".
        private: whether single answers must not decide what is read.
        public_participation: whether it is public who compared what; then no row may be without an answer.

    Raises:
        ReportsError: as `comparisons_of_source` and `reports_of_comparisons`.
    """
    rows, notes = comparisons_of_source(source, names, private=private, every_row=public_participation)
    return AnswersRead(reports_of_comparisons(rows, lists, duplicates or "error"), COMPARISON_ANSWERS, counts=notes)
