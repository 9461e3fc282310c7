"""CSV file of the pairs of a campaign that asks for comparisons, and the draw of who is shown which side.

A pair has two tasks, one for each order of its items. A worker who is asked a pair gets one of them: the order is drawn
with the assignment, which everybody can see, before anyone answers and independently of the answers. So the side on
which an item was shown is public, and its effect can be estimated.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crowdveil.campaign.rules.document import Task
from crowdveil.campaign.settings.draw_assignment import Excluded, draw_assignment
from crowdveil.campaign.settings.public_lists import ReadBytes, TaskRow, checked_cell, first_bytes, not_for, read_rows
from crowdveil.channels.compared_pairs import Pair, checked_pairs, refuse_repeated_pairs
from crowdveil.randomness import Source
from crowdveil.standalone.checks import MAX_ID, MAX_TEXT

PAIR_COLUMNS = ("left", "right", "left_text", "right_text", "list", "not_for")
ORDERS = 2
"""Tasks of a pair: 2 k has pair k in the order of the file, 2 k + 1 in the other one."""
SIDES = {"de": ("Links", "Rechts"), "en": ("Left", "Right")}
"""Names of the two sides, by language of the campaign."""


class ComparedPairs(NamedTuple):
    """Pairs of a campaign, and their tasks."""

    pairs: tuple[Pair, ...]
    rows: tuple[TaskRow, ...]


def read_compared_pairs(path: Path, language: str, read: ReadBytes = first_bytes) -> ComparedPairs:
    """Return the pairs of a CSV file with the columns left and right, and maybe left_text, right_text, list, not_for.

    Workers see the texts of the two items, by default their names.

    Raises:
        ReportsError: an unreadable file, an unknown column, an empty name, an item against itself, or a repeated pair.
    """
    rows = read_rows(path, PAIR_COLUMNS, required=("left", "right"), read=read)
    names = {
        column: [checked_cell(path, line, column, row[column], MAX_ID) for line, row in rows.items()]
        for column in ("left", "right")
    }
    lists = [row["list"].strip() for row in rows.values()]
    pairs = checked_pairs(names["left"], names["right"], lists, str(path))
    refuse_repeated_pairs(pairs, None, str(path))
    for line, pair in zip(rows, pairs, strict=True):
        checked_cell(path, line, "left, right and list", pair.name, MAX_ID)
    tasks = [
        TaskRow(task, None, not_for(row["not_for"]))
        for (line, row), pair in zip(rows.items(), pairs, strict=True)
        for task in _both_orders(path, line, row, pair, SIDES.get(language.partition("-")[0], SIDES["en"]))
    ]
    return ComparedPairs(tuple(pairs), tuple(tasks))


def _both_orders(path: Path, line: int, row: Mapping[str, str], pair: Pair, sides: tuple[str, str]) -> list[Task]:
    """Return the tasks of a pair in the order of the file and in the other one."""
    texts = [
        checked_cell(path, line, f"{side}_text", row[f"{side}_text"].strip() or name, MAX_TEXT // 3)
        for side, name in (("left", pair.left), ("right", pair.right))
    ]
    return [
        Task(shown.name, "\n".join(f"{side}: {text}" for side, text in zip(sides, ordered, strict=True)))
        for shown, ordered in ((pair, texts), (pair.turned, texts[::-1]))
    ]


def draw_sides(
    pairs: int, slots: int, per_worker: int | None, excluded: Excluded, source: Source
) -> tuple[tuple[int, ...], ...]:
    """Return the task indices of each slot, ascending: of each assigned pair one order, both with probability 1/2.

    Args:
        pairs, slots, per_worker: numbers of pairs and slots, and of pairs of each slot; None for all.
        excluded: tasks that each slot must not get; a pair is left out if one of its orders is.
        source: randomness.

    Raises:
        SettingsError: a slot has fewer pairs left than it needs.
    """
    drawn = draw_assignment(pairs, slots, per_worker, pairs_of_tasks(excluded), source)
    bits = (source.words(sum(map(len, drawn))) & np.uint64(1)).tolist()
    ends = np.cumsum([0, *map(len, drawn)]).tolist()
    return tuple(
        tuple(ORDERS * pair + int(bit) for pair, bit in zip(own, bits[ends[slot] :], strict=False))
        for slot, own in enumerate(drawn)
    )


def pairs_of_tasks(tasks: Sequence[Collection[int]]) -> list[frozenset[int]]:
    """Return the pairs of the tasks of each slot."""
    return [frozenset(task // ORDERS for task in own) for own in tasks]
