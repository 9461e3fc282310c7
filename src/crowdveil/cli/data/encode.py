"""`crowdveil data encode`: conversion of a report file to encoded blocks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from crowdveil.cli.data.sources import column_options, open_sources, sources_argument
from crowdveil.cli.display import print_result, row_of_replaced_files
from crowdveil.cli.options import (
    FOLDER_PATH,
    accept_edited_option,
    alphabet_options,
    duplicates_option,
    kind_option,
    merge_labels_option,
    replace_option,
)
from crowdveil.cli.progress import progress_bar
from crowdveil.cli.results.reports_argument import REPORTS, asked_options
from crowdveil.cli.verb import Verb
from crowdveil.display.counts import crowd_text

if TYPE_CHECKING:
    from crowdveil.storage.recorded_reading_options import NamedReports


@click.command(
    cls=Verb,
    values=REPORTS,
    example="crowdveil data encode sent/reports.csv --out blocks",
    main_options=("labels", "scale", "replace", "as_json"),
    short_help="Convert a report file to blocks that infer reads faster.",
)
@sources_argument("reports")
@alphabet_options
@kind_option
@duplicates_option("error")
@merge_labels_option
@column_options
@asked_options
@accept_edited_option
@click.option("--out", type=FOLDER_PATH, required=True, help="Folder of the blocks.")
@replace_option
def encode(reports: NamedReports, out: Path, replace: bool) -> None:
    """Convert a report file to encoded blocks: a folder of binary columns, which infer reads without parsing.

    REPORTS are files that infer reads. certificate.json and crowd.json in their folder are checked and copied. The
    blocks have checksums, which infer verifies.
    """
    from crowdveil.storage.encoding import encode as encode_reports
    from crowdveil.storage.encoding import encoded_outputs
    from crowdveil.storage.evidence import evidence_files, read_crowd_beside

    with open_sources(reports.sources, reports.layout) as source, progress_bar("reading", unit="bytes") as bar:
        outputs = encoded_outputs(source, out, replace=replace)
        replaced = list(map(str, outputs.check_replaced_files(inputs=evidence_files(source))))
        encoded, notes = encode_reports(source, out, reports.options, replace=replace, progress=bar)
    size = sum(path.stat().st_size for path in outputs.paths)
    counts = {"reports": len(encoded), "tasks": len(encoded.tasks), "workers": len(encoded.workers)}
    labels = [] if encoded.alphabet is None else list(encoded.alphabet.names)
    crowd = read_crowd_beside(out)
    warnings = [*(() if crowd is None else crowd.collection.warnings), *notes]
    files = {"warnings": warnings, "files": list(map(str, outputs.paths)), "replaced": replaced}
    data = {**counts, "labels": labels, "bytes": size, **files}
    sizes = f"{counts['reports']:,} from {crowd_text(counts['workers'], counts['tasks'])}"
    rows = [("reports", sizes), ("size", f"{size:,} bytes"), *[("warning", text) for text in warnings]]
    print_result(data, [*rows, *row_of_replaced_files(replaced), ("written", str(out))])
