"""Rows and names of encoded blocks merged with those of new reports: old codes stay, new names get the next ones.

The old rows are read block by block; the new ones are in memory.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.answers.blocks import sort_by_counting, sort_canonically
from crowdveil.answers.columnar_store import ReportChunk
from crowdveil.answers.identifiers import TEXT, Identifiers, LazyIdentifiers, identifiers_as_arrow
from crowdveil.answers.ingest.column_checks import EXAMPLES_SHOWN, Duplicates
from crowdveil.answers.ingest.labels import note_on_similar_names, places_of_similar_names
from crowdveil.answers.reports import Reports

WORKER_BITS = 32
"""Bits of a worker in the number of a pair; codes are int32."""


class MergedNames(NamedTuple):
    """Names of both sides.

    Attributes:
        names: the old ones in their order, then the new ones in theirs.
        codes: code of each given name, shape (given,).
        added: number of new names.
    """

    names: LazyIdentifiers
    codes: NDArray[np.int64]
    added: int


def merge_names(old: Identifiers, given: Identifiers) -> MergedNames:
    """Return the old names and those of the given ones that are new; numbers and text are compared as text."""
    held, more = _of_one_type(identifiers_as_arrow(old), identifiers_as_arrow(given))
    place = pc.index_in(held, value_set=more).to_numpy()
    known = np.flatnonzero(~np.isnan(place))
    codes = np.full(len(more), -1, dtype=np.int64)
    codes[place[known].astype(np.int64)] = known
    new = codes < 0
    added = int(new.sum())
    codes[new] = len(held) + np.arange(added)
    chunks = [*held.chunks, more.filter(pa.array(new))]
    return MergedNames(LazyIdentifiers(pa.chunked_array(chunks, held.type)), codes, added)


def note_on_added_names(role: str, merged: MergedNames, counts: Callable[[], NDArray[np.integer]]) -> tuple[str, ...]:
    """Return a note on added names of tasks or workers that are spellings of old ones; numbers are not compared.

    Args:
        role: "task" or "worker".
        merged: names of both sides.
        counts: returns the numbers of answers of the merged names.
    """
    column = identifiers_as_arrow(merged.names)
    if not merged.added or pa.types.is_integer(column.type):
        return ()
    place = places_of_similar_names(column.combine_chunks().cast(TEXT))
    if place is None:
        return ()
    old = len(place) - merged.added
    across = np.isin(place, place[old:][place[old:] < old])
    if not across.any():
        return ()
    place = np.where(across, place, np.arange(len(place))).astype(np.int32)
    return (note_on_similar_names(role, merged.names, counts(), place),)


def _of_one_type(old: Any, given: Any) -> tuple[Any, Any]:
    """Return two columns of names, the first in chunks, as one type: numbers if both have the same, else text."""
    held = old if isinstance(old, pa.ChunkedArray) else pa.chunked_array([old])
    more = given.combine_chunks() if isinstance(given, pa.ChunkedArray) else given
    kind = held.type if held.type == more.type or _holds_integers(held, more) else TEXT
    return held.cast(kind), more.cast(kind)


def _holds_integers(held: Any, more: Any) -> bool:
    """Return whether the type of old whole numbers holds the new ones too."""
    if not (pa.types.is_integer(held.type) and pa.types.is_integer(more.type)):
        return False
    try:
        more.cast(held.type)
    except pa.ArrowInvalid:
        return False
    return True


@dataclass(eq=False)
class MergedRows:
    """Rows of both sides in canonical order, and what was found on the way.

    Attributes:
        old: opened blocks.
        new: new rows in canonical order, in the codes of the merged names.
        duplicates: which answer counts if a worker has an old and a new one to a task; "error" counts as "first".
        repeated: number of new rows on such pairs, as far as the rows were read.
        examples: tasks and workers of the first of them.
    """

    old: Reports
    new: ReportChunk
    duplicates: Duplicates
    repeated: int = 0
    examples: list[tuple[int, int]] = field(default_factory=list)

    def chunks(self) -> Iterator[ReportChunk]:
        """Yield all rows, old block by old block, then those on new tasks."""
        for block in self.old.blocks():
            rows = slice(*np.searchsorted(self.new.task, (block.first, block.stop)))
            yield self._merged(ReportChunk(block.task + block.first, block.worker, block.value), self._new_rows(rows))
        yield self._new_rows(slice(int(np.searchsorted(self.new.task, len(self.old.tasks))), None))

    def _new_rows(self, rows: slice) -> ReportChunk:
        return ReportChunk(*(column[rows] for column in self.new))

    def _merged(self, old: ReportChunk, new: ReportChunk) -> ReportChunk:
        if not len(new.task):
            return old
        if self.duplicates == "all":
            task, worker, value = (np.concatenate(columns) for columns in zip(old, new, strict=True))
            return ReportChunk(*sort_canonically(task, worker, value))
        held, given = (_pairs(chunk) for chunk in (old, new))
        place = np.searchsorted(held, given)
        both = np.append(held, -1)[place] == given
        self._count(new, both)
        if self.duplicates == "last":
            old = _without(old, np.isin(np.arange(len(held)), place[both]))
            place = np.searchsorted(_pairs(old), given)
        else:
            new, place = _without(new, both), place[~both]
        return ReportChunk(*(np.insert(column, place, more) for column, more in zip(old, new, strict=True)))

    def _count(self, new: ReportChunk, both: NDArray[np.bool_]) -> None:
        self.repeated += int(both.sum())
        shown = np.flatnonzero(both)[: EXAMPLES_SHOWN - len(self.examples)]
        self.examples += zip(new.task[shown].tolist(), new.worker[shown].tolist(), strict=True)


def rows_in_merged_codes(new: Reports, tasks: MergedNames, workers: MergedNames) -> ReportChunk:
    """Return the rows of new reports in the codes of the merged names, in canonical order."""
    task, worker = (side.codes[codes].astype(np.int32) for side, codes in ((tasks, new.task), (workers, new.worker)))
    counted = sort_by_counting(task, worker, new.value, (len(tasks.names), len(workers.names), max(1, new.labels)))
    return ReportChunk(*(sort_canonically(task, worker, new.value) if counted is None else counted[:3]))


def _pairs(chunk: ReportChunk) -> NDArray[np.int64]:
    """Return one number for task and worker of each row, ascending as the rows do."""
    return chunk.task.astype(np.int64) << WORKER_BITS | chunk.worker


def _without(chunk: ReportChunk, rows: NDArray[np.bool_]) -> ReportChunk:
    return ReportChunk(*(column[~rows] for column in chunk))
