"""Comparisons of two items: their answers, and pairs as tasks, whose name has both items: `aspen|birch`.

The first item is shown left. A pair of one of several lists has the name of the list before it. The same two items in
the other order are the same question, so a worker is asked a pair in one order only.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet, Categories
from crowdveil.errors import ReportsError

COMPARISON_ANSWERS = Categories(("left", "tie", "right"))
"""Possible answers to a comparison."""
BAR = "|"
"""Sign between the items in the name of a pair."""
EXAMPLES = 3
"""Rows and names per message."""


class Pair(NamedTuple):
    """Two items as they are shown, and their list; empty without lists."""

    left: str
    right: str
    list: str = ""

    @property
    def name(self) -> str:
        """Name of the task."""
        return BAR.join([self.list, self.left, self.right] if self.list else [self.left, self.right])

    @property
    def turned(self) -> "Pair":
        """The same pair in the other order."""
        return Pair(self.right, self.left, self.list)

    @property
    def question(self) -> "Pair":
        """The pair in the order that both orders have in common."""
        return min(self, self.turned)


def are_comparisons(alphabet: Alphabet | None, tasks: Iterable[str]) -> bool:
    """Return whether tasks with these possible answers are comparisons: left, tie and right, of named pairs."""
    return alphabet == COMPARISON_ANSWERS and all(map(_names_pair, tasks))


def _names_pair(task: str) -> bool:
    parts = task.split(BAR)
    return len(parts) in (2, 3) and all(parts)


def pair_of_name(name: str, source: str = "tasks") -> Pair:
    """Return the pair of the name of a task.

    Raises:
        ReportsError: the name is not that of a pair.
    """
    if not _names_pair(name):
        raise ReportsError(
            "a task that is a comparison is named by its two items",
            source=source,
            examples=repr(name[:100]),
            hint="Such as 'aspen|birch', or 'trees|aspen|birch' for an item of a list.",
        )
    *of, left, right = name.split(BAR)
    return Pair(left, right, *of)


def checked_pairs(
    left: Iterable[object], right: Iterable[object], lists: Iterable[object] | None, source: str
) -> list[Pair]:
    """Return the pairs of columns of names.

    Raises:
        ReportsError: an item is compared with itself, or a name is empty or has a bar.
    """
    first, second = list(map(str, left)), list(map(str, right))
    of = [""] * len(first) if lists is None else list(map(str, lists))
    found = [Pair(*names) for names in zip(first, second, of, strict=True)]
    _refuse(
        [not (pair.left and pair.right) or any(BAR in name for name in pair) for pair in found],
        found,
        f"a name of an item or list must have a sign, and no {BAR}",
        source,
        f"Rename it: a pair is named by its items with {BAR} between them.",
    )
    itself = [pair.left == pair.right for pair in found]
    _refuse(itself, found, "an item cannot be compared with itself", source, "Leave these rows out.")
    return found


def refuse_repeated_pairs(pairs: Sequence[Pair], workers: Sequence[str] | None, source: str) -> None:
    """Refuse a pair that is listed twice, or that a worker has twice, in whatever order: it is one question.

    Raises:
        ReportsError: a pair is repeated.
    """
    owners = [""] * len(pairs) if workers is None else workers
    seen, again = set[tuple[str, Pair]](), []
    for owner, pair in zip(owners, pairs, strict=True):
        again.append((owner, pair.question) in seen)
        seen.add((owner, pair.question))
    who = "is listed once" if workers is None else "is asked of a worker once"
    _refuse(again, pairs, f"a pair {who}, in whatever order", source, "Keep one row: the other order asks the same.")


def _refuse(wrong: Sequence[bool], pairs: Sequence[Pair], rule: str, source: str, hint: str) -> None:
    rows: NDArray[np.int64] = np.flatnonzero(wrong)
    if len(rows):
        raise ReportsError(
            rule,
            source=source,
            rows=tuple(int(row) + 1 for row in rows[:EXAMPLES]),
            examples=", ".join(repr(pairs[row].name) for row in rows[:EXAMPLES].tolist())[:200],
            hint=hint,
        )
