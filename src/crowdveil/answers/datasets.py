"""Public data sets of real answers, loaded by name from a data directory; nothing is downloaded.

A data set is a folder with `answers.csv` or `answers.csv.gz` (task,worker,answer, in the order of the source),
`meta.json` (kind, ordered labels, source, licence) and, if truths are known, `truth.csv` (task,truth).
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from crowdveil.answers.ingest.column_checks import Duplicates, parse_numbers
from crowdveil.answers.ingest.column_readers import ReportColumns, read_columns
from crowdveil.answers.ingest.gold_files import load_gold_and_seed
from crowdveil.answers.read_options import IdentifierList, ReadOptions
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.hints import command_advice

VARIABLE = "CROWDVEIL_DATA"
META_FILE = "meta.json"
KINDS = ("binary", "categorical", "ordinal", "numeric")


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Real answers with known truths.

    Attributes:
        name: folder name.
        answers: after the duplicates policy; numeric data sets hold free numbers.
        gold: known truth by task (label or number), including tasks without answers; the first of several truths.
        kind: "binary", "categorical", "ordinal" or "numeric".
        meta: content of `meta.json`: title, source, licence, citation, notes.
        rows: rows of the file.
        pairs: distinct (task, worker) pairs among the rows.
        left_out: rows of a numeric data set whose answer is no number; counted in `rows` and `pairs`, not in `answers`.
        gold_without_answers: gold tasks without answers, which cannot be scored.
        scale: range of a numeric data set if `meta.json` states one, in steps of 1.
    """

    name: str
    answers: Reports
    gold: dict[str, Any]
    kind: Literal["binary", "categorical", "ordinal", "numeric"]
    meta: dict[str, Any]
    rows: int
    pairs: int
    left_out: int
    gold_without_answers: int
    scale: Scale | None

    @property
    def gold_with_answers(self) -> int:
        """Number of gold tasks with an answer."""
        return len(self.gold) - self.gold_without_answers


def data_directory() -> Path:
    """Return the data directory, which need not exist.

    CROWDVEIL_DATA if it is set; else `../shared/data` next to a checkout if it exists; else `crowdveil/data` in the
    user's cache directory (XDG_CACHE_HOME or ~/.cache).
    """
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).expanduser()
    source = Path(__file__).resolve().parents[2]
    checkout_data = source.parent.parent / "shared" / "data"
    if source.name == "src" and checkout_data.is_dir():
        return checkout_data
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crowdveil" / "data"


def available(directory: Path | None = None) -> tuple[str, ...]:
    """Return the sorted names of the data sets in a directory, by default the data directory."""
    return tuple(sorted(path.parent.name for path in (directory or data_directory()).glob(f"*/{META_FILE}")))


def possible_files_of_dataset(name: str) -> tuple[Path, ...]:
    """Return all paths that a data set may use, existing or not."""
    folder = data_directory() / name
    return tuple(folder / file for file in ("answers.csv", "answers.csv.gz", "truth.csv", META_FILE))


def load(
    name: str,
    *,
    duplicates: Duplicates = "first",
    directory: Path | None = None,
    tasks: IdentifierList | None = None,
    workers: IdentifierList | None = None,
) -> Dataset:
    """Return a data set.

    Args:
        name: folder name.
        duplicates: policy for repeated (task, worker) pairs; by default the first row counts.
        directory: parent folder; by default the data directory.
        tasks, workers: all identifiers, as text; by default those that occur. Labels come from `meta.json` and are
            public.

    Raises:
        SettingsError: no such data set, or no data directory.
        ReportsError: a file of the set is damaged, or a name is not listed.
    """
    folder = _existing_folder(name, directory or data_directory())
    meta, kind, alphabet = _read_kind_and_alphabet(folder / META_FILE)
    zipped = folder / "answers.csv.gz"
    columns = read_columns(zipped if zipped.exists() else folder / "answers.csv")
    readable = _has_finite_number_per_row(columns) if kind == "numeric" else np.ones(len(columns), dtype=bool)
    answers = Reports.from_columns(
        columns.only_rows(readable),
        ReadOptions(alphabet, "numeric" if kind == "numeric" else "categorical", tasks, workers, duplicates),
    )
    gold = _read_gold(folder, kind)
    answered = {str(name) for name in np.asarray(answers.tasks)[answers.per_task > 0]}
    pairs = columns.task.codes.astype(np.int64) * len(columns.worker.names) + columns.worker.codes
    return Dataset(
        name=name,
        answers=answers,
        gold=gold,
        kind=kind,
        meta=meta,
        rows=len(columns),
        pairs=len(np.unique(pairs)),
        left_out=int((~readable).sum()),
        gold_without_answers=sum(task not in answered for task in gold),
        scale=_scale_of_range(meta["labels"]) if kind == "numeric" else None,
    )


def _existing_folder(name: str, directory: Path) -> Path:
    names = available(directory)
    if not directory.is_dir():
        raise SettingsError("the data directory must exist", value=str(directory), hint=_directory_hint())
    if name not in names:
        found = f"In {directory} there are: {', '.join(names)}." if names else f"It holds none. {_directory_hint()}"
        raise SettingsError("a data set must exist in the data directory", value=name, hint=found)
    return directory / name


def _directory_hint() -> str:
    """Return the hint where there are no data sets."""
    named = command_advice(" or {data}")
    return f"Name a folder with one folder per data set ({VARIABLE}{named}); see 'crowdveil data sources'."


def _read_kind_and_alphabet(path: Path) -> tuple[dict[str, Any], Any, Alphabet | None]:
    """Return the description, the kind and, for labels, the alphabet."""
    try:
        meta = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ReportsError(
            "a data set must be described by JSON",
            source=str(path),
            examples=str(error),
            hint="Correct meta.json, or convert the set again (crowdveil data sources).",
        ) from error
    match meta:
        case {"kind": "numeric", "labels": str()}:
            return meta, "numeric", None
        case {"kind": "binary" | "categorical" | "ordinal" as kind, "labels": [*labels]}:
            return meta, kind, Categories(tuple(map(str, labels)), ordered=kind == "ordinal")
    raise ReportsError(
        f"'kind' must be one of {', '.join(KINDS)}, 'labels' their list (numeric: a text)", source=str(path)
    )


def _read_gold(folder: Path, kind: str) -> dict[str, Any]:
    path = folder / "truth.csv"
    if not path.exists():
        return {}
    found = load_gold_and_seed(path, kind="numeric" if kind == "numeric" else "categorical", conflicts="first")
    return dict(found.truths)


def _has_finite_number_per_row(columns: ReportColumns) -> Any:
    """Return whether each row's answer is a finite number, shape (rows,)."""
    return np.isfinite(parse_numbers(columns.value.names))[columns.value.codes]


def _scale_of_range(labels: str) -> Scale | None:
    """Return the scale of a range such as "-100..100"; None for any other text."""
    low, dots, high = labels.partition("..")
    bounds = parse_numbers(np.array([low, high]))
    return Scale(float(bounds[0]), float(bounds[1])) if dots and np.isfinite(bounds).all() else None
