"""Estimate of a folder, read from the files that `infer` wrote: `truths.csv` and `workers.csv`, or Parquet or JSON.

The record of the folder has the SHA-256 of each output, so that only unchanged files of an estimate are read.
"""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from crowdveil.answers.facts.inputs import Input
from crowdveil.answers.identifiers import immutable_identifiers
from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.ingest.csv_files import open_as_utf8, read_header
from crowdveil.channels.alphabet import Categories
from crowdveil.em.estimate import Estimate, WorkerTable
from crowdveil.em.gold import CrossValidation
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.standalone.verification import parse_json
from crowdveil.storage.answers import PROBABILITY
from crowdveil.storage.estimate_files import (
    INFER_AGAIN,
    NO_RESULTS,
    WARNINGS,
    entry_of_unchanged_file,
    estimate_names,
    refuse_question_folders,
)
from crowdveil.storage.given_files import recorded_inputs

QUALITIES = ("ability", "weight")
TEXT_COLUMNS, GOLD = ("task", "worker"), "gold"


class Results(NamedTuple):
    """Estimate with the digests that its record names.

    Attributes:
        estimate: truths and workers; of an estimate that was read from files, method and steps are unknown.
        sha256: of the file of truths, in hexadecimal.
        reports_sha256: `Evidence.sha256` of the reports from which it was inferred; empty if
            it is not recorded.
        notes: warnings of the inference.
        inputs: what the truths depend on; empty if it is not recorded.
    """

    estimate: Estimate
    sha256: str
    reports_sha256: str
    notes: tuple[str, ...] = ()
    inputs: tuple[Input, ...] = ()


def read_results(folder: Path) -> Results:
    """Return the estimate of a folder.

    Raises:
        ReportsError: no files of an estimate, or files that were changed after `infer` wrote them.
        SettingsError: the record of the folder is damaged.
    """
    names = estimate_names(folder)
    if names is not None:
        truths, workers = (folder / name for name in names)
        entry, _ = entry_of_unchanged_file(truths), entry_of_unchanged_file(workers)
        try:
            found = _estimate_of_result_files(_Columns(truths), _Columns(workers))
        except pa.ArrowInvalid as error:
            raise _damage_error(folder, str(error)) from error
        found = _with_cross_validation(found, entry.gold, folder)
        _require_valid_estimate(found, folder)
        notes, inputs = _warnings_in_record(entry.notes, folder), recorded_inputs(entry, folder)
        return Results(found, entry.sha256, entry.reports_sha256, notes, inputs)
    refuse_question_folders(folder)
    raise ReportsError(NO_RESULTS, source=str(folder), hint=INFER_AGAIN)


def _with_cross_validation(estimate: Estimate, text: str, folder: Path) -> Estimate:
    """Return the estimate with the cross-validation in the record, if there is one."""
    try:
        return replace(estimate, cross_validation=CrossValidation.from_json(text)) if text else estimate
    except (ValueError, TypeError) as error:
        rule = "the record of a folder must say how gold was cross-validated"
        raise SettingsError(rule, value=str(folder), hint=INFER_AGAIN) from error


def _warnings_in_record(text: str, folder: Path) -> tuple[str, ...]:
    """Return the warnings in the record."""
    notes = parse_json(text).get(WARNINGS) if text else []
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise SettingsError("the warnings in the record must be texts", value=str(folder), hint=INFER_AGAIN)
    return tuple(notes)


def _damage_error(folder: Path, why: str) -> ReportsError:
    rule = "truths must have probabilities that sum to 1, certain gold, and columns of one type"
    return ReportsError(rule, source=str(folder), examples=why, hint=INFER_AGAIN)


def _require_valid_estimate(estimate: Estimate, folder: Path) -> None:
    """Refuse truths that no estimate has, although their record was made anew.

    Raises:
        ReportsError: probabilities that are none, gold that is not certain, or a cross-validation on more gold.
    """
    table = estimate.posterior
    if estimate.categorical and not (np.all(table >= 0) and np.allclose(table.sum(axis=1), 1, rtol=0, atol=1e-6)):
        raise _damage_error(folder, "probabilities")
    gold = estimate.gold
    if gold is not None and estimate.categorical and not np.all(table[gold].max(axis=1) > 1 - 1e-9):
        raise _damage_error(folder, "a gold task that is not certain")
    if estimate.cross_validation is not None and estimate.cross_validation.tasks > estimate.gold_used:
        raise _damage_error(folder, "cross-validated on more tasks than are gold")


class _Columns:
    """Columns of a file of truths or workers."""

    def __init__(self, path: Path) -> None:
        self.table = _read_result_table(path)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column of numbers; an empty one is nan."""
        column: NDArray[np.float64] = self.table[name].cast(pa.float64()).to_numpy()
        return column

    def boolean_column_or_none(self, name: str) -> NDArray[np.bool_] | None:
        """Return a column of true and false; None without it.

        Raises:
            pa.ArrowInvalid: another value.
        """
        if name not in self.table.column_names:
            return None
        column: NDArray[np.bool_] = self.table[name].cast(pa.bool_()).to_numpy(zero_copy_only=False)
        if column.dtype != np.bool_:
            raise pa.ArrowInvalid(f"{name} has an empty value")
        return column

    def interval(self, *names: str) -> list[NDArray[np.float64] | None]:
        """Return the columns of both ends of an interval; None without them."""
        return [self.numbers(name) if name in self.table.column_names else None for name in names]


def _read_result_table(path: Path) -> pa.Table:
    """Return a table whose names and labels are text; an empty number is null."""
    if path.suffix == ".parquet":
        return pq.read_table(path)
    if path.suffix not in (".csv", ".xlsx"):
        return pa.Table.from_pylist(ExportFile(path, str(path)).rows_as_mappings)
    columns = read_header(path)
    text = {*TEXT_COLUMNS, *(["truth"] if "confidence" in columns else [])}
    types = {name: pa.string() if name in text else pa.float64() for name in columns} | {GOLD: pa.bool_()}
    options = pa.csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=False)
    with open_as_utf8(path) as stream:
        return pa.csv.read_csv(stream, convert_options=options)


def _estimate_of_result_files(truths: _Columns, workers: _Columns) -> Estimate:
    """Return the estimate in two files: truths that costs decided, or that stay empty, are those of the file."""
    columns, probabilistic, decision, undecided = truths.table.column_names, True, None, None
    probabilities = [name for name in columns if name.startswith(PROBABILITY) and "confidence" in columns]
    labels = [name.removeprefix(PROBABILITY) for name in probabilities]
    if labels:
        posterior = np.column_stack([truths.numbers(name) for name in probabilities])
        code_of = {label: code for code, label in enumerate(labels)}
        codes = np.array([code_of.get(label, -1) for label in truths.table["truth"].to_pylist()], dtype=np.int64)
        probabilistic = bool(np.isfinite(posterior).all())
        posterior = posterior if probabilistic else np.eye(len(labels))[codes]
        undecided = codes < 0
        decision = np.where(undecided, posterior.argmax(axis=1), codes)
    else:
        posterior = truths.numbers("truth")
    low, high = truths.interval("low", "high")
    ability_low, ability_high = workers.interval("ability_low", "ability_high")
    quality = next(name for name in QUALITIES if name in workers.table.column_names)
    return Estimate(
        method="read from files",
        alphabet=Categories(tuple(labels)) if labels else None,
        tasks=immutable_identifiers(np.array(list(map(str, truths.table["task"].to_pylist())), dtype=np.str_)),
        posterior=posterior,
        reports_per_task=truths.numbers("reports").astype(np.int64),
        worker_names=immutable_identifiers(
            np.array(list(map(str, workers.table["worker"].to_pylist())), dtype=np.str_)
        ),
        workers=WorkerTable(workers.numbers(quality), quality, ability_low=ability_low, ability_high=ability_high),
        reports_per_worker=workers.numbers("reports").astype(np.int64),
        steps=0,
        gold=truths.boolean_column_or_none(GOLD),
        low=low,
        high=high,
        probabilistic=probabilistic,
        decision=decision,
        undecided=undecided,
    )
