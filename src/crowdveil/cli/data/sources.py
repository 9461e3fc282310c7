"""Argument and options of all commands that read answers, and the source that they name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crowdveil.cli.options import Command, Parsed, option_group, parse_words
from crowdveil.cli.progress import progress_bar

if TYPE_CHECKING:
    from crowdveil.answers.ingest.choices import NothingTicked
    from crowdveil.answers.ingest.column_checks import Missing
    from crowdveil.answers.ingest.labels import LabelMap
    from crowdveil.answers.sources.answer_source import AnswerSource
    from crowdveil.answers.sources.location import Layout

SOURCE_TEXT = (
    "CSV, Parquet, JSON, Arrow, .xlsx or .ods files, a folder, 'parts/*.csv', a URL, - (stdin), DATABASE?TABLE or "
    "'DATABASE?SELECT ...'"
)


def nonempty_source_name(text: str) -> str:
    """Return the name of a source of answers; ValueError for empty text."""
    if not text:
        raise ValueError("A source must not be empty. Is a shell variable unset?")
    return text


def parse_label_map(text: str) -> LabelMap:
    """Return pairs such as Y=yes,N=no, or those in the two columns of a CSV file; ValueError for other text."""
    from crowdveil.answers.spreadsheets.sheets import file_and_sheet

    if file_and_sheet(Path(text)).file.is_file():
        from crowdveil.answers.ingest.csv_files import read_csv_table, read_header

        names = read_header(Path(text))
        if len(names) != len(set(names)) or len(names) != len(("label", "replacement")):
            raise ValueError(f"{text!r} must have two columns, labels and their replacements; found {len(names)}.")
        table = read_csv_table(Path(text), names)
        pairs = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    else:
        parts = [part.partition("=") for part in parse_words(text)]
        if not parts or not all(label and mark and other for label, mark, other in parts):
            raise ValueError(f"{text!r} is neither a map such as Y=yes,N=no nor a file.")
        pairs = [(label, other) for label, _, other in parts]
    if len({label for label, _ in pairs}) < len(pairs):
        raise ValueError("A label must not be mapped twice.")
    return tuple(pairs)


LABEL_MAP = Parsed("A=B,...", parse_label_map)
SOURCE = Parsed("REPORTS", nonempty_source_name)


def sources_argument(name: str) -> Callable[[Command], Command]:
    """Return the argument for one or several sources of answers."""
    return click.argument(name, nargs=-1, required=True, type=SOURCE)


name_options = option_group(
    click.option("--task-column", metavar="NAME", help="Column of tasks, if not recognised by name."),
    click.option("--worker-column", metavar="NAME", help="Column of workers; several in a wide table: ann,bob."),
    click.option("--label-column", metavar="NAME", help="Column of labels."),
    click.option("--value-column", metavar="NAME", help="Column of numbers, instead of labels."),
    click.option("--delimiter", metavar="C", help="Character between cells; '\\t' is a tab. [default: detected]"),
    click.option(
        "--encoding",
        metavar="NAME",
        help="Encoding of text: cp1250, cp1251, cp1252, utf-16-le, utf-16-be. [default: UTF-8 or marked UTF-16]",
    ),
    click.option(
        "--sheet", metavar="NAME", help="Sheet of a workbook; for one file: FILE?SHEET. [default: the only one]"
    ),
    click.option("--decimal", metavar="C", default=".", help="Decimal mark of answers: . or ,"),
    click.option(
        "--missing",
        type=click.Choice(["error", "skip"]),
        default="error",
        help="Empty answers: refuse them, or read them as no answer (NULL).",
    ),
    click.option("--map-labels", type=LABEL_MAP, help="Labels to rename: Y=yes,N=no, or a CSV file."),
    click.option(
        "--multiple",
        metavar="C",
        help="Separator of the choices in an answer, such as ';'; lists need none. 'none': answers have one choice.",
    ),
    click.option(
        "--nothing-ticked",
        type=click.Choice(["no", "skip"]),
        default="no",
        help="An answer with nothing ticked counts as no to each choice, or as no answer.",
    ),
    heading="Columns and exports",
)
column_options = option_group(
    name_options,
    click.option("--question", metavar="NAME", help="Question to read, if an export or a column question has several."),
    heading="Columns and exports",
)


@contextmanager
def open_sources(sources: Sequence[str], layout: Layout) -> Iterator[AnswerSource]:
    """Yield the source that the argument names; remote files are copied under a progress bar."""
    from crowdveil.answers.sources.answer_source import open_source

    with ExitStack() as stack:
        with progress_bar("copying", unit="bytes") as bar:
            source = stack.enter_context(open_source(sources, layout, bar))
        yield source


def layout_of(
    *, task_column: str | None, worker_column: str | None, label_column: str | None, value_column: str | None,
    delimiter: str | None, encoding: str | None, sheet: str | None, decimal: str, missing: Missing,
    multiple: str | None, nothing_ticked: NothingTicked, map_labels: LabelMap | None,
    question: str | None = None, tool: str | None = None, transpose: bool = False, weight: str | None = None,
) -> Layout:  # fmt: skip
    """Return what the options state of the layout of sources."""
    from crowdveil.answers.ingest.column_readers import ColumnNames
    from crowdveil.answers.sources.location import Layout

    return Layout(
        names=ColumnNames(
            task=task_column, worker=worker_column, label=label_column, value=value_column, weight=weight
        ),
        delimiter="\t" if delimiter in ("\\t", "tab") else delimiter,
        encoding=encoding,
        sheet=sheet,
        decimal=decimal,
        missing=missing,
        multiple=multiple,
        nothing_ticked=nothing_ticked,
        label_map=map_labels or (),
        question=question,
        tool=tool,
        transpose=transpose,
    )
