"""Public data sets that the exhibits of the papers read: publishers, licences, and the conversion of published files.

Nothing is downloaded. A converted set has the files of `crowdveil.answers.datasets`; workers are numbered in the order
of their first answers. The SHA-256 of the published files are not known, those of the converted files are.
"""

import csv
import gzip
import hashlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crowdveil.answers.datasets import META_FILE
from crowdveil.answers.ingest.column_checks import parse_numbers
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.atomic_write import Outputs
from crowdveil.files.csv_rows import csv_text

Cells = tuple[str, ...]
NOT_STATED = "not stated"
CONVERTED = ("answers.csv", "truth.csv")
SETS = Path(__file__).with_suffix(".toml")
LARGEST_POPULATION = 108_000_000_000
"""Largest claim of population_cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """Cells of the lines of a published file.

    Attributes:
        columns: places of the cells, from 0.
        header: whether the first line is none.
        only: selects the lines whose second cell it is; empty for all.
        distinct: whether repeated lines are left out.
        by_city: whether a line is like "gary, indiana, 2000, 102746": its cells are city_year and number.
        conflicting: whether only conflicting claims on populations are kept.
    """

    columns: Sequence[int] = ()
    header: bool = False
    only: str = ""
    distinct: bool = False
    by_city: bool = False
    conflicting: bool = False

    def read(self, path: Path) -> list[Cells]:
        """Return the cells of the lines of a file, in their order.

        Raises:
            ReportsError: a line has too few cells.
        """
        if self.by_city:
            return _read_city_populations(path)
        lines = _cells_of_nonempty_lines(path)[int(self.header) :]
        for row, cells in enumerate(lines, 1):
            if len(cells) <= max(self.columns):
                rule = f"a line must have at least {max(self.columns) + 1} cells"
                raise ReportsError(rule, source=str(path), rows=(row,), examples=repr(cells))
        found = [tuple(cells[at] for at in self.columns) for cells in lines if not self.only or cells[1] == self.only]
        return list(dict.fromkeys(found)) if self.distinct else found


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSet:
    """Data set as published.

    Attributes:
        title: what was asked.
        publisher: where the files are.
        files: their names; the last one has the truths.
        licence: of the data.
        kind, labels: as in `meta.json`.
        answers: task, worker and answer in the lines of the files, all but the last if there are several.
        truths: task and truth in the lines of the last file.
        sha256: of the converted `answers.csv` and `truth.csv` on which the committed results were measured.
        renamed: whether tasks are compared without case and numbered, and truths without answers are left out.
    """

    title: str
    publisher: str
    files: Sequence[str]
    kind: str
    labels: str | Sequence[str]
    answers: LineFormat
    truths: LineFormat
    sha256: Sequence[str]
    licence: str = NOT_STATED
    renamed: bool = False


def _read_published_sets() -> dict[str, PublishedSet]:
    with SETS.open("rb") as stream:
        listed = tomllib.load(stream)
    lines = {name: {part: LineFormat(**one[part]) for part in ("answers", "truths")} for name, one in listed.items()}
    return {name: PublishedSet(**one | lines[name]) for name, one in listed.items()}


def published_set_state(name: str, directory: Path) -> str:
    """Return whether a directory has a set: "missing", "as measured" or "other contents"."""
    if not (directory / name / META_FILE).exists():
        return "missing"
    found = tuple(
        hashlib.sha256(_uncompressed_bytes_or_empty(directory / name / file)).hexdigest() for file in CONVERTED
    )
    return "as measured" if found == tuple(PUBLISHED[name].sha256) else "other contents"


def known_set_names(names: Sequence[str]) -> list[str]:
    """Return known names, by default all.

    Raises:
        SettingsError: an unknown name.
    """
    for name in names:
        if name not in PUBLISHED:
            raise SettingsError(
                f"a published data set is one of {', '.join(PUBLISHED)}",
                value=name,
                hint="`crowdveil data sources` describes them; `crowdveil data list` lists those that are installed.",
            )
    return list(dict.fromkeys(names)) or list(PUBLISHED)


def dataset_outputs(name: str, directory: Path) -> Outputs:
    """Return the files of a converted set."""
    names = (*CONVERTED, META_FILE)
    return Outputs(folder=directory / name, names=names, kind="data set", also_replaced=("answers.csv.gz",))


def convert_published_files(name: str, folder: Path) -> dict[str, str]:
    """Return the contents of the files of a set, from its published files in a folder.

    Raises:
        SettingsError: a published file is missing.
        ReportsError: a line has too few cells.
    """
    published = PUBLISHED[name]
    paths = [folder / file for file in published.files]
    if missing := [path.name for path in paths if not path.is_file()]:
        hint = f"Published: {published.publisher}."
        raise SettingsError(f"{folder} must have the published files of {name}", value=missing, hint=hint)
    sources = paths[:-1] or paths
    answers = [cells for path in sources for cells in published.answers.read(path)]
    if published.answers.conflicting:
        answers = _conflicting_claims(answers)
    truths = published.truths.read(paths[-1])
    if published.renamed:
        answers = [(task.lower(), worker, answer) for task, worker, answer in answers]
        numbers = _codes_by_name("t", [task for task, *_ in answers])
        answers = [(numbers[task], worker, answer) for task, worker, answer in answers]
        truths = [(numbers[task.lower()], truth) for task, truth in truths if task.lower() in numbers]
    workers = _codes_by_name("w", [worker for _, worker, _ in answers])
    meta = {
        "name": name,
        "title": published.title,
        "sources": [f"{published.publisher}: {', '.join(published.files)}"],
        "licence": published.licence,
        "kind": published.kind,
        "labels": published.labels,
    }
    return {
        CONVERTED[0]: csv_text(("task", "worker", "answer"), [(task, workers[who], x) for task, who, x in answers]),
        CONVERTED[1]: csv_text(("task", "truth"), truths),
        META_FILE: json.dumps(meta, indent=1) + "\n",
    }


def _uncompressed_bytes_or_empty(path: Path) -> bytes:
    """Return the bytes of a file, or of its compressed form; none if there is no file."""
    zipped = path.with_name(f"{path.name}.gz")
    if zipped.exists():
        return gzip.decompress(zipped.read_bytes())
    return path.read_bytes() if path.exists() else b""


def _codes_by_name(letter: str, names: list[str]) -> dict[str, str]:
    """Return a new name of equal length for every name, such as w01, in the order of first occurrence."""
    different = list(dict.fromkeys(names))
    width = len(str(len(different)))
    return {name: f"{letter}{number:0{width}}" for number, name in enumerate(different, 1)}


def _cells_of_nonempty_lines(path: Path) -> list[list[str]]:
    """Return the cells of every line that is not empty; a line that is not UTF-8 is Latin-1.

    Lines of `.csv` files are separated by commas and may be quoted, others by tabs and never are.
    """
    texts: list[str] = []
    for line in path.read_bytes().splitlines():
        try:
            texts.append(line.decode("utf-8"))
        except UnicodeDecodeError:
            texts.append(line.decode("latin-1"))
    if path.suffix == ".csv":
        return [cells for cells in csv.reader(texts) if cells]
    return [text.split("\t") for text in texts if text]


def _read_city_populations(path: Path) -> list[Cells]:
    """Return city_year and population of lines such as "gary, indiana, 2000, 102746"."""
    lines = [cells[0].rsplit(", ", 2) for cells in _cells_of_nonempty_lines(path)]
    for row, cells in enumerate(lines, 1):
        if len(cells) != 3:
            raise ReportsError("a line must be city, year, number", source=str(path), rows=(row,), examples=repr(cells))
    return [(f"{city}_{year}", number) for city, year, number in lines]


def _conflicting_claims(answers: list[Cells]) -> list[Cells]:
    """Return the claims in (1, 1.08e11] on cities and years with at least two different ones."""
    numbers = parse_numbers(np.array([value for *_, value in answers]))
    held = [cells for cells, number in zip(answers, numbers, strict=True) if 1 < number <= LARGEST_POPULATION]
    different: dict[str, set[str]] = {}
    for task, _, value in held:
        different.setdefault(task, set()).add(value)
    return [cells for cells in held if len(different[cells[0]]) > 1]


PUBLISHED = _read_published_sets()
"""Data sets by name: all that an exhibit reads."""
