"""Files of a ranking: ranks.csv, pairs.csv and workers.csv, with the record of what they depend on."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.answers.facts.inputs import inputs_to_json
from crowdveil.answers.write_reports import write_table
from crowdveil.files.atomic_write import Outputs, write_outputs
from crowdveil.inference.ranking.ranking import Ranking
from crowdveil.storage.estimate_files import RANKING, RANKS, WARNINGS
from crowdveil.storage.ranking.comparisons import ReadComparisons

PAIRS, WORKERS = "pairs.csv", "workers.csv"
MOST_PAIRS = 500_000
"""Pairs from which their file is not written."""


def ranking_outputs(folder: Path) -> Outputs:
    """Return the files that a ranking may write into a folder."""
    return Outputs(folder=folder, names=(PAIRS, WORKERS, RANKS), kind=RANKING, remove_stale=True)


def write_ranking(
    outputs: Outputs,
    found: Ranking,
    read: ReadComparisons,
    gold: Path | None = None,
    *,
    public_gold: bool = False,
    reading: str = "",
) -> list[Path]:
    """Write the files of a ranking with the record of what it depends on, and return them.

    The file of pairs is left out if it were too long.

    Args:
        outputs: files of the ranking.
        found: the ranking.
        read: its comparisons.
        gold: file of known orders; None without one.
        public_gold: whether they are stated to be independent of all answers.
        reading: how checked reports were read (`NamedReports.portable_json`); empty for others.

    Raises:
        SettingsError: as `write_outputs`.
    """
    tables = _tables(found)
    notes = json.dumps({WARNINGS: list(found.notes)}) if found.notes else ""
    chosen = replace(
        outputs,
        names=tuple(name for name in outputs.names if name in tables),
        reports_sha256=read.sha256,
        reading=reading,
        notes=notes,
        inputs=inputs_to_json(read.inputs(gold, public_gold=public_gold)),
    )
    write_outputs(chosen, {name: partial(_write, columns=tables[name]) for name in chosen.names})
    return chosen.paths


def ranking_files_in_memory(found: Ranking) -> dict[str, bytes]:
    """Return the files of a ranking by name, without a record."""
    files = {name: BytesIO() for name in _tables(found)}
    for name, columns in _tables(found).items():
        _write(files[name], columns)
    return {name: stream.getvalue() for name, stream in files.items()}


def _tables(found: Ranking) -> dict[str, Mapping[str, NDArray[Any]]]:
    tables = {WORKERS: found.workers(), RANKS: found.items()}
    if found.has_pairs and found.told_apart[1] <= MOST_PAIRS:
        tables[PAIRS] = found.pairs()
    return tables


def _write(stream: Any, columns: Mapping[str, NDArray[Any]]) -> None:
    write_table(stream, pa.table({name: pa.array(np.asarray(column)) for name, column in columns.items()}))
