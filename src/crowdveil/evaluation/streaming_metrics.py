"""Scores against gold files that are too large for memory, by error rate or mean absolute error.

Truths are read in batches into a temporary file, one number per task; only unknown gold tasks are held by name. Sums
over batches of tasks are merged (moments: Chan, Golub and LeVeque 1979).
"""

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.channels.alphabet import MAGNITUDE_RULE, Categories, has_valid_magnitude
from crowdveil.data.identifiers import Identifiers, NumberedIdentifiers, as_arrow, no_gold_task_found
from crowdveil.data.ingest.csv_files import read_csv_batches, read_header
from crowdveil.data.ingest.readers import GOLD, match_columns
from crowdveil.data.ingest.validation import parse_numbers
from crowdveil.em.estimate import Estimate
from crowdveil.em.memory import scratch_array
from crowdveil.errors import ReportsError
from crowdveil.evaluation.calibration import BINS, calibration_error, confidence_bins
from crowdveil.evaluation.gold import (
    FLAT,
    AlignedGold,
    ErrorName,
    comparable_truths,
    count_outside_scale,
    count_without_reports,
    default_error,
    gold_numbers,
    mean_error,
    mean_log_loss,
    weighted_predictions,
)
from crowdveil.evaluation.metrics import Score


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreSums:
    """Sufficient statistics of the score on some gold tasks; `+` merges disjoint sets of tasks.

    Attributes:
        error, loss: sums of absolute errors (or wrong labels) and of log losses (nan without probabilities).
        bins: from `confidence_bins`; zero where there is no log loss.
        scored, missing, outside: numbers of gold tasks, of those without a report, and of truths outside the scale.
        truths, counts: distinct truths and their counts.
        means: of predictions and truths as numbers, shape (2,).
        moments: centred sums of squares and products, shape (2, 2).
        largest: largest absolute prediction and truth, shape (2,).
    """

    error: float
    loss: float
    bins: NDArray[np.float64]
    scored: int
    missing: int
    outside: int
    truths: NDArray[Any]
    counts: NDArray[np.int64]
    means: NDArray[np.float64]
    moments: NDArray[np.float64]
    largest: NDArray[np.float64]

    @classmethod
    def of(cls, estimate: Estimate, at: NDArray[np.int64], truths: list[Any]) -> "ScoreSums":
        """Return the statistics of some tasks, from their codes and truths."""
        aligned, name = AlignedGold(estimate, at, truths, 0), default_error(estimate)
        has_confidence = name == "error_rate" and estimate.probabilistic
        numbers, shares = weighted_predictions(aligned)
        pairs = np.array([(numbers * shares).sum(axis=1), gold_numbers(aligned)])
        truths_found, counts = np.unique(comparable_truths(aligned, name), return_counts=True)
        means = pairs.mean(axis=1)
        centred = pairs - means[:, None]
        return cls(
            error=mean_error(aligned, name) * len(at),
            loss=mean_log_loss(aligned) * len(at) if has_confidence else math.nan,
            bins=confidence_bins(aligned) if has_confidence else np.zeros((BINS, 2)),
            scored=len(at),
            missing=count_without_reports(aligned),
            outside=count_outside_scale(aligned),
            truths=truths_found,
            counts=counts,
            means=means,
            moments=centred @ centred.T,
            largest=np.abs(pairs).max(axis=1),
        )

    def __add__(self, other: "ScoreSums") -> "ScoreSums":
        """Return the statistics of both sets of tasks."""
        scored, apart = self.scored + other.scored, other.means - self.means
        both = np.concatenate((self.truths, other.truths))
        truths, place = np.unique(both, return_inverse=True)
        counts = np.bincount(place, np.concatenate((self.counts, other.counts)))
        return ScoreSums(
            error=self.error + other.error,
            loss=self.loss + other.loss,
            bins=self.bins + other.bins,
            scored=scored,
            missing=self.missing + other.missing,
            outside=self.outside + other.outside,
            truths=truths,
            counts=counts.astype(np.int64),
            means=self.means + apart * other.scored / scored,
            moments=self.moments + other.moments + np.outer(apart, apart) * (self.scored * other.scored / scored),
            largest=np.maximum(self.largest, other.largest),
        )

    def score(self, error_name: ErrorName, unknown: int) -> Score:
        """Return the score of all these tasks, as `metrics.score`; `unknown` gold tasks are not scored."""
        constant, baseline = _best_constant(self.truths, self.counts)
        spread = np.sqrt(np.diag(self.moments) / self.scored)
        flat = (spread <= FLAT * self.largest).any()
        return Score(
            error=self.error / self.scored,
            error_name=error_name,
            baseline=baseline,
            constant=constant,
            correlation=0.0 if flat else float(self.moments[0, 1] / spread.prod() / self.scored),
            log_loss=None if math.isnan(self.loss) else self.loss / self.scored,
            calibration_error=None if math.isnan(self.loss) else calibration_error(self.bins, self.scored),
            scored=self.scored,
            missing=self.missing,
            unknown=unknown,
            outside=self.outside,
        )


def _best_constant(truths: NDArray[Any], counts: NDArray[np.int64]) -> tuple[str, float]:
    """Return the best constant and its error, as `metrics.best_constant`, for distinct truths with counts."""
    if truths.dtype.kind == "U":
        return str(truths[counts.argmax()]), 1 - float(counts.max()) / float(counts.sum())
    middle = float(truths[np.searchsorted(np.cumsum(counts), (counts.sum() - 1) // 2, side="right")])
    return f"{middle:g}", float(np.abs(truths - middle) @ counts) / float(counts.sum())


STREAMED_FROM = 1 << 20
"""Bytes of a gold file from which it is streamed."""
TASKS_AT_ONCE = 1 << 16
"""Rows, identifiers or tasks per batch."""
ROWS_SHOWN = 5


def is_large_file(gold: str) -> bool:
    """Return whether a gold file is large enough to be streamed."""
    return os.path.isfile(gold) and os.path.getsize(gold) >= STREAMED_FROM


def score_streaming(estimate: Estimate, gold: Path, guided: frozenset[str]) -> tuple[Score, int]:
    """Return the score of an estimate against a gold file, and the number of scored tasks that guided the fit.

    The score equals that of `metrics.score` up to rounding.

    Raises:
        ReportsError: a damaged file, a missing, unknown or contradicted truth, or no gold task among the tasks.
        SettingsError: no disk space for a temporary file.
    """
    table = _TruthTable(estimate, str(gold))
    roles = match_columns(read_header(gold), GOLD, str(gold))
    columns = [roles["task"], roles["truth"]]
    read_csv_batches(gold, columns, lambda batches, names, _: table.add(batches, names))
    tally: ScoreSums | None = None
    for first in range(0, len(table.truths), TASKS_AT_ONCE):
        at = first + np.flatnonzero(~np.isnan(table.truths[first : first + TASKS_AT_ONCE]))
        if len(at):
            found = ScoreSums.of(estimate, at, table.named(at))
            tally = found if tally is None else tally + found
    if tally is None:
        raise no_gold_task_found(table.unknown, estimate.tasks, str(gold))
    fit = table.identifiers.find(pa.array(sorted(guided), pa.string()))
    both = int((~np.isnan(table.truths[fit[fit >= 0]])).sum())
    return tally.score(default_error(estimate), len(table.unknown)), both


class _TruthTable:
    """Truths by task code.

    Attributes:
        truths: label codes or numbers, shape (tasks,); nan if unknown.
        unknown: gold tasks that are not among the tasks.
        identifiers: index of the tasks.
    """

    def __init__(self, estimate: Estimate, source: str) -> None:
        self._alphabet, self._source, self._rows = estimate.alphabet, source, 0
        self.identifiers, self.unknown = _IdentifierIndex(estimate.tasks), set[str]()
        self.truths = scratch_array((len(estimate.posterior),))
        for first in range(0, len(self.truths), TASKS_AT_ONCE):
            self.truths[first : first + TASKS_AT_ONCE] = np.nan

    def add(self, batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> None:
        """Store the truths of some batches; `names` are the columns of task and truth."""
        parts = (
            batch.slice(first, TASKS_AT_ONCE) for batch in batches for first in range(0, len(batch), TASKS_AT_ONCE)
        )
        for part in parts:
            task: Any = part[names[0]]
            truth: Any = part[names[1]]
            for column in (task, truth):
                empty = pc.equal(column, pa.scalar(""))
                self._refuse(empty.to_numpy(zero_copy_only=False), task, "every gold task needs a truth")
            at = self.identifiers.find(task)
            self.unknown.update(task.filter(pa.array(at < 0)).to_pylist())
            self._store(at, self._read(truth, task, at), task)
            self._rows += len(task)

    def named(self, at: NDArray[np.int64]) -> list[Any]:
        """Return the truths of some tasks as labels or numbers."""
        if isinstance(self._alphabet, Categories):
            return np.array(self._alphabet.names, dtype=object)[self.truths[at].astype(np.int64)].tolist()
        return self.truths[at].tolist()

    def _read(self, truth: Any, task: Any, at: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return truths as codes or numbers; a label outside the alphabet is refused for known tasks only."""
        if not isinstance(self._alphabet, Categories):
            numbers = parse_numbers(np.array(truth.to_pylist(), dtype=object))
            self._refuse(~np.isfinite(numbers), truth, "values must be finite numbers")
            self._refuse(~has_valid_magnitude(numbers), truth, f"values {MAGNITUDE_RULE}")
            return numbers
        codes: Any = pc.index_in(truth, value_set=pa.array(self._alphabet.names, pa.string()))
        wrong = np.flatnonzero(codes.is_null().to_numpy(zero_copy_only=False) & (at >= 0))
        if len(wrong):
            label, name = truth[int(wrong[0])].as_py(), task[int(wrong[0])].as_py()
            raise ReportsError(
                f"gold label {label!r} of task {name!r} is not among {self._alphabet.names}", source="gold"
            )
        return np.asarray(codes.fill_null(-1).to_numpy(), dtype=np.float64)

    def _store(self, at: NDArray[np.int64], truths: NDArray[np.float64], task: Any) -> None:
        known = np.flatnonzero(at >= 0)
        held = self.truths[at[known]]
        self.truths[at[known]] = np.where(np.isnan(held), truths[known], held)
        # Of several rows of one task in a batch, the last was stored: the others must equal it.
        differs = np.zeros(len(at), dtype=bool)
        differs[known] = self.truths[at[known]] != truths[known]
        self._refuse(differs, task, "a gold task has one truth, but rows contradict others")

    def _refuse(self, bad: NDArray[np.bool_], cells: Any, rule: str) -> None:
        """Raise a ReportsError that names the first bad rows, if there are any."""
        rows = np.flatnonzero(bad)[:ROWS_SHOWN]
        if len(rows):
            raise ReportsError(
                rule,
                source=self._source,
                rows=tuple(self._rows + int(row) + 1 for row in rows),
                examples=", ".join(repr(cells[int(row)].as_py()) for row in rows),
                hint="Keep one row per task, with its truth.",
            )


class _IdentifierIndex:
    """Index of identifiers; fastest for queries in code order."""

    def __init__(self, names: Identifiers) -> None:
        self._names, self._piece = names, 0

    def find(self, wanted: Any) -> NDArray[np.int64]:
        """Return the code of each text of an Arrow array; -1 if it is no identifier."""
        different: Any = wanted.dictionary_encode()
        codes = np.full(len(different.dictionary), -1)
        pieces = max(-(-len(self._names) // TASKS_AT_ONCE), 1)
        for piece in (*range(self._piece, pieces), *range(self._piece)):
            first = piece * TASKS_AT_ONCE
            names = pc.cast(as_arrow(self._names[first : first + TASKS_AT_ONCE]), pa.string())
            place: Any = pc.index_in(names, value_set=different.dictionary)
            hit = place.is_valid().to_numpy(zero_copy_only=False) if len(place) else np.zeros(0, dtype=bool)
            codes[place.drop_null().to_numpy()] = first + np.flatnonzero(hit)
            self._piece = piece if hit.any() else self._piece
            if (codes >= 0).all():
                break
            if isinstance(self._names, NumberedIdentifiers):
                self._fill_numbered(different.dictionary, codes)
                break
        return codes[different.indices.to_numpy()]

    def _fill_numbered(self, names: Any, codes: NDArray[np.int64]) -> None:
        """Fill in missing codes of numbered identifiers."""
        assert isinstance(self._names, NumberedIdentifiers)
        for at in np.flatnonzero(codes < 0):
            code = self._names.code(names[int(at)].as_py())
            codes[at] = -1 if code is None else code
