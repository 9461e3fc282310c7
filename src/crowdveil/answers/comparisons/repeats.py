"""Repeated comparisons: a worker who compares the same two items again, in either order."""

import numpy as np

from crowdveil.answers.comparisons.values import EXAMPLES, Comparisons
from crowdveil.answers.ingest.column_checks import Duplicates
from crowdveil.arguments import require_choice
from crowdveil.display.counts import number_of, verb_of
from crowdveil.errors import ReportsError
from crowdveil.hints import advice, one_of


def without_repeats(rows: Comparisons, policy: Duplicates = "all") -> Comparisons:
    """Return comparisons of which a worker has each pair once; under "all", the default, as they are.

    A judge of many texts compares the same two models again and again, so repeats are no fault by default.

    Raises:
        ReportsError: a worker compares a pair again, and the policy is "error".
        SettingsError: an unknown policy.
    """
    require_choice("duplicates", policy, ("all", "first", "last", "error"), hint="By default every row counts.")
    if policy == "all":
        return rows
    low, high = np.minimum(rows.left, rows.right), np.maximum(rows.left, rows.right)
    order = np.lexsort((np.arange(len(rows)), high, low, rows.worker))
    columns = [column[order] for column in (rows.worker, low, high)]
    again = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    if policy == "error" and again.any():
        raise _repeats_error(rows, np.sort(order[1:][again]))
    kept = np.concatenate([~again, [True]]) if policy == "last" else np.concatenate([[True], ~again])
    return rows.only_rows(np.sort(order[kept]))


def _repeats_error(rows: Comparisons, repeated: np.ndarray) -> ReportsError:
    shown = repeated[:EXAMPLES]
    pairs = [f"({rows.items[rows.left[row]]}, {rows.items[rows.right[row]]}, {rows.workers[rows.worker[row]]})"
             for row in shown]  # fmt: skip
    return ReportsError(
        f"a worker compares a pair once, but {number_of(len(repeated), 'row')} "
        f"{verb_of(len(repeated), 'repeats', 'repeat')} one",
        source=rows.source,
        rows=tuple(int(row) + 1 for row in shown),
        examples=", ".join(pairs),
        hint=one_of(
            "correct the rows",
            advice("choose {duplicates}", duplicates="first"),
            advice("{duplicates}", duplicates="last"),
            advice("{duplicates}, if each row is a comparison of its own", duplicates="all"),
        ),
    )
