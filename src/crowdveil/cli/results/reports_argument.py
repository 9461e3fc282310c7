"""Answers or reports that a verb on results reads, with the options that say how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.data.sources import (
    column_options,
    layout_of,
    name_options,
    open_sources,
    sources_argument,
)
from crowdveil.cli.display import print_written, warning_rows
from crowdveil.cli.options import (
    FILE_PATH,
    WORDS,
    alphabet_of,
    alphabet_options,
    duplicates_option,
    flag_of,
    kind_option,
    merge_labels_option,
    option_group,
    stated_options,
)
from crowdveil.cli.progress import Bar, progress_bar

if TYPE_CHECKING:
    from crowdveil.answers.evidence import Evidence
    from crowdveil.answers.identifiers import Identifiers
    from crowdveil.answers.ingest.column_checks import Duplicates
    from crowdveil.answers.read_options import Kind
    from crowdveil.answers.sources.answer_source import AnswerSource
    from crowdveil.answers.sources.location import Layout
    from crowdveil.channels.alphabet import Alphabet, Categories
    from crowdveil.files.atomic_write import Outputs
    from crowdveil.storage.evidence import EvidenceOptions
    from crowdveil.storage.recorded_reading_options import NamedReports

NOT_OF_PANELS = (
    *("method", "max_steps", "tolerance", "prior", "history", "start_from", "save_fit"),
    *("memory", "engine", "address", "below"),
)
"""Options that do not go with truths of their own."""

truths_option = click.option(
    "--truths", type=WORDS, help="Labels of the truths, if answers have others; low answers mean the first."
)
history_option = click.option("--history", type=FILE_PATH, help="Earlier quality of workers, as in infer.")
certificate_option = click.option(
    "--certificate", type=FILE_PATH, help="Certificate, if it is not in the folder of the reports."
)
asked_options = option_group(
    click.option(
        "--tasks",
        "asked_tasks",
        type=FILE_PATH,
        help="CSV file (column task) of all tasks asked, if there is no crowd.json.",
    ),
    click.option(
        "--workers",
        "asked_workers",
        type=FILE_PATH,
        help="CSV file (column worker) of all workers asked, if there is no crowd.json.",
    ),
)
"""Lists of those asked, without which protected reports are refused."""
answer_options = option_group(
    certificate_option, alphabet_options, kind_option, duplicates_option(None), merge_labels_option
)
reports_options = option_group(sources_argument("reports"), answer_options, column_options)
release_options = option_group(
    answer_options,
    click.option(
        "--no-certificate", is_flag=True, help="Reports were read as answers: infer was run with this option."
    ),
    name_options,
)
"""Options by which a release reads the reports as `infer` did; it finds the question by itself."""


def evidence_options_of(
    *,
    alphabet: Alphabet | None,
    kind: Kind | None,
    duplicates: Duplicates | None,
    merge_labels: bool,
    certificate: Path | None = None,
    no_certificate: bool = False,
    accept_edited: bool = False,
    truths: tuple[str, ...] | None = None,
    asked_tasks: Path | None = None,
    asked_workers: Path | None = None,
) -> EvidenceOptions:
    """Return how the options say that reports are read; a command may lack those with a default."""
    from crowdveil.storage.evidence import EvidenceOptions

    if certificate is not None and no_certificate:
        raise click.UsageError("Give --certificate or --no-certificate, not both.")
    if truths is not None:
        for name in sorted(stated_options().intersection(NOT_OF_PANELS)):
            raise click.UsageError(f"{flag_of(name)} cannot be used with --truths.")
    return EvidenceOptions(
        certificate=certificate,
        use_certificate=not no_certificate,
        alphabet=alphabet,
        kind=kind,
        duplicates=duplicates,
        merge_labels=merge_labels,
        accept_edited=accept_edited,
        truths=() if truths is None else tuple(name.strip() for name in truths),
        tasks=asked_tasks,
        workers=asked_workers,
    )


def named_reports(reports: tuple[str, ...], layout: Layout, reading: EvidenceOptions) -> NamedReports:
    """Return the reports that the argument names, with the options that say how they are read."""
    from crowdveil.storage.recorded_reading_options import NamedReports

    return NamedReports(sources=reports, layout=layout, options=reading)


REPORTS: dict[str, Callable[..., Any]] = {
    "alphabet": alphabet_of,
    "layout": layout_of,
    "reading": evidence_options_of,
    "reports": named_reports,
}
"""Values (see `Verb`) by which the options of reading become one argument, `reports`."""
READING_OPTIONS = {name for function in REPORTS.values() for name in signature(function).parameters}.difference(REPORTS)
"""Options that say how reports are read."""


@dataclass(frozen=True, kw_only=True)
class ReadReports:
    """Reports that a verb reads, and the table that it may write.

    Attributes:
        evidence: the reports.
        outputs: the table; None for none.
        replaced: earlier table that is replaced.
        folder: folder of results that names the reports; None for reports.
    """

    evidence: Evidence
    outputs: Outputs | None
    replaced: list[Path]
    folder: Path | None = None

    @property
    def gold_of_results(self) -> dict[str, Any] | None:
        """Known truths that guided the fit of the folder of results, by task; None without any.

        Raises:
            ReportsError: the truths were changed since.
        """
        from crowdveil.storage.results.result_files import read_results

        return None if self.folder is None else read_results(self.folder).estimate.known_truths

    def write_table_and_print(
        self,
        data: dict[str, Any],
        rows: Callable[[dict[str, Any]], list[tuple[str, str]]],
        columns: Callable[[], Mapping[str, Identifiers]],
        page: Outputs | None = None,
        text: str = "",
        replaced: Sequence[Path] = (),
    ) -> None:
        """Write the table and the page, if there are any, and print the result.

        The page is on the disk before the table is replaced, and is renamed last: no failure leaves half of a file.

        Args:
            data: members of the JSON document; its `warnings` are by default those of the evidence.
            rows: returns the table rows of the data.
            columns: returns the columns of the table.
            page: page to write beside it; None for none.
            text: the page.
            replaced: earlier page that it replaces.
        """
        from crowdveil.files.atomic_write import staged_outputs
        from crowdveil.storage.tables import write_columns

        with nullcontext() if page is None else staged_outputs(page) as staged:
            if page is not None and staged is not None:
                (staged / page.names[0]).write_text(text, "utf-8")
            formulas = () if self.outputs is None else write_columns(self.outputs, columns())
        data = {"warnings": list(self.evidence.notes)} | data
        data["warnings"] = [*data["warnings"], *formulas]
        files = [path for one in (self.outputs, page) if one is not None for path in one.paths]
        print_written(data, [*warning_rows(data), *rows(data)], files, [*self.replaced, *replaced])


@contextmanager
def open_reports(
    reports: NamedReports, out: Path | None, kind: str, inputs: Sequence[Path | None] = (), *, any_labels: bool = False
) -> Iterator[ReadReports]:
    """Yield the reports, with the earlier table that will be replaced; refuse a bad place of the table first.

    Sources that were copied for reading are removed at the end.

    Args:
        reports: as the options name them.
        out: file of the table; None for none.
        kind: kind of the table.
        inputs: further files that are read.
        any_labels: whether answers of one label are no error.
    """
    from crowdveil.files.atomic_write import Outputs
    from crowdveil.storage.evidence import evidence_files
    from crowdveil.storage.tables import table_form

    recorded = source_reports(reports.sources)
    used = reports if recorded is None else recorded
    with open_sources(used.sources, used.layout) as source:
        outputs = None if out is None else Outputs(folder=out.parent, names=(out.name,), kind=kind)
        if out is not None:
            table_form(out)
        options = used.options
        read = [*evidence_files(source), options.certificate, options.tasks, options.workers, *inputs]
        replaced = [] if outputs is None else outputs.check_replaced_files(inputs=read)
        with progress_bar("reading", unit="bytes") as bar:
            evidence = _evidence(source, used.options, bar, any_labels=any_labels)
        if recorded is not None:
            recorded.require_same_reports(evidence, source)
        folder = None if recorded is None else Path(reports.sources[0])
        yield ReadReports(evidence=evidence, outputs=outputs, replaced=replaced, folder=folder)


def _evidence(source: AnswerSource, options: EvidenceOptions, bar: Bar | None, *, any_labels: bool) -> Evidence:
    from crowdveil.quality.agreement.measured import evidence_of_any_labels
    from crowdveil.storage.evidence import read_evidence

    def read(alphabet: Categories | None) -> Evidence:
        return read_evidence(source, options if alphabet is None else replace(options, alphabet=alphabet), progress=bar)

    return evidence_of_any_labels(read) if any_labels else read(None)


def source_reports(sources: Sequence[str]) -> NamedReports | None:
    """Return the reports from which a folder of results was inferred; None for other sources.

    Raises:
        click.UsageError: the folder says how they were read, and an option says it again.
        ReportsError: a folder that only has folders of results, one for each question.
    """
    from crowdveil.storage.estimate_files import refuse_question_folders
    from crowdveil.storage.recorded_reading_options import recorded_reports

    folder = Path(sources[0]) if len(sources) == 1 else None
    recorded = None if folder is None else recorded_reports(folder)
    if folder is not None and folder.is_dir() and not any(path.is_file() for path in folder.iterdir()):
        refuse_question_folders(folder)
    if recorded is not None and stated_options().intersection(READING_OPTIONS):
        raise click.UsageError(
            f"{sources[0]} holds results, which record how their reports were read. Leave out options of "
            "reading (such as --labels), or name the reports."
        )
    return recorded
