"""`crowdveil reproduce`: tables and figures of the papers, measured again."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import click

import crowdveil
from crowdveil.cli.display import print_result, print_written, progress_bar, warning_rows
from crowdveil.cli.options import FOLDER
from crowdveil.cli.verb import Verb
from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import folder_errors, refuse_unwritable

PROGRAM = Path("experiments", "papers", "run.py")


@click.command(
    cls=Verb,
    example="crowdveil reproduce sun2018/theorem1 --out shown",
    main_options=("listed", "quick", "full", "out", "cache", "as_json"),
    short_help="Measure a table or figure of the papers again.",
)
@click.argument("exhibits", nargs=-1, metavar="EXHIBIT...")
@click.option("--list", "listed", is_flag=True, help="List the exhibits.")
@click.option("--quick", is_flag=True, help="A small grid: seconds. Files are written with --out only.")
@click.option("--full", is_flag=True, help="The paper's grid and repeats: up to hours. [default: minutes]")
@click.option(
    "--out", type=FOLDER, help="Folder of the files, or of one per paper. [default: experiments/papers/PAPER/results]"
)
@click.option("--cache", type=FOLDER, help="Folder of measured steps. [default: the user's cache directory]")
def reproduce(
    exhibits: tuple[str, ...],
    listed: bool,
    quick: bool,
    full: bool,
    out: Path | None,
    cache: Path | None,
) -> None:
    """Measure a table or figure of a paper again, beside the paper's numbers.

    EXHIBIT is a name that --list shows, such as sun2018/figure2, the name of a paper for all its exhibits, or "all".
    Each one writes a table (CSV), a picture (SVG) and a page (Markdown) with the exact epsilon of a cell and its
    participation, the best public constant and a verdict.

    \f
    Measured steps are kept in a cache, so that an interrupted run continues. The exhibits are programs of the source
    distribution: they are taken from the current folder, from the checkout that crowdveil is installed from, or from a
    folder of PYTHONPATH. Exhibits of a paper whose data sets are missing are skipped and named, and the others are
    written (exit code 0); an exhibit that is named itself, or a paper of which nothing can run, is refused. 'crowdveil
    data sources' says where the data sets are published. Simulation only: no privacy.
    """
    if quick and full:
        raise click.UsageError("--quick and --full exclude each other.")
    if not exhibits and not listed:
        raise click.UsageError("Missing argument 'EXHIBIT...'. --list shows the names.")
    program = _exhibits_module()
    if listed:
        _print_list(program)
        return
    _make_writable_cache_folder(cache or program.default_cache())
    size = "quick" if quick else "full" if full else "default"
    done = []
    chosen = program.selected(exhibits)
    skipped = program.skipped(chosen, exhibits)
    for name, folder in program.folders_of_files(chosen, out).items():
        if name in skipped:
            continue
        with progress_bar(name) as bar:
            done.append(program.reproduce(name, size=size, out=folder, cache=cache, progress=bar))
    data = {
        "size": size,
        "exhibits": [one.to_json() for one in done],
        "skipped": [{"name": name, "missing": missing} for name, missing in skipped.items()],
        "warnings": [*_skipped_exhibits_warning(skipped), *[text for one in done for text in one.warnings]],
    }
    files, replaced = [path for one in done for path in one.files], [path for one in done for path in one.replaced]
    print_written(data, _exhibit_and_file_rows(data), files, replaced)


def _exhibits_module() -> Any:
    """Return the module that runs exhibits, of the checkout in the current folder, beside the package or on the path.

    Raises:
        SettingsError: there is no checkout.
    """
    for root in (Path.cwd(), Path(crowdveil.__file__).parents[2], *map(Path, sys.path)):
        if (root / PROGRAM).is_file():
            if str(root) not in sys.path:
                sys.path.insert(0, str(root))
            return importlib.import_module(".".join(PROGRAM.with_suffix("").parts))
    raise SettingsError(
        f"the exhibits must be in the current folder ({PROGRAM.as_posix()})",
        value=str(Path.cwd()),
        hint="They are part of the source distribution, not of the installed package: unpack it, change to its folder.",
    )


def _make_writable_cache_folder(folder: Path) -> None:
    """Make the folder of measured steps before the first step is measured.

    Raises:
        SettingsError: it cannot be written.
    """
    with folder_errors(folder, role="the folder of measured steps", option="--cache"):
        folder.mkdir(parents=True, exist_ok=True)
        refuse_unwritable(folder)


def _print_list(program: Any) -> None:
    """Print every exhibit with its source and title."""
    found = [program.described(program.load_exhibit(name)) for name in program.EXHIBITS]
    rows = [(one["name"], f"{one['source']}: {one['title']}") for one in found]
    print_result({"size": None, "exhibits": found}, rows)


def _skipped_exhibits_warning(skipped: dict[str, list[str]]) -> list[str]:
    """Return how many exhibits are skipped and how their data sets are obtained; nothing if none is."""
    from crowdveil.answers.published_sets import sentence_on_getting_datasets

    missing = list(dict.fromkeys(name for names in skipped.values() for name in names))
    return [f"{len(skipped)} exhibits are skipped; {sentence_on_getting_datasets(missing)}"] if missing else []


def _exhibit_and_file_rows(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return name, verdict and number of rows of each exhibit, then the files."""
    return [
        *[row for one in data["exhibits"] for row in _exhibit_rows(one)],
        *[("skipped", f"{one['name']}: no data set {', '.join(one['missing'])}") for one in data["skipped"]],
        *warning_rows(data),
    ]


def _exhibit_rows(one: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("exhibit", f"{one['name']} ({one['source']}): {one['title']}"),
        ("verdict", f"{one['outcome']}: {one['verdict']}"),
        ("rows", f"{len(one['rows']):,}"),
    ]
