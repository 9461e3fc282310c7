"""Inferred truths and workers, read from the files that `infer` wrote: `truths.csv` and `workers.csv`, or Parquet.

The record of the folder has the SHA-256 of each output, so that only unchanged files of an estimate are read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from crowdveil.data.importers.export_file import ExportFile
from crowdveil.data.ingest.csv_files import read_header
from crowdveil.em.estimate import Baseline, numeric_baseline
from crowdveil.errors import ReportsError
from crowdveil.files.output_record import OutputEntry
from crowdveil.workflow.export import INFER_AGAIN, estimate_names, unchanged_output
from crowdveil.workflow.io import PROBABILITY

QUALITIES = ("ability", "weight")
TEXT_COLUMNS = ("task", "worker")


@dataclass(frozen=True, kw_only=True, eq=False)
class WorkerQuality:
    """Estimated quality of each worker, in the order of the file.

    Attributes:
        names: worker names.
        quality_name: "ability" (probability of a correct answer) or "weight".
        quality: shape (workers,); nan if unknown.
        low, high: 90 % interval of the ability, shape (workers,); None without one.
        reports: number of reports, shape (workers,).
    """

    names: tuple[str, ...]
    quality_name: str
    quality: NDArray[np.float64]
    low: NDArray[np.float64] | None
    high: NDArray[np.float64] | None
    reports: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class InferredTruths:
    """Truths of one folder, in the order of the file.

    Attributes:
        tasks: task names.
        labels: possible labels; None for numbers.
        truth: shape (tasks,): codes of `labels`, -1 if undecided, or numbers (nan without information).
        posterior: P(label), indexed [task, label]; None for numbers, and where the method has no probabilities.
        low, high: 90 % interval of each number, shape (tasks,); None without one.
        reports: number of reports, shape (tasks,).
        workers: qualities of workers.
        sha256: digest of the file of truths, in hexadecimal.
        reports_sha256: `Evidence.digest` of the reports from which they were inferred; empty if it is not recorded.
    """

    tasks: tuple[str, ...]
    labels: tuple[str, ...] | None
    truth: NDArray[Any]
    posterior: NDArray[np.float64] | None
    low: NDArray[np.float64] | None
    high: NDArray[np.float64] | None
    reports: NDArray[np.int64]
    workers: WorkerQuality
    sha256: str
    reports_sha256: str = ""

    @property
    def confidence(self) -> NDArray[np.float64] | None:
        """Posterior probability of each truth, of the likeliest label if undecided, shape (tasks,); None without."""
        if self.posterior is None:
            return None
        codes = np.where(self.truth < 0, self.posterior.argmax(axis=1), self.truth)
        return self.posterior[np.arange(len(codes)), codes]

    def texts(self) -> list[str]:
        """Return the truths as text, numbers with four digits."""
        if self.labels is not None:
            return ["undecided" if code < 0 else self.labels[code] for code in self.truth]
        return ["unknown" if np.isnan(value) else f"{value:.4g}" for value in self.truth]

    @property
    def baseline(self) -> Baseline:
        """Best constant for all tasks, with its expected error and that of the decided truths (None if unknown)."""
        if self.labels is None:
            return numeric_baseline(self.truth, self.low, self.high)
        shares = (
            np.bincount(self.truth[self.truth >= 0], minlength=len(self.labels)) / max(len(self.truth), 1)
            if self.posterior is None
            else self.posterior.mean(axis=0)
        )
        best = int(shares.argmax())
        decided = self.truth >= 0
        own = None if self.confidence is None or not decided.any() else 1 - float(self.confidence[decided].mean())
        return Baseline(self.labels[best], 1 - float(shares[best]), own, int((self.truth != best).sum()))

    def doubtful(self, count: int) -> list[int]:
        """Return the tasks with the least certain truths, at most `count`, the least certain first.

        Order: the smallest confidence, the widest interval, or the fewest reports, as far as the files have them.
        """
        if self.confidence is not None:
            doubt = 1 - self.confidence
        elif self.low is not None and self.high is not None:
            doubt = self.high - self.low
        else:
            doubt = -self.reports.astype(float)
        order = np.lexsort((self.reports, -np.nan_to_num(doubt, nan=np.inf)))
        return [int(task) for task in order[:count]]


def has_truths(folder: Path) -> bool:
    """Return whether the record of a folder lists truths and workers.

    Raises:
        ReportsError, SettingsError: as `estimate_names`.
    """
    return estimate_names(folder) is not None


def read_truths(folder: Path) -> InferredTruths:
    """Return truths and workers of a folder.

    Raises:
        ReportsError: no files of an estimate, or files that were changed after `infer` wrote them.
        SettingsError: the record of the folder is damaged.
    """
    names = estimate_names(folder)
    if names is not None:
        truths, workers = (folder / name for name in names)
        entry, _ = unchanged_output(truths), unchanged_output(workers)
        return _truths(_table(truths), _workers(_table(workers)), entry)
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    questions = [str(path) for path in inside if path.is_dir() and has_truths(path)]
    raise ReportsError(
        "the folder must hold truths and workers with the record that infer writes",
        source=str(folder),
        hint=f"Each question has a folder of its own; give one: {', '.join(questions)}." if questions else INFER_AGAIN,
    )


def _table(path: Path) -> pa.Table:
    """Return a table whose names and labels are text; an empty number is null."""
    if path.suffix == ".parquet":
        return pq.read_table(path)
    if path.suffix != ".csv":
        return pa.Table.from_pylist(ExportFile(path, str(path)).records)
    columns = read_header(path)
    text = {*TEXT_COLUMNS, *(["truth"] if "confidence" in columns else [])}
    types = {name: pa.string() if name in text else pa.float64() for name in columns}
    options = pa.csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=False)
    return pa.csv.read_csv(path, convert_options=options)


def _truths(table: pa.Table, workers: WorkerQuality, entry: OutputEntry) -> InferredTruths:
    number = _reader(table)
    categorical = "confidence" in table.column_names
    names = tuple(name for name in table.column_names if name.startswith(PROBABILITY)) if categorical else ()
    labels = tuple(name.removeprefix(PROBABILITY) for name in names) if categorical else None
    posterior = np.column_stack([number(name) for name in names]) if names else None
    if posterior is not None and not np.isfinite(posterior).all():
        posterior = None
    if labels is None:
        truth: NDArray[Any] = number("truth")
    else:
        code_of = {label: code for code, label in enumerate(labels)}
        truth = np.array([code_of[label] if label else -1 for label in table["truth"].to_pylist()], dtype=np.int64)
    return InferredTruths(
        tasks=tuple(map(str, table["task"].to_pylist())),
        labels=labels,
        truth=truth,
        posterior=posterior,
        low=number("low") if "low" in table.column_names else None,
        high=number("high") if "high" in table.column_names else None,
        reports=number("reports").astype(np.int64),
        workers=workers,
        sha256=entry.sha256,
        reports_sha256=entry.reports_sha256,
    )


def _workers(table: pa.Table) -> WorkerQuality:
    number = _reader(table)
    quality = next(name for name in QUALITIES if name in table.column_names)
    interval = "ability_low" in table.column_names
    return WorkerQuality(
        names=tuple(map(str, table["worker"].to_pylist())),
        quality_name=quality,
        quality=number(quality),
        low=number("ability_low") if interval else None,
        high=number("ability_high") if interval else None,
        reports=number("reports").astype(np.int64),
    )


def _reader(table: pa.Table) -> Callable[[str], NDArray[np.float64]]:
    """Return a function that gives a column of numbers by name; null is nan."""
    return lambda name: table[name].cast(pa.float64()).to_numpy()
