"""Tasks drawn at random to be answered by people who know, in an order that anybody can check.

Tasks are in the order of SHA-256("SEED, line feed, TASK"); the first n are a simple random sample of the tasks with
reports, and the next ones extend it. So a file of gold needs its seed only: the gold tasks must be the first ones.
"""

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.data.identifiers import Identifiers
from crowdveil.errors import ReportsError

MAX_SEED = 2**31
SHOWN = 3


def new_seed() -> int:
    """Return a random seed below `MAX_SEED`, from the operating system."""
    return secrets.randbelow(MAX_SEED)


def draw_order(tasks: Iterable[Any], seed: int) -> NDArray[np.int64]:
    """Return the positions of tasks in the order of their draw, shape (tasks,)."""
    keys = [hashlib.sha256(f"{seed}\n{task}".encode()).digest() for task in tasks]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def drawn_tasks(tasks: Identifiers, reports: NDArray[np.integer], seed: int) -> list[str]:
    """Return the names of the tasks with reports in the order of their draw.

    Args:
        tasks: names of tasks.
        reports: their numbers of reports, shape (tasks,).
        seed: of the draw.
    """
    names = [str(tasks[code]) for code in np.flatnonzero(reports).tolist()]
    return [names[place] for place in draw_order(names, seed).tolist()]


def require_drawn(gold: Mapping[str, Any], order: list[str], seed: int, source: str = "gold") -> None:
    """Check that the gold tasks with reports are the first ones of the order of their seed.

    Raises:
        ReportsError: a task that was drawn before one of them has no known truth.
    """
    wanted = set(order).intersection(gold)
    missing = [task for task in order[: len(wanted)] if task not in wanted]
    if missing:
        raise ReportsError(
            f"gold must be the first tasks of the draw with seed {seed}, without gaps: {len(missing):,} are missing",
            source=source,
            examples=", ".join(map(repr, missing[:SHOWN])),
            hint="Find the truths of these tasks too, or draw with `crowdveil data draw-gold` and keep its order. "
            "Tasks that are left out because they are hard or were added later make the sample unlike the others.",
        )
