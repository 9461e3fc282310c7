"""`crowdveil campaign init`: template of the settings file."""

from __future__ import annotations

from pathlib import Path

import click

from crowdveil.cli.display import print_result
from crowdveil.cli.options import PATH, json_option
from crowdveil.cli.verb import Verb


@click.command(
    cls=Verb, example="crowdveil campaign init --out campaign.toml", short_help="Write a commented settings file."
)
@click.option("--out", type=PATH, default="campaign.toml", show_default=True, metavar="FILE", help="New settings file.")
@json_option
def init(out: Path, as_json: bool) -> None:
    """Write a commented settings file to change; an existing file stays."""
    from crowdveil.planning.settings.creation import write_template

    write_template(out)
    rows = [("written", str(out)), ("next", f"change it, then crowdveil campaign new {out} --out FOLDER")]
    print_result({"files": [str(out)]}, rows, as_json=as_json)
