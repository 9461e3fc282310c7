"""Comparisons: which of two items a worker finds better, as integer codes.

A comparison is (left item, right item, worker, answer). The answer is `left`, `tie` or `right`, or the report that a
channel made of it. Items of different lists are never compared: two lists with an item of one name have two items.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.display.counts import number_of
from crowdveil.errors import ReportsError

LEFT, TIE, RIGHT = "left", "tie", "right"
ANSWERS = (LEFT, TIE, RIGHT)
"""Answers in the order of their codes."""
EXAMPLES = 3
"""Rows and names per message."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparisons:
    """Comparisons of pairs of items by workers.

    Attributes:
        left, right: codes of the two items as they were shown, shape (rows,).
        worker: codes of the workers, shape (rows,).
        answer: codes into `symbols`, shape (rows,).
        items: names of the items by code.
        workers: names of the workers by code.
        symbols: possible answers or reports.
        answer_names: possible answers: `left` and `right`, and `tie` unless workers cannot give it.
        lists: names of the lists; one empty name without lists.
        list_of_item: code of the list of each item, shape (items,).
        weight: weight of each row, shape (rows,); None if all are 1.
        source: origin of the rows, for messages.

    Raises:
        ReportsError: no row, an item compared with itself, or items of two lists compared.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    worker: NDArray[np.int32]
    answer: NDArray[np.int32]
    items: NDArray[Any]
    workers: NDArray[Any]
    list_of_item: NDArray[np.int32]
    symbols: tuple[str, ...] = ANSWERS
    answer_names: tuple[str, ...] = ANSWERS
    lists: tuple[str, ...] = ("",)
    weight: NDArray[np.float64] | None = None
    source: str = "data"

    def __post_init__(self) -> None:
        if not len(self.left):
            hint = "Give a row for each comparison: left, right, worker, label."
            raise ReportsError("a ranking needs at least one comparison", source=self.source, hint=hint)
        itself = np.flatnonzero(self.left == self.right)
        if len(itself):
            raise ReportsError(
                "an item cannot be compared with itself",
                source=self.source,
                rows=tuple(int(row) + 1 for row in itself[:EXAMPLES]),
                examples=", ".join(repr(str(name)) for name in dict.fromkeys(self.items[self.left[itself]]))[:200],
                hint="Leave these rows out, or correct the item.",
            )

    def __len__(self) -> int:
        """Number of comparisons."""
        return len(self.left)

    def __repr__(self) -> str:
        """Return the size."""
        sizes = (len(self), "comparison"), (len(self.items), "item"), (len(self.workers), "worker")
        rows, items, workers = (number_of(*size) for size in sizes)
        lists = f" in {number_of(len(self.lists), 'list')}" if len(self.lists) > 1 else ""
        return f"<Comparisons: {rows} of {items}{lists} by {workers}>"

    @cached_property
    def group_of_item(self) -> NDArray[np.int32]:
        """Code of the group of each item: groups are connected by comparisons, and ordered by their first item."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        links = coo_array((np.ones(len(self), dtype=np.int8), (self.left, self.right)), shape=(len(self.items),) * 2)
        found: NDArray[np.int32] = connected_components(links.tocsr(), directed=False)[1]
        return found

    @property
    def groups(self) -> int:
        """Number of groups of items without a comparison between them."""
        return int(self.group_of_item.max()) + 1

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of symbols, names, and all rows with their weights, whatever their order, in hexadecimal."""
        columns: list[NDArray[Any]] = [self.left, self.right, self.worker, self.answer]
        if self.weight is not None:
            columns.append(self.weight)
        order = np.lexsort(columns)
        names = [self.symbols, self.lists, self.list_of_item.tolist(), self.items.tolist(), self.workers.tolist()]
        found = hashlib.sha256(json.dumps([len(self), *names], default=str).encode())
        for column in columns:
            found.update(np.ascontiguousarray(column[order]).data)
        return found.hexdigest()

    @property
    def in_canonical_order(self) -> "Comparisons":
        """The same comparisons, sorted by items, worker and answer."""
        return self.only_rows(np.lexsort((self.answer, self.worker, self.right, self.left)))

    def only_rows(self, rows: NDArray[Any]) -> "Comparisons":
        """Return some rows of the same items and workers."""
        kept = {name: getattr(self, name)[rows] for name in ("left", "right", "worker", "answer")}
        return replace(self, **kept, weight=None if self.weight is None else self.weight[rows])

    def with_answers(self, answer: NDArray[np.integer]) -> "Comparisons":
        """Return the rows with other answers."""
        return replace(self, answer=np.asarray(answer, dtype=np.int32))

    def with_weights(self, weight: NDArray[np.float64]) -> "Comparisons":
        """Return the rows with weights."""
        return replace(self, weight=np.asarray(weight, dtype=np.float64))

    def name_of_item(self, item: int) -> str:
        """Return the name of an item, behind that of its list if there are several."""
        name = str(self.items[item])
        return f"{self.lists[self.list_of_item[item]]}: {name}" if len(self.lists) > 1 else name

    def notes(self) -> tuple[str, ...]:
        """Return sentences on groups within a list that no comparison connects, and on what would connect them."""
        found = []
        for code, name in enumerate(self.lists):
            members = np.flatnonzero(self.list_of_item == code)
            groups = [members[self.group_of_item[members] == group] for group in
                      dict.fromkeys(self.group_of_item[members].tolist())]  # fmt: skip
            if len(groups) > 1:
                where = f" of the list {name!r}" if name else ""
                found.append(
                    f"No comparison connects {len(groups)} groups of items{where}: {self._groups_text(groups)}. "
                    f"Each is ranked alone. {self._connection_text(groups)}"
                )
        return tuple(found)

    def _groups_text(self, groups: Sequence[NDArray[Any]]) -> str:
        shown = [_first_names(self.items[group]) for group in groups[:EXAMPLES]]
        return "; ".join(shown) + (f"; and {len(groups) - EXAMPLES} more" if len(groups) > EXAMPLES else "")

    def _connection_text(self, groups: Sequence[NDArray[Any]]) -> str:
        """Return one comparison for each further group, by which the groups would be connected."""
        first = self.items[groups[0][0]]
        pairs = [f"{str(first)!r} with {str(self.items[group[0]])!r}" for group in groups[1 : EXAMPLES + 1]]
        more = ", and so on" if len(groups) > EXAMPLES + 1 else ""
        return f"To connect them, compare {', '.join(pairs)}{more}."


def _first_names(names: NDArray[Any]) -> str:
    shown = ", ".join(repr(str(name)) for name in names[:EXAMPLES])
    return shown + (f" and {number_of(len(names) - EXAMPLES, 'other')}" if len(names) > EXAMPLES else "")


def comparisons_of_names(
    left: Sequence[Any], right: Sequence[Any], worker: Sequence[Any], answer: Sequence[int], **given: Any
) -> Comparisons:
    """Return comparisons of one list from names of items and workers, and codes of answers."""
    items, codes = np.unique(np.concatenate([np.asarray(left), np.asarray(right)]), return_inverse=True)
    workers, by = np.unique(np.asarray(worker), return_inverse=True)
    return Comparisons(
        left=codes[: len(left)].astype(np.int32),
        right=codes[len(left) :].astype(np.int32),
        worker=by.astype(np.int32),
        answer=np.asarray(answer, dtype=np.int32),
        items=items,
        workers=workers,
        list_of_item=np.zeros(len(items), dtype=np.int32),
        **given,
    )
