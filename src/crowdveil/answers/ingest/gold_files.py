"""Files of known truths (gold), in every form in which truths are written, and the seed of their draw."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.importers.export_file import read_given_columns
from crowdveil.answers.ingest.column_checks import (
    MISSING,
    CodedColumn,
    encode_ids,
    parse_number_column,
    refuse_invalid_rows,
    with_sorted_distinct_numbers,
)
from crowdveil.answers.ingest.column_readers import GOLD, match_columns
from crowdveil.answers.ingest.row_sources import source_of_kept_rows
from crowdveil.errors import ReportsError

SEED, PROPOSED = "seed", "proposed"
"""Columns of gold that `data draw-gold` drew, and of tasks that `next` lists for a person: truths may be empty yet."""
OPEN = (SEED, PROPOSED)


class DrawnGold(NamedTuple):
    """Known truths by task, the seed of their draw, None without one, and whether their tasks were chosen to decide."""

    truths: Mapping[Any, Any]
    seed: int | None
    chosen: bool = False


def load_gold_and_seed(
    path: str | PathLike[str],
    *,
    kind: Literal["categorical", "numeric"] | None = None,
    conflicts: Literal["error", "first"] = "error",
) -> DrawnGold:
    """Return known truths by task, labels (text), or numbers if `kind` is numeric or the column is `value`; their seed.

    Raises:
        ReportsError: a damaged file, a missing task or truth, an invalid number, or two truths of one task (under
            conflicts="first" the first is used).
    """
    read = read_given_columns(Path(path), GOLD, optional=OPEN)
    numeric = kind == "numeric" or (kind is None and read.roles["truth"] == "value")
    columns = read.coded if numeric else read.coded | {"truth": with_sorted_distinct_numbers(read.coded["truth"])}
    return gold_of_columns(columns, read.source, numeric=numeric, conflicts=conflicts)


def gold_roles(found: Sequence[str], source: str) -> dict[str, str]:
    """Return the column of the tasks, of the truths, and those of `OPEN` that are there; errors as `match_columns`."""
    return match_columns(found, GOLD, source) | {name: name for name in OPEN if name in found}


def gold_of_columns(
    columns: Mapping[str, CodedColumn],
    source: str,
    *,
    numeric: bool = False,
    conflicts: Literal["error", "first"] = "error",
) -> DrawnGold:
    """Return known truths from the columns of their roles, as `load_gold_and_seed`.

    Those of text are numbers if `numeric`. Of lists of tasks to decide, those whose truth is still empty are left out.
    """
    if not columns.keys().isdisjoint(OPEN):
        columns, source = _without_empty_truths(columns, source)
    task, truth = columns["task"], columns["truth"]
    names, codes = encode_ids(task, None, "task", source)
    refuse_invalid_rows(
        truth,
        _is_empty_truth_per_name(truth),
        "every gold task needs a truth",
        source=source,
        hint="Leave the row out.",
    )
    truths: NDArray[Any] = truth.names[truth.codes]
    if numeric:
        truths = parse_number_column(truth, source)
    first = np.unique(codes, return_index=True)[1]
    differs = truths != truths[first][codes]
    if conflicts == "error" and differs.any():
        other = CodedColumn(names, codes.astype(np.int32)).keep(differs)
        raise ReportsError(
            f"a gold task has one truth, but {int(differs.sum())} rows contradict an earlier one",
            source=source,
            rows=tuple(int(row) + 1 for row in np.flatnonzero(differs)[:5]),
            examples=", ".join(repr(str(name)) for name in names[other.codes[:5]]),
            hint="Keep one row per task.",
        )
    found = dict(zip(names.tolist(), truths[first].tolist(), strict=True))
    return DrawnGold(found, _only_seed(columns.get(SEED), source), PROPOSED in columns)


def _is_empty_truth_per_name(truth: CodedColumn) -> NDArray[np.bool_]:
    """Return whether each name of a column is no truth."""
    return np.array([name == "" or name != name for name in truth.names.tolist()], dtype=bool)


def _without_empty_truths(columns: Mapping[str, CodedColumn], source: str) -> tuple[dict[str, CodedColumn], str]:
    """Return the columns of gold without the rows whose truth is still empty, and the source of those that are left."""
    truth = columns["truth"]
    rows = np.delete(np.arange(len(truth)), truth.invalid_positions(_is_empty_truth_per_name(truth)))
    if not len(rows):
        order = ", from the top" if SEED in columns else ""
        hint = f"Write the truths into the column truth{order}."
        raise ReportsError("no truth is known yet", source=source, hint=hint)
    kept = {role: column.restricted_to_rows(rows) for role, column in columns.items()}
    return kept, source_of_kept_rows(source, rows)


def _only_seed(column: CodedColumn | None, source: str) -> int | None:
    """Return the one seed in a column of seeds; None without the column."""
    if column is None:
        return None
    seeds = sorted(set(map(str, column.cells.tolist()))) if (column.codes != MISSING).all() else [""]
    if len(seeds) != 1 or not seeds[0].isdecimal():
        raise ReportsError(
            "the column seed must hold the one seed of the draw",
            source=source,
            examples=", ".join(map(repr, seeds[:3])),
            hint="Keep the column as `crowdveil data draw-gold` wrote it, or leave it out.",
        )
    return int(seeds[0])
