"""`crowdveil next --comparisons`: which pairs to compare next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdveil.cli.data.sources import open_sources
from crowdveil.cli.display import print_written, truncated_json_rows, warning_rows
from crowdveil.cli.progress import progress_bar

if TYPE_CHECKING:
    from crowdveil.storage.recorded_reading_options import NamedReports

SHOWN = 10


def list_next_comparisons(
    reports: NamedReports, budget: int, out: Path | None, participation_rate: float | None
) -> None:
    """Rank the comparisons, choose the next, write and print them."""
    from crowdveil.answers.comparisons.columns import ComparisonNames
    from crowdveil.files.atomic_write import Outputs
    from crowdveil.inference.ranking.rank import rank_comparisons
    from crowdveil.quality.next_comparisons import next_comparisons
    from crowdveil.storage.evidence import evidence_files
    from crowdveil.storage.ranking.comparisons import certificate_of, read_comparisons
    from crowdveil.storage.tables import table_form, write_columns

    outputs = None if out is None else Outputs(folder=out.parent, names=(out.name,), kind="next comparisons")
    if out is not None:
        table_form(out)
    layout, certificate = reports.layout, reports.options.certificate
    names = ComparisonNames(worker=layout.names.worker, label=layout.names.label)
    with open_sources(reports.sources, layout) as source:
        inputs = [*evidence_files(source), *source.inputs, certificate_of(source, certificate)]
        replaced = [] if outputs is None else outputs.check_replaced_files(inputs=inputs)
        with progress_bar("reading", unit="bytes"):
            read = read_comparisons(source, names, certificate, participation_rate)
    ranking = rank_comparisons(read.rows, sent=read.sent, notes=read.notes)
    chosen = next_comparisons(ranking, budget)
    columns = chosen.columns()
    formulas = () if outputs is None else write_columns(outputs, columns)
    data = {
        "warnings": [*ranking.notes, *formulas],
        "method": ranking.method.name,
        "budget": budget,
        "comparisons": truncated_json_rows(columns, SHOWN),
    }
    files = [] if outputs is None else outputs.paths
    print_written(data, [*warning_rows(data), *_rows(data)], files, replaced)


def _rows(data: dict[str, Any]) -> list[tuple[str, str]]:
    first = data["comparisons"]
    lines = [
        f"{place}. {one['list'] + ': ' if 'list' in one else ''}{one['left']} with {one['right']}: "
        f"{one['information']:.3f} nats, {one['comparisons']:,} yet"
        for place, one in enumerate(first["items"], start=1)
    ]
    return [
        ("method", data["method"]),
        ("compare", f"first {first['shown']:,} of {first['of']:,}, the most informative first"),
        *[("", line) for line in lines],
    ]
