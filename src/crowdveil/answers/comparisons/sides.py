"""Sides of assigned pairs: which of two items is shown left, drawn before anyone answers."""

from itertools import chain

import numpy as np

from crowdveil.answers.assignment import Assignment
from crowdveil.channels.compared_pairs import pair_of_name
from crowdveil.files.csv_rows import csv_row
from crowdveil.randomness import Source


def with_drawn_sides(assignment: Assignment, source: Source) -> Assignment:
    """Return an assignment of pairs in which the order of each is kept or turned with equal probability.

    Raises:
        ReportsError: a task is no pair.
    """
    pairs = [pair_of_name(str(name), "assignment") for name in assignment.tasks.tolist()]
    turned = (source.words(len(assignment)) & np.uint64(1)).astype(bool).tolist()
    shown = [
        (pairs[task].turned if other else pairs[task]).name
        for task, other in zip(assignment.task.tolist(), turned, strict=True)
    ]
    return Assignment.from_arrays(
        np.array(shown, dtype=object), assignment.workers[assignment.worker], workers=assignment.workers
    )


def assigned_pairs_csv(assignment: Assignment) -> str:
    """Return the text of a CSV file: left, right and worker of each cell, and the list if there are lists."""
    pairs = [pair_of_name(str(name), "assignment") for name in assignment.tasks.tolist()]
    lists = any(pair.list for pair in pairs)
    header = ("left", "right", "worker", *(("list",) if lists else ()))
    rows = (
        (pair.left, pair.right, str(worker), *((pair.list,) if lists else ()))
        for pair, worker in zip(
            (pairs[task] for task in assignment.task.tolist()), assignment.workers[assignment.worker], strict=True
        )
    )
    return "".join(csv_row(row) + "\n" for row in chain([header], rows))
