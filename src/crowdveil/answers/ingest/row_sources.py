"""Sources of rows that stand elsewhere: some rows of a source, and the rows of several files one after the other."""

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import RowSource, place_of_rows


def source_of_kept_rows(source: str, kept: NDArray[Any], name: str = "") -> RowSource:
    """Return the source of some rows of another, whose errors name the place where a row stood before.

    Args:
        source: the other source.
        kept: positions of the rows there, or a mask of them.
        name: its name, by default that of the other.
    """
    rows = np.flatnonzero(kept) if kept.dtype == np.bool_ else kept
    return RowSource(name or str(source), partial(_place_of_kept_rows, source, rows))


def _place_of_kept_rows(source: str, kept: NDArray[Any], rows: tuple[int, ...]) -> str:
    return place_of_rows(source, tuple(dict.fromkeys(int(kept[row - 1]) + 1 for row in rows)))


def source_of_files(name: str, sources: Sequence[str], lengths: Sequence[int]) -> RowSource:
    """Return the source of the rows of several files, whose errors name the file and the row within it.

    Args:
        name: name of all.
        sources: the source of each file.
        lengths: number of rows of each.
    """
    return RowSource(name, partial(_place_in_files, tuple(sources), np.cumsum([0, *lengths])))


def _place_in_files(sources: tuple[str, ...], starts: NDArray[np.int64], rows: tuple[int, ...]) -> str:
    files = [(int(np.searchsorted(starts, row - 1, side="right")) - 1, row) for row in rows]
    return "; ".join(
        place_of_rows(sources[file], tuple(row - int(starts[file]) for _, row in group))
        for file, group in groupby(files, lambda one: one[0])
    )
