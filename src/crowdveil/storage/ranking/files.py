"""Files of a ranking: ranks.csv, pairs.csv and workers.csv."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.answers.write_reports import write_table
from crowdveil.files.atomic_write import Outputs, write_outputs
from crowdveil.inference.ranking.ranking import Ranking

PAIRS, WORKERS, RANKS = "pairs.csv", "workers.csv", "ranks.csv"
MOST_PAIRS = 500_000
"""Pairs from which their file is not written."""


def ranking_outputs(folder: Path) -> Outputs:
    """Return the files that a ranking may write into a folder."""
    return Outputs(folder=folder, names=(PAIRS, WORKERS, RANKS), kind="ranking", remove_stale=True)


def write_ranking(outputs: Outputs, found: Ranking) -> list[Path]:
    """Write the files of a ranking, and return them; that of pairs is left out if it were too long.

    Raises:
        SettingsError: as `write_outputs`.
    """
    tables = {WORKERS: found.workers(), RANKS: found.items()}
    if found.has_pairs and found.told_apart[1] <= MOST_PAIRS:
        tables[PAIRS] = found.pairs()
    names = tuple(name for name in outputs.names if name in tables)
    chosen = Outputs(folder=outputs.folder, names=names, kind=outputs.kind, remove_stale=True)
    write_outputs(chosen, {name: partial(_write, columns=tables[name]) for name in names})
    return chosen.paths


def _write(stream: Any, columns: Mapping[str, NDArray[Any]]) -> None:
    write_table(stream, pa.table({name: pa.array(np.asarray(column)) for name, column in columns.items()}))
