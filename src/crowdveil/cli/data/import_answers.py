"""`crowdveil import`: answers from the export of a labelling tool, as one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.answers.importers.registry import TOOLS
from crowdveil.cli.data.sources import column_options, layout_of, open_sources, sources_argument
from crowdveil.cli.display import print_written, warning_rows
from crowdveil.cli.options import FILE_PATH, NameChoice
from crowdveil.cli.progress import progress_bar
from crowdveil.cli.verb import Verb
from crowdveil.display.counts import crowd_text

if TYPE_CHECKING:
    from crowdveil.answers.importers.imported_answers import ImportedAnswers
    from crowdveil.answers.sources.location import Layout
    from crowdveil.answers.write_reports import TableForm


@click.command(
    "import",
    cls=Verb,
    values={"layout": layout_of},
    example="crowdveil import label-studio export.json --out answers.parquet",
    main_options=("question", "delimiter", "transpose", "out", "form", "as_json"),
    short_help="Read the export of a labelling tool as one table.",
)
@click.argument("tool", type=NameChoice(TOOLS), metavar="TOOL")
@sources_argument("files")
@column_options
@click.option("--transpose", is_flag=True, help="The wide table has one row per respondent and one column per task.")
@click.option("--out", type=FILE_PATH, required=True, help="File to write.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet", "json", "jsonl", "xlsx"]),
    help="Format of the file. [default: by the ending of its name]",
)
def import_answers(files: tuple[str, ...], layout: Layout, out: Path, form: TableForm | None) -> None:
    """Write the answers in the export of a labelling tool as a table with the columns task, worker and label.

    TOOL is label-studio, argilla, toloka, mturk, prodigy, zooniverse, doccano (one file per annotator) or wide (one row
    per task, one column per worker; with --transpose the sheet of a form: one row per respondent). FILES are the export
    as the tool wrote it. Skipped and cancelled tasks have the label NULL: "no answer". Times, ratings and addresses are
    left out; the output lists their columns.

    \f
    infer and perturb recognise exports themselves. Import an export to look at its answers or to keep them.

    Rejected submissions, drafts and ground truths are left out and counted. A worker who is named by an e-mail address,
    an IP address or a time gets a number. The number is valid within one import only, so import all files of a crowd
    together.
    """
    from crowdveil.answers.write_reports import formula_names_warning, write_table
    from crowdveil.files.atomic_write import Outputs, write_outputs

    outputs, written_form = Outputs(folder=out.parent, names=(out.name,), kind="answers"), _form_of(out, form)
    with open_sources(files, layout) as source:
        replaced = outputs.check_replaced_files(inputs=source.inputs)
        with progress_bar("reading", unit="bytes") as bar:
            imported = source.answers_of_tool_export(bar).with_mapped_labels(layout.label_map)
        with progress_bar("writing"):
            table = imported.table
            write_outputs(outputs, {out.name: lambda stream: write_table(stream, table, written_form)})
    names = (table[name].unique().to_pylist() for name in ("task", "worker", "label"))
    warnings = (*imported.columns, *formula_names_warning(written_form, *names))
    data = _data_to_print_as_json(imported) | {"warnings": list(warnings)}
    print_written(data, [*_rows_to_print(data), *warning_rows(data)], [out], replaced)


def _form_of(out: Path, form: TableForm | None) -> TableForm:
    """Return the stated form of a file, else that of its name; a name without one is refused."""
    from crowdveil.answers.write_reports import TABLE_FORMS
    from crowdveil.errors import SettingsError

    named = form or out.suffix.removeprefix(".").lower()
    if named not in TABLE_FORMS:
        rule = f"the file must end in .{', .'.join(TABLE_FORMS)}"
        raise SettingsError(rule, value=out.name, hint="State the format with --format.")
    return named


def _data_to_print_as_json(imported: ImportedAnswers) -> dict[str, Any]:
    table = imported.table
    return {
        "tool": imported.tool,
        "question": imported.question,
        "questions": list(imported.questions),
        "data": list(imported.data),
        "choices": list(imported.choices),
        "nothing_ticked": imported.nothing_ticked,
        "answers": len(table) - imported.no_answer,
        "no_answer": imported.no_answer,
        "left_out": imported.left_out,
        "tasks": len(table["task"].unique()),
        "workers": len(table["worker"].unique()),
        "labels": sorted(set(table["label"].unique().to_pylist()) - {"NULL"})[:20],
        "dropped": list(imported.dropped),
        "renamed_workers": imported.renamed,
    }


def _rows_to_print(data: dict[str, Any]) -> list[tuple[str, str]]:
    others = [name for name in data["questions"] if name != data["question"]]
    left_out = ", ".join(f"{count:,} ({reason})" for reason, count in data["left_out"].items())
    return [
        ("question", data["question"] + (f" (not read: {', '.join(others)})" if others else "")),
        *(
            [("choices", f"several in an answer: a task TASK|CHOICE for each of {', '.join(data['choices'])}")]
            if data["choices"]
            else []
        ),
        *(
            [("not ticked", f"nothing in {data['nothing_ticked']:,} answers (--nothing-ticked says what it means)")]
            if data["nothing_ticked"]
            else []
        ),
        *([("data", f"no two answers to a task differ: {', '.join(data['data'])}")] if data["data"] else []),
        ("answers", f"{data['answers']:,} from {crowd_text(data['workers'], data['tasks'])}"),
        ("no answer", f"{data['no_answer']:,}, with the label NULL"),
        *([("left out", left_out)] if left_out else []),
        ("labels", ", ".join(data["labels"]) or "none"),
        ("not kept", ", ".join(data["dropped"]) or "no column of times, ratings or addresses was found"),
        *(
            [("workers", f"{data['renamed_workers']:,} were named by an address or a time, and now have numbers")]
            if data["renamed_workers"]
            else []
        ),
    ]
