"""Hypothesis strategies for small crowds, shared by all tests.

Names are deliberately awkward (commas, quotes, spaces), and neither tasks nor workers are listed in sorted order.
"""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Alphabet, Categories, squares_safely

LABELS = ("no", "yes", "maybe", 'can\'t say, "really"')
MAX_TASKS, MAX_WORKERS = 5, 5


def categories(min_labels: int = 2, max_labels: int = 4, ordered: bool = False) -> st.SearchStrategy[Categories]:
    """Draw an alphabet of `min_labels` to `max_labels` (at most 4) labels."""
    return st.integers(min_labels, max_labels).map(lambda size: Categories(LABELS[:size], ordered))


def crowd_names(stem: str, most: int) -> st.SearchStrategy[list[str]]:
    """Draw 1 to `most` distinct names, in no sorted order."""
    return st.integers(1, most).flatmap(lambda size: st.permutations([f'{stem} "{k}", ü' for k in range(size)]))


@st.composite
def small_reports(
    draw: st.DrawFn,
    *,
    min_labels: int = 2,
    max_labels: int = 4,
    max_tasks: int = MAX_TASKS,
    max_workers: int = MAX_WORKERS,
    min_reports: int = 1,
    ordered: bool = False,
) -> Reports:
    """Draw categorical reports without repeated pairs; some tasks and workers may have none."""
    alphabet = draw(categories(min_labels, max_labels, ordered))
    label = st.sampled_from(alphabet.names)
    return _draw_reports(draw, alphabet, label, (max_tasks, max_workers), min_reports)


@st.composite
def small_numeric_reports(
    draw: st.DrawFn,
    *,
    low: float = -100.0,
    high: float = 100.0,
    max_tasks: int = MAX_TASKS,
    max_workers: int = MAX_WORKERS,
    min_reports: int = 1,
) -> Reports:
    """Draw reports of free numbers in [low, high] without repeated pairs; some tasks and workers may have none."""
    number = st.floats(low, high, allow_nan=False).filter(lambda number: bool(squares_safely(number)))
    return _draw_reports(draw, None, number, (max_tasks, max_workers), min_reports)


def _draw_reports(
    draw: st.DrawFn,
    alphabet: Alphabet | None,
    value: st.SearchStrategy[Any],
    most: tuple[int, int],
    min_reports: int,
) -> Reports:
    tasks, workers = draw(crowd_names("task", most[0])), draw(crowd_names("worker", most[1]))
    pair = st.tuples(st.sampled_from(tasks), st.sampled_from(workers))
    # A single pair may be all there is: never ask for more reports than there are pairs.
    cells = draw(st.dictionaries(pair, value, min_size=min(min_reports, len(tasks) * len(workers))))
    return Reports.from_arrays(
        np.array([task for task, _ in cells], dtype=str),
        np.array([worker for _, worker in cells], dtype=str),
        list(cells.values()),
        alphabet=alphabet,
        numeric=alphabet is None,
        tasks=tasks,
        workers=workers,
    )
