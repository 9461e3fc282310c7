"""Public data sets that the exhibits of the papers read: publishers, licences, and the conversion of published files.

Nothing is downloaded. A converted set has the files of `crowdveil.data.datasets`; workers are numbered in the order of
their first answers. The SHA-256 of the published files are not known, those of the converted files are.
"""

import csv
import gzip
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crowdveil.data.datasets import META_FILE, VARIABLE
from crowdveil.data.ingest.validation import parse_numbers
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.atomic_write import Outputs

Cells = tuple[str, ...]
NOT_STATED = "not stated"
CONVERTED = ("answers.csv", "truth.csv")
LARGEST_POPULATION = 108_000_000_000
"""Largest claim of population_cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSet:
    """Data set as published.

    Attributes:
        title: what was asked.
        publisher: where the files are.
        files: their names; the last one has the truths.
        licence: of the data.
        kind, labels: as in `meta.json`.
        answers: task, worker and answer of the lines of a file, in their order.
        truths: task and truth of the lines of the last file.
        sha256: of the converted `answers.csv` and `truth.csv` on which the committed results were measured.
        keep: which answers are kept.
        renamed: whether tasks are compared without case and numbered, and truths without answers are left out.
    """

    title: str
    publisher: str
    files: Cells
    kind: str
    labels: str | Cells
    answers: Callable[[Path], list[Cells]]
    truths: Callable[[Path], list[Cells]]
    sha256: Cells
    licence: str = NOT_STATED
    keep: Callable[[list[Cells]], list[Cells]] = list
    renamed: bool = False


def state_of(name: str, directory: Path) -> str:
    """Return whether a directory has a set: "missing", "as measured" or "other contents"."""
    if not (directory / name / META_FILE).exists():
        return "missing"
    found = tuple(hashlib.sha256(_contents(directory / name / file)).hexdigest() for file in CONVERTED)
    return "as measured" if found == PUBLISHED[name].sha256 else "other contents"


def where_to_get(names: Sequence[str]) -> str:
    """Return the sentence that says how missing sets are obtained."""
    return (
        f"'crowdveil data sources {' '.join(names)}' says where they are published and converts them; or set "
        f"{VARIABLE} to the folder that has them."
    )


def chosen(names: Sequence[str]) -> list[str]:
    """Return known names, by default all.

    Raises:
        SettingsError: an unknown name.
    """
    for name in names:
        if name not in PUBLISHED:
            raise SettingsError(f"a published data set is one of {', '.join(PUBLISHED)}", value=name)
    return list(dict.fromkeys(names)) or list(PUBLISHED)


def outputs_of(name: str, directory: Path) -> Outputs:
    """Return the files of a converted set."""
    names = (*CONVERTED, META_FILE)
    return Outputs(folder=directory / name, names=names, kind="data set", also_replaced=("answers.csv.gz",))


def converted(name: str, folder: Path) -> dict[str, str]:
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
    answers = published.keep([cells for path in sources for cells in published.answers(path)])
    truths = published.truths(paths[-1])
    if published.renamed:
        answers = [(task.lower(), worker, answer) for task, worker, answer in answers]
        numbers = _numbered("t", [task for task, *_ in answers])
        answers = [(numbers[task], worker, answer) for task, worker, answer in answers]
        truths = [(numbers[task.lower()], truth) for task, truth in truths if task.lower() in numbers]
    workers = _numbered("w", [worker for _, worker, _ in answers])
    meta = {
        "name": name,
        "title": published.title,
        "sources": [f"{published.publisher}: {', '.join(published.files)}"],
        "licence": published.licence,
        "kind": published.kind,
        "labels": published.labels,
    }
    return {
        CONVERTED[0]: _table(("task", "worker", "answer"), [(task, workers[who], x) for task, who, x in answers]),
        CONVERTED[1]: _table(("task", "truth"), truths),
        META_FILE: json.dumps(meta, indent=1) + "\n",
    }


def _contents(path: Path) -> bytes:
    """Return the bytes of a file, or of its compressed form; none if there is no file."""
    zipped = path.with_name(f"{path.name}.gz")
    if zipped.exists():
        return gzip.decompress(zipped.read_bytes())
    return path.read_bytes() if path.exists() else b""


def _numbered(letter: str, names: list[str]) -> dict[str, str]:
    """Return a new name of equal length for every name, such as w01, in the order of first occurrence."""
    different = list(dict.fromkeys(names))
    width = len(str(len(different)))
    return {name: f"{letter}{number:0{width}}" for number, name in enumerate(different, 1)}


def _table(header: Cells, rows: Iterable[Cells]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([header, *rows])
    return stream.getvalue()


def _lines(path: Path) -> list[list[str]]:
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


def _columns(*places: int, header: bool = False, only: str = "") -> Callable[[Path], list[Cells]]:
    """Return a reader of some columns, counted from 0; `only` selects the lines whose second cell it is."""

    def read(path: Path) -> list[Cells]:
        lines = _lines(path)[int(header) :]
        for row, cells in enumerate(lines, 1):
            if len(cells) <= max(places):
                rule = f"a line must have at least {max(places) + 1} cells"
                raise ReportsError(rule, source=str(path), rows=(row,), examples=repr(cells))
        return [tuple(cells[place] for place in places) for cells in lines if not only or cells[1] == only]

    return read


def _city_truths(path: Path) -> list[Cells]:
    """Return city_year and population of lines such as "gary, indiana, 2000, 102746"."""
    lines = [cells[0].rsplit(", ", 2) for cells in _lines(path)]
    for row, cells in enumerate(lines, 1):
        if len(cells) != 3:
            raise ReportsError("a line must be city, year, number", source=str(path), rows=(row,), examples=repr(cells))
    return [(f"{city}_{year}", number) for city, year, number in lines]


def _conflicting(answers: list[Cells]) -> list[Cells]:
    """Return the claims in (1, 1.08e11] on cities and years with at least two different ones."""
    numbers = parse_numbers(np.array([value for *_, value in answers]))
    held = [cells for cells, number in zip(answers, numbers, strict=True) if 1 < number <= LARGEST_POPULATION]
    different: dict[str, set[str]] = {}
    for task, _, value in held:
        different.setdefault(task, set()).add(value)
    return [cells for cells in held if len(different[cells[0]]) > 1]


POPULATION = "github.com/daz45/population---truth-discovery, data/population (Pasternack and Roth 2010)"
CITY_TRUTHS = "a9515910a440180f8ad8644dca39193a7d5dba01ab8efca98a874cad49f9b683"
PUBLISHED: dict[str, PublishedSet] = {
    "snow_wsd": PublishedSet(
        title='Sense of the word "president" (Snow et al. 2008)',
        publisher="sites.google.com/site/nlpannotations (Snow et al. 2008); copy in github.com/maqqbu/MMSR",
        files=("wsd.standardized.tsv",),
        kind="categorical",
        labels=("1", "2", "3"),
        answers=_columns(2, 1, 3, header=True),
        truths=lambda path: list(dict.fromkeys(_columns(2, 4, header=True)(path))),
        sha256=(
            "cc1cb8d6522b34d547f1d8243f67f4cc89412c61d392b00372e49ae7edeec301",
            "0bdfd945bb8540c49307d71e026e12082057209c192291ec2b9ece4b08887f29",
        ),
    ),
    "adult2": PublishedSet(
        title="AdultContent2: web sites rated G, P, R or X",
        publisher="github.com/ipeirotis/Get-Another-Label, data/AdultContent2",
        files=("labels.txt", "gold.txt"),
        licence="not stated for the data; the repository has Apache-2.0",
        kind="ordinal",
        labels=("G", "P", "R", "X"),
        answers=_columns(1, 0, 2),
        truths=_columns(0, 1),
        sha256=(
            "92e83f9a5e9b77522d4b088b13ef598633e42eb5933091fb3bb24b4491eaf0fa",
            "b3d1cca7f7e3f1bb3fa66c02dbbd6e972a1ab14d55da8c9f9b84a3cc83c2eae5",
        ),
        renamed=True,
    ),
    "duchenne": PublishedSet(
        title="Duchenne smile or not (Whitehill et al. 2009)",
        publisher="github.com/pmaglione/crowd-datasets, WVSCM",
        files=("workerResponses.txt", "groundTruth.txt"),
        kind="binary",
        labels=("0", "1"),
        answers=_columns(1, 0, 2),
        truths=_columns(0, 1),
        sha256=(
            "655b050a384bf936750fa64aa387751cf7ed616af66aead4b1269987984822d9",
            "e0474207cdf1ebdac2a92bc6cc7a6a26c1def622997acbd9ef59f352572606b7",
        ),
    ),
    "population_cut": PublishedSet(
        title="Population of cities by year, conflicting claims in (1, 1.08e11]",
        publisher=POPULATION,
        files=("population-new.txt", "population-gd.txt"),
        kind="numeric",
        labels="positive numbers",
        answers=_columns(0, 1, 2),
        truths=_city_truths,
        sha256=("6ada7ccfc441ae4f60e2a23fe6005fc5e63f1bfed9b12ce8befcddb3b1852874", CITY_TRUTHS),
        keep=_conflicting,
    ),
    "population_tf": PublishedSet(
        title="Population of cities by year, without the outliers that the repository removes",
        publisher=POPULATION,
        files=("population-new-new-new-TF.txt", "population-gd.txt"),
        kind="numeric",
        labels="positive numbers",
        answers=_columns(0, 1, 5),
        truths=_city_truths,
        sha256=("32f0845cc81b07c56ec15a962849d69974832c09eca8da67c1d6fe618cb6a09d", CITY_TRUTHS),
    ),
    "weather_temperature": PublishedSet(
        title="Temperature of cities of the USA by day and hour, from web sites",
        publisher="github.com/totucuong/spectrum, data/weather/claims and data/weather/ground_truth",
        files=(*(f"weather_claim{number}.csv" for number in range(1, 17)), "weather_truth.csv"),
        licence="not stated for the data; the repository has Apache-2.0",
        kind="numeric",
        labels="degrees Fahrenheit",
        answers=_columns(0, 3, 2, only="Temperature"),
        truths=_columns(0, 2, only="Temperature"),
        sha256=(
            "99780cc0ae647f45ade095a5043ed9e513b1675827c26af4ad1ba8502b3dd4c1",
            "2dd5bd5b0ee6fe8c98002969a234cfefe282bbd3a4854cfc47df27b8b4143311",
        ),
    ),
}
"""Data sets by name: all that an exhibit reads."""
