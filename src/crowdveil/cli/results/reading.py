"""Answers or reports that a verb on results reads, with the options that say how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crowdveil.cli.data.sources import column_options, open_given, sources_argument
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
reports_options = options(
    sources_argument("reports"),
    click.option("--certificate", type=PATH, metavar="FILE", help="Certificate in another folder than the reports."),
    alphabet_options,
    kind_option,
    duplicates_option(None),
    merge_labels_option,
    column_options,
)


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

    alphabet = alphabet_of(given)
    with open_given(reports, given) as source:
        replaced = list[str]()
        if out is not None:
            used = [*evidence_files(source), given["certificate"], *inputs]
            replaced = list(map(str, table_outputs(out, kind).check(inputs=used)))
        with progress_bar("reading", unit="bytes") as bar:
            evidence = read_evidence(
                source,
                certificate=given["certificate"],
                alphabet=alphabet,
                kind=given["kind"],
                duplicates=given["duplicates"],
                merge_labels=given["merge_labels"],
                progress=bar,
            )
        yield evidence, replaced
