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
from crowdveil.em.estimate import Baseline
from crowdveil.errors import ReportsError
from crowdveil.files.output_record import OutputEntry, read_record
from crowdveil.workflow.export import ESTIMATE_FILES
from crowdveil.workflow.io import PROBABILITY

QUALITIES = ("ability", "weight")
TEXT_COLUMNS = ("task", "worker")
DEMO = "campaign demo"
"""Kind of the files of a demo of a campaign, which have truths and workers as those of an estimate."""
AGAIN = "Give a folder that `crowdveil infer` wrote, unchanged, or run `infer` again."


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
            known = self.truth[np.isfinite(self.truth)]
            middle = float(np.median(known)) if known.size else 0.0
            spread = float(np.abs(known - middle).mean()) if known.size else 0.0
            return Baseline(f"{middle:g}", spread, None, int((np.abs(known - middle) > 1e-9).sum()))
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
        SettingsError: the record of the folder is damaged.
    """
    entries = _entries(folder)
    return any(all(name in entries for name in names) for names in ESTIMATE_FILES.values())


def _entries(folder: Path) -> dict[str, OutputEntry]:
    return {entry.name: entry for entry in read_record(folder) if entry.kind in ("estimate", DEMO)}


def read_truths(folder: Path) -> InferredTruths:
    """Return truths and workers of a folder.

    Raises:
        ReportsError: no files of an estimate, or files that were changed after `infer` wrote them.
        SettingsError: the record of the folder is damaged.
    """
    entries = _entries(folder)
    for names in ESTIMATE_FILES.values():
        if all(name in entries for name in names):
            truths, workers = (_checked(folder / name, entries[name]) for name in names)
            return _truths(_table(truths), _workers(_table(workers)), entries[names[0]].sha256)
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    questions = [str(path) for path in inside if path.is_dir() and has_truths(path)]
    raise ReportsError(
        "the folder must hold truths and workers with the record that infer writes",
        source=str(folder),
        hint=f"Each question has a folder of its own; give one: {', '.join(questions)}." if questions else AGAIN,
    )


def _checked(path: Path, entry: OutputEntry) -> Path:
    try:
        unchanged = entry.matches(path)
    except OSError as error:
        raise ReportsError("the file must be readable", source=str(path), examples=str(error), hint=AGAIN) from error
    if not unchanged:
        raise ReportsError("the file must be unchanged since `infer` wrote it", source=str(path), hint=AGAIN)
    return path


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


def _truths(table: pa.Table, workers: WorkerQuality, sha256: str) -> InferredTruths:
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
        sha256=sha256,
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
