"""Tables, figures and theorems of the papers, measured again: `python -m experiments.papers NAME`, from a checkout."""

from pathlib import Path
from typing import Any

import click
from experiments.papers import EXHIBITS
from experiments.papers.cache import default_cache
from experiments.papers.exhibit import Size
from experiments.papers.page import COMMAND
from experiments.papers.run import (
    described,
    folders_of_files,
    load_exhibit,
    reproduce,
    selected,
    sentence_on_getting_datasets,
    skipped,
)

from crowdveil.cli.display import error_line, json_text, print_result, print_written, warning_rows
from crowdveil.cli.options import FOLDER
from crowdveil.cli.progress import progress_bar
from crowdveil.cli.verb import Verb, wants_json
from crowdveil.errors import CrowdveilError
from crowdveil.files.atomic_write import folder_errors, refuse_unwritable


class Program(Verb):
    """Command whose errors are one line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors of crowdveil and the file system become one line and exit code 1."""
        try:
            return super().invoke(ctx)
        except (CrowdveilError, OSError) as error:
            raise click.ClickException(error_line(error)) from error


@click.command(
    cls=Program,
    example=f"{COMMAND} sun2018/theorem1 --out shown",
    main_options=("listed", "quick", "full", "out", "cache", "as_json"),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option("--list", "listed", is_flag=True, help="List the exhibits.")
@click.option("--quick", is_flag=True, help="A small grid: seconds. Files are written with --out only.")
@click.option("--full", is_flag=True, help="The paper's grid and repeats: up to hours. [default: minutes]")
@click.option(
    "--out", type=FOLDER, help="Folder of the files, or of one per paper. [default: experiments/papers/PAPER/results]"
)
@click.option("--cache", type=FOLDER, help="Folder of measured steps. [default: the user's cache directory]")
def main(
    names: tuple[str, ...],
    listed: bool,
    quick: bool,
    full: bool,
    out: Path | None,
    cache: Path | None,
) -> None:
    """Measure a table or figure of a paper again, beside the paper's numbers.

    NAME is an exhibit that --list shows, such as sun2018/figure2, the name of a paper for all its exhibits, or "all".
    Each one writes a table (CSV), a picture (SVG) and a page (Markdown) with the exact epsilon of a cell and its
    participation, the best public constant and a verdict.

    \f
    Measured steps are kept in a cache, so that an interrupted run continues. Exhibits of a paper whose data sets are
    missing are skipped and named, and the others are written (exit code 0); an exhibit that is named itself, or a paper
    of which nothing can run, is refused. 'crowdveil data sources' says where the data sets are published. Simulation
    only: no privacy.
    """
    if quick and full:
        raise click.UsageError("--quick and --full exclude each other.")
    if not names and not listed:
        raise click.UsageError("Missing argument 'NAME...'. --list shows the names.")
    if listed:
        _print_list()
        return
    _make_writable_cache_folder(cache or default_cache())
    size: Size = "quick" if quick else "full" if full else "default"
    done = []
    chosen = selected(names)
    without_data = skipped(chosen, names)
    for name, folder in folders_of_files(chosen, out).items():
        if name in without_data:
            continue
        with progress_bar(name) as bar:
            done.append(reproduce(name, size=size, out=folder, cache=cache, progress=bar))
    data = {
        "size": size,
        "exhibits": [one.to_json() for one in done],
        "skipped": [{"name": name, "missing": missing} for name, missing in without_data.items()],
        "warnings": [*_skipped_exhibits_warning(without_data), *[text for one in done for text in one.warnings]],
    }
    files, replaced = [path for one in done for path in one.files], [path for one in done for path in one.replaced]
    if wants_json():
        click.echo(json_text({**data, "files": files, "replaced": replaced}))
    else:
        print_written(data, _exhibit_and_file_rows(data), files, replaced)


def _make_writable_cache_folder(folder: Path) -> None:
    """Make the folder of measured steps before the first step is measured.

    Raises:
        SettingsError: it cannot be written.
    """
    with folder_errors(folder, role="the folder of measured steps"):
        folder.mkdir(parents=True, exist_ok=True)
        refuse_unwritable(folder)


def _print_list() -> None:
    """Print every exhibit with its source and title."""
    found = [described(load_exhibit(name)) for name in EXHIBITS]
    if wants_json():
        click.echo(json_text({"exhibits": found}))
    else:
        print_result({}, [(one["name"], f"{one['source']}: {one['title']}") for one in found])


def _skipped_exhibits_warning(without_data: dict[str, list[str]]) -> list[str]:
    """Return how many exhibits are skipped and how their data sets are obtained; nothing if none is."""
    missing = list(dict.fromkeys(name for names in without_data.values() for name in names))
    return [f"{len(without_data)} exhibits are skipped; {sentence_on_getting_datasets(missing)}"] if missing else []


def _exhibit_and_file_rows(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return name, verdict and number of rows of each exhibit, then the skipped ones and the warnings."""
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


if __name__ == "__main__":
    main(prog_name=COMMAND)
