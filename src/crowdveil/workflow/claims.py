"""A curator's claims, read from a file or a public data set; the notes on what was changed are for the curator."""

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crowdveil import datasets
from crowdveil.errors import SettingsError
from crowdveil.ingest.coding import Duplicates
from crowdveil.ingest.tables import read_columns, read_parquet_columns
from crowdveil.reports import Reports
from crowdveil.synthesis.claims import Claims, Outside
from crowdveil.workflow.files import DATASET, read_names

LEFT_OUT = (
    "{:,} answers are no numbers and were left out: with public participation epsilon does not cover that, but the "
    "answers of a public data set are known anyway."
)


class ClaimsRead(NamedTuple):
    """Claims, and what was done to the rows to get them; the notes are for the curator's eyes."""

    claims: Claims
    notes: tuple[str, ...]


def read_claims(
    source: str,
    *,
    bounds: tuple[float, float],
    outside: Outside = "error",
    logarithmic: bool = False,
    duplicates: Duplicates | None = None,
    tasks: Path | None = None,
) -> ClaimsRead:
    """Read a curator's claims.

    Args:
        source: a CSV or Parquet file, or `dataset:NAME`.
        bounds: what a claim can be, known without looking at the claims.
        outside: policy for claims outside of them.
        logarithmic: treat claims by their logarithms to base 10; then bounds and claims must be positive.
        duplicates: policy for repeated (task, worker) pairs; by default "error" for files, "first" for data sets.
        tasks: a file that lists all tasks, made without looking at the claims; protected participation needs it. With
            it, a file of claims may have no row.

    Raises:
        ReportsError: the file or a row breaks a rule, or a claim is on a task that is not listed.
        SettingsError: impossible bounds.
    """
    found, notes = _numbers(source, duplicates, tasks)
    low, high = bounds
    if logarithmic:
        if not low > 0:
            raise SettingsError("bounds must be positive on a logarithmic scale", value=bounds)
        # A claim of 0 or less lies below all bounds, and the policy for these decides about it.
        value = np.log10(np.where(found.numbers > 0, found.numbers, np.finfo(float).tiny))
        found = Reports(found.task, found.worker, value, found.tasks, found.workers)
        low, high = math.log10(low), math.log10(high)
    claims = Claims.from_reports(found, bounds=(low, high), outside=outside, public_tasks=tasks is not None)
    notes += (f"{claims.clipped:,} claims lay outside the bounds and were clipped to them.",) if claims.clipped else ()
    notes += (f"{claims.dropped:,} claims lay outside the bounds and were left out.",) if claims.dropped else ()
    return ClaimsRead(claims, notes)


def _numbers(source: str, duplicates: Duplicates | None, tasks: Path | None) -> tuple[Reports, tuple[str, ...]]:
    listed = None if tasks is None else read_names(tasks, "task")
    if source.startswith(DATASET):
        data = datasets.load(source.removeprefix(DATASET), duplicates=duplicates or "first")
        if data.kind != "numeric":
            raise SettingsError("claims must be numbers", value=f"{data.name} is {data.kind}")
        left = (LEFT_OUT.format(data.left_out),) if data.left_out else ()
        return data.answers if listed is None else _relisted(data.answers, listed, source), left
    columns = (read_parquet_columns if source.endswith(".parquet") else read_columns)(source)
    # A file without a claim is like any other where the tasks are listed: a refusal would show that nobody claimed.
    nobody = () if listed is not None and not len(columns.task) else None
    how: dict[str, Any] = {"kind": "numeric", "tasks": listed, "workers": nobody, "duplicates": duplicates or "error"}
    return Reports.from_columns(columns, **how), ()


def _relisted(found: Reports, tasks: list[str], source: str) -> Reports:
    """Return the same numbers with a given list of tasks in place of those that occur."""
    return Reports.from_arrays(
        np.asarray(found.tasks)[found.task],
        np.asarray(found.workers)[found.worker],
        found.numbers,
        numeric=True,
        tasks=tasks,
        duplicates="all",
        source=source,
    )
