"""Outputs of tools that hold no answers of workers, or in a form that is not read: recognised, and named."""

from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.errors import ReportsError

METADATA = "-metadata"


def refuse_other_output(export: ExportFile) -> None:
    """Refuse a file of SageMaker Ground Truth.

    Raises:
        ReportsError: it is an output manifest, or the answers of workers to one object.
    """
    if export.form != "json":
        return
    columns = set(export.columns)
    if {"source", "source-ref"} & columns and any(name.endswith(METADATA) for name in columns):
        raise ReportsError(
            "a manifest of SageMaker Ground Truth holds one consolidated label for each object, and no worker's answer",
            source=export.name,
            examples=", ".join(sorted(name for name in columns if name.endswith(METADATA))),
            hint="The answers are in the folder annotations/worker-response of the job's output: write them as a table "
            "task,worker,label.",
        )
    if columns == {"answers"} and "workerId" in str(export.rows_as_mappings[0]["answers"])[:1000]:
        raise ReportsError(
            "a worker response of SageMaker Ground Truth holds the answers to one object, without its name",
            source=export.name,
            hint="Write the responses of all objects as a table task,worker,label: the worker is workerId, the task "
            "the folder of the file.",
        )
