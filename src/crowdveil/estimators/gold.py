"""Known truths: put into the order of the tasks, and into the posteriors of those whose truth they are."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import ReportsError
from crowdveil.labels import Alphabet, Scale
from crowdveil.reports import Reports

NO_GOLD = -1
"""The code of a task whose truth is not known."""


def align_gold(
    reports: Reports, gold: Mapping[Any, Any] | None, alphabet: Alphabet | None, *, numeric: bool
) -> tuple[NDArray[Any], int]:
    """Return known truths in task order, and how many gold tasks have no place among the tasks.

    Codes of `alphabet`, which truths are inferred in, with NO_GOLD where unknown; or, if `numeric`, numbers (a label's
    position for categories) with nan.

    Raises:
        ReportsError: a gold truth is not in the alphabet, or not a number.
    """
    read = _gold_reader(alphabet, numeric)
    aligned = np.full(len(reports.tasks), np.nan if numeric else NO_GOLD, dtype=float if numeric else int)
    place = {str(name): code for code, name in enumerate(reports.tasks)} if gold else {}
    unknown = 0
    for task, truth in (gold or {}).items():
        at = place.get(str(task))
        if at is None:
            unknown += 1
            continue
        try:
            aligned[at] = read(truth)
        except (KeyError, TypeError, ValueError) as error:
            known = "a number" if alphabet is None else f"among {alphabet.names}"
            raise ReportsError(f"gold {truth!r} of task {task!r} must be {known}", source="gold") from error
    return aligned, unknown


def _gold_reader(alphabet: Alphabet | None, numeric: bool) -> Callable[[Any], float]:
    """Return what turns one gold truth into a code or a number; raises a KeyError, TypeError or ValueError."""
    if alphabet is None or (numeric and isinstance(alphabet, Scale)):
        return float
    if isinstance(alphabet, Scale):
        # The names, unlike the values, are the floats that people write: 0.3 and not 0.1 * 3.
        codes = {float(name): code for code, name in enumerate(alphabet.names)}
        return lambda truth: codes[float(truth)]
    names = {name: code for code, name in enumerate(alphabet.names)}
    return lambda truth: names[str(truth)]


def one_hot_gold(posterior: NDArray[np.float64], gold: NDArray[np.int64]) -> NDArray[np.float64]:
    """Replace the posterior of each task whose truth is known by certainty; arrays indexed [task, label] and [task]."""
    known = np.flatnonzero(gold >= 0)
    fixed = posterior.copy() if known.size else posterior
    fixed[known] = 0.0
    fixed[known, gold[known]] = 1.0
    return fixed
