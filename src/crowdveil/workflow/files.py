"""What people hand over becomes answers, gold and lists of names: a file, or `dataset:NAME` for a public data set."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crowdveil import datasets
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.ingest.coding import Duplicates
from crowdveil.ingest.csvfile import read_csv, read_header
from crowdveil.ingest.tables import load_gold, pick
from crowdveil.labels import Alphabet, Categories, Scale
from crowdveil.reports import Kind, Reports

DATASET = "dataset:"
LABELS_SHOWN = 10
GRID_TOLERANCE = 1e-9


class AnswersRead(NamedTuple):
    """Answers in the alphabet of a mechanism, and what had to be assumed or changed to get there."""

    answers: Reports
    alphabet: Alphabet
    notes: tuple[str, ...]


def read_answers(
    source: str,
    *,
    alphabet: Alphabet | None = None,
    duplicates: Duplicates | None = None,
    tasks: Path | None = None,
    workers: Path | None = None,
) -> AnswersRead:
    """Read unprotected answers.

    Args:
        source: a CSV or Parquet file, or `dataset:NAME`.
        alphabet: what an answer can be; by default the labels that occur. Numbers are clipped and rounded to a Scale.
        duplicates: policy for repeated (task, worker) pairs; by default "error" for files, "first" for data sets.
        tasks, workers: files that list all of them, in a column `task` or `worker`.

    Raises:
        ReportsError: the file or a row breaks a rule.
        SettingsError: numbers without a scale, no such data set, or lists for one.
    """
    if source.startswith(DATASET):
        if tasks is not None or workers is not None:
            raise SettingsError("lists of tasks and workers go with a file of answers", value=source)
        return _coded(source, *_from_dataset(source, alphabet, duplicates or "first"))
    reader = Reports.from_parquet if source.endswith(".parquet") else Reports.from_csv
    numeric = isinstance(alphabet, Scale)
    found = reader(
        source,
        alphabet=None if numeric else alphabet,
        kind="numeric" if numeric else None,
        tasks=None if tasks is None else read_names(tasks, "task"),
        workers=None if workers is None else read_names(workers, "worker"),
        duplicates=duplicates or "error",
    )
    return _coded(source, found, alphabet, ())


def read_gold(source: str, kind: Kind) -> dict[str, Any]:
    """Read known truths by task name from a CSV file or `dataset:NAME`; errors as `read_answers`."""
    if source.startswith(DATASET):
        return datasets.load(source.removeprefix(DATASET)).gold
    return load_gold(source, kind=kind)


def read_names(path: Path, what: str) -> list[str]:
    """Read the column `task` or `worker` of a CSV file, in file order.

    Raises:
        ReportsError: the file is damaged, lacks the column, or a name is empty.
    """
    source = str(path)
    column = pick(read_header(path), {what: (what,)}, source)[what]
    names = [str(name) for name in read_csv(path, [column])[column].to_pylist()]
    if "" in names:
        raise ReportsError(f"every row needs a {what}", source=source, rows=(names.index("") + 1,))
    return names


def refuse_overwriting(written: Iterable[Path], read: Iterable[str | Path | None]) -> None:
    """Refuse to write a file that is also an input.

    Raises:
        SettingsError: naming the file.
    """
    inputs = {Path(path).resolve() for path in read if path is not None}
    for path in written:
        if path.resolve() in inputs:
            raise SettingsError(
                "an output must not replace an input", value=str(path), way_out="Choose another folder with --out."
            )


def _from_dataset(
    source: str, alphabet: Alphabet | None, duplicates: Duplicates
) -> tuple[Reports, Alphabet | None, tuple[str, ...]]:
    data = datasets.load(source.removeprefix(DATASET), duplicates=duplicates)
    known = data.scale if data.kind == "numeric" else data.answers.alphabet
    if data.kind != "numeric" and alphabet is not None and alphabet.names != data.answers.alphabet.names:  # type: ignore[union-attr]
        raise SettingsError("a data set brings its own labels", value=alphabet.names, way_out="Leave --labels out.")
    repeats = data.rows - data.pairs
    note = f"{repeats:,} answers repeat a (task, worker) pair; policy: {duplicates}."
    return data.answers, alphabet or known, (note,) if repeats else ()


def _coded(source: str, found: Reports, wanted: Alphabet | None, notes: tuple[str, ...]) -> AnswersRead:
    """Put free numbers on the scale; say where labels come from if nobody gave them."""
    if found.alphabet is not None:
        if wanted is None:
            shown = ", ".join(found.alphabet.names[:LABELS_SHOWN]) + ("..." if found.labels > LABELS_SHOWN else "")
            notes += (
                f"The labels ({shown}) were taken from the answers; devices must know them beforehand: --labels.",
            )
        return AnswersRead(found, found.alphabet, notes)
    if not isinstance(wanted, Scale):
        raise ReportsError(
            "numbers need a scale",
            source=source,
            way_out="Give --scale LOW:HIGH or LOW:HIGH:STEP, chosen without looking at the answers.",
        )
    value, codes = found.value, wanted.encode(found.value)
    inside = np.clip(value, wanted.low, wanted.high)
    clipped = int((inside != value).sum())
    rounded = int((np.abs(wanted.values[codes] - inside) > GRID_TOLERANCE * wanted.step).sum())
    notes += (f"{clipped:,} answers lay outside the scale and were clipped to it.",) if clipped else ()
    notes += (f"{rounded:,} answers were rounded to the grid of the scale.",) if rounded else ()
    coded = Reports(found.task, found.worker, codes, found.tasks, found.workers, wanted)
    return AnswersRead(coded, wanted, notes)


def kind_of(alphabet: Alphabet | None) -> Kind:
    """Return whether truths in this alphabet are labels or numbers."""
    return "categorical" if isinstance(alphabet, Categories) else "numeric"
