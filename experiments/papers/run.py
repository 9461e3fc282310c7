"""Runs of exhibits: measure every configuration with a cache, write table, picture and page."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from experiments.figure_files import NO_PICTURES, drawn_svg, has_matplotlib
from experiments.papers import EXHIBITS
from experiments.papers.cache import default_cache, rows_of, store
from experiments.papers.exhibit import PAPERS, Exhibit, Row, Size, Verdict, declared
from experiments.papers.page import COMMAND, page_text

from crowdveil.answers import datasets
from crowdveil.channels.rounding import format_bound
from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import Outputs, write_outputs

DIGITS = 6
"""Significant digits of the numbers in a table."""
KIND = "exhibit"
LIST_HINT = f"{COMMAND} --list shows all."
Progress = Callable[[float, float | None], None]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Finished exhibit.

    Attributes:
        exhibit: the exhibit.
        size: size of the run.
        rows: measured rows, with numbers as in the CSV file.
        verdict: verdict on the rows.
        files: written files.
        replaced: earlier files of the same names.
        warnings: sentences.
    """

    exhibit: Exhibit
    size: Size
    rows: list[Row]
    verdict: Verdict
    files: tuple[Path, ...]
    replaced: tuple[Path, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the members of one exhibit of the JSON document."""
        verdict = self.verdict
        return described(self.exhibit) | {
            "outcome": verdict.outcome,
            "verdict": verdict.sentence,
            "inequality": verdict.inequality,
            "paper": list(self.exhibit.paper),
            "rows": self.rows,
        }


def described(exhibit: Exhibit) -> dict[str, Any]:
    """Return name, title and source of an exhibit."""
    return {"name": exhibit.name, "title": exhibit.title, "source": exhibit.source}


def selected(names: Iterable[str]) -> list[str]:
    """Return the names of the exhibits that are given by their names or by those of papers ("all": every), each once.

    Raises:
        SettingsError: an unknown name.
    """
    found: list[str] = []
    for name in names:
        mine = [one for one in EXHIBITS if name in ("all", one, one.partition("/")[0])]
        if not mine:
            known = [*EXHIBITS, *{one.partition("/")[0] for one in EXHIBITS}, "all"]
            near = get_close_matches(name, known, n=3, cutoff=0.4)
            hint = f"Did you mean {', '.join(near)}? {LIST_HINT}" if near else LIST_HINT
            raise SettingsError("there must be an exhibit or a paper of this name", value=name, hint=hint)
        found += mine
    return list(dict.fromkeys(found))


def skipped(names: Sequence[str], asked: Iterable[str]) -> dict[str, list[str]]:
    """Return the missing data sets of the exhibits that cannot run; `asked` are the names as given.

    Raises:
        SettingsError: a data set is missing of an exhibit that is asked for by its own name, or of every exhibit.
    """
    found = {name: lacking for name in names if (lacking := _missing(load_exhibit(name)))}
    refused = [name for name in found if name in set(asked) or len(found) == len(names)]
    if refused:
        _require_data(load_exhibit(refused[0]))
    return found


def load_exhibit(name: str) -> Exhibit:
    """Return an exhibit by its name.

    Raises:
        SettingsError: an unknown name.
    """
    if name not in EXHIBITS:
        selected([name])
        raise SettingsError("an exhibit is named paper/exhibit", value=name, hint=LIST_HINT)
    return declared(name)


def folders_of_files(names: Iterable[str], out: Path | None) -> dict[str, Path | None]:
    """Return the folder of the files of each exhibit: `out`, or one per paper in it if there are several papers.

    Exhibits of two papers may have one file name, such as `figure1.csv`.
    """
    papers = {name: name.partition("/")[0] for name in names}
    several = len(set(papers.values())) > 1
    return {name: out / paper if out is not None and several else out for name, paper in papers.items()}


def reproduce(
    name: str,
    *,
    size: Size = "default",
    out: Path | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Run an exhibit and write `<exhibit>.csv`, `.svg` and `.md`.

    Args:
        name: name in `EXHIBITS`.
        size: size of the grid.
        out: folder of the files; by default `experiments/papers/<paper>/results`, and none for the size quick.
        cache: folder of measured rows; by default in the user's cache directory.
        progress: called with the number of finished configurations and of all.

    Raises:
        SettingsError: an unknown exhibit, a missing data set, or a folder that cannot be written.
    """
    exhibit = load_exhibit(name)
    _require_data(exhibit)
    folder = out or (None if size == "quick" else PAPERS / name.partition("/")[0] / "results")
    outputs = None if folder is None else _outputs(folder, name.partition("/")[2])
    replaced = [] if outputs is None else outputs.check_replaced_files()
    rows = measured_rows(exhibit, size, cache or default_cache(), progress)
    verdict = exhibit.verdict(rows)
    if outputs is not None:
        write_outputs(outputs, _contents(exhibit, size, rows, verdict))
    warnings = [] if has_matplotlib() else [NO_PICTURES]
    if not verdict.inequality:
        warnings.append(f"{name}: the inequality of the verdict does not hold on these rows")
    files = () if outputs is None else tuple(outputs.paths)
    return Reproduction(exhibit, size, rows, verdict, files, tuple(replaced), tuple(warnings))


def _outputs(folder: Path, stem: str) -> Outputs:
    """Return the files of an exhibit; without matplotlib there is no picture."""
    endings = (".csv", ".svg", ".md") if has_matplotlib() else (".csv", ".md")
    return Outputs(folder=folder, names=tuple(stem + ending for ending in endings), kind=KIND)


def _contents(exhibit: Exhibit, size: Size, rows: list[Row], verdict: Verdict) -> dict[str, bytes | str]:
    """Return the contents of the files by name."""
    stem = exhibit.name.partition("/")[2]
    picture = f"{stem}.svg" if has_matplotlib() else None
    page = page_text(exhibit, size, rows, verdict, picture)
    texts: dict[str, bytes | str] = {f"{stem}.csv": csv_text(exhibit, rows), f"{stem}.md": page}
    return texts if picture is None else texts | {picture: picture_bytes(exhibit, rows)}


def measured_rows(exhibit: Exhibit, size: Size, cache: Path, progress: Progress | None = None) -> list[Row]:
    """Return the rows of all configurations of a size; those in the cache are not measured again.

    Raises:
        SettingsError: rows have other columns than the exhibit, or the cache cannot be written.
    """
    configurations = exhibit.configurations(size)
    rows: list[Row] = []
    for done, configuration in enumerate(configurations):
        if progress is not None:
            progress(done, len(configurations))
        found = rows_of(exhibit, configuration, cache)
        if found is None:
            found = [
                {name: _rounded(name, value) for name, value in row.items()}
                for row in _measured(exhibit, configuration)
            ]
            store(exhibit, configuration, found, cache)
        rows += found
    return rows


def csv_text(exhibit: Exhibit, rows: list[Row]) -> str:
    """Return the rows as CSV; an empty field is None."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, exhibit.columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV file of `csv_text`: numbers as numbers, an empty field as None."""
    with path.open(newline="", encoding="utf-8") as stream:
        return [{name: _value(text) for name, text in row.items()} for row in csv.DictReader(stream)]


def picture_bytes(exhibit: Exhibit, rows: list[Row]) -> bytes:
    """Return the picture as SVG; the same rows give the same bytes."""
    return drawn_svg(partial(exhibit.draw, rows))


def _measured(exhibit: Exhibit, configuration: dict[str, Any]) -> list[Row]:
    """Return the rows of one step, each in the order of the columns; a column that a row lacks is None."""
    rows = exhibit.measure(configuration)
    for row in rows:
        if not set(row) <= set(exhibit.columns):
            raise SettingsError(f"a row of {exhibit.name} has the columns {exhibit.columns}", value=tuple(row))
    return [{name: row.get(name) for name in exhibit.columns} for row in rows]


def sentence_on_getting_datasets(names: Sequence[str]) -> str:
    """Return the sentence that says how missing sets are obtained."""
    return (
        f"'crowdveil data sources {' '.join(names)}' says where they are published and converts them; or set "
        f"{datasets.VARIABLE} to the folder that has them."
    )


def _missing(exhibit: Exhibit) -> list[str]:
    """Return the data sets of an exhibit that the data directory does not have."""
    present = datasets.available()
    return [name for name in exhibit.data if name not in present]


def _require_data(exhibit: Exhibit) -> None:
    if missing := _missing(exhibit):
        raise SettingsError(
            f"{exhibit.name} needs the data sets {', '.join(exhibit.data)}",
            value=str(datasets.data_directory()),
            hint=f"Missing: {', '.join(missing)}. {sentence_on_getting_datasets(missing)}",
        )


def _rounded(name: str, value: Any) -> str | int | float | None:
    """Return a float with six significant digits; exact privacy losses are rounded up."""
    if not isinstance(value, float) or not math.isfinite(value):
        return None if isinstance(value, float) and math.isnan(value) else value
    if name.startswith("exact_"):
        return float(format_bound(value, DIGITS))
    return float(f"{value:.{DIGITS}g}")


def _value(text: str) -> str | int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text or None
