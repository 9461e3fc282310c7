"""`crowdveil encode`: reports as a folder that is opened without being read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from crowdveil.cli.display import show
from crowdveil.cli.options import alphabet_options, duplicates_option, json_option

if TYPE_CHECKING:
    from crowdveil.ingest.coding import Duplicates
    from crowdveil.labels import Alphabet
    from crowdveil.reports import Kind

HELP = """Write reports as encoded blocks: columns of codes in a folder that infer opens without reading it.

REPORTS is what infer reads: a CSV (also gzipped) or Parquet file, with certificate.json and crowd.json beside it,
which are checked and copied into the folder. The blocks carry checksums: a damaged folder is refused."""


@click.command(help=HELP, short_help="Write reports as a folder that is opened without being read.")
@click.argument("reports", type=click.Path(path_type=Path))
@alphabet_options
@click.option(
    "--kind", type=click.Choice(["categorical", "numeric"]), help="What reports are, if the column does not say it."
)
@duplicates_option("error")
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FOLDER", help="Folder of the blocks.")
@json_option
def encode(
    reports: Path, alphabet: Alphabet | None, kind: Kind | None, duplicates: Duplicates, out: Path, as_json: bool
) -> None:
    """Read, write, print; see `HELP`."""
    from crowdveil import workflow

    encoded = workflow.encode(reports, out, alphabet=alphabet, kind=kind, duplicates=duplicates)
    files = workflow.encoded_files(out)
    size = sum(path.stat().st_size for path in files)
    counts = {"reports": len(encoded), "tasks": len(encoded.tasks), "workers": len(encoded.workers)}
    labels = [] if encoded.alphabet is None else list(encoded.alphabet.names)
    data = {**counts, "labels": labels, "bytes": size, "files": [str(path) for path in files]}
    crowd = f"{counts['reports']:,} from {counts['workers']:,} workers on {counts['tasks']:,} tasks"
    show(data, [("reports", crowd), ("size", f"{size:,} bytes"), ("written", str(out))], as_json=as_json)
