"""`crowdveil datasets`: available public data sets of real answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.display import print_result
from crowdveil.cli.options import json_option
from crowdveil.cli.verb import Verb

if TYPE_CHECKING:
    from crowdveil.data.datasets import Dataset


@click.group(short_help="List public data sets of real answers.")
def datasets() -> None:
    """List public data sets of real answers in the folder CROWDVEIL_DATA."""


@datasets.command(name="list", cls=Verb, example="crowdveil datasets list", main_options=("as_json",))
@json_option
def list_sets(as_json: bool) -> None:
    """List the available data sets; perturb and infer read one as dataset:NAME."""
    from crowdveil.data.datasets import available, data_directory, load

    sets = [_summary(load(name)) for name in available()]
    directory = str(data_directory())
    lines = [(str(one["name"]), _line(one)) for one in sets]
    rows = [("directory", directory), *(lines or [("none", "set CROWDVEIL_DATA to a folder of data sets")])]
    print_result({"directory": directory, "datasets": sets}, rows, as_json=as_json)


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
