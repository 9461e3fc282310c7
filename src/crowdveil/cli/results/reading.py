"""Answers or reports that a verb on results reads, with the options that say how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.data.sources import column_options, name_options, open_given, sources_argument
from crowdveil.cli.display import progress_bar
from crowdveil.cli.options import (
    PATH,
    Given,
    alphabet_of,
    alphabet_options,
    duplicates_option,
    kind_option,
    merge_labels_option,
    options,
)

if TYPE_CHECKING:
    from crowdveil.workflow.evidence import Evidence

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


def reading_of(given: Given) -> dict[str, Any]:
    """Return the keyword arguments of `read_evidence` from `answer_options`."""
    return {
        "certificate": given["certificate"],
        "alphabet": alphabet_of(given),
        "kind": given["kind"],
        "duplicates": given["duplicates"],
        "merge_labels": given["merge_labels"],
    }


@contextmanager
def read_given(
    reports: Sequence[str], out: Path | None, kind: str, given: Given, inputs: Sequence[Path | None] = ()
) -> Iterator[tuple[Evidence, list[str]]]:
    """Yield the evidence, and the earlier table that will be replaced; refuse a bad place of the table first.

    Sources that were copied for reading are removed at the end.

    Args:
        reports: names of sources.
        out: file of the table; None for none.
        kind: kind of the table.
        given: values of `reports_options`.
        inputs: further files that are read.
    """
    from crowdveil.workflow.evidence import evidence_files, read_evidence
    from crowdveil.workflow.review.tables import table_outputs

    reading = reading_of(given)
    with open_given(reports, given) as source:
        replaced = list[str]()
        if out is not None:
            used = [*evidence_files(source), given["certificate"], *inputs]
            replaced = list(map(str, table_outputs(out, kind).check(inputs=used)))
        with progress_bar("reading", unit="bytes") as bar:
            evidence = read_evidence(source, progress=bar, **reading)
        yield evidence, replaced
