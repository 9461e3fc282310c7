"""`crowdveil data list` and `sources`: available public data sets of real answers, and where they are published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.display import print_result, print_written, warning_rows
from crowdveil.cli.options import FOLDER, FOLDER_PATH
from crowdveil.cli.verb import Verb

if TYPE_CHECKING:
    from crowdveil.answers.datasets import Dataset


@click.command(
    name="list",
    cls=Verb,
    short_help="List the available data sets.",
    example="crowdveil data list",
    main_options=("as_json",),
)
def list_sets() -> None:
    """List the available data sets; perturb and infer read one as dataset:NAME."""
    from crowdveil.answers.datasets import available, data_directory, load

    sets = [_summary(load(name)) for name in available()]
    directory = str(data_directory())
    lines = [(str(one["name"]), _line(one)) for one in sets]
    none = ("none", "set CROWDVEIL_DATA to a folder of data sets, or see 'crowdveil data sources'")
    rows = [("directory", directory), *(lines or [none])]
    print_result({"directory": directory, "datasets": sets}, rows)


@click.command(
    name="sources",
    cls=Verb,
    short_help="Show who publishes the data sets, and convert their files.",
    example="crowdveil data sources snow_wsd",
    main_options=("published", "out", "as_json"),
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--from", "published", type=FOLDER, help="Folder of downloaded files: convert those of NAME, or of all.")
@click.option("--out", type=FOLDER_PATH, help="Folder of the data sets. [default: CROWDVEIL_DATA]")
def show_or_convert_sources(names: tuple[str, ...], published: Path | None, out: Path | None) -> None:
    """Show the publisher, licence and SHA-256 of each data set of the experiments, and convert the published files.

    The command downloads nothing. Each SHA-256 is that of the converted file on which the committed results were
    measured; those of the published files are not known.
    """
    from crowdveil.answers import published_sets
    from crowdveil.answers.datasets import data_directory
    from crowdveil.files.atomic_write import write_outputs

    chosen, directory = published_sets.known_set_names(names), out or data_directory()
    files: list[Path] = []
    replaced: list[Path] = []
    for name in chosen:
        if published is None:
            break
        outputs = published_sets.dataset_outputs(name, directory)
        replaced += outputs.check_replaced_files()
        write_outputs(outputs, published_sets.convert_published_files(name, published))
        files += outputs.paths
    found = [_published_set_record(name, directory) for name in chosen]
    other = "these files differ from those on which the committed results were measured"
    data: dict[str, Any] = {
        "directory": str(directory),
        "sources": found,
        "warnings": [f"{one['name']}: {other}" for one in found if one["state"] == "other contents"],
    }
    rows = [("directory", str(directory)), *[row for one in found for row in _source_rows(one)]]
    print_written(data, [*rows, *warning_rows(data)], files, replaced)


def _published_set_record(name: str, directory: Path) -> dict[str, Any]:
    from crowdveil.answers.published_sets import CONVERTED, PUBLISHED, published_set_state

    one = PUBLISHED[name]
    published: dict[str, Any] = {"publisher": one.publisher, "published": list(one.files), "published_sha256": None}
    sha256 = dict(zip(CONVERTED, one.sha256, strict=True))
    return {"name": name, "title": one.title, "licence": one.licence, **published} | {
        "sha256": sha256,
        "state": published_set_state(name, directory),
    }


def _source_rows(one: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (one["name"], f"{one['title']}; {one['state']}"),
        ("publisher", one["publisher"]),
        ("licence", one["licence"]),
        ("files", f"{', '.join(one['published'])}; SHA-256 not known"),
        *[(file, f"SHA-256 {digest}") for file, digest in one["sha256"].items()],
    ]


def _summary(data: Dataset) -> dict[str, Any]:
    return {
        "name": data.name,
        "kind": data.kind,
        "labels": [] if data.answers.alphabet is None else list(data.answers.alphabet.names),
        "workers": len(data.answers.workers),
        "tasks": len(data.answers.tasks),
        "rows": data.rows,
        "pairs": data.pairs,
        "gold": data.gold_with_answers,
        "title": data.meta.get("title", ""),
    }


def _line(one: dict[str, Any]) -> str:
    crowd = f"{one['workers']:,} workers, {one['tasks']:,} tasks, {one['pairs']:,} answers, {one['gold']:,} gold"
    return f"{one['kind']}; {crowd}; {one['title']}"
