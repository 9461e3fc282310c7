"""`crowdveil data export`: inferred truths in the form that a labelling tool imports."""

from __future__ import annotations

import json
from pathlib import Path

import click

from crowdveil.cli.display import print_written
from crowdveil.cli.options import FILE_PATH, FOLDER
from crowdveil.cli.progress import progress_bar
from crowdveil.cli.verb import Verb


@click.command(
    "export",
    cls=Verb,
    example="crowdveil data export label-studio found --tasks export.json\n          --out predictions.json",
    main_options=("question", "as_json"),
    short_help="Write truths as predictions for a labelling tool.",
)
@click.argument("tool", type=click.Choice(["label-studio"]), metavar="TOOL")
@click.argument("folder", type=FOLDER)
@click.option("--tasks", type=FILE_PATH, required=True, help="JSON export of the project, with the data of its tasks.")
@click.option("--question", metavar="NAME", help="Question that was inferred, if the project has several.")
@click.option("--out", type=FILE_PATH, required=True, help="File to write.")
def export_results(tool: str, folder: Path, tasks: Path, question: str | None, out: Path) -> None:
    """Write the truths that infer wrote to FOLDER as predictions with scores, which TOOL (label-studio) imports.

    The score is the confidence of the truth. The file has the data of the tasks, but no worker's answer. To export
    reports, use `crowdveil campaign export`.
    """
    from crowdveil.answers.importers.export_file import ExportFile, whole_file_progress
    from crowdveil.answers.ingest.choices import CHOICE_MARK
    from crowdveil.files.atomic_write import write_outputs
    from crowdveil.storage.label_studio_predictions import label_studio_prediction_records, prediction_outputs
    from crowdveil.storage.results.result_files import read_results

    outputs = prediction_outputs(out)
    replaced = outputs.check_replaced_files(inputs=[tasks])
    estimate = read_results(folder).estimate
    exported = ExportFile(tasks, str(tasks))
    with progress_bar("reading", unit="bytes") as bar, whole_file_progress([exported], bar):
        records = label_studio_prediction_records(estimate, exported, question=question)
    with progress_bar("writing"):
        write_outputs(outputs, {out.name: json.dumps(records, ensure_ascii=False, indent=1) + "\n"})
    written = {str(record["id"]) for record in records}
    missing = sum(not written & {task, task.partition(CHOICE_MARK)[0]} for task in map(str, estimate.tasks))
    data = {"tool": tool, "predictions": len(records), "missing": missing}
    rows = [
        ("predictions", f"{len(records):,}"),
        *([("missing", f"{missing:,} truths have no task in {tasks}, or no value")] if missing else []),
    ]
    print_written(data, rows, [out], replaced)
