"""Answers or reports that a verb on results reads, with the options that say how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.data.sources import (
    OF_SOURCES,
    column_options,
    layout_of,
    name_options,
    open_sources,
    sources_argument,
)
from crowdveil.cli.display import print_written, progress_bar, warning_rows
from crowdveil.cli.options import (
    PATH,
    Given,
    alphabet_of,
    alphabet_options,
    duplicates_option,
    kind_option,
    merge_labels_option,
    options,
    stated_options,
)

if TYPE_CHECKING:
    from crowdveil.data.identifiers import Identifiers
    from crowdveil.files.atomic_write import Outputs
    from crowdveil.folder.evidence import Evidence, Reading
    from crowdveil.folder.recorded_reading import RecordedReading

NOT_OF_PANELS = (
    *("method", "max_steps", "tolerance", "prior", "history", "start_from", "save_fit"),
    *("memory", "engine", "address", "below"),
)
"""Options that do not go with truths of their own."""

truths_option = click.option(
    "--truths", metavar="A,B,...", help="Truths that are not labels of the answers; low answers: first."
)
history_option = click.option("--history", type=PATH, metavar="FILE", help="Earlier quality of workers, as of infer.")
certificate_option = click.option(
    "--certificate", type=PATH, metavar="FILE", help="Certificate in another folder than the reports."
)
answer_options = options(
    certificate_option, alphabet_options, kind_option, duplicates_option(None), merge_labels_option
)
reports_options = options(sources_argument("reports"), answer_options, column_options)
release_options = options(
    answer_options,
    click.option("--no-certificate", is_flag=True, help="Reports were read as answers: infer had the same option."),
    name_options,
)
"""Options by which a release reads the reports as `infer` did; it finds the question by itself."""


READING = (
    *("certificate", "no_certificate", "labels", "scale", "ordered", "kind", "duplicates", "merge_labels", "truths"),
    *OF_SOURCES,
)
"""Parameters of `reports_options` and `release_options`."""


def reading_of(given: Given) -> Reading:
    """Return how the options say that reports are read; a command may lack those of certificates and of truths."""
    from crowdveil.folder.evidence import Reading

    truths = given.get("truths")
    if truths is not None:
        _refuse_beside_truths()
    return Reading(
        certificate=given.get("certificate"),
        use_certificate=not given.get("no_certificate"),
        alphabet=alphabet_of(given),
        kind=given["kind"],
        duplicates=given["duplicates"],
        merge_labels=given["merge_labels"],
        accept_edited=given.get("accept_edited", False),
        truths=() if truths is None else tuple(name.strip() for name in truths.split(",")),
    )


def _refuse_beside_truths() -> None:
    """Refuse options of fits that have no truths of their own."""
    for name in NOT_OF_PANELS:
        if name in stated_options():
            raise click.UsageError(f"--{name.replace('_', '-')} does not go with --truths.")


@dataclass(frozen=True, kw_only=True)
class Reviewed:
    """Reports that a verb reads, and the table that it may write.

    Attributes:
        evidence: the reports.
        outputs: the table; None for none.
        replaced: earlier table that is replaced.
        folder: folder of results that names the reports; None for reports.
    """

    evidence: Evidence
    outputs: Outputs | None
    replaced: list[str]
    folder: Path | None = None

    @property
    def gold(self) -> dict[str, Any] | None:
        """Known truths that guided the fit of the folder of results, by task; None without any.

        Raises:
            ReportsError: the truths were changed since.
        """
        from crowdveil.release.result_files import read_results

        return None if self.folder is None else read_results(self.folder).estimate.known_truths

    def show(
        self,
        data: dict[str, Any],
        rows: Callable[[dict[str, Any]], list[tuple[str, str]]],
        columns: Callable[[], Mapping[str, Identifiers]],
        *,
        as_json: bool,
    ) -> None:
        """Write the table, if there is one, and print the result.

        Args:
            data: members of the JSON document; its `warnings` are by default those of the evidence.
            rows: returns the table rows of the data.
            columns: returns the columns of the table.
            as_json: as `print_result`.
        """
        from crowdveil.folder.tables import write_columns

        if self.outputs is not None:
            write_columns(self.outputs, columns())
        files = [] if self.outputs is None else list(map(str, self.outputs.paths))
        data = {"warnings": list(self.evidence.notes)} | data | {"files": files, "replaced": self.replaced}
        print_written(data, [*warning_rows(data), *rows(data)], as_json=as_json)


@contextmanager
def read_given(
    reports: Sequence[str], out: Path | None, kind: str, given: Given, inputs: Sequence[Path | None] = ()
) -> Iterator[Reviewed]:
    """Yield the reports, with the earlier table that will be replaced; refuse a bad place of the table first.

    Sources that were copied for reading are removed at the end.

    Args:
        reports: names of sources.
        out: file of the table; None for none.
        kind: kind of the table.
        given: values of `reports_options`.
        inputs: further files that are read.
    """
    from crowdveil.files.atomic_write import Outputs
    from crowdveil.folder.evidence import evidence_files, read_evidence

    recorded = folder_reading(reports)
    folder = None if recorded is None else Path(reports[0])
    if recorded is None:
        layout, reading = layout_of(given), reading_of(given)
    else:
        reports, layout, reading = recorded.sources, recorded.layout, recorded.options
    with open_sources(reports, layout) as source:
        outputs = None if out is None else Outputs(folder=out.parent, names=(out.name,), kind=kind)
        used = [*evidence_files(source), reading.certificate, *inputs]
        replaced = [] if outputs is None else list(map(str, outputs.check(inputs=used)))
        with progress_bar("reading", unit="bytes") as bar:
            evidence = read_evidence(source, reading, progress=bar)
        if recorded is not None:
            recorded.require_same(evidence, source)
        yield Reviewed(evidence=evidence, outputs=outputs, replaced=replaced, folder=folder)


def folder_reading(reports: Sequence[str]) -> RecordedReading | None:
    """Return how the reports of a folder of results were read; None for reports.

    Raises:
        click.UsageError: the folder says how, and an option says it again.
        ReportsError: a folder that only has folders of results, one for each question.
    """
    from crowdveil.folder.recorded_reading import recorded_reading
    from crowdveil.folder.truths import refuse_question_folders

    folder = Path(reports[0]) if len(reports) == 1 else None
    recorded = None if folder is None else recorded_reading(folder)
    if folder is not None and folder.is_dir() and not any(path.is_file() for path in folder.iterdir()):
        refuse_question_folders(folder)
    if recorded is not None and stated_options().intersection(READING):
        raise click.UsageError(
            f"{reports[0]} holds results, which say how their reports were read: leave options of reading (such as "
            "--labels) out, or name the reports."
        )
    return recorded
