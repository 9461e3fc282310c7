"""Inputs of a ranking: comparisons, the certificate of their channel, and known orders."""

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from crowdveil.answers.comparisons.columns import ComparisonNames
from crowdveil.answers.comparisons.reading import comparisons_of_source, plain_table
from crowdveil.answers.comparisons.repeats import without_repeats
from crowdveil.answers.comparisons.reports import comparisons_of_evidence, participation_of_reports
from crowdveil.answers.comparisons.values import Comparisons
from crowdveil.answers.evidence import Evidence, require_known_channel
from crowdveil.answers.facts.inputs import Input
from crowdveil.answers.importers.export_file import ExportFile
from crowdveil.answers.ingest.column_checks import Duplicates
from crowdveil.answers.ingest.csv_files import content_digest
from crowdveil.answers.sources.answer_source import AnswerSource
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.errors import SettingsError
from crowdveil.estimators.ranking.channels import ReportTable, report_table
from crowdveil.inference.ranking.rank import gold_roles
from crowdveil.storage.crowd import CERTIFICATE_FILE, find_crowd, report_directory
from crowdveil.storage.evidence import EvidenceOptions, matching_certificate_channel, read_evidence


class ReadComparisons(NamedTuple):
    """Comparisons as they were read.

    Attributes:
        rows: the comparisons.
        sent: table of their channel; None for answers.
        notes: sentences on how they were read.
        evidence: reports that were checked against their crowd.json; None for others.
        certificate: certificate without a crowd.json; None for answers.
    """

    rows: Comparisons
    sent: ReportTable | None
    notes: tuple[str, ...]
    evidence: Evidence | None = None
    certificate: Path | None = None

    @property
    def sha256(self) -> str:
        """SHA-256 of the comparisons, of checked reports as `Evidence.sha256`."""
        return self.rows.sha256 if self.evidence is None else self.evidence.sha256

    def inputs(self, gold: Path | None = None, *, public_gold: bool = False) -> tuple[Input, ...]:
        """Return what a ranking of them depends on, each with its digest, and a guarantee where one was checked."""
        found: tuple[Input, ...] = (Input(role="reports", sha256=self.sha256),)
        if self.evidence is not None:
            found = self.evidence.every_input
        elif self.certificate is not None:
            found += (Input(role="certificate", sha256=content_digest(self.certificate), public=True),)
        known = () if gold is None else (Input(role="gold", sha256=content_digest(gold), public=public_gold),)
        return (*found, *known)


def certificate_of(source: AnswerSource, given: Path | None) -> Path | None:
    """Return the certificate of comparisons: the given one, else that in their folder."""
    path = source.collection_path
    if given is not None or path is None:
        return given
    beside = report_directory(path) / CERTIFICATE_FILE
    return beside if beside.is_file() else None


def read_comparisons(
    source: AnswerSource,
    names: ComparisonNames,
    certificate: Path | None = None,
    participation_rate: float | None = None,
    duplicates: Duplicates = "all",
) -> ReadComparisons:
    """Return the comparisons of a source, read through the channel of a certificate if there is one.

    Raises:
        ReportsError: as `comparisons_of_source` and `without_repeats`.
        CertificateError: the certificate is damaged.
        SettingsError: the channel is not one of comparisons, or a participation rate without a channel.
    """
    if source.collection_path is not None and find_crowd(source.collection_path) is not None:
        evidence = read_evidence(source, EvidenceOptions(certificate=certificate))
        return comparisons_of_collection(evidence, source.name, participation_rate)
    path = certificate_of(source, certificate)
    if path is None:
        if participation_rate is not None:
            hint = "Give the certificate."
            raise SettingsError("a participation rate goes with a channel", value=participation_rate, hint=hint)
        rows, notes = comparisons_of_source(source, names)
        return ReadComparisons(without_repeats(rows, duplicates), None, notes)
    channel = matching_certificate_channel(path, None)
    _require_one_channel(channel)
    assert isinstance(channel, Channel)
    sent = report_table(channel, participation_rate)
    rows, notes = comparisons_of_source(source, names, sent.outputs)
    return ReadComparisons(without_repeats(rows, duplicates), sent, notes, certificate=path)


def comparisons_of_collection(
    evidence: Evidence, source: str, participation_rate: float | None = None
) -> ReadComparisons:
    """Return the comparisons of reports with their crowd.json: of all cells that were asked, NULL included.

    Raises:
        ReportsError: as `comparisons_of_evidence`.
        SettingsError: the channel is not one of comparisons.
    """
    channel, notes = require_known_channel(evidence, "a ranking"), evidence.notes
    _require_one_channel(channel)
    rows = comparisons_of_evidence(evidence, source)
    if not isinstance(channel, Channel):
        return ReadComparisons(rows, None, notes, evidence)
    if participation_rate is None:
        participation_rate = participation_of_reports(rows, channel)
        if participation_rate is not None:
            share = f"{participation_rate:.0%}"
            notes = (*notes, f"About {share} of the comparisons asked are answered, by the reports.")
    return ReadComparisons(rows, report_table(channel, participation_rate), notes, evidence)


def _require_one_channel(channel: object) -> None:
    """Refuse a table of channels."""
    if isinstance(channel, ChannelTable):
        hint = "Rank the reports of each channel alone."
        raise SettingsError("comparisons are sent through one channel", value="a table of channels", hint=hint)


def read_known_orders(path: Path) -> pa.Table:
    """Return the known orders of a file of any form, as a frame: left, right, label, and maybe list.

    Raises:
        ReportsError: a damaged file, or a missing column.
    """
    return plain_table(ExportFile(path, str(path)), gold_roles)[1]
