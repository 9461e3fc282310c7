"""`crowdveil data encode`: conversion of a report file to encoded blocks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from crowdveil.display.counts import crowd_text, number_of

if TYPE_CHECKING:
    from crowdveil.answers.reports import Reports
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
@click.option(
    "--append",
    is_flag=True,
    help="Add answers to the blocks in the folder. --duplicates holds across old and new ones, old ones first.",
)
@replace_option
def encode(reports: NamedReports, out: Path, append: bool, replace: bool) -> None:
    """Convert a report file to encoded blocks: a folder of binary columns, which infer reads without parsing.

    REPORTS are files that infer reads. certificate.json and crowd.json in their folder are checked and copied. The
    blocks have checksums, which infer verifies.
    """
    if append and replace:
        raise click.UsageError("Give --append or --replace, not both.")
    (_append if append else _encode)(reports, out, replace=replace)


def _encode(reports: NamedReports, out: Path, *, replace: bool) -> None:
    """Encode reports and print the result."""
    from crowdveil.storage.encoding import encode as encode_reports
    from crowdveil.storage.encoding import encoded_outputs
    from crowdveil.storage.evidence import evidence_files, read_crowd_beside

    with open_sources(reports.sources, reports.layout) as source, progress_bar("reading", unit="bytes") as bar:
        outputs = encoded_outputs(source, out, replace=replace)
        replaced = list(map(str, outputs.check_replaced_files(inputs=evidence_files(source))))
        encoded, notes = encode_reports(source, out, reports.options, replace=replace, progress=bar)
    crowd = read_crowd_beside(out)
    warnings = [*(() if crowd is None else crowd.collection.warnings), *notes]
    _print_blocks(encoded, outputs.paths, {"warnings": warnings, "replaced": replaced}, out)


def _append(reports: NamedReports, out: Path, **_: bool) -> None:
    """Append answers and print the result."""
    from crowdveil.storage.encoded.append import append

    with open_sources(reports.sources, reports.layout) as source, progress_bar("reading", unit="bytes") as bar:
        done = append(source, out, reports.options, progress=bar)
    data = {"warnings": list(done.notes), "replaced": [], "added": done.added}
    _print_blocks(done.reports, done.files, data, out)


def _print_blocks(encoded: Reports, paths: list[Path], data: dict[str, Any], out: Path) -> None:
    """Print the size of blocks, what was added, warnings and files."""
    size = sum(path.stat().st_size for path in paths)
    counts = {"reports": len(encoded), "tasks": len(encoded.tasks), "workers": len(encoded.workers)}
    labels = [] if encoded.alphabet is None else list(encoded.alphabet.names)
    data = {**counts, "labels": labels, "bytes": size, **data, "files": list(map(str, paths))}
    rows = [("reports", f"{counts['reports']:,} from {crowd_text(counts['workers'], counts['tasks'])}")]
    if "added" in data:
        rows.append(("added", ", ".join(number_of(count, name[:-1]) for name, count in data["added"].items())))
    rows += [("size", f"{size:,} bytes"), *[("warning", text) for text in data["warnings"]]]
    print_result(data, [*rows, *row_of_replaced_files(data["replaced"]), ("written", str(out))])
