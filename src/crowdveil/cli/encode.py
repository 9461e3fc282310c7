"""`crowdveil encode`: reports as a folder that is opened without being read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from crowdveil.cli.display import replaced_rows, show
from crowdveil.cli.options import (
    PATH,
    accept_edited_option,
    alphabet_options,
    duplicates_option,
    json_option,
    merge_labels_option,
    replace_option,
)

if TYPE_CHECKING:
    from crowdveil.channels.alphabet import Alphabet
    from crowdveil.data.ingest.validation import Duplicates
    from crowdveil.data.read_options import Kind

HELP = """Write reports as encoded blocks: columns of codes in a folder that infer opens without reading it.

REPORTS is what infer reads: a CSV (also gzipped) or Parquet file, with certificate.json and crowd.json beside it,
which are checked and copied into the folder. The blocks carry checksums: a damaged folder is refused."""


@click.command(help=HELP, short_help="Write reports as a folder that is opened without being read.")
@click.argument("reports", type=PATH)
@alphabet_options
@click.option(
    "--kind", type=click.Choice(["categorical", "numeric"]), help="What reports are, if the column does not say it."
)
@duplicates_option("error")
@merge_labels_option
@accept_edited_option
@click.option("--out", type=PATH, required=True, metavar="FOLDER", help="Folder of the blocks.")
@replace_option
@json_option
def encode(
    reports: Path,
    alphabet: Alphabet | None,
    kind: Kind | None,
    duplicates: Duplicates,
    merge_labels: bool,
    accept_edited: bool,
    out: Path,
    replace: bool,
    as_json: bool,
) -> None:
    """Read, write, print; see `HELP`."""
    from crowdveil import workflow

    outputs = workflow.encoded_outputs(reports, out, replace=replace)
    replaced = list(map(str, outputs.check(inputs=workflow.evidence_files(reports))))
    encoded, notes = workflow.encode(
        reports,
        out,
        alphabet=alphabet,
        kind=kind,
        duplicates=duplicates,
        merge_labels=merge_labels,
        accept_edited=accept_edited,
        replace=replace,
    )
    size = sum(path.stat().st_size for path in outputs.paths)
    counts = {"reports": len(encoded), "tasks": len(encoded.tasks), "workers": len(encoded.workers)}
    labels = [] if encoded.alphabet is None else list(encoded.alphabet.names)
    crowd = workflow.crowd_beside(out)
    warnings = [*([] if crowd is None else workflow.caveats(crowd)), *notes]
    files = {"warnings": warnings, "files": list(map(str, outputs.paths)), "replaced": replaced}
    data = {**counts, "labels": labels, "bytes": size, **files}
    sizes = f"{counts['reports']:,} from {counts['workers']:,} workers on {counts['tasks']:,} tasks"
    rows = [("reports", sizes), ("size", f"{size:,} bytes"), *[("warning", text) for text in warnings]]
    show(data, [*rows, *replaced_rows(replaced), ("written", str(out))], as_json=as_json)
